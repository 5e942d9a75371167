/** Owns: what the events of a node mean for it: how it starts, ends and is tried again, and what people answer it. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  WorkflowDraft,
  WorkflowPayloads,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  Interrupt,
  NodeRun,
  WorkflowRun,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import {
  apply,
  CALLED,
  CHILD_COMPLETED,
  DISPATCHED,
  keep,
  NODE,
  nodeOf,
  raise,
  RUNNING,
  withEntry,
  withStart,
} from "./workflow-evolve-node-scene.ts";
import { ask, BEGUN, complete, resolve, RUN, start, suspend, timeAt } from "./workflow-evolve-scene.ts";

const ERROR = { code: "broken", message: "it broke" };
const startAgain = (attempt: number): WorkflowDraft => ({
  type: "node.started",
  payload: { nodeId: "a", typeId: "core.noop", attempt },
});
const retry = (nodeId: string, attempt = 1): WorkflowDraft => ({
  type: "node.retried",
  payload: { nodeId, attempt },
});
const skip = (nodeId: string): WorkflowDraft => ({ type: "node.skipped", payload: { nodeId } });
const fail = (nodeId: string): WorkflowDraft => ({ type: "node.failed", payload: { nodeId, error: ERROR } });
const cancel = (nodeId: string): WorkflowDraft => ({ type: "node.cancelled", payload: { nodeId } });
const vote = (decidedBy: unknown, action: unknown, nodeId = "a"): WorkflowDraft => ({
  type: "approval.received",
  nodeId,
  payload: { nodeId, interruptId: `${nodeId}-1`, decidedBy, action },
});

/** The events of the sequences 2 to 8: everything that a node can have when it ends. */
const BUSY = [suspend("a"), ask("a"), resolve("a"), keep("m-1"), CALLED, DISPATCHED, CHILD_COMPLETED];

/** The execution that these events are of, and a completion behind them. */
const FIRST = { status: "completed", outputs: {}, startedSequence: 1, enteredSequence: 1, endedSequence: 9 };

describe("a node that starts", () => {
  it("runs with nothing done", () => {
    const run = apply(BEGUN, [start("a")]);
    expect(nodeOf(run)).toStrictEqual(NODE);
    expect(run.executions).toBe(1);
  });

  it("counts for the run, and leaves the other nodes alone", () => {
    const run = apply(RUNNING, [start("b"), start("b")], 2);
    expect(run.executions).toBe(3);
    expect(nodeOf(run)).toBe(nodeOf(RUNNING));
    expect(nodeOf(run, "b")?.executions).toBe(2);
  });

  it("again after its end begins anew, with earlier answers and executions, and what is counted over all of them", () => {
    const run = apply(RUNNING, [...BUSY, complete("a"), start("a")], 2);
    expect(nodeOf(run)).toStrictEqual({
      ...NODE,
      ...withStart(10),
      ...withEntry(10),
      executions: 2,
      earlierAnswers: [{ ...ANSWER, eventId: createEventId(RUN, 4), asked: { data: {} } }],
      earlierExecutions: [FIRST],
      interrupts: 1,
      childRunIds: ["child-1"],
      completedChildren: 1,
      loopbacks: 1,
    });
  });

  it("is gone back to as often as it starts after an end", () => {
    const run = apply(RUNNING, [complete("a"), start("a"), fail("a"), start("a")], 2);
    expect(nodeOf(run)).toMatchObject({ executions: 3, loopbacks: 2 });
  });

  it("before it has ended is entered anew, but not gone back to", () => {
    const run = apply(RUNNING, [start("a")], 2);
    expect(nodeOf(run)).toStrictEqual({ ...NODE, ...withStart(2), ...withEntry(2), executions: 2 });
  });

  it("as a retry whose first attempt is not in the log is entered then", () => {
    expect(nodeOf(apply(BEGUN, [startAgain(2)]))).toStrictEqual({ ...NODE, attempt: 2 });
  });
});

describe("a node that is tried again", () => {
  it("waits for the attempt that comes next", () => {
    const run = apply(RUNNING, [retry("a", 3)], 2);
    expect(nodeOf(run)).toStrictEqual({ ...NODE, attempt: 3, isRetrying: true });
  });

  it("goes on with what was entered", () => {
    const run = apply(RUNNING, [retry("a"), startAgain(1)], 2);
    expect(nodeOf(run)).toStrictEqual({ ...NODE, ...withStart(3), executions: 2, attempt: 1 });
  });

  it("is not gone back to, even where it had ended", () => {
    const run = apply(RUNNING, [complete("a"), start("a"), fail("a"), startAgain(1)], 2);
    expect(nodeOf(run)).toMatchObject({ ...withEntry(3), executions: 3, loopbacks: 1 });
  });
});

