import { describe, expect, test } from "vitest";
import {
  sendNextWorker,
  createNode,
  createSupervised,
  TERMINATE,
  createWorker,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import { createWorkflowScene, type WorkflowScene } from "../support/workflow-scene.ts";

const HARVEST = { outputMapping: { got: "result" } };

const failing = createWorkflow("failing", {
  nodes: [createNode("boom", "core.fail", { code: "broken", message: "as asked" })],
  variables: { result: "never to be harvested" },
});

function listPhases(scene: WorkflowScene, runId: string): string[] {
  return scene
    .payloads(runId, "core.workflowChain.event")
    .map(({ phase, workerId }) => `${workerId} ${phase}`);
}

describe("the loop of supervisor and dispatch", () => {
  test("a worker goes through the four chained phases, each caused by the one before it", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [sendNextWorker("worker-a"), TERMINATE], { dispatch: HARVEST }),
        createWorker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    const events = scene.events(runId);
    const chained = events.filter(({ type }) => type === "core.workflowChain.event");
    const [decided] = events.filter(({ type }) => type === "runOrchestrator.decided");
    expect(listPhases(scene, runId)).toEqual([
      "worker-a dispatch.began",
      "worker-a dispatch.succeeded",
      "worker-a child.completed",
      "worker-a output.harvested",
    ]);
    expect(chained.map(({ causationId }) => causationId)).toEqual([
      decided?.eventId,
      ...chained.slice(0, 3).map(({ eventId }) => eventId),
    ]);
    expect(scene.payloads(runId, "core.workflowChain.event").at(-1)?.harvestedKeys).toEqual(["got"]);
    expect((await scene.snapshot(runId))["variables"]).toEqual({ got: "worker-a did it" });
  });

  test("the log of a run with one worker is exactly this", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [sendNextWorker("worker-a"), TERMINATE], { dispatch: HARVEST }),
        createWorker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    expect(scene.types(runId)).toEqual([
      "run.started",
      "node.started",
      "runOrchestrator.decided",
      "node.completed",
      "node.started",
      "core.workflowChain.event",
      "node.dispatched",
      "core.workflowChain.event",
      "core.workflowChain.event",
      "variable.changed",
      "core.workflowChain.event",
      "node.completed",
      "node.started",
      "node.completed",
      "runOrchestrator.decided",
      "run.completed",
    ]);
  });

  test("the child's id is absent while there is no child, and there from dispatch.succeeded on", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [sendNextWorker("worker-a"), TERMINATE]),
        createWorker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    const [began, ...later] = scene.payloads(runId, "core.workflowChain.event");
    const [dispatched] = scene.payloads(runId, "node.dispatched");
    expect(began).not.toHaveProperty("childRunId");
    expect(later.map(({ childRunId }) => childRunId)).toEqual([
      dispatched?.childRunId,
      dispatched?.childRunId,
    ]);
  });

  test("without a mapping nothing is harvested, and no event says so", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [sendNextWorker("worker-a"), TERMINATE]),
        createWorker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    expect(listPhases(scene, runId)).toEqual([
      "worker-a dispatch.began",
      "worker-a dispatch.succeeded",
      "worker-a child.completed",
    ]);
  });

  test("a failed child hands nothing over and returns to the supervisor, which goes on", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [sendNextWorker("failing"), sendNextWorker("worker-a"), TERMINATE], {
          dispatch: HARVEST,
        }),
        failing,
        createWorker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    expect(listPhases(scene, runId)).toEqual([
      "failing dispatch.began",
      "failing dispatch.succeeded",
      "failing child.failed",
      "worker-a dispatch.began",
      "worker-a dispatch.succeeded",
      "worker-a child.completed",
      "worker-a output.harvested",
    ]);
    const failed = scene
      .payloads(runId, "core.workflowChain.event")
      .find(({ phase }) => phase === "child.failed");
    expect(failed?.error).toEqual({ code: "broken", message: "as asked" });
    expect(await scene.status(runId)).toBe("completed");
    expect(scene.payloads(runId, "variable.changed")).toHaveLength(1);
  });

  test("a cancelled child hands nothing over and returns to the supervisor", async () => {
    const slow = createWorkflow("slow", {
      nodes: [createNode("wait", "core.delay", { delayMs: 60_000 })],
      variables: { result: "never to be harvested" },
    });
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [sendNextWorker("slow"), TERMINATE], { dispatch: HARVEST }),
        slow,
      ],
    });
    const runId = await scene.run("loop");
    const [dispatched] = scene.payloads(runId, "node.dispatched");
    expect(listPhases(scene, runId).at(-1)).toBe("slow dispatch.succeeded");
    await scene.host.cancel({ tenant: "acme", principal: "alice" }, dispatched?.childRunId ?? "", {});
    await scene.settle();
    expect(listPhases(scene, runId).at(-1)).toBe("slow child.cancelled");
    expect(scene.types(runId)).not.toContain("variable.changed");
    expect(await scene.status(runId)).toBe("completed");
  });

  test("a worker that cannot be created is dispatch.failed, without a child", async () => {
    const scene = createWorkflowScene({
      definitions: [createSupervised("loop", [sendNextWorker("nobody"), TERMINATE])],
    });
    const runId = await scene.run("loop");
    expect(listPhases(scene, runId)).toEqual(["nobody dispatch.began", "nobody dispatch.failed"]);
    const [began, failed] = scene.events(runId).filter(({ type }) => type === "core.workflowChain.event");
    expect(failed?.causationId).toBe(began?.eventId);
    expect(failed?.payload).toMatchObject({ error: { code: "unknown_child_workflow" } });
    expect(failed?.payload).not.toHaveProperty("childRunId");
    expect(scene.types(runId)).not.toContain("node.dispatched");
    expect(await scene.status(runId)).toBe("completed");
  });

  test("workers of one decision follow one another, and a later one sees what an earlier one left", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [sendNextWorker("worker-a", "worker-b"), TERMINATE], {
          dispatch: { outputMapping: { got: "result" }, inputMapping: { given: "got" } },
        }),
        createWorker("worker-a"),
        createWorker("worker-b", {}),
      ],
    });
    const runId = await scene.run("loop");
    const [first, second] = scene.payloads(runId, "node.dispatched");
    expect((await scene.snapshot(first?.childRunId ?? ""))["inputs"]).toEqual({});
    expect((await scene.snapshot(second?.childRunId ?? ""))["inputs"]).toEqual({ given: "worker-a did it" });
  });

  test("a worker's own mapping takes the place of the common one, for inputs and outputs", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [sendNextWorker("worker-a", "worker-b"), TERMINATE], {
          dispatch: {
            inputMapping: { common: "seed" },
            outputMapping: { common: "result" },
            perWorkerInputMappings: { "worker-b": { own: "seed" } },
            perWorkerOutputMappings: { "worker-b": { own: "result" } },
          },
          variables: { seed: "s" },
        }),
        createWorker("worker-a"),
        createWorker("worker-b"),
      ],
    });
    const runId = await scene.run("loop");
    const [first, second] = scene.payloads(runId, "node.dispatched");
    expect((await scene.snapshot(first?.childRunId ?? ""))["inputs"]).toEqual({ common: "s" });
    expect((await scene.snapshot(second?.childRunId ?? ""))["inputs"]).toEqual({ own: "s" });
    expect((await scene.snapshot(runId))["variables"]).toEqual({
      seed: "s",
      common: "worker-a did it",
      own: "worker-b did it",
    });
  });

  test("what the parent has not set is absent in the child, never null", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [sendNextWorker("worker-a"), TERMINATE], {
          dispatch: { inputMapping: { a: "unset", b: "undeclared" } },
          variables: { unset: undefined },
        }),
        createWorker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    const [dispatched] = scene.payloads(runId, "node.dispatched");
    expect((await scene.snapshot(dispatched?.childRunId ?? ""))["inputs"]).toEqual({});
  });

  test("the same worker named twice is two runs", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [
          sendNextWorker("worker-a", "worker-a"),
          sendNextWorker("worker-a"),
          TERMINATE,
        ]),
        createWorker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    const children = scene.payloads(runId, "node.dispatched").map(({ childRunId }) => childRunId);
    expect(new Set(children).size).toBe(3);
  });

  test("the child knows its parent, the node over there, and its scope of memory", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [sendNextWorker("worker-a"), TERMINATE]),
        createWorker("worker-a"),
      ],
    });
    const runId = await scene.run("loop", { scopeId: "project" });
    const [dispatched] = scene.payloads(runId, "node.dispatched");
    const childRunId = dispatched?.childRunId ?? "";
    expect(await scene.snapshot(childRunId)).toMatchObject({ parentRunId: runId, parentNodeId: "dispatch" });
    expect(scene.payloads(childRunId, "run.started")[0]).toMatchObject({ memoryScope: "project", depth: 1 });
    const answer = await scene.host.ancestry({ tenant: "acme", principal: "alice" }, childRunId);
    expect(answer).toMatchObject({ value: { parent: { runId, hostId: "host-a", cause: "core.dispatch" } } });
  });
});
