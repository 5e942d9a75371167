import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import {
  answer,
  CHECKING,
  contentRef,
  DOUBTING,
  createHeldScene,
  createHeldSpawn,
  ruleNoVerdict,
  filterByType,
  PERSON,
  findQuestion,
  listTypesFrom,
  ruleVerdict,
} from "./gates-scene.ts";
import {
  admit,
  dispatch,
  ESCALATE_MS,
  expire,
  finish,
  failStep,
  openPlan,
  planStep,
  planScene,
  retry,
  runOut,
  SETTLE_PLAN,
  nameSessionOfAttempt,
  startStep,
  TRIP,
  type PlanSetup,
  type PlanScene,
} from "./planned-scene.ts";
import { OWNER, timeAt } from "./scene.ts";

const REPLACEMENT = contentRef("replacement");
const PEOPLE = { policy: { escalationPolicy: "hitl" } } as const;
const DIFFERENT = { questions: { answerMs: 60_000, requireDifferentApprover: true } } as const;
/** A person who writes in the session whose plan it is. */
const BY_OWNER = { by: { kind: "person", session: OWNER } } as const;
const listActions = (scene: PlanScene): string[] =>
  filterByType(scene, "interrupt.resolved").map(({ payload }) => payload.resumeValue.action);

/** A step whose last attempt failed, and people are asked. */
const createBlockedScene = (opened: Partial<PlanSetup> = {}): PlanScene =>
  planScene(
    openPlan({ steps: 1, ...PEOPLE, ...opened }),
    admit(planStep("a")),
    dispatch("a"),
    startStep("a"),
    failStep("a"),
  );

describe("an answer about a held result", () => {
  it("that approves lets it through once: the answer, the end of the question, the interrupt, then the result", () => {
    const scene = createHeldScene(DOUBTING, 100, { others: [planStep("b", { after: ["a"] })] });
    expect(scene.says(answer("approve"))).toBe("escalation.answered escalation.closed step.completed");
    expect(listTypesFrom(scene, "escalation.answered")).toEqual([
      ...["escalation.answered", "escalation.closed", "interrupt.resolved"],
      ...["step.completed", "core.workflowChain.event"],
    ]);
    expect(scene.last("step.completed").payload).toEqual({
      stepId: "a",
      attempt: 1,
      via: "gate",
      output: contentRef("out"),
      released: "approved",
    });
    expect(scene.last("escalation.answered").payload).toMatchObject({
      answer: "approve",
      by: PERSON,
      through: "chat",
    });
    expect(listActions(scene)).toEqual(["accept"]);
    expect(scene.plans()).toEqual(["runStep b 1"]);
  });

  it("with a text replaces it: the text is the output, and the agent's own is not", () => {
    const scene = createHeldScene(DOUBTING, 100);
    expect(scene.says(answer("answer"))).toBe("escalation.answered escalation.closed step.completed");
    expect(scene.last("step.completed").payload).toMatchObject({ output: REPLACEMENT, released: "replaced" });
    expect(scene.step("a").phase).toMatchObject({ output: REPLACEMENT, released: "replaced" });
    expect(listActions(scene)).toEqual(["answer"]);
  });

  it("that denies withholds it for good, and it is not tried again behind anybody's back", () => {
    const scene = createHeldScene(DOUBTING, 100, { fields: { retryBudget: 5 }, opened: PEOPLE });
    expect(scene.says(answer("deny"))).toBe("escalation.answered escalation.closed step.failed");
    expect(scene.last("step.failed").payload).toMatchObject({
      error: { code: "withheld" },
      cancelled: false,
    });
    expect(scene.status("a")).toBe("failed");
    expect(listActions(scene)).toEqual(["reject"]);
    expect(filterByType(scene, "step.completed")).toEqual([]);
    expect(scene.says(answer("approve"))).toBe("QUESTION_CLOSED escalation.answered");
    expect(scene.status("a")).toBe("failed");
  });

  it("that nobody gives withholds it at the deadline, and not before", () => {
    const scene = createHeldScene(DOUBTING, 100);
    const { deadlineAtMs } = findQuestion(scene);
    const ms = deadlineAtMs - timeAt(0);
    expect(scene.says(expire(), ms - 1)).toBe("NOT_READY");
    expect(scene.says(expire(), ms)).toBe("escalation.closed step.failed");
    expect(scene.last("step.failed").payload.error).toMatchObject({ code: "withheld" });
    expect(listActions(scene)).toEqual(["expired"]);
    expect(scene.says(expire())).toBe("replay");
  });

  it("at the deadline comes too late, even before the question was closed, and is recorded as that", () => {
    const scene = createHeldScene(DOUBTING, 100);
    const ms = findQuestion(scene).deadlineAtMs - timeAt(0);
    expect(scene.says(answer("approve"), ms)).toBe("QUESTION_CLOSED escalation.answered");
    expect(scene.last("escalation.answered").payload).toMatchObject({ refused: "expired" });
    expect(scene.status("a")).toBe("held");
    scene.then(expire());
    expect(scene.status("a")).toBe("failed");
  });

  it("a moment before the deadline counts", () => {
    const scene = createHeldScene(DOUBTING, 100);
    scene.when(answer("approve"), findQuestion(scene).deadlineAtMs - timeAt(0) - 1);
    expect(scene.status("a")).toBe("completed");
    expect(scene.says(expire(), ESCALATE_MS * 2)).toBe("replay");
  });

  it("is needed where a check gave no verdict, and where revisions are spent; each ends in one release", () => {
    const unchecked = createHeldScene(CHECKING, 10_000);
    unchecked.then(ruleNoVerdict(unchecked, "a"));
    const unrevised = createHeldScene({ ...CHECKING, revisionsMax: 0 }, 10_000);
    unrevised.then(ruleVerdict(unrevised, "a", "revise"));
    for (const scene of [unchecked, unrevised]) {
      scene.then(answer("approve"));
      expect(filterByType(scene, "step.completed").map(({ payload }) => payload.released)).toEqual([
        "approved",
      ]);
    }
  });

  it("about a spawn of a model ends it as about a step of a plan", () => {
    for (const [kind, status] of [
      ["approve", "completed"],
      ["answer", "completed"],
      ["deny", "failed"],
    ] as const) {
      const scene = createHeldSpawn(DOUBTING, 100).then(answer(kind));
      expect(scene.status("step-1")).toBe(status);
    }
  });
});

