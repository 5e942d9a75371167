/** Owns: what tells two events of two runs apart, how the states that runs lead to differ, and how much of that is told. */
import { describe, expect, it } from "vitest";
import {
  diffRunsInSlices,
  diffRuns,
  type ComparedRun,
  type LoggedEvent,
  type RunDiff,
} from "../../src/agents/coordination/workflow/run-diff.ts";

type Draft = Pick<LoggedEvent, "type"> & Partial<LoggedEvent>;

function createRun(runId: string, drafts: readonly Draft[], isComplete = true): ComparedRun {
  const events = drafts.map((draft, sequence) => ({
    eventId: `${runId}:${sequence}`,
    runId,
    sequence,
    payload: {},
    ...draft,
  }));
  return { runId, events, isComplete };
}

const compareLogs = (one: readonly Draft[], other: readonly Draft[]): RunDiff =>
  diffRuns(createRun("run-a", one), createRun("run-b", other));
const compareStates = (one: readonly Draft[], other: readonly Draft[]) => compareLogs(one, other).stateDiff;

const STARTED: Draft = { type: "run.started" };
const FAILED: Draft = { type: "run.failed", payload: { error: { code: "no" } } };

const start = (inputs: unknown): Draft => ({ type: "run.started", payload: { inputs } });
const change = (name: unknown, next: unknown): Draft => ({
  type: "variable.changed",
  payload: { name, next },
});
const complete = (outputs?: unknown): Draft => ({ type: "run.completed", payload: { outputs } });

describe("two events at the same place", () => {
  it.each([
    "eventId",
    "runId",
    "observedAt",
    "timestamp",
    "occurredAt",
    "emittedAt",
    "id",
    "durationMs",
    "childRunId",
    "traceparent",
    "tracestate",
  ])("are the same whatever their %s is, at any depth", (name) => {
    const create = (value: string): Draft => ({
      type: "x",
      payload: { [name]: value, list: [{ [name]: value }] },
    });
    expect(compareLogs([create("one")], [create("two")]).eventDiffs).toEqual([]);
  });

  it.each([
    ...["inputs", "outputs", "next", "previous", "resumeValue", "configurable", "metadata"],
    ...["args", "outcome", "result", "task", "decision"],
  ])("differ by whatever the values in their %s are called, at any depth", (field) => {
    for (const name of ["id", "timestamp", "observedAt", "durationMs"]) {
      const create = (value: string): Draft => ({
        type: "x",
        payload: { list: [{ [field]: { list: [{ [name]: value }] } }] },
      });
      expect(compareLogs([create("one")], [create("one")]).eventDiffs).toEqual([]);
      expect(compareLogs([create("one")], [create("two")]).divergedAtSeq).toBe(0);
    }
  });

  it("are the same whatever child their outputs name, and differ by one that other values name", () => {
    const create = (field: string, childRunId: string): Draft => ({
      type: "x",
      payload: { [field]: { childRunId, outputs: { childRunId: "same" } } },
    });
    const compare = (field: string) => compareLogs([create(field, "one")], [create(field, "two")]);
    expect(compare("outputs").eventDiffs).toEqual([]);
    expect(compare("inputs").divergedAtSeq).toBe(0);
    const createNested = (childRunId: string): Draft => ({
      type: "x",
      payload: { inputs: { outputs: { childRunId } } },
    });
    expect(compareLogs([createNested("one")], [createNested("two")]).divergedAtSeq).toBe(0);
  });

  it.each<[string, Draft, Draft]>([
    ["type", { type: "x" }, { type: "y" }],
    ["node", { type: "x", nodeId: "a" }, { type: "x", nodeId: "b" }],
    ["node, which one of them has none of", { type: "x" }, { type: "x", nodeId: "b" }],
    ["cause", { type: "x", causationId: "elsewhere:1" }, { type: "x", causationId: "elsewhere:2" }],
    ["cause, which one of them has none of", { type: "x" }, { type: "x", causationId: "elsewhere:2" }],
    ["payload", { type: "x", payload: { a: 1 } }, { type: "x", payload: { a: 2 } }],
  ])("differ by their %s", (_, one, other) => {
    const [a, b] = [createRun("run-a", [one]), createRun("run-b", [other])];
    expect(diffRuns(a, b)).toEqual({
      a: "run-a",
      b: "run-b",
      divergedAtSeq: 0,
      eventDiffs: [{ seq: 0, op: "changed", aEvent: a.events[0], bEvent: b.events[0] }],
      stateDiff: {},
    });
  });

  it("have the same cause where it has the same place in both logs, or is the same event of another", () => {
    const create = (runId: string): Draft[] => [
      STARTED,
      { type: "x", causationId: `${runId}:0` },
      { type: "x", causationId: "elsewhere:1" },
    ];
    expect(compareLogs(create("run-a"), create("run-b")).eventDiffs).toEqual([]);
  });

  it("are the same where a text names the run, and others where only one of them does", () => {
    const name = (key: string): Draft => ({ type: "x", payload: { key } });
    expect(compareLogs([name("run-a:k run-a")], [name("run-b:k run-b")]).eventDiffs).toEqual([]);
    expect(compareLogs([name("run-a:k")], [name(":k")]).divergedAtSeq).toBe(0);
  });

  it("are the same where a text names the run, also where one id begins with the other", () => {
    const create = (runId: string): ComparedRun =>
      createRun(runId, [{ type: "x", payload: { key: `${runId}:k` } }]);
    expect(diffRuns(create("run-1"), create("run-11")).eventDiffs).toEqual([]);
    expect(diffRuns(create("run-11"), create("run-1")).eventDiffs).toEqual([]);
  });

  it("are told alone where the other run has none at the place", () => {
    const [long, short] = [createRun("run-a", [STARTED, { type: "x" }]), createRun("run-b", [STARTED])];
    expect(diffRuns(long, short).eventDiffs).toEqual([{ seq: 1, op: "removed", aEvent: long.events[1] }]);
    expect(diffRuns(short, long).eventDiffs).toEqual([{ seq: 1, op: "added", bEvent: long.events[1] }]);
  });
});

