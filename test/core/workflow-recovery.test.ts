/** Runs that were taken over and could not be read are tried again, as what they are by then; runs with damaged logs are not. */
import { describe, expect, test } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger, type MemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import {
  createEdge,
  createNode,
  createSupervised,
  createWorkflow,
  sendNextWorker,
  TERMINATE,
} from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene } from "../support/workflow-scene.ts";

const gated = createWorkflow("gated", {
  nodes: [createNode("gate", "core.approvalGate"), createNode("after")],
  edges: [createEdge("gate>after")],
});

interface Faults {
  isBroken: boolean;
}

/** The same ledger, of whose runs nothing can be read while it is broken. */
function breakReads(ledger: MemoryWorkflowLedger, faults: Faults): MemoryWorkflowLedger {
  return {
    ...ledger,
    open: () => {
      const store = ledger.open();
      return {
        ...store,
        entry: (runId) =>
          faults.isBroken
            ? Promise.reject(new CoordinationError("LEDGER_UNAVAILABLE", "the disk does not answer"))
            : store.entry(runId),
      };
    },
  };
}

test("a run that was taken over twice, and could not be read the first time, is gone on with", async () => {
  const ledger = createMemoryWorkflowLedger();
  const clock = createFakeClock();
  const { owners } = ledger.open();
  const options = { clock, definitions: [gated], alive: new Set([2]) };
  const runId = (await createWorkflowScene({ ...options, ledger, pid: 1 }).run("gated")) as CoordinationId;
  const faults = { isBroken: true };
  const scene = createWorkflowScene({ ...options, ledger: breakReads(ledger, faults), pid: 2 });
  await scene.host.start();
  const from = (await owners.beats()).map(({ id }) => id);
  expect(await owners.take({ owner: "third", from, limit: 10 })).toMatchObject([{ runId, token: 3 }]);
  await owners.remove("third");
  faults.isBroken = false;
  await clock.advance(2_500);
  expect((await owners.ownersOf([runId])).get(runId)?.token).toBe(4);
  expect(codeOf(await scene.answer(runId, "gate", { action: "accept" }))).toBe("done");
  await clock.advance(500);
  expect(await scene.status(runId)).toBe("completed");
  await scene.host.stop();
});

describe("a run whose log is damaged", () => {
  const slow = createWorkflow("slow", { nodes: [createNode("wait", "core.delay", { delayMs: 10_000 })] });
  const asking = createWorkflow("asking", {
    nodes: [createNode("model", "core.ai.callPrompt", { prompt: "?" })],
  });
  const parent = createSupervised("parent", [sendNextWorker("slow"), TERMINATE]);
  const definitions = [slow, asking, parent];
  const damageLog = (ledger: MemoryWorkflowLedger, runId: string): void => {
    const { events = [] } = ledger.runs.get(runId as CoordinationId) ?? {};
    events[1] = (events[1] ?? "").replace('"typeId"', '"typeIf"');
  };
  const report =
    "a log that a workflow run needs is damaged, so the run does not go on: run `openclaw coordination verify`";
  const describeDamage = (runId: string): string =>
    `${report} ${JSON.stringify({ runId, code: "EVENT_UNREADABLE" })}`;

  test.each([
    ["has an effect under way", "asking"],
    ["is in a delay", "slow"],
  ])(
    "and that %s is reported once, is not tried again and counts for no quota",
    async (_title, workflowId) => {
      const shared = { ledger: createMemoryWorkflowLedger(), clock: createFakeClock(), definitions };
      const chat = { complete: () => new Promise<never>(() => undefined) };
      const first = createWorkflowScene({ ...shared, chat, pid: 1 });
      const runId = await first.run(workflowId);
      first.die();
      damageLog(shared.ledger, runId);
      const next = createWorkflowScene({ ...shared, chat, pid: 2, quotas: { liveRuns: 1 } });
      await next.host.start();
      await next.clock.advance(60_000);
      expect(next.said.filter((text) => text.includes(runId))).toEqual([describeDamage(runId)]);
      expect(
        codeOf(await next.host.create(ALICE, { workflowId: "slow", inputs: {}, transport: "rest" })),
      ).toBe("done");
      await next.host.stop();
    },
  );

  test("and the run that waits for it are reported once each", async () => {
    const shared = { ledger: createMemoryWorkflowLedger(), clock: createFakeClock(), definitions };
    const first = createWorkflowScene({ ...shared, pid: 1 });
    const parentRun = await first.run("parent");
    const child = [...shared.ledger.runs.keys()].find((runId) => runId !== parentRun) ?? "";
    first.die();
    damageLog(shared.ledger, child);
    const next = createWorkflowScene({ ...shared, pid: 2 });
    await next.host.start();
    await next.clock.advance(60_000);
    const reports = next.said.filter((text) => text.includes("runId"));
    expect(reports.toSorted()).toEqual([child, parentRun].map(describeDamage).toSorted());
    await next.host.stop();
  });
});
