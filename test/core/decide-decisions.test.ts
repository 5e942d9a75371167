import { describe, expect, it } from "vitest";
import type { CriterionMet } from "../../src/agents/coordination/contracts/verification.ts";
import {
  answer,
  FLOOR,
  filterByType,
  OWNER,
  findQuestion,
  listTypesFrom,
  type SessionKey,
} from "./gates-scene.ts";
import {
  admit,
  cancel,
  DELIVERY,
  dispatch,
  expire,
  finish,
  failStep,
  openPlan,
  planStep,
  planScene,
  retry,
  SETTLE_PLAN,
  skip,
  startStep,
  TRIP,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";
import { timeAt } from "./scene.ts";

const DOUBT = { confidence: 3_000, floor: FLOOR } as const;

/** A plan whose step `a` its planner doubts; `others` come with it. */
const createDoubtedScene = (
  fields: StepFields = {},
  others: readonly ReturnType<typeof planStep>[] = [],
  opened: Partial<PlanSetup> = {},
): PlanScene =>
  planScene(
    openPlan({ steps: 1 + others.length, ...opened }),
    admit(planStep("a", { decision: DOUBT, ...fields }), ...others),
  );

const dispatchesOf = (scene: PlanScene, name: string) =>
  filterByType(scene, "step.dispatched").filter(({ payload }) => payload.stepId === name);

const deliver = (scene: PlanScene): PlanScene =>
  scene.then(SETTLE_PLAN, dispatch(DELIVERY), finish(DELIVERY), SETTLE_PLAN);

describe("a step that its planner doubts", () => {
  it("is admitted, and people are asked in that append: the doubt, then the interrupt, and no dispatch", () => {
    const scene = createDoubtedScene();
    expect(listTypesFrom(scene, "coordination.escalated")).toEqual([
      ...["coordination.escalated", "core.workflowChain.confidence-escalated"],
      ...["interrupt.requested", "node.suspended"],
    ]);
    expect(scene.last("core.workflowChain.confidence-escalated").payload).toMatchObject({
      confidence: 0.3,
      floor: 0.5,
      escalationKind: "escalate",
      workerId: "a",
    });
    expect(scene.last("interrupt.requested").payload).toMatchObject({
      kind: "approval",
      key: "escalation-1",
    });
    expect(findQuestion(scene)).toMatchObject({
      cause: "confidence",
      stepId: "a",
      answers: ["approve", "deny"],
    });
    expect(scene.plans()).toEqual([]);
    expect(scene.says(dispatch("a"))).toBe("NOT_READY");
  });

  it("is dispatched exactly once when it is approved, and only then", () => {
    const scene = createDoubtedScene();
    expect(scene.says(answer("approve"))).toBe("escalation.answered escalation.closed");
    expect(scene.last("interrupt.resolved").payload.resumeValue).toEqual({ action: "accept" });
    expect(scene.plans()).toEqual(["runStep a 1"]);
    scene.then(dispatch("a"));
    expect(scene.says(dispatch("a"))).toBe("replay");
    expect(scene.says(answer("approve"))).toBe("QUESTION_CLOSED escalation.answered");
    scene.then(startStep("a"), finish("a"));
    expect(scene.plans()).toEqual(["endCoordination"]);
    expect(dispatchesOf(scene, "a")).toHaveLength(1);
  });

  it("never begins when it is denied", () => {
    const scene = createDoubtedScene({}, [planStep("b", { after: ["a"] })]);
    expect(scene.says(answer("deny"))).toBe("escalation.answered escalation.closed step.skipped");
    expect(scene.step("a").phase).toMatchObject({ status: "skipped", because: "denied" });
    expect(scene.says(answer("approve"))).toBe("QUESTION_CLOSED escalation.answered");
    expect(scene.says(dispatch("a"))).toBe("STEP_ENDED");
    expect(scene.plans()).toEqual(["skipSteps b"]);
    scene.then(skip("b"));
    deliver(scene);
    expect(dispatchesOf(scene, "a")).toEqual([]);
    expect(scene.last("coordination.terminal").payload.status).toBe("failed");
  });

  it("never begins when nobody answers", () => {
    const scene = createDoubtedScene();
    const ms = findQuestion(scene).deadlineAtMs - timeAt(0);
    expect(scene.plans(ms - 1)).toEqual([]);
    expect(scene.plans(ms)).toEqual(["expireQuestion"]);
    expect(scene.says(expire(), ms)).toBe("escalation.closed step.skipped");
    expect(scene.step("a").phase).toMatchObject({ status: "skipped", because: "denied" });
    expect(scene.says(answer("approve"))).toBe("QUESTION_CLOSED escalation.answered");
    expect(scene.plans()).toEqual(["endCoordination"]);
    expect(scene.last("interrupt.resolved").payload.resumeValue).toEqual({ action: "expired" });
    deliver(scene);
    expect(scene.last("coordination.terminal").payload.status).toBe("escalated");
  });

  it("does not hold up steps that do not depend on it", () => {
    const scene = createDoubtedScene({}, [planStep("b")]);
    expect(scene.plans()).toEqual(["runStep b 1"]);
  });

  it("waits for its dependencies too, whichever comes first", () => {
    const openScene = () => createDoubtedScene({ after: ["b"] }, [planStep("b")]);
    const early = openScene().then(answer("approve"));
    expect(early.plans()).toEqual(["runStep b 1"]);
    expect(early.says(dispatch("a"))).toBe("NOT_READY");
    early.then(dispatch("b"), startStep("b"), finish("b"));
    expect(early.plans()).toEqual(["runStep a 1"]);
    const late = openScene().then(dispatch("b"), startStep("b"), finish("b"));
    expect(late.plans()).toEqual([]);
    late.then(answer("approve"));
    expect(late.plans()).toEqual(["runStep a 1"]);
  });

  it("is not asked about any more once it can never run", () => {
    const scene = createDoubtedScene({ after: ["b"] }, [planStep("b")]).then(
      dispatch("b"),
      startStep("b"),
      failStep("b"),
    );
    expect(scene.plans()).toEqual(["skipSteps a"]);
    scene.then(skip("a"));
    expect(findQuestion(scene).closed).toMatchObject({ resolution: "cancelled" });
    expect(scene.step("a").phase).toMatchObject({ status: "skipped", because: "dependency" });
    expect(scene.says(answer("approve"))).toBe("QUESTION_CLOSED escalation.answered");
  });

  it.each(["a", undefined])("is not asked about any more once it is cancelled (%j)", (name) => {
    const scene = createDoubtedScene().then(cancel(name));
    if (!name) scene.then(skip("a"));
    expect(scene.step("a").phase).toMatchObject({ status: "skipped", because: "cancelled" });
    expect(findQuestion(scene).closed).toMatchObject({ resolution: "cancelled" });
    expect(scene.last("interrupt.resolved").payload.resumeValue).toEqual({ action: "cancelled" });
  });

  it("is asked about once: its later attempts are not", () => {
    const scene = createDoubtedScene({ retryBudget: 1 }).then(
      answer("approve"),
      dispatch("a"),
      startStep("a"),
      failStep("a"),
    );
    scene.passes(60_000);
    expect(scene.plans()).toEqual(["runStep a 2"]);
    scene.then(dispatch("a", 2));
    expect(filterByType(scene, "coordination.escalated")).toHaveLength(1);
  });

  it("cannot be begun by a retry in place of an answer", () => {
    const scene = createDoubtedScene();
    expect(scene.says(retry("a"))).toBe("NOTHING_TO_RETRY");
    expect(scene.says(retry())).toBe("NOTHING_TO_RETRY");
  });

  it("is one of several, each with a question of its own", () => {
    const scene = createDoubtedScene({}, [planStep("b", { decision: DOUBT }), planStep("c")]);
    expect([findQuestion(scene, 1).stepId, findQuestion(scene, 2).stepId]).toEqual(["a", "b"]);
    scene.then(answer("deny", { number: 1 }), answer("approve", { number: 2 }));
    expect(scene.plans().toSorted()).toEqual(["runStep b 1", "runStep c 1"]);
    expect(
      new Set(filterByType(scene, "coordination.escalated").map(({ payload }) => payload.escalationId)).size,
    ).toBe(2);
  });

  it("asked about without a number says none", () => {
    const scene = planScene(openPlan({ steps: 1 }), admit(planStep("a", { decision: { floor: FLOOR } })));
    expect(findQuestion(scene).confidence).toEqual({ floor: FLOOR, of: "decision" });
    expect(filterByType(scene, "core.workflowChain.confidence-escalated")).toEqual([]);
    expect(scene.plans()).toEqual([]);
  });

  it("is decided in OpenWOP once, with the approval, and not where it was denied", () => {
    const scene = createDoubtedScene();
    const listDecided = () => filterByType(scene, "runOrchestrator.decided");
    expect(listDecided()).toEqual([]);
    scene.then(answer("approve"), dispatch("a"));
    expect(listDecided().map(({ payload }) => payload.decision)).toEqual([
      { kind: "next-worker", nextWorkerIds: ["a"] },
    ]);
    const types = scene.log.map(({ type }) => type);
    expect(types.indexOf("runOrchestrator.decided")).toBeGreaterThan(types.indexOf("interrupt.resolved"));
    expect(filterByType(createDoubtedScene().then(answer("deny")), "runOrchestrator.decided")).toEqual([]);
  });
});

describe("a plan that its planner doubts", () => {
  const plan = (opened: Partial<NonNullable<PlanSetup["plan"]>> = {}): PlanScene =>
    planScene(openPlan({ steps: 2, plan: { decision: DOUBT, ...opened } }));
  const steps = admit(planStep("a"), planStep("b", { decision: DOUBT }));

  it("is asked about before anything of it is admitted", () => {
    const scene = plan();
    expect(scene.log.map(({ type }) => type)).toEqual([
      ...["coordination.created", "run.started", "coordination.escalated"],
      ...["core.workflowChain.confidence-escalated", "interrupt.requested", "node.suspended"],
    ]);
    expect(scene.last("node.suspended").nodeId).toBe("orchestrator");
    scene.then(steps);
    expect(scene.plans()).toEqual([]);
    expect(scene.says(dispatch("a"))).toBe("NOT_READY");
  });

  it("begins when it is approved; what is doubted of it is still asked about", () => {
    const scene = plan().then(steps, answer("approve"));
    expect(scene.plans()).toEqual(["runStep a 1"]);
    expect(findQuestion(scene, 2)).toMatchObject({ stepId: "b" });
  });

  it.each(["deny", "expire"])("never begins after %s: all of it is skipped", (end) => {
    const scene = plan().then(steps);
    if (end === "deny") scene.then(answer("deny"));
    else scene.when(expire(), findQuestion(scene).deadlineAtMs - timeAt(0));
    expect(scene.plans()).toContain("skipSteps a,b");
    scene.then(skip("a", "b"));
    expect(scene.step("a").phase).toMatchObject({ status: "skipped", because: "denied" });
    if (scene.plans().includes("expireQuestion")) scene.when(expire(2));
    deliver(scene);
    expect(filterByType(scene, "step.dispatched").map(({ payload }) => payload.stepId)).toEqual([DELIVERY]);
    expect(scene.last("coordination.terminal").payload.status).toBe(end === "deny" ? "failed" : "escalated");
  });

  it("loses none of its time while people decide", () => {
    const scene = plan({ budget: { wallMs: 10_000 } }).then(steps);
    expect(scene.plans(60_000)).toEqual([]);
    scene.passes(60_000);
    expect(scene.says(TRIP)).not.toContain("coordination.escalated");
    scene.then(answer("approve"));
    expect(scene.plans()).toEqual(["runStep a 1"]);
    expect(scene.plans(scene.nowMs + 10_000)).toContain("tripBreaker");
  });

  it("that is cancelled meanwhile is not asked about any more", () => {
    const scene = plan().then(steps, cancel(), skip("a", "b"));
    deliver(scene);
    expect(filterByType(scene, "escalation.closed").map(({ payload }) => payload.resolution)).toEqual([
      "cancelled",
      "cancelled",
    ]);
    expect(scene.last("coordination.terminal").payload.status).toBe("cancelled");
  });
});

describe("a doubt about a plan or a step", () => {
  const DIFFERENT = { questions: { answerMs: 60_000, requireDifferentApprover: true } } as const;
  const createDoubtAs = (subject: string, opened: Partial<PlanSetup> = DIFFERENT): PlanScene =>
    subject === "step"
      ? createDoubtedScene({}, [], opened)
      : planScene(openPlan({ steps: 1, plan: { decision: DOUBT }, ...opened }), admit(planStep("a")));

  it.each(["step", "plan"])(
    "of a %s is not for the session whose plan it is, where another approver is demanded",
    (subject) => {
      const scene = createDoubtAs(subject);
      const ownAuthor = { by: { kind: "person", session: OWNER } } as const;
      expect(scene.says(answer("approve", ownAuthor))).toBe("ANSWER_REFUSED escalation.answered");
      expect(scene.last("escalation.answered").payload).toMatchObject({ refused: "same_session" });
      expect(scene.plans()).toEqual([]);
      const other = { by: { kind: "person", session: "agent:other:main" as SessionKey } } as const;
      expect(scene.says(answer("approve", other))).toBe("escalation.answered escalation.closed");
    },
  );

  it.each(["step", "plan"])("of a %s is for that session, too, where nothing is demanded", (subject) => {
    const scene = createDoubtAs(subject, {});
    const ownAuthor = { by: { kind: "person", session: OWNER } } as const;
    expect(scene.says(answer("approve", ownAuthor))).toBe("escalation.answered escalation.closed");
  });

  it.each(["step", "plan"])("of a %s is put to people as OpenWOP's canonical interrupt", (subject) => {
    const scene = createDoubtAs(subject);
    expect(listTypesFrom(scene, "coordination.escalated").slice(0, 3)).toEqual([
      ...["coordination.escalated", "core.workflowChain.confidence-escalated", "interrupt.requested"],
    ]);
    expect(scene.last("core.workflowChain.confidence-escalated").payload).toMatchObject({
      escalationKind: "escalate",
    });
    expect(scene.last("interrupt.requested").payload).toMatchObject({ kind: "approval" });
  });
});

describe("how far a plan reached what it is for", () => {
  const CRITERIA = [{ key: "goal-answered" }, { key: "no-pii", when: "{{steps.a.outputs.clean}}" }];
  const createMet = (...all: readonly boolean[]): CriterionMet[] =>
    all.map((each, index) => ({ key: CRITERIA[index]?.key ?? "", met: each }));
  const createWorkedScene = (): PlanScene =>
    planScene(
      openPlan({ steps: 1, plan: { successCriteria: CRITERIA } }),
      admit(planStep("a")),
      dispatch("a"),
      startStep("a"),
      finish("a"),
    );
  const judgeScene = (...all: readonly boolean[]): PlanScene =>
    createWorkedScene().then({ type: "judgePlan", successCriteria: createMet(...all) });

  it("is found out before the owner is told, once", () => {
    const scene = createWorkedScene();
    expect(scene.plans()).toEqual(["judgePlan"]);
    expect(scene.says(SETTLE_PLAN)).toBe("NOT_READY");
    scene.then({ type: "judgePlan", successCriteria: createMet(true, true) });
    expect(scene.says({ type: "judgePlan", successCriteria: createMet(false, false) })).toBe("replay");
    expect(scene.plans()).toEqual(["endCoordination"]);
  });

  it("makes a success where all is met", () => {
    const scene = deliver(judgeScene(true, true));
    expect(scene.last("coordination.terminal").payload).toMatchObject({
      status: "success",
      successCriteria: createMet(true, true),
    });
  });

  it.each([
    [true, false],
    [false, true],
    [false, false],
  ])("makes a give-up of %j, %j, however well its steps went", (one, other) => {
    const scene = deliver(judgeScene(one, other));
    expect(scene.last("coordination.terminal").payload).toMatchObject({
      status: "partial",
      successCriteria: createMet(one, other),
      steps: { total: 1, completed: 1 },
    });
  });

  it("is the orchestrator's last decision, before the run is completed", () => {
    const scene = deliver(judgeScene(true, false));
    expect(scene.log.slice(-3).map(({ type }) => type)).toEqual([
      ...["coordination.terminal", "runOrchestrator.decided", "run.completed"],
    ]);
    const turns = filterByType(scene, "runOrchestrator.decided").map(({ payload }) => payload);
    expect(turns.at(-1)?.decision).toEqual({ kind: "terminate", successCriteria: createMet(true, false) });
    expect(turns.map(({ iteration }) => iteration)).toEqual(turns.map((_, index) => index + 1));
  });

  it("is said of no plan that states none, which has no such decision", () => {
    const scene = planScene(
      openPlan({ steps: 1 }),
      admit(planStep("a")),
      dispatch("a"),
      startStep("a"),
      finish("a"),
    );
    deliver(scene);
    expect(scene.last("coordination.terminal").payload).not.toHaveProperty("successCriteria");
    const kinds = filterByType(scene, "runOrchestrator.decided").map(({ payload }) => payload.decision.kind);
    expect(kinds).not.toContain("terminate");
  });

  it("that was not judged is no success, also where the owner is not told", () => {
    const scene = createWorkedScene().then({ type: "cancelCoordination", by: "parent" });
    scene.when(SETTLE_PLAN);
    if (scene.state.kind === "ended")
      expect(scene.last("coordination.terminal").payload.status).not.toBe("success");
  });
});
