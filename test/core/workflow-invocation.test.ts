/** Owns: how far the invocation of an agent is after each of its events, and how it is closed where its node ends before it. */
import { describe, expect, it } from "vitest";
import {
  createEventId,
  type CoordinationId,
  type EventId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { AskedCall } from "../../src/agents/coordination/contracts/workflows/agent-events.ts";
import {
  REFUSED,
  type WorkflowDraft,
  type WorkflowPayloads,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  countMadeCalls,
  formatToolReturn,
  draftInvocationClosing,
  evolveInvocation,
  listOpenCalls,
  type Invocation,
  type InvocationEvent,
} from "../../src/agents/coordination/workflow/state/invocation.ts";

const RUN = "run-1" as CoordinationId;
const NAMES = { invocationId: "invocation-1", agentId: "acme.writer" } as const;

type AgentDraft = Extract<WorkflowDraft, { type: InvocationEvent["type"] }>;
type ToolReturnPayload = WorkflowPayloads["agent.toolReturned"];

/** Returns the invocation after the drafts, which are the first events of a log. */
function play(...drafts: readonly AgentDraft[]): Invocation | undefined {
  return drafts.reduce<Invocation | undefined>(
    (before, draft, index) => evolveInvocation(before, createEvent(draft, index)),
    undefined,
  );
}

function createEvent(draft: AgentDraft, sequence: number): InvocationEvent {
  return {
    eventId: createEventId(RUN, sequence),
    runId: RUN,
    sequence,
    timestamp: "2026-01-01T00:00:00.000Z",
    nodeId: "agent",
    ...draft,
  };
}

function playOpen(...drafts: readonly AgentDraft[]): Invocation {
  const invocation = play(STARTED, ...drafts);
  if (!invocation) throw new Error("there is no invocation");
  return invocation;
}

function createCall(callId: string, more: Partial<AskedCall> = {}): AskedCall {
  return { callId, toolName: "search", call: "search", args: {}, argsHash: "0".repeat(64), ...more };
}

type Turn = Partial<Pick<WorkflowPayloads["coordination.agent_turned"], "text" | "calls" | "tokens">>;

function draftTurn({ text = "", calls = [], tokens = 0 }: Turn) {
  return {
    type: "coordination.agent_turned",
    payload: { invocationId: NAMES.invocationId, turn: 1, text, calls, tokens },
  } as const satisfies AgentDraft;
}

function createReturned(callId: string, more: Partial<ToolReturnPayload> = {}): ToolReturnPayload {
  return { agentId: NAMES.agentId, toolName: "search", callId, ...more };
}

function draftReturned(callId: string, more: Partial<ToolReturnPayload> = {}): AgentDraft {
  return { type: "agent.toolReturned", payload: createReturned(callId, more) };
}

function draftCalled(callId: string): AgentDraft {
  return { type: "agent.toolCalled", payload: { agentId: NAMES.agentId, toolName: "search", callId } };
}

const STARTED = {
  type: "agent.invocation.started",
  payload: { ...NAMES, source: "workflow-node" },
} as const satisfies AgentDraft;
const BOUND = {
  type: "coordination.agent_bound",
  payload: { ...NAMES, threshold: 0.7, task: "write", tools: [] },
} satisfies AgentDraft;
const HANDOFF = {
  type: "agent.handoff",
  payload: { fromAgentId: NAMES.agentId, toAgentId: "acme.reader" },
} as const satisfies AgentDraft;
const COMPLETED = {
  type: "agent.invocation.completed",
  payload: { ...NAMES, outcome: "completed" },
} as const satisfies AgentDraft;

const BEGUN: Invocation = {
  started: STARTED.payload,
  turns: [],
  called: new Map(),
  returned: new Map(),
  chars: 0,
  tokens: 0,
};

describe("an invocation", () => {
  it("begins with nothing said and nothing called", () => {
    expect(play(STARTED)).toEqual(BEGUN);
  });

  it.each<AgentDraft>([
    BOUND,
    draftTurn({ text: "hello" }),
    draftCalled("call-1"),
    draftReturned("call-1"),
    HANDOFF,
    COMPLETED,
  ])("is not begun by $type of an agent without a manifest", (draft) => {
    expect(play(draft)).toBeUndefined();
  });

  it("begins anew, with nothing of the one before, when its node invokes the agent again", () => {
    expect(play(STARTED, BOUND, draftTurn({ text: "hello", tokens: 3 }), COMPLETED, STARTED)).toEqual(BEGUN);
  });

  it("has what the agent was bound to, whom it handed over to, and how it ended", () => {
    expect(play(STARTED, BOUND, HANDOFF, COMPLETED)).toEqual({
      ...BEGUN,
      bound: BOUND.payload,
      handoff: HANDOFF.payload,
      completed: COMPLETED.payload,
    });
  });

  it.each<AgentDraft>([
    { ...BOUND, payload: { ...BOUND.payload, task: "other" } },
    draftTurn({ text: "hello", tokens: 3 }),
    draftCalled("call-1"),
    draftReturned("call-1"),
    HANDOFF,
    { ...COMPLETED, payload: { ...NAMES, outcome: "failed" } },
  ])("stays as it ended, whatever $type follows", (draft) => {
    expect(play(STARTED, BOUND, COMPLETED, draft)).toEqual(play(STARTED, BOUND, COMPLETED));
  });
});

describe("the turns of an invocation", () => {
  const first = draftTurn({ text: "one", tokens: 5, calls: [createCall("call-1", { args: { a: 1 } })] });
  const second = draftTurn({
    text: "three",
    tokens: 7,
    calls: [createCall("call-2", { args: { b: 2 } }), createCall("call-3")],
  });

  it("are kept, the oldest first, with the size of their texts and arguments and their tokens", () => {
    expect(play(STARTED, first, second)).toEqual({
      ...BEGUN,
      turns: [first.payload, second.payload],
      // Their texts, and the arguments as JSON.
      chars: 3 + 7 + (5 + 7 + 2),
      tokens: 12,
    });
  });

  it("leave the invocation before them as it was", () => {
    const before = playOpen(first);
    evolveInvocation(before, createEvent(second, 2));
    expect(before.turns).toEqual([first.payload]);
  });
});

describe("the calls of an invocation", () => {
  it("are kept with the events that began them", () => {
    expect(play(STARTED, draftCalled("call-1"), draftCalled("call-2"))).toEqual({
      ...BEGUN,
      called: new Map<string, EventId>([
        ["call-1", createEventId(RUN, 1)],
        ["call-2", createEventId(RUN, 2)],
      ]),
    });
  });

  it("are kept with what came back, whose size is added to the one of the turns", () => {
    const outcome = { text: "found" };
    const error = { code: "timeout", message: "too slow" };
    const drafts = [draftReturned("call-1", { outcome }), draftReturned("call-2", { error })];
    expect(play(STARTED, draftTurn({ text: "look" }), ...drafts)).toEqual({
      ...BEGUN,
      turns: [draftTurn({ text: "look" }).payload],
      returned: new Map([
        ["call-1", createReturned("call-1", { outcome })],
        ["call-2", createReturned("call-2", { error })],
      ]),
      chars: "look".length + "found".length + "error: too slow".length,
    });
  });

  it("leave the invocation before them as it was", () => {
    const before = playOpen();
    evolveInvocation(before, createEvent(draftCalled("call-1"), 1));
    evolveInvocation(before, createEvent(draftReturned("call-1"), 2));
    expect(before).toEqual(BEGUN);
  });
});

describe("what a model is told of a call that came back", () => {
  it.each<[string, Partial<ToolReturnPayload>]>([
    ["error: too slow", { error: { code: "timeout", message: "too slow" } }],
    ["forbidden: not yours", { error: { code: "denied", message: "not yours" }, status: "forbidden" }],
    ["error: too slow", { error: { code: "timeout", message: "too slow" }, outcome: { text: "found" } }],
    ["found", { outcome: { text: "found", more: 1 }, status: "ok" }],
    ["", { outcome: { text: "" } }],
    ['{"text":1}', { outcome: { text: 1 } }],
    ['{"found":true}', { outcome: { found: true } }],
    ['["found"]', { outcome: ["found"] }],
    ['"found"', { outcome: "found" }],
    ["0", { outcome: 0 }],
    ["null", { outcome: null }],
    ["null", {}],
  ])("is %j", (expected, more) => {
    expect(formatToolReturn(createReturned("call-1", more))).toBe(expected);
  });
});

describe("the open calls of an invocation", () => {
  const listOpen = (...drafts: readonly AgentDraft[]): string[] =>
    listOpenCalls(playOpen(...drafts)).map(({ callId }) => callId);

  it("are none before the first turn", () => {
    expect(listOpenCalls(playOpen())).toEqual([]);
  });

  it("are those of the newest turn, in order", () => {
    const turns = [["call-1"], ["call-2"], ["call-4", "call-3"]].map((ids) =>
      draftTurn({ calls: ids.map((id) => createCall(id)) }),
    );
    expect(listOpen(...turns.slice(0, 1))).toEqual(["call-1"]);
    expect(listOpen(...turns)).toEqual(["call-4", "call-3"]);
  });

  it("are those that have not come back, also where they were begun", () => {
    const turn = draftTurn({ calls: [createCall("call-1"), createCall("call-2"), createCall("call-3")] });
    expect(listOpen(turn, draftCalled("call-1"), draftReturned("call-1"), draftCalled("call-2"))).toEqual([
      "call-2",
      "call-3",
    ]);
  });

  it("have no problem for which they are not made", () => {
    const calls = [createCall("call-1", { problem: "forbidden" }), createCall("call-2")];
    expect(listOpen(draftTurn({ calls }))).toEqual(["call-2"]);
  });
});

describe("the number of calls of an invocation", () => {
  it("counts those of all turns that were made, and none that had a problem", () => {
    const turns = [
      draftTurn({ calls: [createCall("call-1"), createCall("call-2", { problem: "malformed" })] }),
      draftTurn({ calls: [createCall("call-3"), createCall("call-4")] }),
    ];
    expect(countMadeCalls(playOpen())).toBe(0);
    expect(countMadeCalls(playOpen(...turns))).toBe(3);
  });
});

describe("the end of a node whose agent", () => {
  it.each([
    ["failed", undefined],
    ["failed", "node_timeout"],
    ["refused", REFUSED],
  ])("is still at work tells that it %s where the error is %s", (outcome, code) => {
    expect(draftInvocationClosing("agent", playOpen(BOUND), code)).toEqual([
      { type: "agent.invocation.completed", nodeId: "agent", payload: { ...NAMES, outcome } },
    ]);
  });

  it("has ended tells of no second end", () => {
    expect(draftInvocationClosing("agent", playOpen(COMPLETED))).toEqual([]);
  });

  it("was not invoked tells of no end", () => {
    expect(draftInvocationClosing("agent", undefined)).toEqual([]);
  });
});