describe("a node that ends", () => {
  const outputs = { sum: 0 };
  const completeWith: WorkflowDraft = { type: "node.completed", payload: { nodeId: "a", outputs } };

  it.each<[string, WorkflowDraft, Partial<NodeRun>]>([
    ["completes with its outputs", completeWith, { status: "completed", outputs }],
    ["completes without outputs", complete("a"), { status: "completed", outputs: {} }],
    ["fails with an error", fail("a"), { status: "failed", error: ERROR }],
    ["is cancelled", cancel("a"), { status: "cancelled" }],
  ])("%s", (_title, draft, end) => {
    expect(nodeOf(apply(RUNNING, [draft], 2))).toStrictEqual({ ...NODE, ...end, endedSequence: 2 });
  });

  it.each([complete("a"), fail("a"), cancel("a")])(
    "by $type has no open question, and no attempt comes next",
    (draft) => {
      const node = nodeOf(apply(RUNNING, [suspend("a"), ask("a"), retry("a"), draft], 2));
      expect(node).toMatchObject({ interrupts: 1, attempt: 1, endedSequence: 5 });
      expect(node).not.toHaveProperty("interrupt");
      expect(node).not.toHaveProperty("isRetrying");
    },
  );

  it("keeps what it did", () => {
    const before = nodeOf(apply(RUNNING, BUSY, 2));
    const run = apply(RUNNING, [...BUSY, cancel("a")], 2);
    expect(nodeOf(run)).toStrictEqual({ ...before, status: "cancelled", endedSequence: 9 });
  });
});

describe("a node that is skipped", () => {
  it("has ended without an execution", () => {
    const run = apply(BEGUN, [skip("a")]);
    expect(nodeOf(run)).toStrictEqual({ ...NODE, status: "skipped", executions: 0, endedSequence: 1 });
    expect(run.executions).toBe(0);
  });

  it("after it ran keeps when it was entered, its answers and executions, and what is counted over all of them", () => {
    const again = [complete("a"), start("a"), retry("a"), startAgain(1), complete("a"), skip("a")];
    const run = apply(RUNNING, [...BUSY, ...again], 2);
    expect(nodeOf(run)).toStrictEqual({
      ...NODE,
      status: "skipped",
      executions: 3,
      ...withStart(14),
      ...withEntry(10),
      endedSequence: 14,
      earlierAnswers: [{ ...ANSWER, eventId: createEventId(RUN, 4), asked: { data: {} } }],
      earlierExecutions: [
        FIRST,
        { status: "completed", outputs: {}, startedSequence: 12, enteredSequence: 10, endedSequence: 13 },
      ],
      interrupts: 1,
      childRunIds: ["child-1"],
      completedChildren: 1,
      loopbacks: 1,
    });
  });
});

describe("a node that never started", () => {
  const drafts = [retry("c"), complete("c"), fail("c"), cancel("c")];
  const interrupts = [suspend("c"), ask("c"), vote("bob", "accept", "c"), resolve("c")];

  it.each([...drafts, ...interrupts])("has no $type", (draft) => {
    expect(() => apply(RUNNING, [draft], 2)).toThrow("node c has not been started");
  });
});

describe("an event that means nothing for a node", () => {
  it.each<WorkflowDraft>([
    { type: "node.resumed", nodeId: "a", payload: { nodeId: "a", interruptId: "a-1" } },
    { type: "agent.reasoned", nodeId: "a", payload: { agentId: "acme.writer", reasoning: "hm" } },
    { type: "provider.usage", nodeId: "a", payload: {} },
  ])("leaves the run as it is: $type", (draft) => {
    expect(apply(RUNNING, [draft], 2)).toBe(RUNNING);
  });
});

const request = (rest: Partial<WorkflowPayloads["interrupt.requested"]>): WorkflowDraft => ({
  type: "interrupt.requested",
  nodeId: "a",
  payload: { kind: "approval", key: "k", data: {}, ...rest },
});
const OPENED: Interrupt = {
  interruptId: "a-1",
  kind: "approval",
  key: "k",
  atMs: timeAt(2),
  eventId: createEventId(RUN, 2),
  data: {},
  votes: [],
};
const SUSPENDED: NodeRun = { ...NODE, status: "suspended", interrupts: 1, interrupt: OPENED };
const ASKED: WorkflowRun = {
  ...RUNNING,
  nodes: RUNNING.nodes.set("a", { ...SUSPENDED, interrupt: { ...OPENED, isAsked: true } }),
};

