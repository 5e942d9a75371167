/** Owns: the words and the fields that go with questions to people. */
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import {
  answer,
  ask,
  contentRef,
  createHeldScene,
  createSpawnedScene,
  DOUBTING,
  findQuestion,
} from "./gates-scene.ts";
import {
  admit,
  cancel,
  dispatch,
  expire,
  failStep,
  finish,
  openPlan,
  planScene,
  planStep,
  recordNotice,
  SETTLE_PLAN,
  startStep,
  type PlanScene,
} from "./planned-scene.ts";
import { complete, nameChild, OPEN, OWNER, SETTLE, timeAt, describeReason } from "./scene.ts";

const openAsked = (rest: Parameters<typeof ask>[0] = {}): PlanScene =>
  createSpawnedScene({ threshold: 0 }).then(ask(rest));
const DAY_MS = 24 * 3_600_000;

describe("a question of an agent", () => {
  it("is recorded with who asks, what for, and until when it may be answered", () => {
    const scene = openAsked({ stepId: "step-1" as StepId });
    expect(scene.last("coordination.escalated").payload).toEqual({
      escalationId: "escalation-1",
      cause: "agent",
      kind: "clarification",
      question: contentRef("question"),
      askedBy: nameChild(1),
      stepId: "step-1",
      answers: ["answer", "deny"],
      onExpiry: "deny",
      deadlineAtMs: timeAt(scene.nowMs + DAY_MS),
    });
  });

  it("may ask for an approval, its parent first, for a time of its own, and have a default", () => {
    const scene = openAsked({ kind: "approval", askedOf: OWNER, answerMs: 5_000, hasDefault: true });
    const { payload } = scene.last("coordination.escalated");
    expect(payload).toMatchObject({
      kind: "approval",
      answers: ["approve", "deny", "answer"],
      askedOf: OWNER,
      onExpiry: "default",
      deadlineAtMs: timeAt(scene.nowMs + 5_000),
    });
    expect(payload).not.toHaveProperty("stepId");
  });

  it("never waits longer than people may take", () => {
    const scene = openAsked({ answerMs: 2 * DAY_MS });
    expect(findQuestion(scene).deadlineAtMs).toBe(timeAt(scene.nowMs + DAY_MS));
  });

  it("that is open already is a replay, of the same session with the same words alone", () => {
    const stepId = "step-1" as StepId;
    const scene = openAsked({ stepId });
    expect(scene.when(ask({ stepId }))).toEqual({ kind: "replay", stepId });
    expect(scene.when(ask())).toEqual({ kind: "replay" });
    expect(scene.when(ask({ question: contentRef("x") })).kind).toBe("accepted");
    expect(scene.when(ask({ askedBy: OWNER })).kind).toBe("accepted");
  });

  it("to its parent goes to people as soon as they are asked the same, and stays one question", () => {
    const scene = openAsked({ askedOf: OWNER, answerMs: 5_000 });
    expect(scene.says(ask({ askedOf: OWNER }))).toBe("replay");
    expect(scene.says(ask({ answerMs: 9_000 }))).toBe("escalation.forwarded");
    expect(scene.last("escalation.forwarded").payload).toEqual({
      escalationId: "escalation-1",
      deadlineAtMs: timeAt(scene.nowMs + 9_000),
    });
    for (const again of [ask(), ask({ askedOf: OWNER })]) expect(scene.says(again)).toBe("replay");
  });

  it("that its parent left to people is the one that people are asked, and the parent", () => {
    const scene = openAsked({ askedOf: OWNER, answerMs: 5_000 });
    scene.when(expire(), scene.nowMs + 5_000);
    for (const again of [ask(), ask({ askedOf: OWNER })]) expect(scene.says(again)).toBe("replay");
  });

  it("to its parent is over where people are asked for an approval in its words", () => {
    const scene = openAsked({ askedOf: OWNER, answerMs: 5_000 });
    expect(scene.says(ask({ kind: "approval" }))).toBe("coordination.escalated escalation.closed");
    expect(scene.last("escalation.closed").payload).toEqual({
      escalationId: "escalation-1",
      resolution: "cancelled",
    });
    expect(findQuestion(scene, 2)).not.toHaveProperty("closed");
    expect(scene.says(ask({ kind: "approval" }))).toBe("replay");
  });

  it("that its parent left to people stays where they are asked for an approval in its words", () => {
    const scene = openAsked({ askedOf: OWNER, answerMs: 5_000 });
    scene.when(expire(), scene.nowMs + 5_000);
    expect(scene.says(ask({ kind: "approval" }))).toBe("coordination.escalated");
  });

  it("to people stays where they are asked for an approval, or the parent for anything, in its words", () => {
    const scene = openAsked();
    expect(scene.says(ask({ kind: "approval" }))).toBe("coordination.escalated");
    const approval = openAsked({ kind: "approval" });
    expect(approval.says(ask({ askedOf: OWNER }))).toBe("coordination.escalated");
  });

  it("is refused where as many are open as there may be, and those about results do not count", () => {
    const scene = openAsked();
    expect(describeReason(scene.when(ask({ askedBy: OWNER, openMax: 1 })))).toBe(
      "TOO_MANY_QUESTIONS: as many questions are open as there may be; wait for an answer",
    );
    expect(scene.when(ask({ askedBy: OWNER, openMax: 2 })).kind).toBe("accepted");
    const heldScene = createHeldScene(DOUBTING, 100);
    expect(heldScene.when(ask({ openMax: 1 })).kind).toBe("accepted");
  });

  it("is refused where the coordination has as many open questions as it can have", () => {
    const { open } = createHeldScene(DOUBTING, 100);
    const names = Array.from({ length: BOUNDS.openQuestionsMax }, (_, index) => `escalation-${index + 1}`);
    const fill = (count: number) => ({
      ...open,
      openQuestions: open.openQuestions.withMutations((all) => {
        for (const name of names.slice(0, count)) all.set(name, timeAt(DAY_MS));
      }),
    });
    const decideFilled = (count: number): string => describeReason(decide(fill(count), ask(), timeAt(9_000)));
    expect(decideFilled(BOUNDS.openQuestionsMax)).toContain("TOO_MANY_QUESTIONS");
    expect(decideFilled(BOUNDS.openQuestionsMax - 1)).toBe("accepted");
  });
});