describe("the states that two runs lead to", () => {
  it.each([
    ["run.completed", "completed"],
    ["run.failed", "failed"],
    ["run.cancelled", "cancelled"],
    ["run.paused", "paused"],
  ])("differ by the status behind %s", (type, status) => {
    const { stateDiff } = compareLogs([STARTED], [STARTED, { type, payload: null }]);
    expect(stateDiff).toEqual({ status: { a: "running", b: status } });
  });

  it("are the same where a run was paused and goes on", () => {
    expect(compareStates([STARTED], [STARTED, { type: "run.paused" }, { type: "run.resumed" }])).toEqual({});
  });

  it.each([
    ["node.started", "running"],
    ["node.suspended", "suspended"],
    ["interrupt.resolved", "running"],
    ["node.completed", "completed"],
    ["node.failed", "failed"],
    ["node.skipped", "skipped"],
    ["node.cancelled", "cancelled"],
  ])("differ by the status of a node behind %s", (type, status) => {
    const [one, other] = [[STARTED], [STARTED, { type, nodeId: "n" }]];
    expect(compareStates(one, other)).toEqual({ nodes: [{ nodeId: "n", a: null, b: status }] });
    expect(compareStates(other, one)).toEqual({ nodes: [{ nodeId: "n", a: status, b: null }] });
  });

  it("are the same where an event says nothing of the status of a node", () => {
    const started: Draft = { type: "node.started", nodeId: "n" };
    const more: Draft[] = [{ type: "node.retried", nodeId: "n" }, { type: "node.completed" }, { type: "x" }];
    expect(compareStates([STARTED, started], [STARTED, started, ...more])).toEqual({});
  });

  it("name only the nodes that differ, in the order of their names", () => {
    const end = (nodeId: string, type = "node.completed"): Draft => ({ type, nodeId });
    const one = [STARTED, end("z"), end("same"), end("b")];
    const other = [STARTED, end("z", "node.failed"), end("same"), end("b", "node.skipped")];
    expect(compareStates(one, other)).toEqual({
      nodes: [
        { nodeId: "b", a: "completed", b: "skipped" },
        { nodeId: "z", a: "completed", b: "failed" },
      ],
    });
  });

  it("name only the variables that differ, in the order of their names, and no value", () => {
    const one = [start({ z: 1, same: { k: [1] } }), change("changed", 1), change("removed", 0)];
    const other = [start({ same: { k: [1] } }), change("changed", 2), change("added", null), change("z", 2)];
    expect(compareStates(one, other)).toEqual({
      variables: [
        { name: "added", op: "added" },
        { name: "changed", op: "changed" },
        { name: "removed", op: "removed" },
        { name: "z", op: "changed" },
      ],
    });
  });

  it("name a variable that differs by an id or a time alone", () => {
    const one = [start({ order: { id: 1, timestamp: 1 } }), change("v", { durationMs: 1 })];
    const other = [start({ order: { id: 1, timestamp: 2 } }), change("v", { durationMs: 2 })];
    expect(compareStates(one, other)).toEqual({
      variables: [
        { name: "order", op: "changed" },
        { name: "v", op: "changed" },
      ],
    });
  });

  it("take a variable without a value as one that is null", () => {
    expect(compareStates([STARTED, change("v", undefined)], [STARTED, change("v", null)])).toEqual({});
    expect(compareStates([STARTED], [STARTED, change("v", undefined)])).toEqual({
      variables: [{ name: "v", op: "added" }],
    });
  });

  it.each<[string, Draft]>([
    ["inputs that are a list", start(["x"])],
    ["no inputs", start(undefined)],
    ["inputs that are null", start(null)],
    ["a variable whose name is a number", change(5, 1)],
    ["a payload that is null", { type: "variable.changed", payload: null }],
    ["a payload that is a text", { type: "variable.changed", payload: "name" }],
    ["a payload without a meaning", { type: "x", payload: { inputs: { a: 1 }, name: "v", next: 1 } }],
  ])("are the same behind %s", (_, draft) => {
    expect(compareStates([STARTED], [STARTED, draft])).toEqual({});
  });

  it("say that the outputs changed, and not to what", () => {
    expect(compareStates([complete({ x: 1 })], [complete({ x: 2 })])).toEqual({ outputs: "changed" });
    expect(compareStates([complete({ x: 1 })], [complete({ x: 1 })])).toEqual({});
    expect(compareStates([complete(null)], [complete()])).toEqual({});
    expect(compareStates([complete({ id: 1 })], [complete({ id: 2 })])).toEqual({ outputs: "changed" });
    expect(compareStates([complete({ childRunId: 1 })], [complete({ childRunId: 2 })])).toEqual({});
    expect(compareStates([{ type: "x" }], [complete()])).toMatchObject({ outputs: "changed" });
  });

  it.each<[string, unknown, string]>([
    ["its code", { code: "too_late" }, "too_late"],
    ["no word where it has no code", {}, "unknown"],
    ["no word where its code is a number", { code: 5 }, "unknown"],
    ["no word where it is a text", "why", "unknown"],
    ["no word where it is a list", [{ code: "too_late" }], "unknown"],
    ["no word where there is none", undefined, "unknown"],
    ["nothing of a code that could be a credential", { code: "sk-1234" }, "[masked]"],
  ])("tell of an error %s", (_, error, code) => {
    const failed: Draft = { type: "run.failed", payload: { error } };
    expect(compareStates([FAILED], [failed])).toEqual({ error: { a: "no", b: code } });
    expect(compareStates([failed], [{ type: "run.failed", payload: null }])).toEqual({
      error: { a: code, b: null },
    });
  });

  it("tell nothing of an error that both ended with", () => {
    expect(compareStates([FAILED], [STARTED, FAILED])).toEqual({});
  });

  it.each(["sk-1", "apiKey", "api_key", "API-KEY", "clientSecret", "bearer x", "accessToken", "password1"])(
    "do not show the name %s, which could be one of a credential",
    (name) => {
      expect(
        compareStates([STARTED], [STARTED, change(name, 1), { type: "node.started", nodeId: name }]),
      ).toEqual({
        variables: [{ name: "[masked]", op: "added" }],
        nodes: [{ nodeId: "[masked]", a: null, b: "running" }],
      });
    },
  );

  it.each(["sky", "apiXkey", "passion", "word"])("show the name %s", (name) => {
    expect(compareStates([STARTED], [STARTED, change(name, 1)])).toEqual({
      variables: [{ name, op: "added" }],
    });
  });
});