describe("of several answers", () => {
  it("the first one that may count does; later ones are recorded with who gave them, and change nothing", () => {
    const scene = createHeldScene(DOUBTING, 100).then(answer("approve"));
    const { state } = scene;
    const later = answer("deny", { by: { kind: "operator", id: "bob" }, through: "cli" });
    expect(scene.says(later)).toBe("QUESTION_CLOSED escalation.answered");
    expect(scene.last("escalation.answered").payload).toEqual({
      escalationId: "escalation-1",
      answer: "deny",
      refused: "closed",
      by: { kind: "operator", id: "bob" },
      through: "cli",
    });
    expect(scene.open.steps).toBe((state as typeof scene.open).steps);
    expect(findQuestion(scene).answered).toMatchObject({ answer: "approve", by: PERSON });
    expect(findQuestion(scene).closed).toMatchObject({ resolution: "approved" });
  });

  it("those that do not count leave the question open, and are recorded up to a bound without their text", () => {
    const scene = createHeldScene(DOUBTING, 100);
    const wrong = answer("approve", { text: contentRef("text") });
    for (let time = 1; time <= 40; time += 1)
      expect(scene.when(wrong)).toMatchObject({ code: "ANSWER_REFUSED" });
    const recorded = filterByType(scene, "escalation.answered");
    expect(recorded).toHaveLength(32);
    expect(recorded[0]?.payload).toMatchObject({ refused: "not_an_answer" });
    expect(recorded[0]?.payload).not.toHaveProperty("text");
    scene.then(answer("approve"));
    expect(scene.status("a")).toBe("completed");
  });

  it("one to a question that there is none of is refused", () => {
    expect(createHeldScene(DOUBTING, 100).says(answer("approve", { number: 7 }))).toBe("UNKNOWN_QUESTION");
  });

  it("one by the session in question does not count where another approver is demanded", () => {
    const scene = planScene(
      openPlan({ steps: 1, ...DIFFERENT }),
      admit(planStep("a", { gate: DOUBTING })),
      dispatch("a"),
      startStep("a"),
      finish("a", 1, { stated: { confidence: 0 } }),
    );
    const ownAnswer = answer("approve", { by: { kind: "person", session: nameSessionOfAttempt("a") } });
    expect(scene.says(ownAnswer)).toBe("ANSWER_REFUSED escalation.answered");
    expect(scene.last("escalation.answered").payload).toMatchObject({ refused: "same_session" });
    expect(scene.says(answer("approve", BY_OWNER))).toBe("ANSWER_REFUSED escalation.answered");
    scene.then(answer("approve", { by: { kind: "person", session: "agent:other:main" as SessionKey } }));
    expect(scene.status("a")).toBe("completed");
  });

  it("one that nobody can give any more is one after the end of all", () => {
    const scene = createHeldSpawn(DOUBTING, 100).then(answer("deny"), SETTLE_PLAN);
    expect(scene.says(answer("approve"))).toBe("COORDINATION_ENDED");
  });

  it("one of a plugin is not put down to an operator", () => {
    const scene = createHeldScene(DOUBTING, 100).then(
      answer("approve", { by: { kind: "plugin", id: "p" }, through: "plugin:p" }),
    );
    expect(scene.last("escalation.closed").payload).not.toHaveProperty("by");
  });
});