describe("a node that asks people", () => {
  it("waits, and has not said what is asked", () => {
    expect(nodeOf(apply(RUNNING, [suspend("a")], 2))).toStrictEqual(SUSPENDED);
  });

  it("says why it asks, where it has a reason", () => {
    const run = apply(RUNNING, [raise("approval", "costs")], 2);
    expect(nodeOf(run)?.interrupt).toStrictEqual({ ...OPENED, reason: "costs" });
  });

  it.each<Partial<WorkflowPayloads["interrupt.requested"]>>([
    { data: {} },
    { data: { prompt: "ok?" }, timeoutMs: 0 },
    { data: { prompt: "ok?" }, resumeSchema: { type: "string" } },
  ])("says what is asked, which is %j", (rest) => {
    const run = apply(RUNNING, [suspend("a"), request(rest)], 2);
    const interrupt = { ...OPENED, isAsked: true, ...rest };
    expect(nodeOf(run)).toStrictEqual({ ...SUSPENDED, interrupt });
  });

  it("says nothing where no question is open", () => {
    expect(nodeOf(apply(RUNNING, [ask("a")], 2))).toStrictEqual(NODE);
  });
});

describe("the votes on a question", () => {
  const votesOf = (run: WorkflowRun) => nodeOf(run)?.interrupt?.votes;

  it("are kept in their order, without another change", () => {
    const run = apply(ASKED, [vote("bob", "accept"), vote("carol", "reject")], 4);
    const votes = [
      { by: "bob", action: "accept" },
      { by: "carol", action: "reject" },
    ];
    expect(nodeOf(run)).toStrictEqual({ ...SUSPENDED, interrupt: { ...OPENED, isAsked: true, votes } });
  });

  it("count once for everybody, the newest one", () => {
    const votes = votesOf(
      apply(ASKED, [vote("bob", "accept"), vote("carol", "accept"), vote("bob", "reject")], 4),
    );
    expect(votes).toStrictEqual([
      { by: "carol", action: "accept" },
      { by: "bob", action: "reject" },
    ]);
  });

  it.each([
    ["nobody's name", 7, "accept"],
    ["no action", "bob", undefined],
    ["neither", undefined, undefined],
  ])("are none where an event has %s", (_title, decidedBy, action) => {
    expect(nodeOf(apply(ASKED, [vote(decidedBy, action)], 4))).toStrictEqual(nodeOf(ASKED));
  });

  it("are none where no question is open", () => {
    expect(nodeOf(apply(RUNNING, [vote("bob", "accept")], 2))).toStrictEqual(NODE);
  });
});

/** Nobody's, as it names nobody. */
const ANSWER = { interruptId: "a-1", kind: "approval", resumeValue: {}, isExpired: true } as const;

describe("the answer to a question", () => {
  it("lets the node run on, and is kept with the question", () => {
    const data = { prompt: "ok?" };
    const run = apply(RUNNING, [raise("approval", "costs"), request({ data }), resolve("a")], 2);
    const answer = { ...ANSWER, eventId: createEventId(RUN, 4), asked: { data, reason: "costs" } };
    expect(nodeOf(run)).toStrictEqual({ ...NODE, interrupts: 1, answers: [answer] });
  });

  it("has not expired where it names who gave it", () => {
    const byBob: WorkflowDraft = {
      type: "interrupt.resolved",
      nodeId: "a",
      payload: { nodeId: "a", interruptId: "a-1", kind: "approval", resumeValue: {}, resolvedBy: "bob" },
    };
    expect(nodeOf(apply(ASKED, [byBob], 4))?.answers[0]).not.toHaveProperty("isExpired");
  });

  it("follows the answers before it", () => {
    const run = apply(ASKED, [resolve("a"), suspend("a"), resolve("a")], 4);
    const answers = [4, 6].map((sequence) => ({
      ...ANSWER,
      eventId: createEventId(RUN, sequence),
      asked: { data: {} },
    }));
    expect(nodeOf(run)).toStrictEqual({ ...NODE, interrupts: 2, answers });
  });

  it("is kept, in order, when the node starts again and again", () => {
    const rounds = [start("a"), suspend("a"), resolve("a"), start("a")];
    const run = apply(ASKED, [resolve("a"), ...rounds], 4);
    expect(nodeOf(run)?.answers).toEqual([]);
    expect(nodeOf(run)?.earlierAnswers?.map(({ eventId }) => eventId)).toEqual(["run-1:4", "run-1:7"]);
  });

  it("is kept where no question is open, as the answer to nothing", () => {
    const answer = { ...ANSWER, eventId: createEventId(RUN, 2), asked: { data: {} } };
    expect(nodeOf(apply(RUNNING, [resolve("a")], 2))).toStrictEqual({ ...NODE, answers: [answer] });
  });

  it("rules on what a child produced, where that has ended", () => {
    const run = apply(RUNNING, [DISPATCHED, CHILD_COMPLETED, suspend("a"), resolve("a")], 2);
    expect(nodeOf(run)?.handoff?.answer?.eventId).toBe("run-1:5");
    expect(run.reviews.get("a\nw")?.ruling).toBe("rejected");
  });
});
