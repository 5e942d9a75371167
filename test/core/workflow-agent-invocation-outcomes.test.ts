/** Owns: what is on record of what an agent's node asked for, and which nodes an agent of a manifest executes. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  WorkflowDraft,
  WorkflowPayloads,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { AgentOutcome } from "../../src/agents/coordination/workflow/node-contract/agent-effects.ts";
import type {
  EffectOutcome,
  NodeEffect,
  NodeType,
  NodeView,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import {
  agentInvocation,
  agentNode,
  isAgentInvocation,
  isLiveModelNode,
  withInvocation,
} from "../../src/agents/coordination/workflow/nodes/agent-invocation.ts";
import type { Invocation } from "../../src/agents/coordination/workflow/state/invocation.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import {
  CHILD,
  createBound,
  createCall,
  createCompleted,
  createInvocation,
  createTool,
  createTurn,
  MANIFEST,
  MEMBERS,
  STARTED,
} from "./workflow-agent-node-scene.ts";
import { createHandoff, createPlay, createView, type Scene } from "./workflow-node-view-scene.ts";
import { RUN } from "./workflow-view-scene.ts";

const BASE = { nodeId: "a", agentId: "acme.writer", manifest: MANIFEST };
const ASK: NodeEffect = {
  ...BASE,
  kind: "ask_agent",
  id: "a:1:turn:1",
  turn: 1,
  messages: [],
  callsLeft: 1,
};
const ERROR = { code: "no_model", message: "there is no model" };

function settleWith(view: NodeView, outcome: EffectOutcome, effect: NodeEffect = ASK) {
  return agentInvocation.settle?.(view, effect, outcome);
}

/** Settles an outcome of an agent that is as `change` says. */
function settle(outcome: EffectOutcome, change: Partial<Invocation> = {}) {
  return settleWith(createView({ nodeRun: { invocation: createInvocation(change) } }), outcome);
}

function createFailed(error: Values): WorkflowDraft[] {
  const { code, message } = { ...ERROR, ...error };
  return [{ type: "node.failed", nodeId: "a", payload: { nodeId: "a", error: { code, message } } }];
}

function createEnd(end: Values): Values {
  const payload = { invocationId: "a:1", agentId: "acme.writer", ...end };
  return { type: "agent.invocation.completed", nodeId: "a", payload };
}

describe("the record of a preparation", () => {
  const PROMPT: WorkflowPayloads["agent.promptResolved"] = {
    nodeId: "a",
    kind: "system",
    chain: [],
    resolved: null,
  };
  const PREPARED: AgentOutcome & { readonly kind: "agent_prepared" } = {
    kind: "agent_prepared",
    started: createInvocation().started,
    bound: createBound(),
    prompt: PROMPT,
  };
  const DRAFTS = [
    { type: "agent.invocation.started", nodeId: "a", payload: createInvocation().started },
    { type: "coordination.agent_bound", nodeId: "a", payload: createBound() },
    { type: "agent.promptResolved", nodeId: "a", payload: PROMPT },
  ];

  it("tells who began, with which bounds, on which prompt", () => {
    expect(settleWith(createView(), PREPARED)).toStrictEqual(DRAFTS);
  });

  it("closes an invocation that goes no further, and fails its node", () => {
    expect(settleWith(createView(), { ...PREPARED, refusal: ERROR })).toStrictEqual([
      ...DRAFTS,
      createEnd({ outcome: "failed" }),
      ...createFailed(ERROR),
    ]);
  });
});

