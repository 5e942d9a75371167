/** Owns: the events that follow when a run is cancelled, paused or resumed, and when the outcome of an effect comes in. */
import { describe, expect, it } from "vitest";
import type {
  EffectOutcome,
  NodeEffect,
  NodeType,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import type { NodeRun, WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import {
  draftRunCancellation,
  draftRunPause,
  draftRunResumption,
  draftEffectOutcome,
} from "../../src/agents/coordination/workflow/workflow-commands.ts";
import { createNode } from "../support/workflow-definitions.ts";
import { actingType, assign, createContext, createEffect, createPlayed } from "./workflow-advance-scene.ts";
import { createAsking, createNodeRun, createRun, NOW, withNodes } from "./workflow-view-scene.ts";

describe("a run that is cancelled", () => {
  it("has its nodes at work cancelled, and says who cancelled it and why", () => {
    const nodes = withNodes(createNodeRun("a", "running"), createNodeRun("b", "completed"));
    const by = { reason: "enough", cancelledBy: "alice" };
    expect(draftRunCancellation(createRun(nodes), by)).toEqual([
      { type: "node.cancelled", nodeId: "a", payload: { nodeId: "a", reason: "the run was cancelled" } },
      { type: "run.cancelled", payload: by },
    ]);
  });
});

describe("a run that is asked to pause", () => {
  const running = createNodeRun("a", "running");
  const completed = createNodeRun("b", "completed");

  it.each([
    ["at once where it is to", "immediate", [running], "run.paused"],
    [
      "later where a node may end first",
      "drain-current-node",
      [completed, running],
      "coordination.pause_requested",
    ],
    ["at once where no node runs", "drain-current-node", [createAsking("a"), completed], "run.paused"],
  ] as const)("pauses %s", (_case, drainPolicy, nodes, type) => {
    const request = { drainPolicy, reason: "lunch" };
    expect(draftRunPause(createRun(withNodes(...nodes)), request)).toEqual([{ type, payload: request }]);
  });
});

describe("a run that is resumed", () => {
  const DEFINITION = {
    nodes: [
      createNode("delay", "core.delay", { delayMs: 5 }),
      createNode("model", "core.ai.callPrompt"),
      createNode("unheard", "acme.unheard"),
    ],
  };
  const resume = (...nodes: readonly NodeRun[]) =>
    draftRunResumption(createRun(withNodes(...nodes)), createContext(DEFINITION));
  const RESUMED = { type: "run.resumed", payload: {} };
  const startOf = (nodeId: string, typeId: string, attempt: number) => ({
    type: "node.started",
    nodeId,
    payload: { nodeId, typeId, attempt },
  });

  it("begins a node anew that was stopped in the middle", () => {
    expect(resume(createNodeRun("delay", "running", { attempt: 2 }))).toEqual([
      RESUMED,
      startOf("delay", "core.delay", 3),
    ]);
  });

  it("begins the attempt of a node that failed meanwhile", () => {
    const retrying = { attempt: 2, isRetrying: true } as const;
    expect(
      resume(createNodeRun("model", "running", retrying), createNodeRun("delay", "running", retrying)),
    ).toEqual([RESUMED, startOf("model", "core.ai.callPrompt", 2), startOf("delay", "core.delay", 2)]);
  });

  it.each([
    ["ended before", createNodeRun("delay", "completed")],
    ["cannot be stopped in the middle", createNodeRun("model", "running")],
    ["this host does not know the type of", createNodeRun("unheard", "running")],
    ["the workflow does not have", createNodeRun("ghost", "running", { isRetrying: true })],
  ])("leaves alone a node that %s", (_case, nodeRun) => {
    expect(resume(nodeRun)).toEqual([RESUMED]);
  });
});

const RUNNING = createNodeRun("a", "running");
const EFFECT = createEffect({ nodeRun: RUNNING });
const OUTCOME: EffectOutcome = { kind: "side_effect_caused", effectId: "e" };
const ERROR = { code: "broken", message: "it broke" };
const FAILED: EffectOutcome = { kind: "failed", error: ERROR };

interface Settlement {
  readonly type?: NodeType;
  readonly nodeRun?: NodeRun;
  readonly run?: Partial<WorkflowRun>;
  readonly effect?: NodeEffect;
  readonly outcome?: EffectOutcome;
  readonly maxRetries?: number;
}

/** Tells the variable `v` of any outcome. */
const tellingType: NodeType = { ...actingType, settle: () => [assign("v")] };

/** Settles the effect of the node `a`, which waits for it unless something else is stated. */
function settle({
  type = tellingType,
  nodeRun = RUNNING,
  run = {},
  effect = EFFECT,
  outcome = OUTCOME,
  maxRetries = 0,
}: Settlement) {
  const small = { nodes: [createNode("a", "test.step")], settings: { maxRetries } };
  const context = createContext(small, createPlayed({ "test.step": type }));
  return draftEffectOutcome(createRun({ ...withNodes(nodeRun), ...run }), context, { effect, outcome });
}

describe("the outcome of an effect", () => {
  const FAILURE = {
    type: "node.failed",
    nodeId: "a",
    payload: { nodeId: "a", error: ERROR, attempts: 1 },
  };
  const failingType: NodeType = {
    ...actingType,
    settle: () => [assign("v"), { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error: ERROR } }],
  };
  const ANSWER = {
    kind: "model_answered",
    text: "blue",
    model: "small",
    usage: { inputTokens: 3, outputTokens: 5 },
  } as const;

  it("brings the events that the node makes of it", () => {
    const type: NodeType = {
      ...actingType,
      settle: ({ nodeRun }, { id }, { kind }) => [assign(`${nodeRun.nodeId} ${id} ${kind}`)],
    };
    expect(settle({ type })).toEqual([assign("a a:effect side_effect_caused")]);
  });

  it("brings the call of a model ahead of them", () => {
    expect(settle({ outcome: ANSWER })).toMatchObject([
      { type: "provider.usage", nodeId: "a", payload: { model: "small", inputTokens: 3, outputTokens: 5 } },
      assign("v"),
    ]);
  });

  it("brings nothing where the node makes nothing of it, not even the call of a model", () => {
    expect(settle({ type: { ...actingType, settle: () => [] }, outcome: ANSWER })).toEqual([]);
  });

  it("brings the failure of the node where it fails of it", () => {
    expect(settle({ type: failingType })).toEqual([assign("v"), FAILURE]);
  });

  it("brings another attempt where there may be one", () => {
    expect(settle({ type: failingType, maxRetries: 1 })).toMatchObject([
      assign("v"),
      { type: "node.retried", nodeId: "a", payload: { attempt: 1, lastError: ERROR } },
      { type: "node.started", nodeId: "a", payload: { attempt: 1 } },
    ]);
  });

  it("brings the failure of a node that throws at it", () => {
    const type: NodeType = {
      ...actingType,
      settle: () => {
        throw new RangeError("too far");
      },
    };
    expect(settle({ type })).toMatchObject([
      {
        type: "node.failed",
        nodeId: "a",
        payload: {
          nodeId: "a",
          error: { code: "node_broken", message: expect.stringContaining("(RangeError)") as string },
          attempts: 1,
        },
      },
    ]);
  });

  it("is a failure, whatever the node makes of it, where the source of a replay has none", () => {
    const error = { code: "replay_source_missing", message: "the source did not record it" };
    expect(settle({ outcome: { kind: "failed", error } })).toEqual([
      { ...FAILURE, payload: { nodeId: "a", error, attempts: 1 } },
    ]);
  });

  it("is what the node makes of it for any other failure", () => {
    expect(settle({ outcome: FAILED })).toEqual([assign("v")]);
  });

  it("counts also in a run that is paused", () => {
    expect(settle({ run: { phase: { kind: "paused", atMs: NOW } } })).toEqual([assign("v")]);
  });
});

describe("an outcome that nobody waits for", () => {
  const waitingType: NodeType = { ...tellingType, step: () => ({ kind: "wait" }) };

  it.each<[string, Settlement]>([
    ["the run has ended", { run: { phase: { kind: "cancelled", atMs: NOW } } }],
    ["the node has not been started", { nodeRun: createNodeRun("b", "running") }],
    ["the node takes no outcomes", { type: actingType }],
    ["the node waits for another effect", { effect: { ...EFFECT, id: "a:earlier" } }],
    ["the node waits for people", { nodeRun: createAsking("a") }],
    ["the node has ended", { nodeRun: createNodeRun("a", "completed") }],
    ["the node wants no effect", { type: waitingType }],
  ])("means nothing where %s", (_case, settlement) => {
    expect(settle(settlement)).toEqual([]);
  });

  it("means nothing for a node whose type this host does not know", () => {
    const context = createContext({ nodes: [createNode("a", "acme.unheard")] });
    const settlement = { effect: EFFECT, outcome: OUTCOME };
    expect(draftEffectOutcome(createRun(withNodes(RUNNING)), context, settlement)).toEqual([]);
  });
});
