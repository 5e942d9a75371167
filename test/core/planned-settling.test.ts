import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { OWNER_STEP_ID, type StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { computePlanVerdict } from "../../src/agents/coordination/dispatch/settle-plan.ts";
import { createAsk, NOTES, request } from "./claims-scene.ts";
import {
  admit,
  answer,
  ask,
  cancel,
  DELIVERY,
  dispatch,
  expire,
  failStep,
  finish,
  judge,
  nameSessionOfAttempt,
  openPlan,
  planScene,
  planStep,
  recordTold,
  runOut,
  SETTLE_PLAN,
  skip,
  startStep,
  stopChildOf,
  HITL,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";
import { createContentRef, MAIN, OWNER, spawn, describeReason } from "./scene.ts";

/** A plan of one step, whose attempt is at work. */
const openWorking = (opened: Partial<PlanSetup> = {}, fields: StepFields = {}): PlanScene =>
  planScene(openPlan({ steps: 1, ...opened }), admit(planStep("a", fields)), dispatch("a"), startStep("a"));
const openWorked = (opened: Partial<PlanSetup> = {}): PlanScene => openWorking(opened).then(finish("a"));
const CRITERIA = { plan: { successCriteria: [{ key: "shipped" }] } };
const cancelWithParent: Command = { type: "cancelCoordination", by: "parent" };

/** Its agent asked its parent, which answered; the session of the agent has not been told yet. */
const openUntold = (...more: readonly Command[]): PlanScene =>
  openWorking().then(
    ask(nameSessionOfAttempt("a"), { stepId: "a" as StepId }),
    answer(1, "answer"),
    finish("a"),
    ...more,
  );

describe("a plan does not end", () => {
  it.each<readonly [string, () => PlanScene]>([
    ["STEPS_OPEN: step a is running", () => openWorking()],
    ["STEPS_OPEN: not all steps are admitted", () => openWorked({ steps: 2 })],
    [
      "STEPS_OPEN: the child of an earlier attempt may still be at work",
      () => openWorking().then(runOut("a")),
    ],
    [
      "STEPS_OPEN: the worktree of an attempt has not been removed yet",
      () => openWorking({}, { isolate: "worktree" }).then(failStep("a")),
    ],
    ["STEPS_OPEN: a session has not been told its result or answer yet", () => openUntold()],
    ["NOT_READY: the success criteria of the plan have not been judged yet", () => openWorked(CRITERIA)],
  ])("%s", (reason, open) => {
    expect(describeReason(open().when(SETTLE_PLAN))).toBe(reason);
  });

  it("but when nothing of that is left", () => {
    expect(openWorking().then(runOut("a"), stopChildOf("a")).says(SETTLE_PLAN)).toBe("step.admitted");
    expect(openWorked(CRITERIA).then(judge()).says(SETTLE_PLAN)).toBe("step.admitted");
    const scene = openUntold();
    const [telling] = scene.open.tellings.keySeq().toArray();
    expect(scene.then(recordTold(telling ?? "")).says(SETTLE_PLAN)).toBe("step.admitted");
  });
});

describe("telling the owner of a plan", () => {
  it("is a step with all that its session, its agent and the words of the plan say", () => {
    const scene = openWorked();
    expect(scene.when(SETTLE_PLAN)).toMatchObject({ kind: "accepted", stepId: DELIVERY });
    expect(scene.step(DELIVERY).spec).toEqual({
      stepId: DELIVERY,
      lane: "control",
      runner: "owner",
      agentId: MAIN,
      sourceSession: OWNER,
      deliveryMode: "at_least_once",
      priority: "high",
      input: createContentRef("objective"),
      timeoutMs: 600_000,
      retryBudget: 5,
      collect: false,
      call: {},
      planned: { dependsOn: [], fanIn: 0, backoffMs: 2_000, criticalPathMs: 600_000 },
    });
  });

  it("is left out where the plan was cancelled with its owner's step, also where sessions wait to be told", () => {
    const scene = openUntold(request(OWNER_STEP_ID, createAsk(NOTES, 1)));
    expect(scene.open.tellings.size).toBe(1);
    scene.then(cancelWithParent);
    expect(scene.says(SETTLE_PLAN)).toBe("claim.released coordination.terminal");
    expect(scene.last("claim.released").payload.because).toBe("coordination_ended");
    expect(scene.last("coordination.terminal").payload).toMatchObject({
      status: "success",
      delivery: "not_delivered",
    });
  });

  it("closes the questions that are still open, before the owner is told and before the end", () => {
    const scene = openWorked().then(ask(OWNER));
    expect(scene.says(SETTLE_PLAN)).toBe("escalation.closed step.admitted");
    scene.then(dispatch(DELIVERY), ask(OWNER), finish(DELIVERY));
    expect(scene.says(SETTLE_PLAN)).toBe("escalation.closed coordination.terminal");
  });
});

describe("the verdict on a plan", () => {
  const STEPS = ["a", "b", "c", "d", "e"];
  /** Five steps, one for each end that there is. */
  function openEnded(...lastCommands: readonly Command[]): PlanScene {
    const names = STEPS.map((name) => planStep(name, name === "e" ? { after: ["b"] } : {}));
    return planScene(
      openPlan({ steps: STEPS.length }),
      admit(...names),
      ...["a", "b", "c", "d"].flatMap((name) => [dispatch(name), startStep(name)]),
      finish("a"),
      failStep("b"),
      runOut("c", 1, "runner"),
      failStep("d", 1, "child_cancelled"),
      skip("e"),
      ...lastCommands,
    );
  }
  const ONE_OF_EACH = { total: 5, completed: 1, failed: 1, timedOut: 1, cancelled: 1, skipped: 1 };

  it("counts the steps of the plan by their ends, without the delivery", () => {
    expect(computePlanVerdict(openEnded().open)).toEqual({ status: "partial", steps: ONE_OF_EACH });
    const informed = openEnded(SETTLE_PLAN, dispatch(DELIVERY), finish(DELIVERY));
    expect(computePlanVerdict(informed.open).steps).toEqual(ONE_OF_EACH);
  });

  it("counts no step that is at work, and no spawn of an agent of the plan", () => {
    const scene = openWorking();
    scene.then(spawn("x", { parentStepId: "a" as StepId, sourceSession: nameSessionOfAttempt("a") }));
    expect(computePlanVerdict(scene.open).steps).toEqual({
      total: 1,
      completed: 0,
      failed: 0,
      timedOut: 0,
      cancelled: 0,
      skipped: 0,
    });
  });

  const openTwo = (opened: Partial<PlanSetup> = {}): PlanScene =>
    planScene(
      openPlan({ steps: 2, ...opened }),
      admit(planStep("a"), planStep("b")),
      dispatch("a"),
      startStep("a"),
      dispatch("b"),
      startStep("b"),
    );
  const FAIL_FAST = { policy: { timeoutPolicy: "fail_fast" } } as const;

  it.each<readonly [string, string, () => PlanScene]>([
    ["success", "all steps completed", () => openTwo().then(finish("a"), finish("b"))],
    [
      "success",
      "all steps completed though it was cancelled",
      () => openTwo().then(cancel(), finish("a"), finish("b")),
    ],
    ["partial", "some completed", () => openTwo().then(finish("a"), failStep("b"))],
    ["failed", "none completed", () => openTwo().then(failStep("a"), failStep("b"))],
    [
      "failed",
      "some completed and the plan fails fast",
      () => openTwo(FAIL_FAST).then(finish("a"), failStep("b")),
    ],
    [
      "cancelled",
      "somebody cancelled it",
      () => openTwo().then(finish("a"), cancel(), failStep("b", 1, "child_cancelled")),
    ],
  ])("is %s where %s", (status, _, open) => {
    expect(computePlanVerdict(open().open).status).toBe(status);
  });

  it("is escalated where people gave no answer in time, unless somebody cancelled it", () => {
    const scene = openTwo(HITL).then(finish("a"), failStep("b"));
    scene.passes(3_600_000);
    scene.then(expire());
    expect(computePlanVerdict(scene.open).status).toBe("escalated");
    scene.then(cancel());
    expect(computePlanVerdict(scene.open).status).toBe("cancelled");
  });

  it("is partial where a criterion was not met, and says which", () => {
    const scene = openWorked(CRITERIA).then(judge(false));
    expect(computePlanVerdict(scene.open)).toMatchObject({
      status: "partial",
      successCriteria: [{ key: "shipped", met: false }],
    });
    expect(computePlanVerdict(openWorked(CRITERIA).then(judge()).open).status).toBe("success");
    expect(computePlanVerdict(openWorked().open)).not.toHaveProperty("successCriteria");
  });
});

describe("the end of a plan", () => {
  const endAfter = (...ends: readonly Command[]): unknown => {
    const scene = openWorked().then(SETTLE_PLAN, dispatch(DELIVERY), ...ends, SETTLE_PLAN);
    return scene.last("coordination.terminal").payload;
  };

  it("says how it ended and what became of telling the owner", () => {
    const steps = { total: 1, completed: 1, failed: 0, timedOut: 0, cancelled: 0, skipped: 0 };
    expect(endAfter(finish(DELIVERY))).toEqual({ status: "success", steps, delivery: "delivered" });
    expect(endAfter(failStep(DELIVERY, 1, "child_cancelled"))).toMatchObject({ delivery: "not_delivered" });
    expect(endAfter(startStep(DELIVERY), failStep(DELIVERY, 1, "child_lost"))).toMatchObject({
      delivery: "unknown",
    });
  });
});

describe("the delivery to the agent of a step whose attempt is over", () => {
  const openTelling = (...more: readonly Command[]): PlanScene => openWorked().then(SETTLE_PLAN, ...more);
  const endOf = (scene: PlanScene): unknown =>
    scene.then(SETTLE_PLAN).last("coordination.terminal").payload.delivery;

  it("does not begin any more, and the plan ends", () => {
    const scene = openTelling(cancelWithParent);
    expect(scene.says(dispatch(DELIVERY))).toBe("PLAN_STOPPED");
    expect(scene.effects()).toMatchObject([{ kind: "skipSteps", stepIds: [DELIVERY] }]);
    scene.then(skip(DELIVERY));
    expect(endOf(scene)).toBe("not_delivered");
  });

  it("is stopped where it is under way, and may have arrived", () => {
    const scene = openTelling(dispatch(DELIVERY), startStep(DELIVERY), cancelWithParent);
    expect(scene.effects()).toMatchObject([{ kind: "stopStep", stepId: DELIVERY, attempt: 1 }]);
    scene.then(failStep(DELIVERY, 1, "child_cancelled"));
    expect(endOf(scene)).toBe("unknown");
  });

  it("stays as it is where it is over, and where anybody else cancels the plan", () => {
    const scene = openTelling();
    expect(scene.says(cancel())).toBe("COORDINATION_ENDED");
    scene.then(dispatch(DELIVERY), finish(DELIVERY));
    expect(scene.says(cancelWithParent)).toBe("COORDINATION_ENDED");
  });

  it("ends also where somebody had cancelled the plan before", () => {
    const scene = openWorking().then(cancel(), failStep("a", 1, "child_cancelled"), SETTLE_PLAN);
    expect(scene.says(cancelWithParent)).toBe("coordination.cancel_requested");
    expect(scene.says(cancelWithParent)).toBe("replay");
    expect(scene.effects()).toMatchObject([{ kind: "skipSteps", stepIds: [DELIVERY] }]);
  });
});
