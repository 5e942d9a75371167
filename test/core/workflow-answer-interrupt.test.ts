/** Owns: which answers each kind of question takes, from whom, and what is recorded of them. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { InterruptKind } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  answerInterrupt,
  needsLogin,
  type AnswerRuling,
} from "../../src/agents/coordination/workflow/state/answer-interrupt.ts";
import type { Interrupt, Vote } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import { createNodeRun, NOW, RUN } from "./workflow-view-scene.ts";

type Request = Parameters<typeof answerInterrupt>[0];

const ACTIONS = ["accept", "reject", "refine", "edit-accept"];
const DECISION = { kind: "ask-user", prompt: "Which one?" };
const FEEDBACK = { scope: "whole" };
const ACCEPT = { action: "accept" };

function createQuestion(kind: InterruptKind, data: Values = {}, votes: readonly Vote[] = []): Interrupt {
  return { interruptId: "i", kind, key: "k", atMs: NOW, eventId: createEventId(RUN, 2), data, votes };
}

function createApproval(data: Values = {}, votes: readonly Vote[] = []): Interrupt {
  return createQuestion("approval", { actions: ACTIONS, ...data }, votes);
}

/** Answers as Alice, unless `more` says otherwise. */
function answer(interrupt: Interrupt, value: unknown, more: Partial<Request> = {}): AnswerRuling {
  const node = createNodeRun("gate", "suspended", { interrupt, interrupts: 1 });
  return answerInterrupt({ node, interrupt, value, by: "alice", ...more });
}

function expectRefusal(
  answering: AnswerRuling,
  message: string,
  code: "validation_error" | "forbidden" = "validation_error",
): void {
  expect(answering).toEqual({ ok: false, code, message });
}

function listTypes(answering: AnswerRuling): string[] {
  return answering.ok ? answering.drafts.map(({ type }) => type) : [answering.message];
}

/** Returns the value that the node goes on with. */
function readResumeValue(answering: AnswerRuling): unknown {
  const resolved = answering.ok
    ? answering.drafts.find((draft) => draft.type === "interrupt.resolved")
    : undefined;
  return resolved?.payload.resumeValue;
}

/** Returns whose vote was recorded. */
function findVoter(answering: AnswerRuling): unknown {
  const vote = answering.ok
    ? answering.drafts.find((draft) => draft.type === "approval.received")
    : undefined;
  return vote?.payload["decidedBy"];
}

describe("a question", () => {
  it.each([
    { profile: "openwop-interrupt-auth-required" },
    { approversList: ["alice"] },
    { requiredApprovals: 2 },
  ])("that says %j wants to know who answers", (data) => {
    const interrupt = createApproval(data);
    expect(needsLogin(interrupt)).toBe(true);
    expectRefusal(
      answer(interrupt, ACCEPT, { isTokenHolder: true }),
      "this question wants to know who answers: answer with a bearer token, not with a signed one",
      "forbidden",
    );
    expect(answer(interrupt, ACCEPT).ok).toBe(true);
  });

  it.each([
    {},
    { profile: "another" },
    { approversList: [] },
    { approversList: "alice" },
    { requiredApprovals: 1 },
    { requiredApprovals: "2" },
  ])("that says %j takes the answer of whoever holds a token", (data) => {
    const interrupt = createApproval(data);
    expect(needsLogin(interrupt)).toBe(false);
    expect(answer(interrupt, ACCEPT, { isTokenHolder: true }).ok).toBe(true);
  });

  it.each([
    [{ text: "x" }, { text: "x" }],
    ["x", { value: "x" }],
    [0, { value: 0 }],
    [["x"], { value: ["x"] }],
    [undefined, { value: null }],
  ])("of no kind of the protocol's is answered by %j with %j", (value, resumeValue) => {
    const payload = { nodeId: "gate", interruptId: "i", kind: "custom", resumeValue, resolvedBy: "alice" };
    expect(answer(createQuestion("custom"), value)).toStrictEqual({
      ok: true,
      drafts: [{ type: "interrupt.resolved", nodeId: "gate", payload }],
    });
  });
});

