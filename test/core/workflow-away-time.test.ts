/** Time in which no process drives a run is none in which the run works: its limit of time leaves it out. */
import { describe, expect, test } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { forkIn } from "../support/forks.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import {
  ALICE,
  createWorkflowScene,
  SAID,
  type SceneOptions,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const MINUTE = 60_000;

const delayed = createWorkflow("delayed", {
  nodes: [createNode("wait", "core.delay", { delayMs: MINUTE })],
});
const delayedTwice = createWorkflow("delayed-twice", {
  nodes: [
    createNode("first", "core.delay", { delayMs: MINUTE }),
    createNode("second", "core.delay", { delayMs: 9 * MINUTE + 1_000 }),
  ],
  edges: [createEdge("first>second")],
});
const asking = createWorkflow("asking", {
  nodes: [createNode("model", "core.ai.callPrompt", { prompt: "?" })],
});
const askingTwice = createWorkflow("asking-twice", {
  nodes: [
    createNode("first", "core.ai.callPrompt", { prompt: "?" }),
    createNode("second", "core.ai.callPrompt", { prompt: "?" }),
  ],
  edges: [createEdge("first>second")],
});

/** A process that dies a second after it began the run, and the one that is started 11 minutes later. */
async function restartAfterOutage(
  workflowId: string,
  options: SceneOptions = {},
): Promise<{ readonly runId: string; readonly next: WorkflowScene }> {
  const shared = {
    ledger: createMemoryWorkflowLedger(),
    clock: createFakeClock(),
    definitions: [delayed, delayedTwice, asking],
  };
  const chat = { complete: () => new Promise<never>(() => undefined) };
  const first = createWorkflowScene({ ...shared, chat, pid: 1 });
  const runId = await first.run(workflowId);
  await shared.clock.advance(1_000);
  first.die();
  await shared.clock.advance(11 * MINUTE - 1_000);
  const next = createWorkflowScene({ ...shared, ...options, pid: 2 });
  await next.host.start();
  await next.settle();
  return { runId, next };
}

describe("a run that no process drove for longer than its limit of time", () => {
  test("goes on with a delay that ended meanwhile, and says how long it was late", async () => {
    const { runId, next } = await restartAfterOutage("delayed");
    expect(next.types(runId).slice(-3)).toEqual(["run.resuming", "node.completed", "run.completed"]);
    expect(next.payloads(runId, "run.resuming")).toMatchObject([{ awayMs: 10 * MINUTE }]);
  });

  test("calls its model again, and has as long as it had", async () => {
    const { runId, next } = await restartAfterOutage("asking", {
      chat: { complete: () => Promise.resolve(SAID) },
    });
    expect(await next.status(runId)).toBe("completed");
    expect(next.payloads(runId, "run.resuming")).toMatchObject([{ awayMs: 11 * MINUTE }]);
  });

  test("has no more time to work than others, the delay that it was in counted", async () => {
    const { runId, next } = await restartAfterOutage("delayed-twice");
    await next.clock.advance(10 * MINUTE);
    expect(next.types(runId).slice(-3)).toEqual(["cap.breached", "node.cancelled", "run.failed"]);
    expect(next.payloads(runId, "cap.breached")).toMatchObject([{ observed: 10 * MINUTE + 1 }]);
  });

  test("goes on where the first append of the process that took it over failed", async () => {
    let failures = 1;
    const { runId, next } = await restartAfterOutage("delayed", {
      faults: {
        before: () => {
          failures -= 1;
          if (failures >= 0) throw new Error("the disk is full");
        },
      },
    });
    await next.clock.advance(1_000);
    expect(next.types(runId).slice(-3)).toEqual(["run.resuming", "node.completed", "run.completed"]);
  });

  test("goes on after an outage of the ledger, in which its process could not drive it either", async () => {
    let isBroken = false;
    const faults = {
      before: () => {
        if (isBroken) throw new CoordinationError("LEDGER_UNAVAILABLE", "the disk does not answer");
      },
    };
    const scene = createWorkflowScene({ definitions: [delayedTwice], faults });
    const runId = await scene.run("delayed-twice");
    isBroken = true;
    await scene.clock.advance(10 * MINUTE);
    await expect(scene.host.pause(ALICE, runId, {})).rejects.toThrow("the disk does not answer");
    await scene.clock.advance(MINUTE);
    isBroken = false;
    await scene.clock.advance(1_000);
    expect(scene.types(runId).slice(-3)).toEqual(["run.resuming", "node.completed", "node.started"]);
    expect(scene.payloads(runId, "run.resuming")).toMatchObject([{ awayMs: 10 * MINUTE + 1_000 }]);
    await scene.clock.advance(10 * MINUTE);
    expect(scene.payloads(runId, "cap.breached")).toMatchObject([{ observed: 10 * MINUTE + 1 }]);
  });

  test("is ended in time where its process drives it, but cannot record what its model says", async () => {
    const faults = {
      before: ({ events }: WorkflowAppend) => {
        if (events.some(({ type }) => type === "node.completed")) throw new Error("the disk is full");
      },
    };
    const chat = { complete: () => Promise.resolve(SAID) };
    const scene = createWorkflowScene({ definitions: [asking], chat, faults });
    const runId = await scene.run("asking");
    await scene.clock.advance(10 * MINUTE + 1_000);
    expect(scene.types(runId).slice(-3)).toEqual(["cap.breached", "node.cancelled", "run.failed"]);
    expect(scene.types(runId)).not.toContain("run.resuming");
  });
});

