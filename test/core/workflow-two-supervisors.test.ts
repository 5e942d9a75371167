/** Owns: workflows with several supervisors: each dispatch carries out the decisions of its supervisor, and no others. */
import { describe, expect, test } from "vitest";
import {
  chain,
  createEdge,
  createNode,
  createWorker,
  createWorkflow,
  sendNextWorker,
} from "../support/workflow-definitions.ts";
import { createWorkflowScene, type WorkflowScene } from "../support/workflow-scene.ts";

const SUPERVISOR = "core.orchestrator.supervisor";
const WORKER_MS = 1_000;

/** A supervisor whose decision is the first or the second of the run. The third ends it. */
function createSupervisor(id: string, decision: unknown) {
  return createNode(id, SUPERVISOR, { mockDispatchPlan: [decision, decision] });
}

/** A worker that takes its time. */
function createSlowWorker(id: string) {
  return createWorkflow(id, { nodes: [createNode("work", "core.delay", { delayMs: WORKER_MS })] });
}

/** The workers that each dispatch began, in order. */
function listBegun(scene: WorkflowScene, runId: string): string[] {
  return scene
    .events(runId)
    .flatMap(({ type, nodeId = "", payload }) =>
      type === "core.workflowChain.event" && payload.phase === "dispatch.began"
        ? [`${nodeId}:${payload.workerId}`]
        : [],
    );
}

describe("two supervisors", () => {
  test("that decide one after the other each have all of their workers begun, once", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("pairs", {
          nodes: [
            createSupervisor("one", sendNextWorker("w1", "w2")),
            createNode("first", "core.dispatch"),
            createNode("late", "core.delay", { delayMs: WORKER_MS / 2 }),
            createSupervisor("two", sendNextWorker("w3")),
            createNode("second", "core.dispatch"),
          ],
          edges: [createEdge("one>first"), ...chain("late>two>second")],
        }),
        ...["w1", "w2", "w3"].map(createSlowWorker),
      ],
    });
    const runId = await scene.run("pairs");
    await scene.clock.advance(2.5 * WORKER_MS);
    expect(listBegun(scene, runId).toSorted()).toEqual(["first:w1", "first:w2", "second:w3"]);
  });

  test("leave each other's questions to people", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("asks", {
          nodes: [
            createSupervisor("two", { kind: "ask-user", prompt: "Which colour?" }),
            createNode("between"),
            createNode("second", "core.dispatch"),
            createNode("late", "core.delay", { delayMs: WORKER_MS / 2 }),
            createSupervisor("one", sendNextWorker("w1")),
            createNode("first", "core.dispatch"),
          ],
          edges: [...chain("two>between>second"), ...chain("late>one>first")],
        }),
        createSlowWorker("w1"),
      ],
    });
    const runId = await scene.run("asks");
    await scene.clock.advance(WORKER_MS);
    expect(listBegun(scene, runId)).toEqual(["first:w1"]);
    await scene.answer(runId, "second", { answers: { q1: "blue" } });
    const completed = scene.payloads(runId, "node.completed").find(({ nodeId }) => nodeId === "second");
    expect(completed?.outputs).toEqual({ answers: { q1: "blue" } });
  });

  test("keep the dispatches that their edges name, in whatever order the nodes stand", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("crossed", {
          nodes: [
            createSupervisor("one", sendNextWorker("w1")),
            createSupervisor("two", sendNextWorker("w2")),
            createNode("second", "core.dispatch"),
            createNode("first", "core.dispatch"),
          ],
          edges: [createEdge("one>first"), createEdge("two>second")],
        }),
        createWorker("w1"),
        createWorker("w2"),
      ],
    });
    const runId = await scene.run("crossed");
    expect(listBegun(scene, runId).toSorted()).toEqual(["first:w1", "second:w2"]);
  });

  test("keep the dispatches to which their edges lead over other nodes", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("apart", {
          nodes: [
            createSupervisor("one", sendNextWorker("w1")),
            createSupervisor("two", sendNextWorker("w2")),
            ...["x", "y"].map((id) => createNode(id)),
            ...["second", "first"].map((id) => createNode(id, "core.dispatch")),
          ],
          edges: [...chain("one>x>first"), ...chain("two>y>second")],
        }),
        createWorker("w1"),
        createWorker("w2"),
      ],
    });
    const runId = await scene.run("apart");
    expect(listBegun(scene, runId).toSorted()).toEqual(["first:w1", "second:w2"]);
  });
});

describe("a dispatch to which no supervisor leads", () => {
  test("carries out the newest decision of any", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("apart", {
          nodes: [
            createSupervisor("one", sendNextWorker("w1")),
            createNode("first", "core.dispatch"),
            createNode("late", "core.delay", { delayMs: WORKER_MS / 2 }),
            createNode("other", "core.dispatch"),
          ],
          edges: [createEdge("one>first"), createEdge("late>other")],
        }),
        createSlowWorker("w1"),
      ],
    });
    const runId = await scene.run("apart");
    await scene.clock.advance(WORKER_MS / 2);
    expect(listBegun(scene, runId)).toEqual(["first:w1", "other:w1"]);
  });
});