describe("a doubted decision", () => {
  const doubt = createQuestion("low-confidence", { decision: { kind: "terminate" } });

  it.each([
    ["another decision that stands alone", DECISION, { action: "edit-accept", editedArtifactData: DECISION }],
    [
      "an edit that is a decision",
      { action: "edit-accept", editedArtifactData: DECISION },
      { action: "edit-accept", editedArtifactData: DECISION },
    ],
    ["a yes", { action: "accept", note: "fine" }, { action: "accept", note: "fine" }],
    ["a no", { action: "reject" }, { action: "reject" }],
    ["a no of the older words", { decision: "rejected" }, { decision: "rejected", action: "reject" }],
  ])("is answered by %s", (_, value, resumeValue) => {
    expect(readResumeValue(answer(doubt, value))).toStrictEqual(resumeValue);
  });

  it.each([{ kind: "ask-user" }, "stop", undefined])("is not edited into %j", (editedArtifactData) => {
    expectRefusal(
      answer(doubt, { action: "edit-accept", editedArtifactData }),
      "editedArtifactData must be a decision",
    );
  });

  it("is not refined, and says how it is answered", () => {
    expectRefusal(
      answer(doubt, { action: "refine", refineFeedback: FEEDBACK }),
      '"refine" is no answer to this question; answer with {"action": ...} and exactly one of accept, reject, edit-accept, spelt so, in lower case',
    );
  });
});

describe("a doubt about something else than a decision", () => {
  const doubt = createQuestion("low-confidence", { output: "x" });

  it.each(["accept", "reject"])("is answered by %s", (action) => {
    expect(readResumeValue(answer(doubt, { action }))).toEqual({ action });
  });

  it.each([
    ["an answer without an action", DECISION],
    ['"edit-accept"', { action: "edit-accept", editedArtifactData: DECISION }],
  ])("is not answered where it gets %s", (shown, value) => {
    expectRefusal(
      answer(doubt, value),
      `${shown} is no answer to this question; answer with {"action": ...} and exactly one of accept, reject, spelt so, in lower case`,
    );
  });
});

