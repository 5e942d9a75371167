/** Owns: whether a node that failed is tried again, and how a run fails where it goes beyond one of its limits. */
import { describe, expect, it } from "vitest";
import {
  createBrokenNodeError,
  draftRetryOrFailure,
  draftNodeStart,
  NOT_RETRIED,
} from "../../src/agents/coordination/workflow/node-failure.ts";
import {
  draftExecutionLimit,
  draftLoopbackLimit,
  draftOverLimit,
} from "../../src/agents/coordination/workflow/run-limits.ts";
import type { NodeView } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import type { NodeRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createNode } from "../support/workflow-definitions.ts";
import {
  cancel,
  close,
  createEnding,
  createView,
  INVOCATION,
  type RunSurroundings,
} from "./workflow-node-contract-scene.ts";
import { createGraph, createNodeRun, NOW, withDecision } from "./workflow-view-scene.ts";

const ERROR = { code: "broken", message: "it broke" };

/** The node `a` may be tried again twice. */
function createRetried(more: Partial<NodeRun> = {}, around: RunSurroundings = {}): NodeView {
  const nodes = [createNode("a", "core.delay"), createNode("b")];
  return createView(more, { graph: createGraph({ nodes, settings: { maxRetries: 2 } }), ...around });
}

describe("a node whose code threw", () => {
  it.each([
    [new TypeError("secret"), "TypeError"],
    ["secret", "string"],
    [undefined, "undefined"],
  ])("fails with the name of what was thrown: %s", (thrown, name) => {
    expect(createBrokenNodeError(thrown)).toEqual({
      code: "node_broken",
      message: `the node could not cope with its configuration or inputs (${name})`,
    });
  });
});

describe("an attempt of a node", () => {
  it("begins with the type of the node", () => {
    expect(draftNodeStart({ id: "a", typeId: "core.delay" }, 3)).toEqual({
      type: "node.started",
      nodeId: "a",
      payload: { nodeId: "a", typeId: "core.delay", attempt: 3 },
    });
  });
});

describe("a node that failed", () => {
  const createRetry = (attempt: number) => ({
    type: "node.retried",
    nodeId: "a",
    payload: { nodeId: "a", attempt, delayMs: 0, lastError: ERROR },
  });

  it.each([0, 1])("is tried again after the attempt %i of three", (attempt) => {
    const view = createRetried({ attempt });
    expect(draftRetryOrFailure(view, view, ERROR)).toEqual([
      createRetry(attempt + 1),
      {
        type: "node.started",
        nodeId: "a",
        payload: { nodeId: "a", typeId: "core.delay", attempt: attempt + 1 },
      },
    ]);
  });

  it.each([2, 3])("has failed for good after the attempt %i", (attempt) => {
    const view = createRetried({ attempt });
    expect(draftRetryOrFailure(view, view, ERROR)).toEqual([
      { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error: ERROR, attempts: attempt + 1 } },
    ]);
  });

  it("is tried again in a paused run when that is resumed", () => {
    const view = createRetried({}, { run: { phase: { kind: "paused", atMs: NOW } } });
    expect(draftRetryOrFailure(view, view, ERROR)).toEqual([createRetry(1)]);
  });

  it("ends its agent first, before another attempt and before its failure", () => {
    const retried = createRetried({ invocation: INVOCATION });
    const types = draftRetryOrFailure(retried, retried, ERROR).map(({ type }) => type);
    expect(types).toEqual(["agent.invocation.completed", "node.retried", "node.started"]);
    const paused = createRetried(
      { invocation: INVOCATION },
      { run: { phase: { kind: "paused", atMs: NOW } } },
    );
    expect(draftRetryOrFailure(paused, paused, ERROR)).toEqual([close("failed"), createRetry(1)]);
    const refused = { code: "envelope_refused_by_provider", message: "no" };
    expect(draftRetryOrFailure(retried, retried, refused)).toEqual([
      close("refused"),
      { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error: refused, attempts: 1 } },
    ]);
  });

  it("ends the run where another attempt would be one too many", () => {
    const view = createRetried({}, { run: { executions: 10 } });
    expect(draftRetryOrFailure(view, view, ERROR)).toEqual(draftExecutionLimit(view, "a"));
    const last = createRetried({ attempt: 2 }, { run: { executions: 10 } });
    expect(draftRetryOrFailure(last, last, ERROR)[0]?.type).toBe("node.failed");
  });

  it.each([
    "approval_rejected",
    "approval_timeout",
    "clarification_timeout",
    "interrupt_timeout",
    "decision_rejected",
    "verification_failed",
    "low_confidence_rejected",
    "capability_not_provided",
    "capability_required",
    "unknown_node_type",
    "no_pending_decision",
    "fan_out_unsupported",
    "not_configured",
    "memory_action_unknown",
    "envelope_refused_by_provider",
    "value_not_recordable",
    "node_broken",
    "replay_source_missing",
    "handoff_task_schema_violation",
    "forbidden",
    "agent_limit_exceeded",
  ])("is not tried again where another attempt would not change it: %s", (code) => {
    const view = createRetried();
    const error = { code, message: "no" };
    expect(draftRetryOrFailure(view, view, error)).toEqual([
      { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error, attempts: 1 } },
    ]);
    expect(NOT_RETRIED.has(code)).toBe(true);
  });
});

