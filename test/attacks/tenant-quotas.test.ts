/** One tenant that takes all it can get is told so, and the others do not notice. */
import { describe, expect, test } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { forkIn } from "../support/forks.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import {
  ALICE,
  MALLORY,
  codeOf,
  valueOf,
  createWorkflowScene,
  type WorkflowScene,
} from "../support/workflow-scene.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";

const slow = createWorkflow("slow", { nodes: [createNode("wait", "core.delay", { delayMs: 60_000 })] });
const self = createWorkflow("self", {
  nodes: [createNode("sub", "core.subWorkflow", { workflowId: "self" })],
});
const asks = createWorkflow("asks", { nodes: [createNode("model", "core.chatCompletion", { prompt: "p" })] });
const definitions = [slow, self, asks];
const request = { workflowId: "slow", inputs: {}, transport: "rest" } as const;
const matchRefusal = (quota: string, limit: number): object => ({
  kind: "refused",
  code: "rate_limited",
  message: expect.stringMatching(new RegExp(`${quota} .*at most ${limit} .*operator`)) as string,
  details: expect.objectContaining({ quota, limit }) as object,
});

describe("a tenant that reaches a quota", () => {
  test("starts no more runs until some have ended, while others do", async () => {
    const scene = createWorkflowScene({ definitions, quotas: { liveRuns: 2 } });
    await scene.run("slow");
    const second = await scene.run("slow");
    expect(await scene.host.create(ALICE, request)).toMatchObject(matchRefusal("liveRuns", 2));
    expect(codeOf(await scene.host.create(MALLORY, request))).toBe("done");
    valueOf(await scene.host.cancel(ALICE, second, {}));
    expect(codeOf(await scene.host.create(ALICE, request))).toBe("done");
  });

  test("is not held to a run that could not be begun, wherever the ledger failed", async () => {
    const ledger = createMemoryWorkflowLedger();
    let isDown = true;
    const failing = {
      ...ledger,
      open: () => {
        const store = ledger.open();
        const putDefinition: typeof store.putDefinition = (definition) =>
          isDown
            ? Promise.reject(new CoordinationError("LEDGER_BUSY", "down"))
            : store.putDefinition(definition);
        return { ...store, putDefinition };
      },
    };
    const scene = createWorkflowScene({ definitions, ledger: failing, quotas: { liveRuns: 1 } });
    await expect(scene.host.create(ALICE, request)).rejects.toThrow("down");
    isDown = false;
    expect(codeOf(await scene.host.create(ALICE, request))).toBe("done");
  });

  test("is held to a live run that is asked for again", async () => {
    const scene = createWorkflowScene({ definitions, quotas: { liveRuns: 1 } });
    const runId = (await scene.run("slow")) as CoordinationId;
    expect(codeOf(await scene.host.create(ALICE, { ...request, runId }))).toBe("done");
    expect(codeOf(await scene.host.create(ALICE, request))).toBe("rate_limited");
  });

  test("is told of the run that it asked for before, where that was written and the answer was lost", async () => {
    let isLost = true;
    const failAfter = (): void => {
      if (isLost) throw new CoordinationError("LEDGER_UNAVAILABLE", "the answer was lost");
    };
    const scene = createWorkflowScene({ definitions, quotas: { liveRuns: 1 }, faults: { after: failAfter } });
    const runId = "asked-again" as CoordinationId;
    await expect(scene.host.create(ALICE, { ...request, runId })).rejects.toThrow("the answer was lost");
    isLost = false;
    await scene.run("slow");
    expect(codeOf(await scene.host.create(ALICE, request))).toBe("rate_limited");
    expect(valueOf(await scene.host.create(ALICE, { ...request, runId }))).toMatchObject({ runId });
    expect(codeOf(await scene.host.create(MALLORY, { ...request, runId }))).toBe("run_already_active");
  });

  test("keeps the child that a process wrote and did not live to note in the parent", async () => {
    const parent = createWorkflow("parent", {
      nodes: [createNode("sub", "core.subWorkflow", { workflowId: "slow" })],
    });
    const [ledger, clock] = [createMemoryWorkflowLedger(), createFakeClock()];
    const both = { definitions: [slow, parent], ledger, clock };
    const runId = "the-parent" as CoordinationId;
    const before: WorkflowScene = createWorkflowScene({
      ...both,
      pid: 1,
      faults: { after: ({ events }) => (events[0]?.runId === runId ? undefined : before.die()) },
    });
    await before.run("parent", { runId });
    expect(ledger.runs.size).toBe(2);
    const after = createWorkflowScene({ ...both, pid: 2, alive: new Set([2]), quotas: { liveRuns: 1 } });
    await after.host.start();
    await clock.advance(70_000);
    expect(await after.status(runId)).toBe("completed");
    expect(ledger.runs.size).toBe(2);
    await after.host.stop();
  });

  test("stores no more in its live runs", async () => {
    const scene = createWorkflowScene({ definitions, quotas: { liveChars: 5_000 } });
    const runId = await scene.run("slow", { inputs: { text: "x".repeat(6_000) } });
    expect(await scene.host.create(ALICE, request)).toMatchObject(matchRefusal("liveChars", 5_000));
    const fork = { sourceRunId: runId, mode: "branch", fromSeq: 1 } as const;
    expect(await scene.host.fork(ALICE, fork)).toMatchObject(matchRefusal("liveChars", 5_000));
    expect(codeOf(await scene.host.create(MALLORY, request))).toBe("done");
  });

  test("forks no more before the minute is over", async () => {
    const scene = createWorkflowScene({ definitions, quotas: { forksPerMinute: 2 } });
    const fork = { sourceRunId: await scene.run("slow"), mode: "branch", fromSeq: 1 } as const;
    await forkIn(scene, fork);
    await forkIn(scene, fork);
    expect(await scene.host.fork(ALICE, fork)).toMatchObject(matchRefusal("forksPerMinute", 2));
    await scene.clock.advance(60_000);
    await forkIn(scene, fork);
  });

  test("forks again where the clock went back an hour since", async () => {
    const wall = createFakeClock();
    let back = 0;
    const clock = { ...wall, now: () => (wall.now() - back) as EpochMs };
    const scene = createWorkflowScene({ definitions, clock, quotas: { forksPerMinute: 2 } });
    const fork = { sourceRunId: await scene.run("slow"), mode: "branch", fromSeq: 1 } as const;
    await forkIn(scene, fork);
    await forkIn(scene, fork);
    back = 3_600_000;
    await forkIn(scene, fork);
    await forkIn(scene, fork);
    expect(await scene.host.fork(ALICE, fork)).toMatchObject(matchRefusal("forksPerMinute", 2));
  });

  test("is counted again by the host that starts after it", async () => {
    const [ledger, clock] = [createMemoryWorkflowLedger(), createFakeClock()];
    const before = createWorkflowScene({ definitions, ledger, clock, pid: 1 });
    await before.run("slow");
    before.die();
    const quotas = { liveRuns: 1 };
    const after = createWorkflowScene({ definitions, ledger, clock, pid: 2, alive: new Set([2]), quotas });
    await after.host.start();
    expect(await after.host.create(ALICE, request)).toMatchObject(matchRefusal("liveRuns", 1));
    await after.host.stop();
  });
});