describe("the difference of runs of which one is under way", () => {
  it("leaves out what only the other one has reached, also of its state", () => {
    const whole = createRun("run-a", [STARTED, change("v", 1), FAILED]);
    const prefix = createRun("run-b", [STARTED], false);
    const expected = { divergedAtSeq: null, eventDiffs: [], stateDiff: {}, truncated: true };
    expect(diffRuns(whole, prefix)).toEqual({ a: "run-a", b: "run-b", ...expected });
    expect(diffRuns(prefix, whole)).toEqual({ a: "run-b", b: "run-a", ...expected });
  });

  it("tells what the other one lacks that has ended", () => {
    const diff = diffRuns(createRun("run-a", [STARTED]), createRun("run-b", [STARTED, { type: "x" }], false));
    expect(diff).toMatchObject({ divergedAtSeq: 1, eventDiffs: [{ op: "added" }], truncated: true });
  });

  it("ends at the shorter of two that are under way", () => {
    const [one, other] = [createRun("run-a", [STARTED, FAILED], false), createRun("run-b", [STARTED], false)];
    const { divergedAtSeq, stateDiff, truncated } = diffRuns(one, other);
    expect([divergedAtSeq, stateDiff, truncated]).toEqual([null, {}, true]);
  });
});

describe("the bounds of a difference", () => {
  const CHARS_MAX = 2_000_000;
  const createPadded = (pad: number, count: number): Draft[] =>
    Array.from({ length: count }, () => ({ type: "x", payload: { text: "x".repeat(pad) } }));

  it("are five hundred differences", () => {
    const diff = compareLogs(createPadded(1, 500), []);
    expect([diff.eventDiffs.length, diff.truncated]).toEqual([500, undefined]);
    const more = compareLogs(createPadded(1, 501), []);
    expect([more.eventDiffs.length, more.truncated]).toEqual([500, true]);
  });

  it("are two million characters", () => {
    const used = compareLogs(createPadded(0, 2), []).eventDiffs.reduce(
      (sum, diff) => sum + JSON.stringify(diff).length,
      0,
    );
    const pad = Math.floor((CHARS_MAX - used) / 2);
    const rest = CHARS_MAX - used - pad;
    const fitting = compareLogs([...createPadded(pad, 1), ...createPadded(rest, 1)], []);
    expect([fitting.eventDiffs.length, fitting.truncated]).toEqual([2, undefined]);
    const larger = compareLogs([...createPadded(pad, 1), ...createPadded(rest + 1, 1)], []);
    expect([larger.eventDiffs.length, larger.truncated]).toEqual([1, true]);
  });

  it("leave the first difference in, however large it is", () => {
    const diff = compareLogs(createPadded(CHARS_MAX + 1, 2), []);
    expect([diff.eventDiffs.map(({ seq }) => seq), diff.truncated]).toEqual([[0], true]);
  });
});

describe("the comparison in slices", () => {
  it("pauses behind each difference, and comes to the same", () => {
    const [one, other] = [createRun("run-a", [STARTED, FAILED]), createRun("run-b", [complete(), STARTED])];
    const work = diffRunsInSlices(one, other);
    expect(work.next()).toEqual({ done: false, value: undefined });
    expect(work.next()).toEqual({ done: false, value: undefined });
    expect(work.next()).toEqual({ done: true, value: diffRuns(one, other) });
  });

  it("pauses within large values that are the same", () => {
    const create = (runId: string): ComparedRun =>
      createRun(runId, [start(Array.from({ length: 1_500 }, () => 1))]);
    expect(diffRunsInSlices(create("run-a"), create("run-b")).next().done).toBe(false);
  });
});
