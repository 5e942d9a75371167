/** Owns: whether what is derived is what was recorded and how the two differ, and whether two values of two runs are the same. */
import { describe, expect, it } from "vitest";
import { createEventId, formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  WorkflowDraft,
  WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { findDivergence, isSameDraft } from "../../src/agents/coordination/workflow/same-draft.ts";
import {
  compareValuesInSlices,
  type SamenessRules,
} from "../../src/agents/coordination/workflow/same-value-in-slices.ts";
import { CANCELLED, complete, NOW, PAUSED, RESUMED, RUN } from "./workflow-evolve-scene.ts";

const CAUSE = createEventId(RUN, 1);
const OTHER_CAUSE = createEventId(RUN, 2);

const record = (draft: WorkflowDraft): WorkflowEvent => ({
  eventId: createEventId(RUN, 7),
  runId: RUN,
  sequence: 7,
  timestamp: formatTimestamp(NOW),
  ...draft,
});

/** Sets a variable, which has a value of any form. */
const change = (next: unknown): WorkflowDraft => ({
  type: "variable.changed",
  payload: { name: "v", next },
});
const start = (nodeId: string, attempt = 0): WorkflowDraft => ({
  type: "node.started",
  nodeId,
  payload: { nodeId, typeId: "core.noop", attempt },
});
const end = (nodeId: string): WorkflowDraft => ({ ...complete(nodeId), nodeId });

/** An object whose own member has the name of what every object inherits from. */
const createOddlyNamed = (): unknown => JSON.parse('{"__proto__":{}}');

describe("a draft and an event", () => {
  const draft: WorkflowDraft = { ...start("a"), causationId: CAUSE };

  it("are the same where type, node, cause and payload are", () => {
    expect(isSameDraft(draft, record(draft))).toBe(true);
  });

  it.each<[string, WorkflowDraft]>([
    ["type", { ...end("a"), causationId: CAUSE }],
    ["node", { ...draft, nodeId: "b" }],
    ["cause", { ...draft, causationId: OTHER_CAUSE }],
    ["payload", { ...start("a", 1), causationId: CAUSE }],
  ])("are others where their %s is", (_, other) => {
    expect(isSameDraft(draft, record(other))).toBe(false);
  });

  it("are others where nothing but the type is", () => {
    const granted: WorkflowDraft = { type: "approval.granted", payload: {} };
    expect(isSameDraft(granted, record({ type: "approval.rejected", payload: {} }))).toBe(false);
  });

  it.each<[string, unknown, unknown]>([
    ["a number that is none", Number.NaN, null],
    ["a number without end", Infinity, null],
    ["nothing", null, null],
    ["a hole of a list", [undefined, 1], [null, 1]],
    ["a member without a value", { a: 1, b: undefined }, { a: 1 }],
    ["members in another order", { a: 1, b: [2] }, { b: [2], a: 1 }],
    ["lists of lists", [[1], []], [[1], []]],
  ])("are the same where the log has no other word for %s", (_, derived, recorded) => {
    expect(isSameDraft(change(derived), record(change(recorded)))).toBe(true);
  });
});

describe("the difference of what is derived from what was recorded", () => {
  const describeDifference = (drafts: readonly WorkflowDraft[], ...recorded: readonly WorkflowDraft[]) =>
    findDivergence(drafts, recorded.map(record));

  it.each<[string, unknown, unknown, string]>([
    ["a number in place of nothing", 5, null, ""],
    ["a text in place of nothing", "x", null, ""],
    ["nothing in place of an object", null, {}, ""],
    ["a number in place of an object", 5, {}, ""],
    ["an object in place of a number", {}, 5, ""],
    ["a list in place of an object", [7], { 0: 7, length: 1 }, ""],
    ["an object in place of a list", {}, [], ""],
    ["a list that is longer", [1, 2], [1], ""],
    ["a list that is shorter", [1], [1, 2], ""],
    ["another item", [1, 2], [1, 3], "[1]"],
    ["another item of an item", [[1], [{ a: 1 }]], [[1], [{ a: 2 }]], "[1][0].a"],
    ["another member", { a: 1, b: { c: 2 } }, { a: 1, b: { c: 3 } }, ".b.c"],
    ["a member more", { a: 1, b: null }, { a: 1 }, ".b"],
    ["a member less", { a: 1 }, { a: 1, b: 2 }, ".b"],
    ["a member less, which is there without a value", { a: 1, b: undefined }, { a: 1, b: 2 }, ".b"],
    ["a member of an inherited name", createOddlyNamed(), { z: 1 }, ".__proto__"],
  ])("is the place of %s", (_, derived, recorded, path) => {
    const draft = change(recorded);
    expect(describeDifference([change(derived)], draft)).toEqual({
      event: record(draft),
      kind: "output",
      point: `variable.changed: payload.next${path}`,
    });
  });

  it.each(["__proto__", "toString"])("is the member %s that the record has more", (name) => {
    const recorded: unknown = JSON.parse(`{${JSON.stringify(name)}:{}}`);
    const { point } = describeDifference([change({})], change(recorded));
    expect(point).toBe(`variable.changed: payload.next.${name}`);
  });

  it("is the cause where nothing else differs", () => {
    const draft: WorkflowDraft = { ...start("a"), causationId: CAUSE };
    expect(describeDifference([start("a")], draft)).toEqual({
      event: record(draft),
      kind: "output",
      point: "node.started of a: its cause",
    });
  });

  it("is an event that follows from nothing where nothing is derived", () => {
    expect(describeDifference([], RESUMED, PAUSED)).toEqual({
      event: record(RESUMED),
      kind: "missing",
      point: "run.resumed follows from nothing",
    });
  });

  it("is what comes before the event where the event is derived behind it", () => {
    expect(describeDifference([start("a"), end("a")], end("a"))).toEqual({
      event: record(end("a")),
      kind: "extra",
      point: "node.started of a comes before node.completed of a",
    });
  });

  it("is the event where what is derived was recorded behind it", () => {
    expect(describeDifference([end("a")], start("a"), end("a"))).toEqual({
      event: record(start("a")),
      kind: "missing",
      point: "node.started of a does not come before node.completed of a",
    });
  });

  it.each<[string, WorkflowDraft, WorkflowDraft, string]>([
    ["type", start("a"), end("a"), "node.started of a in place of node.completed of a"],
    ["node", start("b"), start("a"), "node.started of b in place of node.started of a"],
    ["type, without a node", RESUMED, PAUSED, "run.resumed in place of run.paused"],
  ])("is that one stands in place of the other where they are of another %s", (_, draft, recorded, point) => {
    expect(describeDifference([draft], recorded, CANCELLED)).toEqual({
      event: record(recorded),
      kind: "type-mismatch",
      point,
    });
  });

  it("is where the first of several drafts is not what was recorded in its place", () => {
    const ended = { ...end("a"), causationId: CAUSE };
    expect(describeDifference([start("a"), end("a"), PAUSED], start("a"), ended, PAUSED)).toEqual({
      event: record(ended),
      kind: "output",
      point: "node.completed of a: its cause",
    });
    expect(describeDifference([RESUMED, start("a")], RESUMED, end("a"))).toEqual({
      event: record(end("a")),
      kind: "type-mismatch",
      point: "node.started of a in place of node.completed of a",
    });
  });

  it("cannot be where nothing was recorded any more", () => {
    expect(() => describeDifference([RESUMED])).toThrow("R3: a replay that has reached the end of the log");
  });

  it("is at the last event where less was recorded than is derived", () => {
    const { event, point } = describeDifference([RESUMED, start("a")], RESUMED);
    expect([event, point]).toEqual([record(RESUMED), "node.started of a in place of run.resumed"]);
  });
});

const RULES: SamenessRules = {
  areSameTexts: (one, other) => one.toLowerCase() === other.toLowerCase(),
  ignored: new Set(["id"]),
};

/** Compares to the end, and counts the slices that it took. */
function compare(one: unknown, other: unknown): { readonly isSame: boolean; readonly pauses: number } {
  const work = compareValuesInSlices(one, other, RULES);
  for (let pauses = 0; ; pauses += 1) {
    const slice = work.next();
    if (slice.done) return { isSame: slice.value, pauses };
  }
}

describe("two values of two runs", () => {
  it.each<[string, unknown, unknown]>([
    ["numbers", 1, 1],
    ["texts by the rule for texts", "Word", "wORD"],
    ["lists", [1, ["a"], null], [1, ["A"], null]],
    ["objects, in any order of their members", { a: 1, b: { c: "x" } }, { b: { c: "X" }, a: 1 }],
    ["objects but for the members that are not compared", { a: { id: 1 }, id: 3 }, { a: { id: 2 } }],
    ["objects but for members without a value", { a: 1, b: undefined }, { a: 1, c: undefined }],
  ])("are the same: %s", (_, one, other) => {
    expect(compare(one, other).isSame).toBe(true);
  });

  it.each<[string, unknown, unknown]>([
    ["numbers", 1, 2],
    ["texts", "word", "words"],
    ["a text and a number", "1", 1],
    ["a number and a text", 1, "1"],
    ["a list and a longer one that begins like it", [1], [1, 2]],
    ["items that are not the last", [1, 2, 3], [1, 4, 3]],
    ["an object and an empty list", { length: 0 }, []],
    ["a list and an object that looks like it", [7], { 0: 7, length: 1 }],
    ["an object and nothing", {}, null],
    ["nothing and an object", null, {}],
    ["a number and an object", 5, {}],
    ["an object and a number", {}, 5],
    ["members of a member", { a: { b: 1 } }, { a: { b: 2 } }],
    ["an object and one with a member more", { a: 1 }, { a: 1, b: 2 }],
    ["an object and one with a member less", { a: 1, b: 2 }, { a: 1 }],
    ["objects with other names", { a: 1 }, { b: 1 }],
    ["a member and one without a value", { a: 1 }, { a: undefined, b: 1 }],
    ["an inherited name and another one", createOddlyNamed(), { z: 1 }],
    ["one of two names", { a: 1, b: 2 }, { a: 1, c: 2 }],
  ])("are others: %s", (_, one, other) => {
    expect(compare(one, other).isSame).toBe(false);
  });

  it("are others where of several names one is inherited only", () => {
    expect(compare(JSON.parse('{"a":1,"__proto__":{}}'), { a: 1, z: 2 }).isSame).toBe(false);
  });

  it("are compared however deep they are", () => {
    const nest = (depth: number, core: unknown): unknown => {
      let value = core;
      for (let level = 0; level < depth; level += 1) value = [value];
      return value;
    };
    expect(compare(nest(20_000, 1), nest(20_000, 1)).isSame).toBe(true);
    expect(compare(nest(20_000, 1), nest(20_000, 2)).isSame).toBe(false);
  });
});

describe("the slices of a comparison", () => {
  const list = (length: number): number[] => Array.from({ length }, (_, index) => index);

  it.each<[string, () => unknown, number]>([
    ["a number", () => 1, 0],
    ["a list with which the slice is not full", () => list(998), 0],
    ["a list that fills one slice", () => list(999), 1],
    ["a list that fills no second slice", () => list(1_998), 1],
    ["a list that fills three slices", () => list(2_999), 3],
    ["a text with which the slice is not full", () => "x".repeat(999 * 256 - 1), 0],
    ["a text that fills one slice", () => "x".repeat(999 * 256), 1],
    ["texts that fill one slice together", () => Array.from({ length: 333 }, () => "x".repeat(512)), 1],
    ["texts that fill no slice together", () => Array.from({ length: 332 }, () => "x".repeat(512)), 0],
  ])("are as many as the work needs: %s", (_, create, pauses) => {
    expect(compare(create(), create())).toEqual({ isSame: true, pauses });
  });

  it("end with the first difference", () => {
    expect(compare([1, list(5_000)], [1, list(4_999)])).toEqual({ isSame: false, pauses: 0 });
  });
});
