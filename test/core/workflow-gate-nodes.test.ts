/** Owns: what the nodes that wait for somebody ask, what an answer means to them, and how they must be configured. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { InterruptKind } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  NewInterrupt,
  NodeStep,
  NodeType,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import {
  approvalGate,
  clarificationGate,
  interruptGate,
} from "../../src/agents/coordination/workflow/nodes/gate-nodes.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type { InterruptAnswer } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createView, REPLAY_ORIGIN, type Scene } from "./workflow-node-view-scene.ts";
import { createAsking, NOW, RUN } from "./workflow-view-scene.ts";

function createAnswer(resumeValue: unknown, kind: InterruptKind = "approval"): InterruptAnswer {
  const eventId = createEventId(RUN, 3);
  return { interruptId: "a~1", kind, resumeValue, eventId, asked: { data: {} } };
}

/** Returns what the node does next where its question was answered so. */
function answer(gate: NodeType, resumeValue: unknown, kind?: InterruptKind): NodeStep {
  return gate.step(createView({ nodeRun: { answers: [createAnswer(resumeValue, kind)] } }));
}

/** Returns what the node asks. */
function ask(gate: NodeType, scene: Scene = {}): NewInterrupt {
  const step = gate.step(createView(scene));
  if (step.kind !== "suspend") throw new Error(`the node asks nothing: ${step.kind}`);
  return step.interrupt;
}

function check(gate: NodeType, config: Values): readonly string[] | undefined {
  const { node, graph, settings } = createView({ config });
  return gate.check?.(node, graph, settings);
}

function fail(code: string, message: string): NodeStep {
  return { kind: "fail", error: { code, message } };
}

const NOBODY = "nobody answered in time";
const LATE = fail("approval_timeout", "nobody approved in time, which counts as rejected");
const REJECTED = fail("approval_rejected", "the approval was rejected");

describe("a node that waits for somebody", () => {
  const { interrupt } = createAsking("a");
  if (!interrupt) throw new Error("nothing was asked");

  it("asks once, and waits for the answer or the end of the time", () => {
    expect(approvalGate.step(createView({ nodeRun: { interrupt } }))).toStrictEqual({ kind: "wait" });
    const limited = { ...interrupt, timeoutMs: 5 };
    expect(approvalGate.step(createView({ nodeRun: { interrupt: limited } }))).toStrictEqual({
      kind: "wait",
      atMs: NOW + 5,
    });
  });

  it("goes by the newest answer", () => {
    const answers = [createAnswer({ action: "accept" }), createAnswer({ action: "reject" })];
    expect(approvalGate.step(createView({ nodeRun: { answers } }))).toStrictEqual(REJECTED);
  });

  it.each<[timeoutMs: unknown, expected: Values]>([
    [5, { timeoutMs: 5 }],
    [0.2, { timeoutMs: 1 }],
    [0, {}],
    ["5", {}],
  ])("waits as long as the configuration says, in whole milliseconds: %j", (timeoutMs, expected) => {
    const { kind: _, data: _data, ...rest } = ask(clarificationGate, { config: { timeoutMs } });
    expect(rest).toStrictEqual(expected);
    expect(ask(approvalGate, { config: { timeoutMs } })["timeoutMs"]).toBe(expected["timeoutMs"]);
    expect(ask(interruptGate, { config: { timeoutMs } })["timeoutMs"]).toBe(expected["timeoutMs"]);
  });
});

describe("the question of an approval", () => {
  const DATA = {
    artifactId: "run-1:a",
    artifactType: "approval",
    title: "a",
    actions: ["accept", "reject"],
  };

  it("names the node where nothing is configured", () => {
    expect(ask(approvalGate)).toStrictEqual({ kind: "approval", data: DATA });
  });

  it("has the node's name for a title, and the run's identity in its artifact", () => {
    const scene = { members: { name: "Publish?" }, run: { origin: REPLAY_ORIGIN } };
    expect(ask(approvalGate, scene).data).toStrictEqual({
      ...DATA,
      title: "Publish?",
      artifactId: "source-1:a",
    });
  });

  it("has what is configured, and nothing that approvals do not know", () => {
    const rules = {
      requiredApprovals: 1,
      rejectionPolicy: "majority",
      approversList: ["ann"],
      overrideBypassesQuorum: false,
      description: "of bees",
      profile: "quick",
    };
    const texts = { artifactId: "text-1", artifactType: "text", title: "Publish?" };
    expect(ask(approvalGate, { config: { ...rules, ...texts, more: 1 } }).data).toStrictEqual({
      ...rules,
      ...texts,
      actions: DATA.actions,
    });
  });

  it("leaves away what is configured as nothing", () => {
    const config = { description: null, profile: undefined, artifactId: "", artifactType: 7, title: "" };
    expect(ask(approvalGate, { config }).data).toStrictEqual(DATA);
  });

  it("shows the artifact that a port names", () => {
    const members = { inputs: { artifact: { type: "static", value: null } } };
    expect(ask(approvalGate, { members }).data).toStrictEqual({ ...DATA, artifactData: null });
  });

  it.each<[actions: unknown, offered: readonly string[]]>([
    [
      ["edit-accept", "refine", "reject", "accept"],
      ["edit-accept", "refine", "reject", "accept"],
    ],
    [["accept", "ask", "accept"], ["accept"]],
    [["ask"], ["accept", "reject"]],
    [[], ["accept", "reject"]],
    ["refine", ["accept", "reject"]],
  ])("offers each action once that it knows, of %j", (actions, offered) => {
    expect(ask(approvalGate, { config: { actions } }).data["actions"]).toStrictEqual(offered);
  });

  it.each<[actions: unknown, offered: readonly string[]]>([
    [
      ["edit-accept", "refine", "reject", "accept"],
      ["reject", "accept"],
    ],
    [
      ["refine", "edit-accept"],
      ["accept", "reject"],
    ],
  ])("offers no answer that would not count where several must approve, of %j", (actions, offered) => {
    const config = { actions, requiredApprovals: 2 };
    expect(ask(approvalGate, { config }).data["actions"]).toStrictEqual(offered);
  });
});

