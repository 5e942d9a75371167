import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  diffRuns,
  type ComparedRun,
  type LoggedEvent,
} from "../../src/agents/coordination/workflow/run-diff.ts";

type Draft = Omit<LoggedEvent, "eventId" | "runId" | "sequence"> & { readonly causedBy?: number };

function runOf(runId: string, drafts: readonly Draft[], isComplete = true): ComparedRun {
  const events = drafts.map(({ causedBy, ...draft }, sequence) => ({
    eventId: `${runId}:${sequence}`,
    runId,
    sequence,
    timestamp: `${runId} ${sequence}`,
    ...draft,
    ...(causedBy !== undefined && { causationId: `${runId}:${causedBy}` }),
  }));
  return { runId, events, isComplete };
}

const createStarted = (inputs: object = {}): Draft => ({
  type: "run.started",
  payload: { workflowId: "w", inputs },
});
const createChanged = (name: string, next: unknown): Draft => ({
  type: "variable.changed",
  payload: { name, next },
});
const createNodeCompleted = (nodeId: string, outputs: object = {}): Draft => ({
  type: "node.completed",
  nodeId,
  payload: { nodeId, outputs, durationMs: 1 },
});
const createCompleted = (outputs: object = {}): Draft => ({ type: "run.completed", payload: { outputs } });
const createFailed = (code: string): Draft => ({
  type: "run.failed",
  payload: { error: { code, message: "why" } },
});

describe("the difference of two runs", () => {
  test("is none where only ids, times and what is named after the run differ", () => {
    const log = (runId: string, durationMs: number): ComparedRun =>
      runOf(runId, [
        { type: "run.started", payload: { workflowId: "w", inputs: {}, memoryScope: runId } },
        { type: "node.dispatched", nodeId: "d", payload: { childRunId: `child of ${runId}` }, causedBy: 0 },
        { type: "node.suspended", nodeId: "a", payload: { nodeId: "a", key: `${runId}:a~1` }, causedBy: 1 },
        { type: "run.completed", payload: { outputs: {}, durationMs } },
      ]);
    expect(diffRuns(log("run-1", 5), log("run-22", 7))).toEqual({
      a: "run-1",
      b: "run-22",
      divergedAtSeq: null,
      eventDiffs: [],
      stateDiff: {},
    });
  });

  test("tells each place where they differ, the first one first, with both events", () => {
    const one = runOf("a", [
      createStarted(),
      createNodeCompleted("x"),
      createNodeCompleted("y", { word: 1 }),
      createCompleted(),
    ]);
    const other = runOf("b", [
      createStarted(),
      createNodeCompleted("x"),
      createNodeCompleted("y", { word: 2 }),
      createNodeCompleted("z"),
      createCompleted(),
    ]);
    const diff = diffRuns(one, other);
    expect(diff.divergedAtSeq).toBe(2);
    expect(diff.eventDiffs.map(({ seq, op }) => [seq, op])).toEqual([
      [2, "changed"],
      [3, "changed"],
      [4, "added"],
    ]);
    expect(diff.eventDiffs[0]).toMatchObject({ aEvent: one.events[2], bEvent: other.events[2] });
    expect(diff.eventDiffs[2]).not.toHaveProperty("aEvent");
    expect(diff.stateDiff).toEqual({ nodes: [{ nodeId: "z", a: null, b: "completed" }] });
  });

  test("is one where the cause is another event, and none where it is the same one of the own log", () => {
    const createCausedBy = (cause: number, runId: string): ComparedRun =>
      runOf(runId, [
        createStarted(),
        createNodeCompleted("x"),
        { ...createNodeCompleted("y"), causedBy: cause },
      ]);
    expect(diffRuns(createCausedBy(1, "a"), createCausedBy(1, "b")).eventDiffs).toEqual([]);
    expect(diffRuns(createCausedBy(1, "a"), createCausedBy(0, "b")).divergedAtSeq).toBe(2);
  });

  test("names what became another one, and shows none of it", () => {
    const one = runOf("a", [
      createStarted({ word: "sk-1234" }),
      createChanged("kept", "s3cret"),
      createChanged("gone", 1),
      createCompleted(),
    ]);
    const other = runOf("b", [
      createStarted({ word: "Bearer x" }),
      createChanged("kept", "other"),
      createNodeCompleted("task-1"),
      createFailed("no"),
    ]);
    const { stateDiff } = diffRuns(one, other);
    expect(stateDiff).toEqual({
      status: { a: "completed", b: "failed" },
      error: { a: null, b: "no" },
      outputs: "changed",
      variables: [
        { name: "gone", op: "removed" },
        { name: "kept", op: "changed" },
        { name: "word", op: "changed" },
      ],
      nodes: [{ nodeId: "[masked]", a: null, b: "completed" }],
    });
  });

  test("of a run under way is that of its prefix", () => {
    const whole = runOf("a", [
      createStarted(),
      createNodeCompleted("x"),
      createNodeCompleted("y"),
      createCompleted(),
    ]);
    const diff = diffRuns(whole, runOf("b", [createStarted(), createNodeCompleted("x")], false));
    expect(diff).toMatchObject({ divergedAtSeq: null, eventDiffs: [], stateDiff: {}, truncated: true });
    const both = diffRuns(
      runOf("a", [createStarted({ n: 1 })], false),
      runOf("b", [createStarted({ n: 2 }), createNodeCompleted("x")]),
    );
    expect(both).toMatchObject({ divergedAtSeq: 0, truncated: true });
    expect(both.eventDiffs).toHaveLength(1);
  });

  test("is bounded, and says where it was cut", () => {
    const createMany = (word: string, count: number, runId: string): ComparedRun =>
      runOf(runId, [
        createStarted(),
        ...Array.from({ length: count }, (_, index) => createNodeCompleted(`n${index}`, { word })),
      ]);
    const diff = diffRuns(createMany("one", 600, "a"), createMany("two", 600, "b"));
    expect([diff.eventDiffs.length, diff.truncated, diff.divergedAtSeq]).toEqual([500, true, 1]);
    const large = diffRuns(createMany("1".repeat(900_000), 3, "a"), createMany("2".repeat(900_000), 3, "b"));
    expect([large.eventDiffs.length, large.truncated]).toEqual([1, true]);
  });
});