describe("an approval", () => {
  it.each([
    { action: "accept" },
    { action: "reject" },
    { action: "refine", refineFeedback: FEEDBACK },
    { action: "edit-accept", editedArtifactData: "the edit" },
  ])("records who gives %j, and then nothing that it does not say", (value) => {
    const nodeId = "gate";
    const interrupt = { nodeId, interruptId: "i" };
    const received = { ...interrupt, action: value.action, decidedBy: "alice" };
    const resolved = { ...interrupt, kind: "approval", resumeValue: value, resolvedBy: "alice", ...value };
    expect(answer(createApproval(), value)).toStrictEqual({
      ok: true,
      drafts: [
        { type: "approval.received", nodeId, payload: received },
        { type: "interrupt.resolved", nodeId, payload: resolved },
      ],
    });
  });

  it("takes only the actions that it offers", () => {
    const refusal = answer(createApproval({ actions: ["accept", "refine"] }), { action: "reject" });
    expectRefusal(
      refusal,
      '"reject" is no answer to this question; answer with {"action": ...} and exactly one of accept, refine, spelt so, in lower case',
    );
    expect(answer(createQuestion("approval", {}), ACCEPT).ok).toBe(false);
  });

  it.each([undefined, "make it shorter"])("is not refined with the feedback %j", (refineFeedback) => {
    expectRefusal(
      answer(createApproval(), { action: "refine", refineFeedback }),
      "refine needs refineFeedback",
    );
  });

  it.each([
    [{}, undefined, "edit-accept needs editedArtifactData"],
    [
      { artifactType: "subrun-output" },
      "a text",
      "editedArtifactData must be an object of the child's outputs",
    ],
    [{ artifactType: "orchestrator-decision" }, { kind: "stop" }, "editedArtifactData must be a decision"],
    [
      { requiredApprovals: 2 },
      "a text",
      "edit-accept does not count where several must approve, because the others have not seen the edit; answer with another action",
    ],
  ])("that says %j refuses the edit %j: %s", (data, editedArtifactData, message) => {
    expectRefusal(answer(createApproval(data), { action: "edit-accept", editedArtifactData }), message);
  });

  it.each([
    [{ artifactType: "subrun-output" }, { report: "shorter" }],
    [{ artifactType: "orchestrator-decision" }, DECISION],
    [{ artifactType: "letter" }, "a text"],
  ])("that says %j takes the edit %j", (data, editedArtifactData) => {
    const value = { action: "edit-accept", editedArtifactData };
    expect(readResumeValue(answer(createApproval(data), value))).toEqual(value);
  });

  it("names whoever was authenticated in place of whom the answer names", () => {
    const value = { action: "accept", decidedBy: "the boss" };
    expect(readResumeValue(answer(createApproval(), value))).toStrictEqual({
      action: "accept",
      decidedBy: "alice",
    });
  });

  it("is settled by a no where a branch was cut off behind the yes of another", () => {
    const answering = answer(createApproval({}, [{ by: "bob", action: "accept" }]), { action: "reject" });
    expect(readResumeValue(answering)).toEqual({ action: "reject" });
  });

  it("is refused to whoever is not on the list of approvers", () => {
    expectRefusal(
      answer(createApproval({ approversList: ["bob"] }), ACCEPT),
      "only those on the list of approvers may answer",
      "forbidden",
    );
  });

  it("is anybody's where the list of approvers is empty", () => {
    expect(readResumeValue(answer(createApproval({ approversList: [] }), ACCEPT))).toEqual(ACCEPT);
  });

  it("is refused to whoever speaks for somebody else", () => {
    expectRefusal(
      answer(createApproval(), { action: "accept", voter: "bob" }),
      "voter names somebody else than the authenticated principal; leave it out: each principal has one voice",
      "forbidden",
    );
  });

  it("is taken from whoever says no other name than that of the principal", () => {
    const value = { action: "accept", voter: "alice" };
    expect(readResumeValue(answer(createApproval(), value))).toEqual(value);
  });
});

describe("an approval that needs two", () => {
  const answerTwo = (votes: readonly Vote[], value: Values, data: Values = {}): AnswerRuling =>
    answer(createApproval({ requiredApprovals: 2, ...data }, votes), value);

  it("records the first vote and stays open", () => {
    const payload = { nodeId: "gate", interruptId: "i", action: "accept", decidedBy: "alice" };
    expect(answerTwo([], ACCEPT)).toEqual({
      ok: true,
      drafts: [{ type: "approval.received", nodeId: "gate", payload }],
    });
  });

  it.each([
    ["accept", ACCEPT],
    // A vote of that kind is in logs from before edits were refused here.
    ["edit-accept", ACCEPT],
    ["accept", { action: "reject" }],
  ])("is settled where %s is followed by %j", (action, value) => {
    const answering = answerTwo([{ by: "bob", action }], value);
    expect(listTypes(answering)).toEqual(["approval.received", "interrupt.resolved"]);
    expect(readResumeValue(answering)).toEqual(value);
  });

  it.each([
    ["the same voter again", [{ by: "alice", action: "accept" }], ACCEPT],
    ["a voter who takes a no back", [{ by: "alice", action: "reject" }], ACCEPT],
  ])("stays open after %s", (_, votes, value) => {
    expect(listTypes(answerTwo(votes, value))).toEqual(["approval.received"]);
  });

  // The log of a branch may end between the vote that decided and what followed from it.
  it.each<[string, readonly Vote["action"][], Values]>([
    ["reject", ["reject", "reject"], ACCEPT],
    ["reject", ["reject", "reject"], { decision: "approved", note: "as it is" }],
    ["accept", ["accept", "accept"], { action: "reject", note: "too late" }],
  ])("is answered by %s where the votes were %j, whatever the next one is", (action, cast, value) => {
    const votes = cast.map((each, index) => ({ by: `voter ${index}`, action: each }));
    const answering = answerTwo(votes, value, { rejectionPolicy: "majority" });
    expect(listTypes(answering)).toEqual(["approval.received", "interrupt.resolved"]);
    expect(readResumeValue(answering)).toEqual({ action });
    expect(answering).toMatchObject({ drafts: [{}, { payload: { action } }] });
  });

  it("is not refined, because a vote has no feedback", () => {
    expectRefusal(
      answerTwo([], { action: "refine", refineFeedback: FEEDBACK }),
      "refine does not count where several must approve, because a vote has no feedback; answer with another action",
    );
  });

  it.each([
    ["open", [], ["approval.received"]],
    ["rejected", [{ by: "bob", action: "reject" }], ["approval.received", "interrupt.resolved"]],
  ])("is %s by a no where a majority decides and the votes were %j", (_, votes, types) => {
    const answering = answerTwo(votes, { action: "reject" }, { rejectionPolicy: "majority" });
    expect(listTypes(answering)).toEqual(types);
  });

  it.each([
    ["bob", {}, "bob"],
    [undefined, {}, "alice"],
    ["", {}, "alice"],
    [7, {}, "alice"],
    ["bob", { approversList: [] }, "bob"],
    ["bob", { approversList: ["alice", "bob"] }, "alice"],
  ])(
    "where names are believed, of the voter %j and the rules %j counts the vote of %s",
    (voter, data, by) => {
      const interrupt = createApproval({ requiredApprovals: 2, ...data });
      expect(findVoter(answer(interrupt, { action: "accept", voter }, { believesVoter: true }))).toBe(by);
    },
  );
});

