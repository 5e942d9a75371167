/** Owns: what a node that raises any kind of interrupt asks, what an answer means to it, and how it must be configured. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { InterruptKind } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { NodeStep } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { interruptGate } from "../../src/agents/coordination/workflow/nodes/gate-nodes.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type { InterruptAnswer } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createView, type Scene } from "./workflow-node-view-scene.ts";
import { RUN } from "./workflow-view-scene.ts";

function ask(config: Values, scene: Scene = {}): NodeStep {
  return interruptGate.step(createView({ ...scene, config }));
}

function answer(
  kind: InterruptKind,
  resumeValue: unknown,
  more: Pick<InterruptAnswer, "isExpired"> = {},
): NodeStep {
  const eventId = createEventId(RUN, 3);
  const answers = [{ interruptId: "a~1", kind, resumeValue, eventId, asked: { data: {} }, ...more }];
  return interruptGate.step(createView({ nodeRun: { answers } }));
}

function check(config: Values): readonly string[] | undefined {
  const { node, graph, settings } = createView({ config });
  return interruptGate.check?.(node, graph, settings);
}

function fail(code: string, message: string): NodeStep {
  return { kind: "fail", error: { code, message } };
}

describe("the question of an interrupt", () => {
  const QUESTION = { id: "tone", question: "Which tone?" };
  const OTHER_QUESTION = { id: "size", question: "Which size?" };
  const SUBJECT = {
    artifactId: "run-1:a",
    artifactType: "approval",
    title: "a",
    actions: ["accept", "reject"],
  };

  it.each<[title: string, config: Values, interrupt: Values]>([
    [
      "a custom one where no kind is configured",
      {},
      { kind: "custom", data: { customKind: "custom", payload: {} } },
    ],
    [
      "a custom one of a kind of its own",
      { kind: "custom", data: { customKind: "signature", page: null } },
      { kind: "custom", data: { customKind: "signature", payload: { customKind: "signature", page: null } } },
    ],
    [
      "for any event where none is named",
      { kind: "external-event", data: ["order"] },
      { kind: "external-event", data: { eventType: "external", correlation: {} } },
    ],
    [
      "for the event that is named, of what it is about",
      { kind: "external-event", data: { eventType: "paid", correlation: { order: 7 }, more: 1 } },
      { kind: "external-event", data: { eventType: "paid", correlation: { order: 7 } } },
    ],
    [
      "for an approval, which may be told more than approvals know",
      { kind: "approval", profile: "slow", data: { profile: "quick", page: 2, actions: ["refine"] } },
      { kind: "approval", data: { ...SUBJECT, profile: "quick", page: 2, actions: ["refine"] } },
    ],
    [
      "for an approval with what is configured beside its data",
      { kind: "approval", profile: "slow" },
      { kind: "approval", data: { ...SUBJECT, profile: "slow" } },
    ],
    [
      "for the answers to questions beside its data",
      { kind: "clarification", questions: [QUESTION], data: { page: 2 } },
      { kind: "clarification", data: { questions: [QUESTION], page: 2 } },
    ],
    [
      "for the answers to the questions of its data",
      { kind: "clarification", questions: [QUESTION], data: { questions: [OTHER_QUESTION] } },
      { kind: "clarification", data: { questions: [OTHER_QUESTION] } },
    ],
    [
      "for the answers to questions beside data that have none",
      { kind: "clarification", questions: [QUESTION], data: { questions: null, page: null } },
      { kind: "clarification", data: { questions: [QUESTION] } },
    ],
    [
      "for an approval by those who are listed beside data that list nobody",
      { kind: "approval", approversList: ["ann"], data: { approversList: null } },
      { kind: "approval", data: { ...SUBJECT, approversList: ["ann"] } },
    ],
  ])("is %s", (_title, config, interrupt) => {
    expect(ask(config)).toStrictEqual({ kind: "suspend", interrupt });
  });

  it.each(["external-event", "approval", "clarification", "custom"])(
    "tells of which form an answer is, and how long it is waited for: %s",
    (kind) => {
      const resumeSchema = { type: "object" };
      expect(ask({ kind, resumeSchema, timeoutMs: 5 })).toMatchObject({
        interrupt: { kind, resumeSchema, timeoutMs: 5 },
      });
      expect(ask({ kind, resumeSchema: true })).not.toHaveProperty("interrupt.resumeSchema");
    },
  );
});

describe("the answer to an interrupt", () => {
  it.each<[resumeValue: unknown, outputs: Values]>([
    [
      { action: "reject", page: 2 },
      { action: "reject", page: 2 },
    ],
    [{ action: "timeout" }, { action: "timeout" }],
    ["yes", {}],
  ])("completes its node with what was answered: %j", (resumeValue, outputs) => {
    expect(answer("custom", resumeValue)).toStrictEqual({ kind: "complete", outputs });
  });

  it("fails its node where nobody answers in time", () => {
    expect(answer("custom", { action: "timeout" }, { isExpired: true })).toStrictEqual(
      fail("interrupt_timeout", "nobody answered in time"),
    );
  });

  it("fails its node where it is no approval to a question for one", () => {
    expect(answer("approval", { action: "reject" })).toStrictEqual(
      fail("approval_rejected", "the approval was rejected"),
    );
    expect(answer("approval", { action: "timeout" })).toHaveProperty("error.code", "approval_timeout");
  });

  it("completes its node with what was approved", () => {
    const value = { action: "accept", comment: "fine" };
    expect(answer("approval", value)).toStrictEqual({ kind: "complete", outputs: value });
  });
});

describe("the configuration of an interrupt", () => {
  const UNCLEAR = [{ id: "tone" }];
  const UNASKABLE = "questions of node a is no list of {id, question}, each with an id of its own";

  it.each<Values>([
    {},
    { kind: null },
    { kind: "approval" },
    { kind: "clarification" },
    { kind: "external-event" },
    { kind: "custom", questions: UNCLEAR, profile: 7, data: { profile: 7, questions: UNCLEAR } },
    { kind: "approval", questions: UNCLEAR, data: "text" },
    { kind: "approval", profile: 7, data: { profile: "quick" } },
  ])("may be %j", (config) => {
    expect(check(config)).toEqual([]);
  });

  it("is of a kind of the protocol's", () => {
    expect(check({ kind: "aproval" })).toEqual([
      "kind of node a is none of approval, clarification, external-event, custom",
    ]);
  });

  it.each<[title: string, config: Values, problems: readonly string[]]>([
    [
      "an approval's, beside its data",
      { kind: "approval", profile: 7 },
      ["profile of node a is none of the protocol's"],
    ],
    [
      "an approval's, within its data",
      { kind: "approval", data: { requiredApprovals: 2, approversList: ["ann"] } },
      ["node a needs 2 approvals, and its approversList has 1 people"],
    ],
    ["a clarification's, beside its data", { kind: "clarification", questions: UNCLEAR }, [UNASKABLE]],
    [
      "a clarification's, within its data",
      { kind: "clarification", data: { questions: UNCLEAR } },
      [UNASKABLE],
    ],
  ])("has the problems of its kind: %s", (_title, config, problems) => {
    expect(check(config)).toEqual(problems);
  });

  it.each<[config: Values, problem: string]>([
    [
      { resumeSchema: { properties: { n: { type: "strng" } } } },
      "resumeSchema of node a is not a usable JSON Schema: properties.n.type: type must be one of",
    ],
    [{ resumeSchema: true }, "resumeSchema of node a is not a usable JSON Schema: it must be an object"],
    [
      { kind: "clarification", questions: [{ id: "q", question: "?", schema: { $ref: "#Name" } }] },
      "schema of question q of node a is not a usable JSON Schema: $ref: $ref must lead to a schema",
    ],
    [
      { kind: "clarification", data: { questions: [{ id: "q", question: "?", schema: { enum: [] } }] } },
      "schema of question q of node a is not a usable JSON Schema: enum: enum must be",
    ],
  ])("has no schema that no answer can be held against: %j", (config, problem) => {
    expect(check(config)).toEqual([expect.stringContaining(problem)]);
  });

  it("may have schemas that are null or usable", () => {
    const schema = { type: "string" };
    const questions = [
      { id: "q", question: "?", schema },
      { id: "r", question: "?", schema: null },
    ];
    expect(check({ kind: "clarification", questions, resumeSchema: null })).toEqual([]);
  });
});