const names = fc.oneof(
  fc.string(),
  fc.constantFrom("task-1", "apiKey", "ask-user", "clientSecret", "bearer x"),
);
const drafts: fc.Arbitrary<Draft> = fc.oneof(
  fc.tuple(names, fc.jsonValue()).map(([name, next]) => createChanged(name, next)),
  fc
    .tuple(names, fc.dictionary(names, fc.jsonValue()))
    .map(([nodeId, outputs]) => createNodeCompleted(nodeId, outputs)),
  names.map(createFailed),
);
const logs = fc
  .tuple(fc.dictionary(names, fc.jsonValue()), fc.array(drafts, { maxLength: 8 }))
  .map(([inputs, events]) => [createStarted(inputs), ...events]);

describe("of any two runs", () => {
  test("nothing differs from itself under another name, and what differs from one differs the other way round", () => {
    fc.assert(
      fc.property(logs, logs, (one, other) => {
        expect(diffRuns(runOf("run-a", one), runOf("run-b", one))).toMatchObject({
          divergedAtSeq: null,
          eventDiffs: [],
          stateDiff: {},
        });
        const there = diffRuns(runOf("run-a", one), runOf("run-b", other));
        const back = diffRuns(runOf("run-b", other), runOf("run-a", one));
        const turned = { added: "removed", removed: "added", changed: "changed" } as const;
        expect(back.eventDiffs).toEqual(
          there.eventDiffs.map(({ seq, op, aEvent, bEvent }) => ({
            seq,
            op: turned[op],
            ...(bEvent && { aEvent: bEvent }),
            ...(aEvent && { bEvent: aEvent }),
          })),
        );
      }),
    );
  });

  test("the difference is the first place at which they differ, and its states show no content", () => {
    fc.assert(
      fc.property(logs, logs, fc.nat({ max: 4 }), (one, other, shared) => {
        const tail = other.slice(shared);
        const diff = diffRuns(runOf("run-a", one), runOf("run-b", [...one.slice(0, shared), ...tail]));
        if (diff.divergedAtSeq !== null) {
          expect(diff.divergedAtSeq).toBeGreaterThanOrEqual(Math.min(shared, one.length));
          expect(diff.eventDiffs[0]?.seq).toBe(diff.divergedAtSeq);
        }
        expect(JSON.stringify(diff.stateDiff)).not.toMatch(/sk-|api[_-]?key|secret|bearer\s/i);
      }),
    );
  });
});
