/** Owns: what the events of agents and of the work handed over mean for a node: its memory, its tool call, its invocation and its handoff. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { Interrupt } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import {
  apply,
  CALL,
  CALLED,
  CHILD_COMPLETED,
  DISPATCHED,
  keep,
  NODE,
  nodeOf,
  raise,
  RETURNED,
  RUNNING,
} from "./workflow-evolve-node-scene.ts";
import { resolve, RUN, start } from "./workflow-evolve-scene.ts";

const NAMES = { invocationId: "invocation-1", agentId: "acme.writer" };
const BEGAN = {
  type: "agent.invocation.started",
  nodeId: "a",
  payload: { ...NAMES, source: "workflow-node" },
} as const satisfies WorkflowDraft;
const BOUND: WorkflowDraft = {
  type: "coordination.agent_bound",
  nodeId: "a",
  payload: { ...NAMES, threshold: 0.7, task: "write", tools: [] },
};
const TURNED: WorkflowDraft = {
  type: "coordination.agent_turned",
  nodeId: "a",
  payload: { invocationId: "invocation-1", turn: 1, text: "hi", calls: [], tokens: 3 },
};
const PASSED_ON: WorkflowDraft = {
  type: "agent.handoff",
  nodeId: "a",
  payload: { fromAgentId: "acme.writer", toAgentId: "acme.reader" },
};
const FINISHED: WorkflowDraft = {
  type: "agent.invocation.completed",
  nodeId: "a",
  payload: { ...NAMES, outcome: "completed" },
};

const OPEN_CALL = { eventId: createEventId(RUN, 2), sequence: 2, inputs: { q: 1 } };

describe("the memory of a node", () => {
  it("has what it wrote, the oldest first", () => {
    const run = apply(RUNNING, [keep("m-2"), keep("m-1")], 2);
    expect(nodeOf(run)).toStrictEqual({ ...NODE, memoryIds: ["m-2", "m-1"] });
  });

  it("is written while a tool call is open", () => {
    const run = apply(RUNNING, [CALLED, keep("m-1")], 2);
    expect(nodeOf(run)).toStrictEqual({ ...NODE, memoryIds: ["m-1"], openCall: OPEN_CALL });
  });
});

describe("the tool call of a node", () => {
  it("is open from the event that makes it", () => {
    expect(nodeOf(apply(RUNNING, [CALLED], 2))).toStrictEqual({ ...NODE, openCall: OPEN_CALL });
  });

  it("is the newest one", () => {
    expect(nodeOf(apply(RUNNING, [CALLED, CALLED], 2))?.openCall?.eventId).toBe("run-1:3");
  });

  it("is open no more when it returns", () => {
    expect(nodeOf(apply(RUNNING, [CALLED, RETURNED], 2))).toStrictEqual(NODE);
  });
});

describe("the invocation of a node's agent", () => {
  const started = BEGAN.payload;
  const INVOCATION = { started, turns: [], called: new Map(), returned: new Map(), chars: 0, tokens: 0 };

  it("begins", () => {
    expect(nodeOf(apply(RUNNING, [BEGAN], 2))).toStrictEqual({ ...NODE, invocation: INVOCATION });
  });

  it.each<[WorkflowDraft, object]>([
    [BOUND, { bound: BOUND.payload }],
    [TURNED, { turns: [TURNED.payload], chars: 2, tokens: 3 }],
    [PASSED_ON, { handoff: PASSED_ON.payload }],
    [FINISHED, { completed: FINISHED.payload }],
  ])("goes on with $type", (draft, change) => {
    const run = apply(RUNNING, [BEGAN, draft], 2);
    expect(nodeOf(run)).toStrictEqual({ ...NODE, invocation: { ...INVOCATION, ...change } });
  });

  it("has the calls that were made and have returned, as the node has the open one", () => {
    const called = new Map([[CALL.callId, createEventId(RUN, 3)]]);
    const calling = apply(RUNNING, [BEGAN, CALLED], 2);
    const invocation = { ...INVOCATION, called };
    expect(nodeOf(calling)).toStrictEqual({
      ...NODE,
      openCall: { ...OPEN_CALL, eventId: createEventId(RUN, 3), sequence: 3 },
      invocation,
    });
    const returned = new Map([[CALL.callId, CALL]]);
    const back = nodeOf(apply(calling, [RETURNED], 4));
    expect(back).toStrictEqual({ ...NODE, invocation: { ...invocation, returned, chars: 4 } });
  });

  it("is not touched by what the node keeps in memory", () => {
    const before = apply(RUNNING, [BEGAN], 2);
    expect(nodeOf(apply(before, [keep("m-1")], 3))?.invocation).toBe(nodeOf(before)?.invocation);
  });

  it.each([BOUND, TURNED, PASSED_ON, FINISHED])(
    "is none where it has not begun, and the node is the same after $type",
    (draft) => {
      expect(nodeOf(apply(RUNNING, [draft], 2))).toBe(nodeOf(RUNNING));
    },
  );

  it("does not go on after its end", () => {
    const before = apply(RUNNING, [BEGAN, FINISHED], 2);
    expect(nodeOf(apply(before, [TURNED], 4))).toBe(nodeOf(before));
  });
});

describe("what an agent or a tool does", () => {
  const drafts = [keep("m-1"), CALLED, RETURNED, BEGAN, BOUND, TURNED, PASSED_ON, FINISHED];

  it.each(drafts)("outside of all nodes changes none: $type", ({ nodeId: _, ...draft }) => {
    expect(apply(RUNNING, [draft], 2)).toBe(RUNNING);
  });

  it.each(drafts)("in a node that never started changes none: $type", (draft) => {
    expect(apply(RUNNING, [{ ...draft, nodeId: "c" }], 2)).toBe(RUNNING);
  });

  it.each([keep("m-1"), CALLED, BEGAN])("leaves the other nodes alone: $type", (draft) => {
    const before = apply(RUNNING, [start("b")], 2);
    expect(nodeOf(apply(before, [draft], 3), "b")).toBe(nodeOf(before, "b"));
  });
});

describe("the work that a node hands over", () => {
  it.each<[WorkflowDraft, object]>([
    [CHILD_COMPLETED, { phase: "ended", childStatus: "completed" }],
    [DISPATCHED, { phase: "running", childRunId: "child-1" }],
    [
      {
        type: "agent.verified",
        nodeId: "a",
        payload: { agentId: "critic", target: "child-1", verdict: "pass" },
      },
      { verdict: { agentId: "critic", verdict: "pass" } },
    ],
    [
      {
        type: "coordination.child_gave_up",
        nodeId: "a",
        payload: { childRunId: "child-1", unmet: ["goal"] },
      },
      { gaveUp: true },
    ],
  ])("changes by $type", (draft, change) => {
    expect(nodeOf(apply(RUNNING, [DISPATCHED, draft], 2))?.handoff).toMatchObject(change);
  });
});

describe("the agent whose decision a run follows", () => {
  const actor = { agentId: "acme.boss", confidence: 0.2 };
  const answer = (kind: Interrupt["kind"], reason?: string): WorkflowDraft[] => [
    raise(kind, reason),
    { type: "interrupt.resolved", nodeId: "a", payload: { nodeId: "a", interruptId: "a-1", kind } },
  ];

  it.each<[Interrupt["kind"], string]>([
    ["low-confidence", "costs"],
    ["approval", "low-confidence"],
    ["low-confidence", "low-confidence"],
  ])("is none once people answered its doubt, asked by %s for %s", (kind, reason) => {
    const run = apply({ ...RUNNING, actor }, answer(kind, reason), 2);
    expect(run).not.toHaveProperty("actor");
    expect(run.executions).toBe(1);
    expect(nodeOf(run)?.answers).toHaveLength(1);
  });

  it.each<[Interrupt["kind"], string | undefined]>([
    ["approval", undefined],
    ["clarification", "costs"],
  ])("is the same after people answered another question, asked by %s for %s", (kind, reason) => {
    expect(apply({ ...RUNNING, actor }, answer(kind, reason), 2).actor).toBe(actor);
  });

  it("is the same until people answer", () => {
    expect(apply({ ...RUNNING, actor }, [raise("low-confidence")], 2).actor).toBe(actor);
  });

  it("is none where no agent decided", () => {
    expect(apply(RUNNING, [raise("approval"), resolve("a")], 2)).not.toHaveProperty("actor");
  });
});