describe("the record of a turn", () => {
  const TURN = { text: "I look", calls: [createCall("c1")], tokens: 5 };
  const TURNED = {
    kind: "agent_turned",
    turn: TURN,
    reasoning: "bees first",
    usage: {},
    model: "m",
  } as const satisfies AgentOutcome;

  function createTurned(turn: number, more: Values = {}) {
    const payload = { invocationId: "a:1", turn, ...TURN, ...more };
    return { type: "coordination.agent_turned", nodeId: "a", payload };
  }

  function createReasoned(reasoning: string, verbosity: string) {
    const payload = { agentId: "acme.writer", reasoning, verbosity };
    return { type: "agent.reasoned", nodeId: "a", payload };
  }

  it("tells the answer, and how the agent reasoned ahead of its first call", () => {
    expect(settle(TURNED)).toStrictEqual([createTurned(1), createReasoned("bees first", "full")]);
  });

  it("tells that there was no reasoning", () => {
    expect(settle({ ...TURNED, reasoning: "" })).toStrictEqual([createTurned(1), createReasoned("", "off")]);
  });

  it("tells no reasoning of a later turn", () => {
    expect(settle(TURNED, { turns: [createTurn()] })).toStrictEqual([createTurned(2)]);
  });

  it("fails the node where the last answer has a problem", () => {
    const final = { result: "x" };
    const turned = { ...TURNED, turn: { ...TURN, final }, refusal: ERROR };
    expect(settle(turned, { turns: [createTurn()] })).toStrictEqual([
      createTurned(2, { final }),
      ...createFailed(ERROR),
    ]);
  });

  it("is none where no agent began", () => {
    expect(settleWith(createView(), TURNED)).toEqual([]);
  });

  function createDecided(stated: Values) {
    const payload = { agentId: "acme.writer", decision: { kind: "result" }, ...stated };
    return { type: "agent.decided", nodeId: "a", payload };
  }

  it.each<[title: string, final: Values, decided: Values, end: Values]>([
    ["completes an agent that tells nothing of its confidence", {}, {}, { outcome: "completed" }],
    [
      "completes an agent whose confidence is as high as the threshold",
      { confidence: 0.7 },
      { confidence: 0.7 },
      { outcome: "completed", confidence: 0.7 },
    ],
    [
      "leaves a decision below the threshold to people",
      { confidence: 0 },
      { confidence: 0 },
      { outcome: "escalated", confidence: 0 },
    ],
    [
      "tells whether the result is of its schema",
      { schemaValidated: false },
      {},
      { outcome: "completed", schemaValidated: false },
    ],
  ])("%s", (_title, stated, decided, end) => {
    const final = { result: "x", ...stated };
    const turned = { ...TURNED, turn: { ...TURN, final } };
    expect(settle(turned, { turns: [createTurn()] })).toStrictEqual([
      createTurned(2, { final }),
      createDecided(decided),
      createEnd(end),
    ]);
  });

  it("doubts nothing where the log has no threshold", () => {
    const { bound: _, ...invocation } = createInvocation();
    const turned = { ...TURNED, turn: { ...TURN, final: { result: "x", confidence: 0 } } };
    const drafts = settleWith(createView({ nodeRun: { invocation } }), turned);
    expect(drafts?.at(-1)).toStrictEqual(createEnd({ outcome: "completed", confidence: 0 }));
  });
});

describe("the record of a call", () => {
  const CALL: NodeEffect = {
    ...BASE,
    kind: "call_agent_tool",
    id: "a:1:call:c1",
    call: createCall("c1"),
    tool: createTool("search"),
  };
  const RETURNED: EffectOutcome = {
    kind: "agent_tool_returned",
    returned: { status: "ok", outcome: { text: "bees" }, durationMs: 3 },
  };
  const PAYLOAD = {
    agentId: "acme.writer",
    toolName: "search",
    callId: "c1",
    status: "ok",
    outcome: { text: "bees" },
    durationMs: 3,
  };

  it("follows from the event that began the call", () => {
    const causationId = createEventId(RUN, 3);
    const view = createView({
      nodeRun: { invocation: createInvocation({ called: new Map([["c1", causationId]]) }) },
    });
    expect(settleWith(view, RETURNED, CALL)).toStrictEqual([
      { type: "agent.toolReturned", nodeId: "a", causationId, payload: PAYLOAD },
    ]);
  });

  it("follows from nothing where the log has no beginning of it", () => {
    const view = createView({ nodeRun: { invocation: createInvocation() } });
    const draft = { type: "agent.toolReturned", nodeId: "a", payload: PAYLOAD };
    expect(settleWith(view, RETURNED, CALL)).toStrictEqual([draft]);
    const unknown = { ...draft, payload: { ...PAYLOAD, agentId: "a" } };
    expect(settleWith(createView(), RETURNED, CALL)).toStrictEqual([unknown]);
  });

  it("is none of an effect that called no tool", () => {
    expect(settle(RETURNED)).toEqual([]);
  });
});

describe("the record of a failure", () => {
  it("tells that the model refused", () => {
    expect(settle({ kind: "model_refused", model: "m", usage: {} })).toStrictEqual(
      createFailed({ code: "envelope_refused_by_provider", message: "the model refused to answer" }),
    );
  });

  it.each<EffectOutcome>([
    { kind: "failed", error: ERROR },
    { kind: "child_refused", error: ERROR },
  ])("tells what went wrong: $kind", (outcome) => {
    expect(settle(outcome)).toStrictEqual(createFailed(ERROR));
  });

  it("is none of an outcome that no agent asks for", () => {
    expect(settle({ kind: "memory_read", entries: [] })).toEqual([]);
  });
});

