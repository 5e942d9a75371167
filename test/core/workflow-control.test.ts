import { describe, expect, test } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { OutboundFailure } from "../../src/agents/coordination/ports/outbound.ts";
import { expectReplayOf, forkIn } from "../support/forks.ts";
import {
  chain,
  createEdge,
  sendNextWorker,
  createNode,
  createSupervised,
  TERMINATE,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import {
  SAID,
  ALICE,
  codeOf,
  MALLORY,
  createWorkflowScene,
  type AppendFaults,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const delay = (ms: number) => createNode("wait", "core.delay", { delayMs: ms });
const slow = createWorkflow("slow", { nodes: [delay(3_000)] });
const steps = createWorkflow("steps", {
  nodes: [delay(3_000), createNode("after")],
  edges: [createEdge("wait>after")],
});
const retried = createWorkflow("retried", {
  nodes: [createNode("model", "core.ai.callPrompt", { prompt: "?" })],
  settings: { maxRetries: 1 },
});
const gated = createWorkflow("gated", { nodes: [createNode("gate", "core.approvalGate")] });

function findChild(scene: WorkflowScene, runId: string): string {
  return scene.payloads(runId, "node.dispatched").at(-1)?.childRunId ?? "";
}

describe("a pause", () => {
  test("at once stops the node that waits, which begins anew when the run is resumed", async () => {
    const scene = createWorkflowScene({ definitions: [slow] });
    const runId = await scene.run("slow");
    await scene.clock.advance(2_000);
    expect(await scene.host.pause(ALICE, runId, { drainPolicy: "immediate" })).toMatchObject({
      value: { status: "paused" },
    });
    expect(scene.payloads(runId, "run.paused")).toEqual([{ drainPolicy: "immediate" }]);
    await scene.clock.advance(60_000);
    expect(await scene.status(runId)).toBe("paused");
    expect(await scene.host.resume(ALICE, runId)).toMatchObject({ value: { status: "running" } });
    await scene.clock.advance(2_999);
    expect(await scene.status(runId)).toBe("running");
    await scene.clock.advance(1);
    expect(await scene.status(runId)).toBe("completed");
  });

  test("that drains waits for the node, and nothing is started behind it", async () => {
    const scene = createWorkflowScene({ definitions: [steps] });
    const runId = await scene.run("steps");
    expect(await scene.host.pause(ALICE, runId, {})).toMatchObject({ value: { status: "running" } });
    await scene.clock.advance(3_000);
    expect(await scene.status(runId)).toBe("paused");
    expect(scene.types(runId).slice(-3)).toEqual([
      "coordination.pause_requested",
      "node.completed",
      "run.paused",
    ]);
    await scene.host.resume(ALICE, runId);
    await scene.settle();
    expect(scene.types(runId).slice(-4)).toEqual([
      "run.resumed",
      "node.started",
      "node.completed",
      "run.completed",
    ]);
  });

  test("that drains the last node pauses the run before its end", async () => {
    const scene = createWorkflowScene({ definitions: [slow] });
    const runId = await scene.run("slow");
    await scene.host.pause(ALICE, runId, { drainPolicy: "drain-current-node" });
    await scene.clock.advance(3_000);
    expect(await scene.status(runId)).toBe("paused");
    await scene.host.resume(ALICE, runId);
    await scene.settle();
    expect(await scene.status(runId)).toBe("completed");
  });

  test("is refused for a run that is paused, waits, ends or has ended, and says which", async () => {
    const scene = createWorkflowScene({ definitions: [slow, gated] });
    const paused = await scene.run("slow");
    await scene.host.pause(ALICE, paused, { drainPolicy: "immediate" });
    const finishedRun = await scene.run("slow");
    await scene.host.cancel(ALICE, finishedRun, {});
    for (const [runId, runStatus] of [
      [paused, "paused"],
      [await scene.run("gated"), "waiting-approval"],
      [finishedRun, "cancelled"],
    ] as const)
      expect(await scene.host.pause(ALICE, runId, {})).toMatchObject({
        code: "run_not_pausable",
        details: { runStatus },
      });
  });

  test("is not resumed where there is none", async () => {
    const scene = createWorkflowScene({ definitions: [slow] });
    const runId = await scene.run("slow");
    expect(await scene.host.resume(ALICE, runId)).toMatchObject({
      code: "run_not_paused",
      details: { runStatus: "running" },
    });
  });

  test("begins no further attempt while the run is paused, and that one when it is resumed", async () => {
    const answer = Promise.withResolvers<OutboundFailure>();
    let calls = 0;
    const scene = createWorkflowScene({
      definitions: [retried],
      chat: {
        complete: () => {
          calls += 1;
          return calls === 1 ? answer.promise : Promise.resolve(SAID);
        },
      },
    });
    const runId = await scene.run("retried");
    await scene.host.pause(ALICE, runId, { drainPolicy: "immediate" });
    answer.resolve({ kind: "refused", code: "unavailable", message: "later" });
    await scene.settle();
    expect(scene.types(runId).slice(-2)).toEqual(["run.paused", "node.retried"]);
    await scene.host.resume(ALICE, runId);
    await scene.settle();
    expect(scene.payloads(runId, "node.started").map(({ attempt }) => attempt)).toEqual([0, 1]);
    expect([await scene.status(runId), calls]).toEqual(["completed", 2]);
    expectReplayOf(scene.ledger, await forkIn(scene, { sourceRunId: runId, mode: "replay" }), runId);
  });

  test("lets what is under way outside end, and keeps what came of it", async () => {
    const scene = createWorkflowScene({
      definitions: [
        slow,
        createWorkflow("parent", {
          nodes: [createNode("sub", "core.subWorkflow", { workflowId: "slow" }), createNode("after")],
          edges: [createEdge("sub>after")],
        }),
      ],
    });
    const runId = await scene.run("parent");
    await scene.host.pause(ALICE, runId, { drainPolicy: "immediate" });
    await scene.clock.advance(3_000);
    expect(await scene.status(runId)).toBe("paused");
    await scene.host.resume(ALICE, runId);
    await scene.settle();
    expect(await scene.status(runId)).toBe("completed");
    expect(scene.payloads(runId, "node.dispatched")).toHaveLength(1);
  });
});

describe("a cancellation", () => {
  test("ends a run that works, waits or is paused, and tells the nodes at work", async () => {
    const scene = createWorkflowScene({ definitions: [slow, gated] });
    const paused = await scene.run("slow");
    await scene.host.pause(ALICE, paused, { drainPolicy: "immediate" });
    for (const runId of [await scene.run("slow"), await scene.run("gated"), paused]) {
      const answered = await scene.host.cancel(ALICE, runId, { reason: "enough" });
      expect(answered).toMatchObject({ value: { status: "cancelled" } });
      expect(scene.types(runId).slice(-2)).toEqual(["node.cancelled", "run.cancelled"]);
      expect(scene.payloads(runId, "run.cancelled")).toEqual([{ cancelledBy: "alice", reason: "enough" }]);
    }
    expect(scene.clock.pending).toBe(0);
  });

  test("of a run that has ended changes nothing and says how it ended", async () => {
    const scene = createWorkflowScene({
      definitions: [createWorkflow("noop", { nodes: [createNode("a")] })],
    });
    const runId = await scene.run("noop");
    const before = scene.types(runId);
    expect(await scene.host.cancel(ALICE, runId, {})).toMatchObject({ value: { status: "completed" } });
    expect(scene.types(runId)).toEqual(before);
  });

  test("is none of another tenant's", async () => {
    const scene = createWorkflowScene({ definitions: [slow] });
    const runId = await scene.run("slow");
    expect(codeOf(await scene.host.cancel(MALLORY, runId, {}))).toBe("not_found");
    expect(codeOf(await scene.host.pause(MALLORY, runId, {}))).toBe("not_found");
    expect(codeOf(await scene.host.resume(MALLORY, runId))).toBe("not_found");
    expect(codeOf(await scene.host.snapshot(MALLORY, runId))).toBe("not_found");
    expect(codeOf(await scene.host.events(MALLORY, runId, { from: 0, limit: 10 }))).toBe("not_found");
    expect(codeOf(await scene.host.ancestry(MALLORY, runId))).toBe("not_found");
  });

  test("goes down to children and their children, which say whose end was theirs", async () => {
    const scene = createWorkflowScene({
      definitions: [
        gated,
        createSupervised("middle", [sendNextWorker("gated"), TERMINATE]),
        createWorkflow("top", { nodes: [createNode("sub", "core.subWorkflow", { workflowId: "middle" })] }),
      ],
    });
    const top = await scene.run("top");
    const middle = findChild(scene, top);
    const bottom = findChild(scene, middle);
    expect(await scene.snapshot(middle)).toMatchObject({
      status: "waiting-approval",
      childRuns: [{ runId: bottom, status: "waiting-approval" }],
    });
    await scene.host.cancel(ALICE, top, {});
    await scene.settle();
    for (const [runId, parentRunId] of [
      [middle, top],
      [bottom, middle],
    ] as const) {
      expect(await scene.status(runId)).toBe("cancelled");
      expect(scene.payloads(runId, "run.cancelled")[0]).toMatchObject({
        reason: "parent-cancelled",
        parentRunId,
      });
    }
    expect(codeOf(await scene.answer(bottom, "gate", { action: "accept" }))).toBe(
      "interrupt_already_resolved",
    );
  });

  test("reaches children as well when their parent fails or runs out of time", async () => {
    const scene = createWorkflowScene({
      definitions: [
        gated,
        createWorkflow("fails", {
          nodes: [
            createNode("sub", "core.subWorkflow", { workflowId: "gated" }),
            delay(1_000),
            createNode("boom", "core.fail"),
          ],
          edges: [createEdge("wait>boom")],
        }),
        createWorkflow("slow-parent", {
          nodes: [createNode("sub", "core.subWorkflow", { workflowId: "gated" }), delay(9_000)],
        }),
      ],
    });
    const failing = await scene.run("fails");
    const late = await scene.run("slow-parent", { configurable: { runTimeoutMs: 1_000 } });
    await scene.clock.advance(1_001);
    for (const runId of [failing, late]) {
      expect(await scene.status(runId)).toBe("failed");
      expect(await scene.status(findChild(scene, runId))).toBe("cancelled");
    }
  });

  test("reaches children also where the ledger fails while it is passed on", async () => {
    const disk = { isFull: false };
    const faults: AppendFaults = {
      after: ({ events, summary }) => {
        disk.isFull = summary.parent === undefined && events.at(-1)?.type === "run.cancelled";
      },
      entry: () => {
        if (disk.isFull) throw new CoordinationError("LEDGER_FULL", "the disk is full for a moment");
      },
    };
    const parent = createWorkflow("parent", {
      nodes: [createNode("sub", "core.subWorkflow", { workflowId: "gated" })],
    });
    const scene = createWorkflowScene({ definitions: [gated, parent], faults });
    const runId = await scene.run("parent");
    await scene.host.cancel(ALICE, runId, {});
    await scene.settle();
    expect(disk.isFull).toBe(true);
    disk.isFull = false;
    expect(await scene.status(findChild(scene, runId))).toBe("waiting-approval");
    await scene.clock.advance(1_000);
    expect(await scene.status(findChild(scene, runId))).toBe("cancelled");
  });

  test("does not reach a child that its parent did not wait for", async () => {
    const scene = createWorkflowScene({
      definitions: [
        gated,
        createWorkflow("free", {
          nodes: [
            createNode("sub", "core.subWorkflow", { workflowId: "gated", waitForCompletion: false }),
            delay(1_000),
          ],
        }),
      ],
    });
    const runId = await scene.run("free");
    await scene.host.cancel(ALICE, runId, {});
    await scene.settle();
    expect(await scene.status(findChild(scene, runId))).toBe("waiting-approval");
  });

  test("that comes while a child is being created leaves none behind", async () => {
    const scene = createWorkflowScene({
      definitions: [gated, createSupervised("loop", [sendNextWorker("gated"), TERMINATE])],
    });
    const created = await scene.host.create(ALICE, { workflowId: "loop", inputs: {}, transport: "rest" });
    const runId = created.kind === "done" ? created.value.runId : "";
    await scene.host.cancel(ALICE, runId, {});
    await scene.settle();
    expect(await scene.status(runId)).toBe("cancelled");
    const left = [...scene.ledger.runs.keys()].filter((id) => id !== runId);
    for (const id of left) expect(await scene.status(id)).toBe("cancelled");
  });
});

describe("a run", () => {
  test("whose nodes come one after the other completes them in that order", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", { nodes: ["a", "b", "c"].map((id) => createNode(id)), edges: chain("a>b>c") }),
      ],
    });
    const runId = await scene.run("w");
    expect(scene.payloads(runId, "node.completed").map(({ nodeId }) => nodeId)).toEqual(["a", "b", "c"]);
  });

  test("of a workflow that is not there, or lacks what it requires, is refused and leaves nothing", async () => {
    const needy = {
      ...slow,
      id: "needy",
      variables: [{ name: "n", type: "string", required: true } as const],
    };
    const scene = createWorkflowScene({ definitions: [needy] });
    const ask = (workflowId: string) =>
      scene.host.create(ALICE, { workflowId, inputs: {}, transport: "rest" });
    expect(codeOf(await ask("nowhere"))).toBe("workflow_not_found");
    expect(codeOf(await ask("needy"))).toBe("validation_error");
    expect(scene.ledger.runs.size).toBe(0);
  });

  test("that was asked for under one id twice is one run", async () => {
    const scene = createWorkflowScene({ definitions: [slow] });
    const first = await scene.run("slow");
    const again = await scene.host.create(ALICE, {
      workflowId: "slow",
      inputs: {},
      transport: "rest",
      runId: first as never,
    });
    expect(again).toMatchObject({ value: { runId: first, status: "running" } });
    await scene.clock.advance(3_000);
    expect(await scene.status(first)).toBe("completed");
    expect(scene.said).toEqual([]);
    const foreign = await scene.host.create(MALLORY, {
      workflowId: "slow",
      inputs: {},
      transport: "rest",
      runId: first as never,
    });
    expect(codeOf(foreign)).toBe("run_already_active");
  });

  test("is read in pages, and says when nothing follows", async () => {
    const scene = createWorkflowScene({ definitions: [slow] });
    const runId = await scene.run("slow");
    expect(await scene.host.events(ALICE, runId, { from: 0, limit: 1 })).toMatchObject({
      value: { events: [{ sequence: 0 }], isComplete: false },
    });
    await scene.clock.advance(3_000);
    expect(await scene.host.events(ALICE, runId, { from: 2, limit: 1 })).toMatchObject({
      value: { isComplete: false },
    });
    expect(await scene.host.events(ALICE, runId, { from: 3, limit: 1 })).toMatchObject({
      value: { isComplete: true },
    });
    expect(await scene.host.events(ALICE, runId, { from: 99, limit: 1 })).toMatchObject({
      value: { events: [], isComplete: true },
    });
  });
});