describe("an answer is refused with the reason", () => {
  it("where there is no such question", () => {
    expect(describeReason(openAsked().when(answer("answer", { number: 7 })))).toBe(
      "UNKNOWN_QUESTION: there is no question escalation-7",
    );
  });

  it("where the question is closed: how, and through what it was answered", () => {
    const answered = openAsked().then(answer("answer"));
    expect(describeReason(answered.when(answer("deny")))).toBe(
      "QUESTION_CLOSED: the question is closed already: answered through chat",
    );
    const expired = openAsked();
    expired.when(expire(), DAY_MS * 2);
    expect(describeReason(expired.when(answer("deny")))).toBe(
      "QUESTION_CLOSED: the question is closed already: expired",
    );
  });

  it("where its time is over", () => {
    expect(describeReason(openAsked().when(answer("answer"), DAY_MS * 2))).toBe(
      "QUESTION_CLOSED: the time to answer is over",
    );
  });

  it("where it is none that the question takes", () => {
    expect(describeReason(openAsked().when(answer("approve")))).toBe(
      'ANSWER_REFUSED: the question takes answer, deny; "answer" comes with a text, the others without',
    );
  });

  it("where the session that the question is about gives it", () => {
    const questions = { answerMs: 60_000, requireDifferentApprover: true };
    const scene = planScene({ ...OPEN, questions } as Command, ask({ askedBy: nameChild(1) }));
    const by = { kind: "person", session: nameChild(1) } as const;
    expect(describeReason(scene.when(answer("answer", { by })))).toBe(
      "ANSWER_REFUSED: the session that the question is about, or whose plan it is, may not answer it",
    );
  });

  it("where the model of a session gives it that was not asked", () => {
    const by = { kind: "agent", session: nameChild(1) } as const;
    expect(describeReason(openAsked({ askedOf: OWNER }).when(answer("answer", { by })))).toBe(
      "ANSWER_REFUSED: whoever answered may not answer this question",
    );
  });

  it("where the step has had all attempts that it can have", () => {
    const scene = planScene(
      openPlan({ steps: 1, policy: { escalationPolicy: "hitl" } }),
      admit(planStep("a")),
      dispatch("a"),
      startStep("a"),
      failStep("a"),
    );
    const { open } = scene;
    const withAttempt = (attempt: number) => ({
      ...open,
      steps: open.steps.map((step) => ({ ...step, phase: { ...step.phase, attempt } })),
    });
    const rule = (attempt: number, word: "approve" | "deny"): string =>
      describeReason(decide(withAttempt(attempt) as typeof open, answer(word), timeAt(9_000)));
    const grant = (attempt: number): string => rule(attempt, "approve");
    expect(grant(BOUNDS.retryBudgetMax + 1)).toBe(
      "NOTHING_TO_RETRY: the step has had as many attempts as a step may have; deny, or cancel the plan",
    );
    expect(grant(BOUNDS.retryBudgetMax)).toBe("accepted");
    expect(rule(BOUNDS.retryBudgetMax + 1, "deny")).toBe("accepted");
  });
});