describe("what comes of one request", () => {
  test("is bounded where forks are forked", async () => {
    const scene = createWorkflowScene({ definitions, quotas: { runsPerRequest: 3 } });
    const first = await scene.run("slow");
    const second = await forkIn(scene, { sourceRunId: first, mode: "branch", fromSeq: 1 });
    const third = await forkIn(scene, { sourceRunId: second, mode: "branch", fromSeq: 1 });
    const forked = await scene.host.fork(ALICE, { sourceRunId: third, mode: "branch", fromSeq: 1 });
    expect(forked).toMatchObject(matchRefusal("runsPerRequest", 3));
    expect(codeOf(await scene.host.create(ALICE, request))).toBe("done");
  });

  test("fails the node that would start one run too many, where a workflow calls itself", async () => {
    const scene = createWorkflowScene({ definitions, quotas: { runsPerRequest: 4 } });
    const runId = await scene.run("self");
    await scene.clock.advance(1_000);
    expect(await scene.status(runId)).toBe("failed");
    expect(scene.ledger.runs.size).toBe(4);
    const [deepest] = [...scene.ledger.runs.keys()].slice(-1);
    const [failure] = scene.payloads(deepest!, "node.failed");
    expect(failure?.error).toMatchObject({
      code: "rate_limited",
      message: expect.stringContaining("runsPerRequest") as string,
    });
  });
});