describe("the record of a task that was handed over", () => {
  const CREATED: EffectOutcome = { kind: "child_created", childRunId: CHILD };
  const HANDED = { handoff: { fromAgentId: "acme.writer", toAgentId: "acme.Reader" } };

  it("names the run of the other agent, and ends this one", () => {
    expect(settle(CREATED, HANDED)).toStrictEqual([
      {
        type: "node.dispatched",
        nodeId: "a",
        payload: { childRunId: CHILD, childWorkflowId: "agent.acme.reader" },
      },
      createEnd({ outcome: "handed-off", enqueuedRunId: CHILD }),
    ]);
  });

  it("is none where the agent handed nothing over, or has ended, or never began", () => {
    expect(settle(CREATED)).toEqual([]);
    expect(settle(CREATED, { ...HANDED, completed: createCompleted("handed-off") })).toEqual([]);
    expect(settleWith(createView(), CREATED)).toEqual([]);
  });

  const ENDED = { kind: "child_ended", status: "completed", variables: {} } as const satisfies EffectOutcome;

  function createNodeEnd(outputs: Values) {
    return [{ type: "node.completed", nodeId: "a", payload: { nodeId: "a", outputs } }];
  }

  it("completes the node with what the other agent's run came to", () => {
    const view = createView({ nodeRun: { handoff: createHandoff({ childRunId: CHILD }) } });
    expect(settleWith(view, { ...ENDED, outputs: { result: "read" } })).toStrictEqual(
      createNodeEnd({ result: "read", childRunId: CHILD }),
    );
  });

  it("completes the node without outputs or a child where the log has none", () => {
    expect(settle(ENDED)).toStrictEqual(createNodeEnd({}));
    const view = createView({ nodeRun: { handoff: createHandoff() } });
    expect(settleWith(view, ENDED)).toStrictEqual(createNodeEnd({}));
  });

  it.each([
    ["failed", { status: "failed", error: ERROR }, "no_model"],
    ["failed", { status: "failed" }, "child_failed"],
    ["was cancelled", { status: "cancelled" }, "child_cancelled"],
  ] as const)("fails the node where the other agent %s, and tells why: %j", (end, ended, code) => {
    expect(settle({ ...ENDED, ...ended })).toStrictEqual(
      createFailed({ code, message: `the agent that the task was handed to ${end}` }),
    );
  });
});

describe("a node of another type", () => {
  const OWN_DRAFT: WorkflowDraft = {
    type: "node.completed",
    nodeId: "a",
    payload: { nodeId: "a", outputs: {} },
  };
  const TYPE: NodeType = {
    isPausable: true,
    step: () => ({ kind: "wait" }),
    settle: () => [OWN_DRAFT],
  };
  const FAILED: EffectOutcome = { kind: "failed", error: ERROR };
  const SCENE: Scene = { members: MEMBERS, started: STARTED };

  it("is executed by the agent of a manifest that it names", () => {
    const wrapped = withInvocation(TYPE);
    expect(wrapped.step(createView(SCENE))).toHaveProperty("effect.kind", "prepare_agent");
    expect(wrapped.settle?.(createView(SCENE), ASK, FAILED)).toStrictEqual(createFailed(ERROR));
  });

  it.each<[title: string, wrapped: NodeType, scene: Scene]>([
    ["it names no agent of a manifest", withInvocation(TYPE), {}],
    ["its agent is not meant", withInvocation(TYPE, () => false), SCENE],
  ])("executes itself where %s", (_title, wrapped, scene) => {
    expect(wrapped.isPausable).toBe(true);
    expect(wrapped.step(createView(scene))).toStrictEqual({ kind: "wait" });
    expect(wrapped.settle?.(createView(scene), ASK, FAILED)).toStrictEqual([OWN_DRAFT]);
  });

  it("records nothing where its type settles nothing", () => {
    const { settle: _, ...silent } = TYPE;
    expect(withInvocation(silent).settle?.(createView(), ASK, FAILED)).toEqual([]);
  });

  it("is one of a manifest only where the run knows it", () => {
    expect(isAgentInvocation(createView(SCENE))).toBe(true);
    expect(isAgentInvocation(createView({ members: MEMBERS }))).toBe(false);
  });
});

describe("the turn of a model", () => {
  it.each<[title: string, scene: Scene, isTurn: boolean]>([
    ["is an agent's", {}, true],
    ["is an agent's where the play leaves this node alone", { settings: { play: createPlay({}) } }, true],
    [
      "is no agent's where it is played",
      { settings: { play: createPlay({ isModelPlayed: ({ node: { id } }) => id === "a" }) } },
      false,
    ],
    ["is no agent's where the node brings its own tool", { config: { mcp: {} } }, false],
  ])("%s", (_title, scene, isTurn) => {
    expect(isLiveModelNode(createView(scene))).toBe(isTurn);
  });
});

describe("the node of an agent", () => {
  function check(scene: Scene) {
    const { node, graph, settings } = createView(scene);
    return agentNode.check?.(node, graph, settings);
  }

  it("names an agent, itself or in its configuration", () => {
    expect(check({ members: MEMBERS })).toEqual([]);
    expect(check({ config: { agentId: "acme.writer" } })).toEqual([]);
    expect(check({})).toEqual(["node a names no agent"]);
    expect(check({ config: { agentId: 7 } })).toEqual(["node a names no agent"]);
  });

  it("is executed by the agent that it names", () => {
    const view = createView({ members: MEMBERS, started: STARTED });
    expect(agentNode.step(view)).toHaveProperty("effect.kind", "prepare_agent");
    expect(agentNode.settle?.(view, ASK, { kind: "failed", error: ERROR })).toStrictEqual(
      createFailed(ERROR),
    );
  });

  it("fails where this host has no such agent", () => {
    expect(agentNode.step(createView({ members: MEMBERS }))).toStrictEqual({
      kind: "fail",
      error: { code: "agent_not_installed", message: "this host has no such agent" },
    });
  });
});
