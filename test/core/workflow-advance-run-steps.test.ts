/** Owns: which step of a run is next, what a node wants, and the events of each kind of step. */
import { describe, expect, it } from "vitest";
import {
  decideNodeStep,
  appendNextStep,
  createNodeView,
  type ProgressContext,
} from "../../src/agents/coordination/workflow/advance-run.ts";
import type {
  MemoryNote,
  NodeStep,
  NodeView,
  WorkflowSettings,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import type { NodeRun, WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { chain, createNode } from "../support/workflow-definitions.ts";
import { SETTINGS } from "../support/workflow-settings.ts";
import {
  actingType,
  assign,
  createAdvance,
  createContext,
  createPlayed,
  createStepping,
} from "./workflow-advance-scene.ts";
import { createAsking, createNodeRun, createRun, NOW, withNodes } from "./workflow-view-scene.ts";

const LINE = { nodes: [createNode("a"), createNode("b")], edges: chain("a>b") };
const APART = { nodes: [createNode("a"), createNode("b")] };

/** Takes one step, and returns whether there was one, and what it appended. */
function stepRun(run: WorkflowRun, context: ProgressContext) {
  const advance = createAdvance(run, context);
  const isTaken = appendNextStep(advance);
  return { isTaken, events: advance.events, memory: advance.memory, run: advance.run };
}

const createCompleted = (nodeId: string, endedSequence = 2): NodeRun =>
  createNodeRun(nodeId, "completed", { endedSequence });

describe("the next step of a run", () => {
  it("is its end where its time is over, whatever its nodes want", () => {
    const run = createRun(withNodes(createNodeRun("a", "running")));
    const { isTaken, events } = stepRun(run, createContext(LINE, SETTINGS, NOW + 600_001));
    expect(isTaken).toBe(true);
    expect(events.map(({ type }) => type)).toEqual(["cap.breached", "node.cancelled", "run.failed"]);
  });

  it("is its end where a node failed and nothing waits for that", () => {
    const failed = createNodeRun("a", "failed", { endedSequence: 2 });
    const run = createRun(withNodes(failed, createNodeRun("b", "running")));
    const { isTaken, events } = stepRun(run, createContext(APART));
    expect(isTaken).toBe(true);
    expect(events.map(({ type }) => type)).toEqual(["node.cancelled", "run.failed"]);
  });

  it("is that of the first node at work which does not wait", () => {
    const context = createContext(
      { nodes: [createNode("a", "test.step"), createNode("b"), createNode("c")] },
      createPlayed({ "test.step": actingType }),
    );
    const nodes = ["a", "b", "c"].map((nodeId) => createNodeRun(nodeId, "running"));
    const { isTaken, events } = stepRun(createRun(withNodes(...nodes)), context);
    expect(isTaken).toBe(true);
    expect(events).toMatchObject([{ type: "node.completed", nodeId: "b" }]);
  });

  it("is the start of the first node that is due", () => {
    const { isTaken, events } = stepRun(createRun(), createContext(APART));
    expect(isTaken).toBe(true);
    expect(events).toMatchObject([
      { type: "node.started", nodeId: "a", payload: { nodeId: "a", typeId: "core.noop", attempt: 0 } },
    ]);
  });

  it("is to skip a node that no edge leads to any more", () => {
    const run = createRun(withNodes(createNodeRun("a", "skipped", { endedSequence: 1 })));
    const { isTaken, events } = stepRun(run, createContext(LINE));
    expect(isTaken).toBe(true);
    expect(events).toMatchObject([
      { type: "node.skipped", nodeId: "b", payload: { nodeId: "b", reason: "no edge leads to it" } },
    ]);
  });

  it("is to skip a node that is disabled", () => {
    const context = createContext({ nodes: [createNode("a", "core.noop", {}, { disabled: true })] });
    const { isTaken, events } = stepRun(createRun(), context);
    expect(isTaken).toBe(true);
    expect(events).toMatchObject([
      { type: "node.skipped", nodeId: "a", payload: { nodeId: "a", reason: "disabled" } },
    ]);
  });

  it("is the end of the run where no more nodes may be started", () => {
    const context = createContext(APART, { ...SETTINGS, nodeExecutionsMax: 3 });
    const { events } = stepRun(createRun({ executions: 3 }), context);
    expect(events).toMatchObject([
      { type: "cap.breached", payload: { limit: 3, nodeId: "a" } },
      { type: "run.failed", payload: { error: { code: "recursion_limit_exceeded" }, failedNodeId: "a" } },
    ]);
  });

  it("is the end of the run where a loop came round too often", () => {
    const context = createContext({
      nodes: LINE.nodes,
      edges: chain("a>b>a"),
      settings: { maxLoopbackIterations: 1 },
    });
    const again = createNodeRun("a", "completed", { endedSequence: 2, loopbacks: 1 });
    const run = createRun(withNodes(again, createCompleted("b", 4)));
    expect(stepRun(run, context).events).toMatchObject([
      { type: "workflow.loopback-limit", nodeId: "a" },
      { type: "run.failed", payload: { error: { code: "loopback_limit_exceeded" }, failedNodeId: "a" } },
    ]);
  });

  it("is the completion of the run where every node has ended", () => {
    const run = createRun(withNodes(createCompleted("a"), createCompleted("b", 4)));
    const { isTaken, events } = stepRun(run, createContext(LINE));
    expect(isTaken).toBe(true);
    expect(events).toMatchObject([{ type: "run.completed", payload: { outputs: {}, durationMs: 0 } }]);
  });

  it.each(["running", "suspended"] as const)(
    "is none while a node is %s and nothing else is due",
    (status) => {
      const context = createContext(
        { nodes: [createNode("a", "test.step")] },
        createStepping({ kind: "wait" }),
      );
      const run = createRun(withNodes(createNodeRun("a", status)));
      expect(stepRun(run, context)).toEqual({ isTaken: false, events: [], memory: [], run });
    },
  );
});

describe("a run that is to be paused", () => {
  const pauseRequested = { drainPolicy: "immediate", reason: "lunch" } as const;
  const createWaiting = () =>
    createContext(
      { nodes: [createNode("a", "test.step"), createNode("b")] },
      createStepping({ kind: "wait" }),
    );

  it("starts nothing, and pauses not yet while a node runs", () => {
    const run = createRun({ pauseRequested, ...withNodes(createNodeRun("a", "running")) });
    expect(stepRun(run, createWaiting())).toMatchObject({ isTaken: false, events: [] });
  });

  it("pauses as it was requested once nothing runs, though people are asked", () => {
    const run = createRun({ pauseRequested, ...withNodes(createAsking("a")) });
    const { isTaken, events } = stepRun(run, createWaiting());
    expect(isTaken).toBe(true);
    expect(events).toMatchObject([{ type: "run.paused", payload: pauseRequested }]);
    expect(events).toHaveLength(1);
  });
});

/** Takes the step of the node `a`, five milliseconds after it began unless another time is stated. */
function stepNode(step: NodeStep, { now = NOW + 5, nodeRun = createNodeRun("a", "running") } = {}) {
  const context = createContext({ nodes: [createNode("a", "test.step")] }, createStepping(step), now);
  return stepRun(createRun({ nextSequence: 7, ...withNodes(nodeRun) }), context);
}

describe("a node that wants", () => {
  const ERROR = { code: "broken", message: "it broke" };
  const NOTE: MemoryNote = { scope: "w", id: "note-1", content: "é", tags: ["t"] };
  const QUESTION = { kind: "custom", data: { color: "blue" } } as const;
  const SUSPENSION = [
    { type: "node.suspended", nodeId: "a", payload: { kind: "custom" } },
    { type: "interrupt.requested", nodeId: "a", payload: { kind: "custom", data: { color: "blue" } } },
  ];

  it("to complete ends with its outputs and its duration, between what comes before and after", () => {
    const outputs = { color: "blue" };
    const { isTaken, events } = stepNode({
      kind: "complete",
      outputs,
      before: [assign("v")],
      after: [assign("w")],
    });
    expect(isTaken).toBe(true);
    expect(events).toMatchObject([
      assign("v"),
      { type: "node.completed", nodeId: "a", payload: { nodeId: "a", outputs, durationMs: 5 } },
      assign("w"),
    ]);
  });

  it("to complete has no outputs where it names none, and no duration below zero", () => {
    const { events } = stepNode({ kind: "complete" }, { now: NOW - 5 });
    expect(events.map(({ type, payload }) => [type, payload])).toEqual([
      ["node.completed", { nodeId: "a", outputs: {}, durationMs: 0 }],
    ]);
  });

  it.each([
    ["alone", {}, []],
    ["behind what comes before", { before: [assign("v")] }, [assign("v")]],
  ])("to fail fails, %s", (_case, more, ahead) => {
    const { isTaken, events } = stepNode({ kind: "fail", error: ERROR, ...more });
    expect(isTaken).toBe(true);
    expect(events).toMatchObject([
      ...ahead,
      { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error: ERROR, attempts: 1 } },
    ]);
  });

  it("to record has its notes kept, each with the sequence of its event", () => {
    const notes = [NOTE, { ...NOTE, id: "note-2" }];
    const step: NodeStep = { kind: "record", drafts: [assign("v"), assign("w")], memory: notes };
    const { isTaken, events, memory } = stepNode(step);
    expect(isTaken).toBe(true);
    expect(events).toMatchObject([assign("v"), assign("w")]);
    expect(memory).toEqual([
      { ...NOTE, sequence: 7 },
      { ...NOTE, id: "note-2", sequence: 8 },
    ]);
  });

  it("to record without notes keeps nothing in memory", () => {
    const { events, memory } = stepNode({ kind: "record", drafts: [assign("v")] });
    expect(events).toMatchObject([assign("v")]);
    expect(memory).toEqual([]);
  });

  it.each([
    ["alone", {}, []],
    ["behind what comes before", { before: [assign("v")] }, [assign("v")]],
  ])("to ask people is suspended, %s", (_case, more, ahead) => {
    const { isTaken, events } = stepNode({ kind: "suspend", interrupt: QUESTION, ...more });
    expect(isTaken).toBe(true);
    expect(events).toMatchObject([...ahead, ...SUSPENSION]);
  });

  it("to end the run has its drafts appended", () => {
    const { isTaken, events } = stepNode({ kind: "end", drafts: [{ type: "run.cancelled", payload: {} }] });
    expect(isTaken).toBe(true);
    expect(events).toMatchObject([{ type: "run.cancelled" }]);
  });

  it("an effect waits for its outcome", () => {
    const effect = { kind: "cause_side_effect", id: "a:1", nodeId: "a" } as const;
    expect(stepNode({ kind: "act", effect })).toMatchObject({ isTaken: false, events: [] });
  });
});

describe("a question whose time is over", () => {
  const DUE = { kind: "wait", atMs: NOW } as const;

  it("is answered with a no, from the moment on at which it is due", () => {
    const { isTaken, events } = stepNode(DUE, { now: NOW, nodeRun: createAsking("a") });
    expect(isTaken).toBe(true);
    expect(events.map(({ type, nodeId, payload }) => [type, nodeId, payload])).toEqual([
      ["approval.received", "a", { nodeId: "a", interruptId: "i", action: "timeout" }],
      [
        "interrupt.resolved",
        "a",
        {
          nodeId: "a",
          interruptId: "i",
          kind: "approval",
          resumeValue: { action: "timeout", decision: "rejected", reason: "timeout" },
          action: "timeout",
        },
      ],
    ]);
  });

  it.each([
    ["the time is not over", DUE, { now: NOW - 1, nodeRun: createAsking("a") }],
    ["the question has no end", { kind: "wait" } as const, { nodeRun: createAsking("a") }],
    ["the node asks nobody", DUE, { nodeRun: createNodeRun("a", "running") }],
  ])("is not answered where %s", (_case, step, scene) => {
    expect(stepNode(step, scene)).toMatchObject({ isTaken: false, events: [] });
  });
});

describe("the step of a node", () => {
  function viewNode(node: object, settings: WorkflowSettings = SETTINGS): NodeView {
    const context = createContext({ nodes: [{ ...createNode("a"), ...node }] }, settings);
    const view = createNodeView(
      { ...context, run: createRun(withNodes(createNodeRun("a", "running"))) },
      "a",
    );
    if (!view) throw new Error("the node is there");
    return view;
  }

  it("is that of its type", () => {
    expect(decideNodeStep(viewNode({}))).toEqual({ kind: "complete", outputs: {} });
  });

  it("is a failure where this host does not know the type", () => {
    expect(decideNodeStep(viewNode({ typeId: "acme.unheard" }))).toEqual({
      kind: "fail",
      error: {
        code: "unknown_node_type",
        message: "this host does not know the node type acme.unheard",
      },
    });
  });

  it("is a failure where only a tested host could play the node", () => {
    const node = { config: { mockAnswer: "yes" } };
    expect(decideNodeStep(viewNode(node))).toMatchObject({
      kind: "fail",
      error: {
        code: "capability_required",
        message: expect.stringContaining("node a has config.mockAnswer") as string,
      },
    });
    expect(decideNodeStep(viewNode(node, createPlayed({})))).toMatchObject({ kind: "complete" });
  });

  it("is a failure where the type throws", () => {
    const settings = createPlayed({
      "test.step": {
        step: () => {
          throw new RangeError("too far");
        },
      },
    });
    expect(decideNodeStep(viewNode({ typeId: "test.step" }, settings))).toMatchObject({
      kind: "fail",
      error: { code: "node_broken", message: expect.stringContaining("(RangeError)") as string },
    });
  });
});

describe("the view of a node", () => {
  it("is all that the node may look at", () => {
    const context = createContext(LINE);
    const nodeRun = createNodeRun("a", "running");
    const run = createRun(withNodes(nodeRun));
    expect(createNodeView({ ...context, run }, "a")).toEqual({
      ...context,
      run,
      nodeRun,
      node: context.graph.nodes.get("a"),
    });
  });

  it.each([
    ["has not been started", "b"],
    ["is not one of the workflow's", "ghost"],
  ])("is not there for a node that %s", (_case, nodeId) => {
    const run = createRun(withNodes(createNodeRun("a", "running"), createNodeRun("ghost", "running")));
    expect(createNodeView({ ...createContext(LINE), run }, nodeId)).toBeUndefined();
  });
});