describe("a question about attempts that are used up", () => {
  it("grants one more attempt when it is approved", () => {
    const scene = createBlockedScene();
    expect(scene.says(answer("approve"))).toBe("escalation.answered escalation.closed step.retry_granted");
    expect(scene.last("escalation.closed").payload).toMatchObject({ resolution: "retried", by: "operator" });
    expect(listActions(scene)).toEqual(["accept"]);
    expect(scene.plans()).toEqual(["runStep a 2"]);
    scene.then(dispatch("a", 2), startStep("a", 2), failStep("a", 2));
    expect(findQuestion(scene, 2)).toMatchObject({ cause: "retries_exhausted" });
  });

  it("fails the step when it is denied", () => {
    const scene = createBlockedScene().then(answer("deny"));
    expect(scene.status("a")).toBe("failed");
    expect(listActions(scene)).toEqual(["reject"]);
  });

  it("is answered by a retry as before, which resolves the interrupt", () => {
    const scene = createBlockedScene().then(retry("a"));
    expect(scene.plans()).toEqual(["runStep a 2"]);
    expect(listActions(scene)).toEqual(["accept"]);
    expect(scene.says(answer("approve"))).toBe("QUESTION_CLOSED escalation.answered");
    expect(scene.step("a").granted).toBe(1);
  });

  it("is not for the session whose plan it is, where another approver is demanded", () => {
    const scene = createBlockedScene(DIFFERENT);
    expect(scene.says(answer("approve", BY_OWNER))).toBe("ANSWER_REFUSED escalation.answered");
    expect(scene.status("a")).toBe("blocked");
    expect(createBlockedScene().says(answer("approve", BY_OWNER))).toContain("step.retry_granted");
  });

  it("asked for because of time is the same", () => {
    const scene = planScene(openPlan({ steps: 1, ...PEOPLE }), admit(planStep("a")), dispatch("a"));
    scene.when(runOut("a"));
    expect(findQuestion(scene)).toMatchObject({ cause: "deadline" });
    scene.then(answer("approve"));
    expect(scene.status("a")).toBe("backoff");
  });

  it("takes no text", () => {
    expect(createBlockedScene().says(answer("answer"))).toBe("ANSWER_REFUSED escalation.answered");
  });

  it("is not granted without end: what would be recorded can always be read again", () => {
    const scene = createBlockedScene();
    for (let number = 1; number <= 120 && scene.status("a") === "blocked"; number += 1) {
      scene.when(answer("approve", { number }));
      if (scene.status("a") !== "backoff") break;
      scene.then(dispatch("a", number + 1), startStep("a", number + 1), failStep("a", number + 1));
    }
    const attempts = filterByType(scene, "step.dispatched").map(({ payload }) => payload.attempt);
    expect(Math.max(...attempts)).toBeLessThanOrEqual(111);
  });
});

describe("a question about the budget", () => {
  const createSpentScene = (opened: Partial<PlanSetup> = {}): PlanScene =>
    planScene(
      openPlan({ steps: 2, ...PEOPLE, plan: { budget: { spawns: 1 } }, ...opened }),
      admit(planStep("a"), planStep("b")),
      dispatch("a"),
      startStep("a"),
      finish("a"),
      TRIP,
    );

  it("lets the plan go on when it is approved, from what is spent now", () => {
    const scene = createSpentScene();
    expect(scene.says(answer("approve"))).toBe("escalation.answered escalation.closed");
    expect(scene.last("escalation.closed").payload).toMatchObject({ resolution: "continued" });
    expect(scene.plans()).toEqual(["runStep b 1"]);
    expect(listActions(scene)).toEqual(["accept"]);
  });

  it("is not for the session whose plan it is, where another approver is demanded", () => {
    const scene = createSpentScene(DIFFERENT);
    expect(scene.says(answer("approve", BY_OWNER))).toBe("ANSWER_REFUSED escalation.answered");
    expect(scene.last("escalation.answered").payload).toMatchObject({ refused: "same_session" });
    expect(scene.plans()).toEqual([]);
    scene.then(answer("approve", { by: { kind: "operator" } }));
    expect(scene.plans()).toEqual(["runStep b 1"]);
  });

  it("stops the plan when it is denied", () => {
    const scene = createSpentScene().then(answer("deny"));
    expect(scene.plans()).toEqual(["skipSteps b"]);
    expect(listActions(scene)).toEqual(["reject"]);
  });
});