describe("the limits of a run as a whole", () => {
  const createAtWork = (run: RunSurroundings["run"] = {}) =>
    createEnding([createNodeRun("a", "running")], { run });

  it("do not end a run within them", () => {
    expect(draftOverLimit(createAtWork())).toBeUndefined();
    expect(draftOverLimit(createAtWork({ chars: 16_000_000 }))).toBeUndefined();
  });

  it("end a run whose values are too large", () => {
    const message = "the values of the run take more than 16000000 characters";
    expect(draftOverLimit(createAtWork({ chars: 16_000_001 }))).toEqual([
      cancel("a", message),
      { type: "run.failed", payload: { error: { code: "run_too_large", message } } },
    ]);
  });

  it("end a run that has taken too long, whatever its size", () => {
    const ending = createAtWork({ chars: 16_000_001 });
    const drafts = draftOverLimit({ ...ending, settings: { ...ending.settings, runDurationMsMax: 1 } });
    expect(drafts?.map(({ type }) => type)).toEqual(["cap.breached", "node.cancelled", "run.failed"]);
    expect(drafts?.at(-1)?.payload).toMatchObject({ error: { code: "run_timeout" } });
  });
});

describe("the limit of executions", () => {
  const createAfter = (executions: number, configurable: RunSurroundings["configurable"] = {}) =>
    createView({}, { run: { executions }, configurable });

  it.each([
    [9, {}],
    [9, { recursionLimit: 11 }],
    [9, { recursionLimit: "3" }],
    [2, { recursionLimit: 3 }],
  ])("does not end a run after %i of them with %j", (executions, configurable) => {
    expect(draftExecutionLimit(createAfter(executions, configurable), "a")).toBeUndefined();
  });

  it.each([
    [10, 10, {}],
    [12, 10, { recursionLimit: 11 }],
    [10, 10, { recursionLimit: "30" }],
    [3, 3, { recursionLimit: 3 }],
  ])("ends a run after %i of them at %i with %j", (executions, limit, configurable) => {
    const message = `the run has executed ${executions} nodes, which is its limit`;
    const error = { code: "recursion_limit_exceeded", message };
    const observed = executions + 1;
    expect(draftExecutionLimit(createAfter(executions, configurable), "c")).toEqual([
      {
        type: "cap.breached",
        nodeId: "c",
        payload: { kind: "node-executions", limit, observed, nodeId: "c" },
      },
      cancel("a", message),
      cancel("b", message),
      { type: "run.failed", payload: { error, failedNodeId: "c" } },
    ]);
  });

  it("holds for a run whose caller configures nothing", () => {
    expect(draftExecutionLimit(createView({}, { run: { executions: 9 } }), "a")).toBeUndefined();
    expect(draftExecutionLimit(createView({}, { run: { executions: 10 } }), "a")).toHaveLength(4);
  });
});

describe("the limit of a loop", () => {
  const draftAfter = (more: Partial<NodeRun>, run: RunSurroundings["run"] = {}) => {
    const graph = createGraph({
      nodes: [createNode("a"), createNode("b"), createNode("c")],
      settings: { maxLoopbackIterations: 3 },
    });
    const nodes = [createNodeRun("a", "completed", more), createNodeRun("b", "running")];
    const node = graph.nodes.get("a")?.node;
    if (!node) throw new Error("the graph has no node a");
    return draftLoopbackLimit(createEnding(nodes, { run }).run, graph, node);
  };
  const atLimit = { loopbacks: 3, endedSequence: 2 };

  it.each([3, 4])("ends a run where a node was gone back to %i times", (loopbacks) => {
    const message = `node a was gone back to ${loopbacks} times`;
    expect(draftAfter({ ...atLimit, loopbacks })).toEqual([
      {
        type: "workflow.loopback-limit",
        nodeId: "a",
        payload: { nodeId: "a", iterations: loopbacks + 1, limit: 3 },
      },
      cancel("b", message),
      {
        type: "run.failed",
        payload: { error: { code: "loopback_limit_exceeded", message }, failedNodeId: "a" },
      },
    ]);
  });

  it("does not end a run whose node may be gone back to, or is still at work", () => {
    expect(draftAfter({ ...atLimit, loopbacks: 2 })).toBeUndefined();
    expect(draftAfter({ loopbacks: 3 })).toBeUndefined();
  });

  it("is left to the supervisor once it has decided, or has a decision that waits for people", () => {
    const decision = { kind: "terminate" } as const;
    expect(draftAfter(atLimit, withDecision(decision))).toBeUndefined();
    const orchestrator = { decided: 0, revisions: 0, held: [{ nodeId: "a", decision, sequence: 5 }] };
    expect(draftAfter(atLimit, { orchestrator })).toBeUndefined();
  });

  it("is no matter for a node that was never started", () => {
    const { run, graph } = createEnding([]);
    const node = graph.nodes.get("a")?.node;
    expect(node && draftLoopbackLimit(run, graph, node)).toBeUndefined();
    expect(node?.id).toBe("a");
  });
});