describe("a run whose processes die one after the other", () => {
  const waitForever = () => new Promise<never>(() => undefined);

  test("meets its limit where nothing is recorded between their starts", async () => {
    const shared = {
      ledger: createMemoryWorkflowLedger(),
      clock: createFakeClock(),
      definitions: [asking],
      chat: { complete: waitForever },
    };
    let scene = createWorkflowScene({ ...shared, pid: 1 });
    const runId = await scene.run("asking");
    for (const pid of [2, 3, 4]) {
      await shared.clock.advance(4 * MINUTE);
      scene.die();
      scene = createWorkflowScene({ ...shared, pid });
      await scene.host.start();
      await scene.settle();
    }
    const awayTimes = scene.payloads(runId, "run.resuming").map(({ awayMs }) => awayMs);
    expect(awayTimes).toEqual([4 * MINUTE, 0, 0]);
    await shared.clock.advance(2 * MINUTE + 1);
    expect(scene.types(runId).slice(-3)).toEqual(["cap.breached", "node.cancelled", "run.failed"]);
    expect(scene.payloads(runId, "cap.breached")).toMatchObject([{ observed: 10 * MINUTE + 1 }]);
  });

  test("has as long as it had after each outage before which it got on with its work", async () => {
    const shared = {
      ledger: createMemoryWorkflowLedger(),
      clock: createFakeClock(),
      definitions: [askingTwice],
    };
    const answers = [waitForever(), Promise.resolve(SAID), waitForever(), Promise.resolve(SAID)];
    const chat = { complete: () => answers.shift() ?? waitForever() };
    let scene = createWorkflowScene({ ...shared, chat, pid: 1 });
    const runId = await scene.run("asking-twice");
    for (const pid of [2, 3]) {
      scene.die();
      await shared.clock.advance(11 * MINUTE);
      scene = createWorkflowScene({ ...shared, chat, pid });
      await scene.host.start();
      await scene.settle();
    }
    const awayTimes = scene.payloads(runId, "run.resuming").map(({ awayMs }) => awayMs);
    expect(awayTimes).toEqual([11 * MINUTE, 11 * MINUTE]);
    expect(await scene.status(runId)).toBe("completed");
  });
});

test("a fork whose process died in its first model call has as long as it had", async () => {
  const shared = {
    ledger: createMemoryWorkflowLedger(),
    clock: createFakeClock(),
    definitions: [asking],
  };
  const first = createWorkflowScene({
    ...shared,
    chat: { complete: () => new Promise<never>(() => undefined) },
    pid: 1,
  });
  const sourceRunId = await first.run("asking");
  const runId = await forkIn(first, { sourceRunId, mode: "branch", fromSeq: 2 });
  first.die();
  await shared.clock.advance(11 * MINUTE);
  const next = createWorkflowScene({ ...shared, chat: { complete: () => Promise.resolve(SAID) }, pid: 2 });
  await next.host.start();
  await next.settle();
  const awayTimes = next.payloads(runId, "run.resuming").map(({ awayMs }) => awayMs);
  expect(awayTimes).toEqual([undefined, 11 * MINUTE]);
  expect(await next.status(runId)).toBe("completed");
});

describe("a run whose process was stopped for longer than its lease, with nobody there to take the run over", () => {
  function createStoppableScene(options: SceneOptions) {
    const clock = createFakeClock();
    let stoppedMs = 0;
    const steady = { elapsedMs: () => clock.steady.elapsedMs() + stoppedMs };
    const scene = createWorkflowScene({ ...options, clock, steady });
    const stopFor = (ms: number): void => {
      stoppedMs += ms;
      clock.jump(clock.now() + ms);
    };
    return { scene, stopFor };
  }

  test.each([
    ["15 minutes, and its model answers then", 15 * MINUTE, 0],
    ["15 minutes, and its model answers later", 15 * MINUTE, 9 * MINUTE],
    ["less than its limit, and its model answers later", 5 * MINUTE, 9 * MINUTE],
  ])("has as long as it had after %s", async (_title, pauseMs, laterMs) => {
    const { promise, resolve } = Promise.withResolvers<typeof SAID>();
    const { scene, stopFor } = createStoppableScene({
      definitions: [asking],
      chat: { complete: () => promise },
    });
    await scene.host.start();
    const runId = await scene.run("asking");
    stopFor(pauseMs);
    await scene.clock.advance(laterMs);
    resolve(SAID);
    await scene.settle();
    expect(scene.payloads(runId, "run.resuming")).toMatchObject([{ awayMs: pauseMs }]);
    expect(await scene.status(runId)).toBe("completed");
    await scene.host.stop();
  });

  test("goes on with a delay that ended meanwhile, and says how long it was late", async () => {
    const { scene, stopFor } = createStoppableScene({ definitions: [delayed] });
    await scene.host.start();
    const runId = await scene.run("delayed");
    stopFor(15 * MINUTE);
    await scene.clock.advance(0);
    expect(scene.types(runId).slice(-3)).toEqual(["run.resuming", "node.completed", "run.completed"]);
    expect(scene.payloads(runId, "run.resuming")).toMatchObject([{ awayMs: 14 * MINUTE }]);
    await scene.host.stop();
  });
});

test("a run whose machine slept, with a steady clock that stood still meanwhile, has as long as it had", async () => {
  const { promise, resolve } = Promise.withResolvers<typeof SAID>();
  const clock = createFakeClock();
  const scene = createWorkflowScene({ clock, definitions: [asking], chat: { complete: () => promise } });
  await scene.host.start();
  const runId = await scene.run("asking");
  clock.jump(clock.now() + 15 * MINUTE);
  await clock.advance(9 * MINUTE);
  resolve(SAID);
  await scene.settle();
  expect(scene.payloads(runId, "run.resuming")).toMatchObject([{ awayMs: 15 * MINUTE }]);
  expect(await scene.status(runId)).toBe("completed");
  await scene.host.stop();
});