describe("a clarification", () => {
  const clarification = createQuestion("clarification", { questions: [{ id: "q", question: "Which?" }] });

  it("goes on with the answers alone", () => {
    const answering = answer(clarification, { answers: [{ id: "q", answer: "blue" }], note: "x" });
    expect(readResumeValue(answering)).toStrictEqual({ answers: { q: "blue" } });
  });

  it("refuses what leaves a question open", () => {
    expectRefusal(answer(clarification, { answers: {} }), "there is no answer to q");
  });
});

describe("an external event", () => {
  const order = createQuestion("external-event", { correlation: { orderId: "o-1", shop: "s" } });

  it.each(["paid", null, undefined, ["paid"]])("is not %j", (value) => {
    expectRefusal(answer(order, value), "an external event is an object");
  });

  it.each([
    ["flat", { orderId: "o-1", shop: "s", paid: true }, { orderId: "o-1", shop: "s", paid: true }],
    [
      "wrapped",
      { eventPayload: { orderId: "o-1", shop: "s", paid: true } },
      { orderId: "o-1", shop: "s", paid: true },
    ],
    ["named beside its payload", { orderId: "o-1", shop: "s", eventPayload: { paid: true } }, { paid: true }],
    [
      "flat, and has a payload that is none",
      { orderId: "o-1", shop: "s", eventPayload: "x" },
      { orderId: "o-1", shop: "s", eventPayload: "x" },
    ],
  ])("about the same thing is taken where it is %s", (_, value, resumeValue) => {
    expect(readResumeValue(answer(order, value))).toStrictEqual(resumeValue);
  });

  it.each([
    ["orderId", { orderId: "o-2", shop: "s" }],
    ["shop", { orderId: "o-1" }],
    ["orderId", { orderId: "o-2", shop: "s", eventPayload: { orderId: "o-1" } }],
    ["orderId", { orderId: "o-1", shop: "s", eventPayload: { orderId: "o-2" } }],
  ])("about another %s is refused: %j", (name, value) => {
    expectRefusal(answer(order, value), `the event is about another ${name}`);
  });

  it.each([{}, { correlation: "o-1" }])("is about anything where the question says %j", (data) => {
    expect(readResumeValue(answer(createQuestion("external-event", data), { paid: true }))).toEqual({
      paid: true,
    });
  });
});
