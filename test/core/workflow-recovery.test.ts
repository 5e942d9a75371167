/** Runs that were taken over and could not be read are tried again, as what they are by then. */
import { expect, test } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger, type MemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { codeOf, createWorkflowScene } from "../support/workflow-scene.ts";

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