describe("the end of a question", () => {
  it.each([
    ["operator", "operator"],
    ["person", "operator"],
    ["plugin", undefined],
  ] as const)("says whether people gave the answer: %s, %s", (kind, by) => {
    const scene = openAsked().then(answer("answer", { by: { kind } }));
    expect(scene.last("escalation.closed").payload.by).toBe(by);
  });

  it("about the spent budget of a step grants one attempt more, as the operator's", () => {
    const scene = planScene(
      openPlan({ steps: 1, policy: { escalationPolicy: "hitl" } }),
      admit(planStep("a", { retryBudget: 3, budget: { spawns: 1 } })),
      dispatch("a"),
      failStep("a"),
    );
    expect(scene.says(answer("approve"))).toBe("escalation.answered escalation.closed step.retry_granted");
    expect(scene.last("step.retry_granted").payload).toEqual({ stepId: "a", by: "operator" });
    expect(scene.last("escalation.closed").payload).toMatchObject({ resolution: "retried" });
  });
});

describe("a result that people ruled on", () => {
  it("says why it does not count", () => {
    const denied = createHeldScene(DOUBTING, 100).then(answer("deny"));
    expect(denied.last("step.failed").payload.error.message).toBe("withheld by people");
    const expired = createHeldScene(DOUBTING, 100);
    expired.when(expire(), DAY_MS * 2);
    expect(expired.last("step.failed").payload.error.message).toBe("nobody answered in time");
  });

  it("names the step that the answer was about", () => {
    expect(createHeldScene(DOUBTING, 100).when(answer("approve"))).toMatchObject({ stepId: "a" });
  });

  it("is ruled on by its own question alone", () => {
    const scene = createHeldScene(DOUBTING, 100).then(ask({ askedBy: OWNER }));
    scene.then(answer("answer", { number: 2 }));
    expect(scene.status("a")).toBe("held");
  });
});

describe("the deadline of a question", () => {
  it("is told where it has not come", () => {
    expect(describeReason(openAsked().when(expire()))).toBe(
      "NOT_READY: the question escalation-1 is still open: its deadline has not passed",
    );
  });

  it("of a question that is closed, or that there is not, is none", () => {
    const scene = openAsked().then(answer("answer"));
    expect(scene.says(expire(), DAY_MS * 2)).toBe("replay");
    expect(scene.says(expire(7))).toBe("replay");
  });

  it("puts a question that the parent did not answer to people, once, unless it has a default", () => {
    const scene = openAsked({ askedOf: OWNER, answerMs: 5_000 });
    expect(scene.says(expire(), scene.nowMs + 5_000)).toBe("escalation.forwarded");
    expect(scene.last("escalation.forwarded").payload).toEqual({
      escalationId: "escalation-1",
      deadlineAtMs: timeAt(scene.nowMs + DAY_MS),
    });
    expect(scene.says(expire(), scene.nowMs + DAY_MS)).toBe("escalation.closed");
    const other = openAsked({ askedOf: OWNER, answerMs: 5_000, hasDefault: true });
    expect(other.says(expire(), other.nowMs + 5_000)).toBe("escalation.closed");
  });
});

describe("what became of telling people and sessions", () => {
  const openNotified = (): PlanScene =>
    planScene(
      { ...OPEN, questions: { answerMs: 60_000, notify: [{ channel: "chat", afterMs: 0 }] } } as Command,
      ask(),
    );

  it("is recorded once for each notice, and not of one that there is not", () => {
    const scene = openNotified();
    expect(scene.says(recordNotice())).toBe("escalation.notified");
    expect(scene.says(recordNotice())).toBe("replay");
    expect(scene.says(recordNotice(1, 1))).toBe("replay");
    expect(scene.says(recordNotice(7))).toBe("replay");
    expect(openAsked().says(recordNotice())).toBe("replay");
  });

  it("of a session that waits for nothing is none", () => {
    const telling: Command = {
      type: "recordTelling",
      tellingId: "answer:escalation-1",
      delivery: "delivered",
    };
    const scene = openNotified();
    expect(scene.says(telling)).toBe("replay");
    expect(scene.then(answer("answer")).says(telling)).toBe("session.told");
  });
});

describe("questions that are open at the end", () => {
  it("are closed as cancelled, by whoever cancelled the plan", () => {
    const scene = planScene(
      openPlan({ steps: 1 }),
      admit(planStep("a")),
      dispatch("a"),
      ask({ askedBy: OWNER }),
    );
    scene.then(cancel(), finish("a"), SETTLE_PLAN);
    expect(scene.last("escalation.closed").payload).toEqual({
      escalationId: "escalation-1",
      resolution: "cancelled",
      by: "operator",
    });
    const whole = planScene(
      openPlan({ steps: 1 }),
      admit(planStep("a")),
      dispatch("a"),
      ask({ askedBy: OWNER }),
    );
    whole.then(finish("a"), SETTLE_PLAN);
    expect(whole.last("escalation.closed").payload).not.toHaveProperty("by");
  });

  it("are closed without a name where only spawns were observed", () => {
    const scene = openAsked().then(complete(1), cancel(), SETTLE);
    expect(scene.last("escalation.closed").payload).toEqual({
      escalationId: "escalation-1",
      resolution: "cancelled",
    });
  });
});