describe("the answer to an approval", () => {
  it.each([
    ["accept", true],
    ["edit-accept", true],
    ["refine", false],
  ])("completes the node: %s", (action, approved) => {
    const value = { action, comment: "fine" };
    expect(answer(approvalGate, value)).toStrictEqual({ kind: "complete", outputs: { ...value, approved } });
  });

  it.each<[resumeValue: unknown, step: NodeStep]>([
    [{ action: "reject" }, REJECTED],
    [{ action: "timeout" }, LATE],
    [{}, REJECTED],
    [null, REJECTED],
  ])("fails the node: %j", (resumeValue, step) => {
    expect(answer(approvalGate, resumeValue)).toStrictEqual(step);
  });
});

/** Each is the one member of a configuration that is at odds with the protocol. */
const REFUSED_RULES: readonly [key: string, value: unknown][] = [
  ["requiredApprovals", 0],
  ["requiredApprovals", 1.5],
  ["requiredApprovals", "2"],
  ["rejectionPolicy", "all"],
  ["approversList", "ann"],
  ["approversList", ["ann", 7]],
  ["overrideBypassesQuorum", "no"],
  ["description", 7],
  ["profile", 7],
];

describe("the configuration of an approval", () => {
  it.each<Values>([
    {},
    { requiredApprovals: 1, rejectionPolicy: "single-veto", approversList: [], overrideBypassesQuorum: true },
    { requiredApprovals: 2, rejectionPolicy: "majority", approversList: ["ann", "bob"] },
    { requiredApprovals: 3, description: "of bees", profile: "" },
    { requiredApprovals: null, approversList: null, description: null },
    { approversList: ["ann"] },
  ])("may be %j", (config) => {
    expect(check(approvalGate, config)).toEqual([]);
  });

  it.each(REFUSED_RULES)("must have a %s of the protocol's, which %j is not", (key, value) => {
    expect(check(approvalGate, { [key]: value })).toEqual([`${key} of node a is none of the protocol's`]);
  });

  it("has all of its problems told, and the quorum's only where there are no others", () => {
    expect(check(approvalGate, { approversList: ["ann"], requiredApprovals: 2, profile: 7 })).toEqual([
      "profile of node a is none of the protocol's",
    ]);
    expect(check(approvalGate, { description: 7, profile: 7 })).toHaveLength(2);
  });

  it("needs no more approvals than there are people on its list", () => {
    const problem = "node a needs 2 approvals, and its approversList has 1 people";
    expect(check(approvalGate, { requiredApprovals: 2, approversList: ["ann", "ann"] })).toEqual([problem]);
  });
});

describe("a clarification", () => {
  const QUESTION = { id: "tone", question: "Which tone?" };

  it("asks what is configured", () => {
    const questions = [QUESTION, "and?"];
    expect(ask(clarificationGate, { config: { questions } })).toStrictEqual({
      kind: "clarification",
      data: { questions: [QUESTION] },
    });
  });

  it("asks by the name of the node where nothing is configured", () => {
    const members = { name: "Which tone?" };
    expect(ask(clarificationGate, { members }).data).toStrictEqual({
      questions: [{ id: "q1", question: "Which tone?" }],
    });
    expect(ask(clarificationGate).data).toStrictEqual({ questions: [{ id: "q1", question: "a" }] });
  });

  it.each<[resumeValue: unknown, outputs: Values]>([
    [{ answers: { tone: "dry" } }, { answers: { tone: "dry" } }],
    [{}, { answers: {} }],
    [null, { answers: {} }],
  ])("completes its node with the answers: %j", (resumeValue, outputs) => {
    expect(answer(clarificationGate, resumeValue, "clarification")).toStrictEqual({
      kind: "complete",
      outputs,
    });
  });

  it("fails where nobody answers in time", () => {
    const late: InterruptAnswer = {
      ...createAnswer({ action: "timeout" }, "clarification"),
      isExpired: true,
    };
    expect(clarificationGate.step(createView({ nodeRun: { answers: [late] } }))).toStrictEqual(
      fail("clarification_timeout", NOBODY),
    );
  });

  it.each<[questions: unknown, problems: readonly string[]]>([
    [undefined, []],
    [null, []],
    [[QUESTION], []],
    [[QUESTION, QUESTION], ["questions of node a is no list of {id, question}, each with an id of its own"]],
  ])("may only ask what can be answered: %j", (questions, problems) => {
    expect(check(clarificationGate, { questions })).toEqual(problems);
  });
});
