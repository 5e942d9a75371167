/** Time in which no process drives a run is none in which the run works: its limit of time leaves it out. */
import { describe, expect, test } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";
import { createFakeClock } from "../support/fake-clock.ts";
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
