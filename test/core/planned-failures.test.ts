import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { FACT_PAYLOADS } from "../../src/agents/coordination/contracts/facts.ts";
import { findNextDeadline } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { computeBackoffMs, computeBackoffRange } from "../../src/agents/coordination/plan/backoff.ts";
import { timeAt, createContentRef } from "./scene.ts";
import {
  admit,
  BACKOFF_MS,
  cancel,
  DELIVERY,
  dispatch,
  ESCALATE_MS,
  expire,
  finish,
  failStep,
  openPlan,
  PLAN_TIMEOUT_MS,
  planStep,
  planScene,
  report,
  retry,
  runOut,
  nameSessionOfAttempt,
  SETTLE_PLAN,
  skip,
  startStep,
  stopChildOf,
  HITL,
  beginSteps,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";

const FAIL_FAST = { policy: { timeoutPolicy: "fail_fast" } } as const;

/** A plan of the steps a, b and c, where c waits for both; all in one append. */
function createDiamond(opened: Partial<PlanSetup> = {}, fields: StepFields = {}): PlanScene {
  const steps = [planStep("a", fields), planStep("b"), planStep("c", { after: ["a", "b"] })];
  return planScene(openPlan({ steps: 3, ...opened }), admit(...steps));
}
const listFates = (scene: PlanScene): string[] => ["a", "b", "c"].map((name) => scene.status(name));

/** Tells the owner, and ends. */
function endScene(scene: PlanScene): unknown {
  scene.then(SETTLE_PLAN, dispatch(DELIVERY), startStep(DELIVERY), finish(DELIVERY), SETTLE_PLAN);
  return scene.last("coordination.terminal").payload;
}

describe("continue_with_partial", () => {
  it("goes on with what does not depend on the failure, and skips what does", () => {
    const scene = createDiamond().then(...beginSteps("a", "b"), failStep("a"));
    expect(listFates(scene)).toEqual(["failed", "running", "waiting"]);
    expect(scene.plans()).toEqual(["skipSteps c"]);
    scene.then(skip("c"), finish("b"));
    expect(scene.step("c").phase).toMatchObject({ status: "skipped", because: "dependency" });
    expect(endScene(scene)).toEqual({
      status: "partial",
      steps: { total: 3, completed: 1, failed: 1, timedOut: 0, cancelled: 0, skipped: 1 },
      delivery: "delivered",
    });
  });

  it("has failed when nothing completed", () => {
    const scene = createDiamond().then(
      ...beginSteps("a", "b"),
      failStep("a"),
      runOut("b", 1, "runner"),
      skip("c"),
    );
    expect(endScene(scene)).toMatchObject({
      status: "failed",
      steps: { failed: 1, timedOut: 1, skipped: 1 },
    });
  });

  it("is a success when everything completed", () => {
    const scene = createDiamond().then(
      ...beginSteps("a", "b"),
      finish("a"),
      finish("b"),
      ...beginSteps("c"),
      finish("c"),
    );
    expect(endScene(scene)).toMatchObject({ status: "success", steps: { total: 3, completed: 3 } });
  });
});

describe("fail_fast", () => {
  it.each([failStep("a"), runOut("a", 1, "runner")])("stops everything at the end of a step: %o", (end) => {
    const scene = createDiamond(FAIL_FAST).then(...beginSteps("a", "b"), end);
    expect(scene.plans()).toEqual(["stopStep b 1", "skipSteps c"]);
    scene.then(skip("c"), failStep("b", 1, "child_cancelled"));
    expect(scene.step("c").phase).toMatchObject({ because: "fail_fast" });
    expect(endScene(scene)).toMatchObject({ status: "failed", steps: { cancelled: 1, skipped: 1 } });
  });

  it("does not stop for an attempt that is tried again, nor for a step that was cancelled", () => {
    const scene = createDiamond(FAIL_FAST, { retryBudget: 1 }).then(...beginSteps("a", "b"), failStep("a"));
    expect(scene.plans(scene.nowMs + BACKOFF_MS)).toEqual(["runStep a 2"]);
    const other = createDiamond(FAIL_FAST).then(...beginSteps("a", "b"), failStep("a", 1, "child_cancelled"));
    expect(other.plans()).toEqual(["skipSteps c"]);
  });

  it("begins nothing that was on its way", () => {
    const scene = createDiamond(FAIL_FAST).then(...beginSteps("a"), failStep("a"));
    expect(scene.says(dispatch("b"))).toBe("PLAN_STOPPED");
    expect(scene.says(retry("b"))).toBe("PLAN_STOPPED");
  });

  it("gives a failure no second attempt once the plan has stopped", () => {
    const scene = createDiamond(FAIL_FAST).then(...beginSteps("a", "b"), failStep("a"));
    scene.then(failStep("b"));
    expect(scene.status("b")).toBe("failed");
  });
});

describe("a retry", () => {
  const createFailingScene = (fields: StepFields, opened: Partial<PlanSetup> = {}): PlanScene =>
    createDiamond(opened, fields).then(dispatch("a"), startStep("a"), failStep("a"));

  it.each([1, 2, 3, 4])("after attempt %i waits as the recorded seed says", (attempt) => {
    const scene = createDiamond({}, { retryBudget: 5 });
    for (let number = 1; number < attempt; number += 1) {
      scene.then(dispatch("a", number), failStep("a", number));
      scene.passes(60_000);
    }
    scene.then(dispatch("a", attempt), failStep("a", attempt));
    const rule = { budget: 5, backoffMs: BACKOFF_MS };
    const { minMs, maxMs } = computeBackoffRange(rule, attempt);
    const { retryAtMs } = scene.last("step.failed").payload;
    const waitMs = retryAtMs! - timeAt(scene.nowMs);
    expect(waitMs).toBe(computeBackoffMs(rule, attempt, "seed:a"));
    expect(waitMs).toBeGreaterThanOrEqual(minMs);
    expect(waitMs).toBeLessThanOrEqual(maxMs);
  });

  it("is due at its time and not before, and the state says when", () => {
    const scene = createFailingScene({ retryBudget: 1 });
    const { retryAtMs } = scene.last("step.failed").payload;
    const dueMs = retryAtMs! - timeAt(0);
    expect(findNextDeadline(scene.state)).toBe(retryAtMs);
    expect(scene.plans(dueMs - 1)).toEqual(["runStep b 1"]);
    expect(scene.plans(dueMs)).toEqual(["runStep a 2", "runStep b 1"]);
    expect(scene.says(dispatch("a", 2), dueMs - 1)).toBe("NOT_READY");
    expect(scene.says(dispatch("a", 2), dueMs)).toBe("step.dispatched");
  });

  it("D4: is not given beyond the budget", () => {
    const scene = createFailingScene({ retryBudget: 2 }).then(dispatch("a", 2), failStep("a", 2));
    scene.passes(60_000);
    scene.then(dispatch("a", 3), failStep("a", 3));
    expect(scene.status("a")).toBe("failed");
    expect(scene.last("step.failed").payload).not.toHaveProperty("retryAtMs");
  });

  it("is not given where the input is not there, nor to what was cancelled", () => {
    const inputs = createDiamond({}, { retryBudget: 1 }).then(
      dispatch("a"),
      failStep("a", 1, "input_unavailable"),
    );
    expect(inputs.status("a")).toBe("failed");
    const cancelled = createDiamond({}, { retryBudget: 1 }).then(
      ...beginSteps("a"),
      cancel("a"),
      failStep("a"),
    );
    expect(cancelled.status("a")).toBe("failed");
  });

  it("has no report and no acknowledgement of the attempt before", () => {
    const scene = createDiamond({}, { retryBudget: 1 }).then(...beginSteps("a"), report("a"), failStep("a"));
    scene.then(dispatch("a", 2));
    expect(scene.step("a")).not.toHaveProperty("report");
    scene.then(finish("a", 2));
    expect(scene.last("step.completed").payload).not.toHaveProperty("output");
  });

  it("at once may be granted by a person, who does not add to the budget", () => {
    const scene = createFailingScene({ retryBudget: 1, backoffMs: 1_000_000 });
    expect(scene.says(dispatch("a", 2))).toBe("NOT_READY");
    scene.then(retry("a"), dispatch("a", 2), failStep("a", 2));
    expect(scene.status("a")).toBe("failed");
  });
});

describe("escalationPolicy hitl", () => {
  const createBlockedScene = (opened: Partial<PlanSetup> = {}): PlanScene =>
    createDiamond({ ...HITL, ...opened }).then(...beginSteps("a"), failStep("a"));

  it("asks when no attempt is left, and holds what waits for the step", () => {
    const scene = createBlockedScene();
    const answerByMs = timeAt(scene.nowMs + ESCALATE_MS);
    expect(scene.step("a").phase).toMatchObject({ status: "blocked", cause: "failed", answerByMs });
    expect(scene.last("coordination.escalated").payload).toEqual({
      escalationId: "escalation-1",
      stepId: "a",
      cause: "retries_exhausted",
      kind: "approval",
      deadlineAtMs: answerByMs,
      answers: ["approve", "deny"],
      onExpiry: "deny",
    });
    expect(scene.plans()).toEqual(["runStep b 1"]);
    expect(findNextDeadline(scene.state)).toBe(answerByMs);
  });

  it("says that time was the cause where it was", () => {
    const scene = createDiamond(HITL).then(...beginSteps("a"), runOut("a"));
    expect(scene.last("coordination.escalated").payload).toMatchObject({ cause: "deadline" });
  });

  it("lets a person grant one attempt more, as often as asked", () => {
    const scene = createBlockedScene();
    for (const attempt of [2, 3, 4]) {
      scene.then(retry("a"), dispatch("a", attempt), failStep("a", attempt));
      expect(scene.step("a").phase).toMatchObject({
        status: "blocked",
        escalationId: `escalation-${attempt}`,
      });
    }
    scene.then(retry(), dispatch("a", 5), finish("a", 5));
    expect(scene.status("a")).toBe("completed");
  });

  it("never grants an attempt whose number no event can hold", () => {
    const most = BOUNDS.retryBudgetMax + 1;
    const scene = createDiamond(HITL, { retryBudget: BOUNDS.retryBudgetMax, backoffMs: 1 });
    for (let attempt = 1; attempt <= most; attempt += 1) {
      scene.passes(BOUNDS.backoffMsMax);
      scene.then(dispatch("a", attempt), failStep("a", attempt));
    }
    expect(scene.status("a")).toBe("blocked");
    expect(scene.says(retry("a"))).toBe("NOTHING_TO_RETRY");
    for (const { type, payload } of scene.log)
      if (type === "step.dispatched") expect(FACT_PAYLOADS[type].safeParse(payload).success).toBe(true);
  });

  it("lets the step fail when nobody answers, and the plan ends as escalated", () => {
    const scene = createBlockedScene();
    const dueMs = scene.nowMs + ESCALATE_MS;
    expect(scene.plans(dueMs - 1)).not.toContain("expireQuestion");
    expect(scene.plans(dueMs)).toContain("expireQuestion");
    expect(scene.says(expire(), dueMs - 1)).toBe("NOT_READY");
    expect(scene.says(expire(), dueMs)).toBe("escalation.closed");
    expect(scene.status("a")).toBe("failed");
    scene.then(...beginSteps("b"), finish("b"), skip("c"));
    expect(endScene(scene)).toMatchObject({ status: "escalated" });
  });

  it("is stopped by the expiry under fail_fast", () => {
    const scene = createDiamond({ policy: { escalationPolicy: "hitl", timeoutPolicy: "fail_fast" } });
    scene.then(...beginSteps("a", "b"), failStep("a"));
    expect(scene.plans()).toEqual([]);
    scene.when(expire(), scene.nowMs + ESCALATE_MS);
    expect(scene.plans()).toEqual(["stopStep b 1", "skipSteps c"]);
  });

  it.each([
    ["the step", cancel("a")],
    ["the plan", cancel()],
  ])("ends the step as cancelled when a person cancels %s", (_, command) => {
    const scene = createBlockedScene().then(command);
    scene.when(skip("a"));
    expect(scene.status("a")).toBe("cancelled");
    expect(scene.last("escalation.closed").payload).toMatchObject({ resolution: "cancelled" });
  });

  it("does not ask longer than the plan runs", () => {
    const deadlineAtMs = timeAt(10_000);
    expect(createBlockedScene({ plan: { deadlineAtMs } }).step("a").phase).toMatchObject({
      answerByMs: deadlineAtMs,
    });
  });
});

describe("a deadline", () => {
  it("of an attempt is its time-out, cut to what the plan has left", () => {
    const scene = createDiamond().then(dispatch("a"));
    expect(scene.step("a").phase).toMatchObject({ deadlineAtMs: timeAt(scene.nowMs + PLAN_TIMEOUT_MS) });
    const short = createDiamond({ plan: { deadlineAtMs: timeAt(20_000) } }).then(dispatch("a"));
    expect(short.step("a").phase).toMatchObject({ deadlineAtMs: timeAt(20_000) });
  });

  it("of the plan lets nothing begin and nothing be tried again, and skips what waits", () => {
    const scene = createDiamond({ plan: { deadlineAtMs: timeAt(20_000) } }, { retryBudget: 5 });
    scene.then(...beginSteps("a"));
    expect(findNextDeadline(scene.state)).toBe(timeAt(20_000));
    expect(scene.plans(20_000)).toEqual(["skipSteps b,c"]);
    expect(scene.says(dispatch("b"), 20_000)).toBe("PLAN_STOPPED");
    expect(scene.says(skip("b", "c"), 20_000)).toBe("step.skipped step.skipped");
    expect(scene.says(runOut("a"), 20_000)).toBe("step.timed_out");
    expect(listFates(scene)).toEqual(["timed_out", "skipped", "skipped"]);
    expect(scene.step("b").phase).toMatchObject({ because: "deadline" });
  });

  it("of the plan ends a step in backoff as its last attempt ended", () => {
    const scene = createDiamond({ plan: { deadlineAtMs: timeAt(20_000) } }, { retryBudget: 5 });
    scene.then(...beginSteps("a"), runOut("a", 1, "runner"));
    scene.when(skip("a"), 20_000);
    expect(scene.status("a")).toBe("timed_out");
  });
});

describe("a stray", () => {
  it("is the child of an attempt that ran out of time; it is stopped, and the plan waits for that", () => {
    const scene = createDiamond().then(...beginSteps("a", "b"), runOut("a"), finish("b"), skip("c"));
    expect(scene.plans()).toEqual(["stopStray a 1"]);
    expect(scene.says(SETTLE_PLAN)).toBe("STEPS_OPEN");
    scene.then(stopChildOf("a"));
    expect(scene.last("step.child_stopped").payload).toMatchObject({
      stepId: "a",
      attempt: 1,
      childSessionKey: nameSessionOfAttempt("a"),
      outcome: "stopped",
    });
    expect(scene.plans()).toEqual(["endCoordination"]);
  });

  it("may be left of every attempt, also of one that was never acknowledged", () => {
    const scene = createDiamond({}, { retryBudget: 1 }).then(dispatch("a"), runOut("a"), dispatch("a", 2));
    scene.then(runOut("a", 2));
    expect(scene.plans().slice(0, 2)).toEqual(["stopStray a 1", "stopStray a 2"]);
    expect(scene.open.plan.strays.size).toBe(2);
  });

  it("is not left where the host itself says that time was up", () => {
    expect(
      createDiamond()
        .then(...beginSteps("a"), runOut("a", 1, "runner"))
        .plans(),
    ).not.toContain("stopStray a 1");
  });
});

describe("D3: a late outcome", () => {
  it("is recorded once for each attempt and kind, and changes nothing else", () => {
    const scene = createDiamond({}, { retryBudget: 1 }).then(
      ...beginSteps("a"),
      runOut("a"),
      dispatch("a", 2),
    );
    const { phase } = scene.step("a");
    expect(scene.says(finish("a"))).toBe("STALE_ATTEMPT step.outcome_refused");
    expect(scene.says(finish("a"))).toBe("STALE_ATTEMPT");
    expect(scene.says(report("a"))).toBe("STALE_ATTEMPT step.outcome_refused");
    expect(scene.says(report("a", 1, { output: createContentRef("other") }))).toBe("STALE_ATTEMPT");
    expect(scene.says(failStep("a"))).toBe("STALE_ATTEMPT step.outcome_refused");
    expect(scene.step("a").phase).toBe(phase);
    expect(scene.last("step.outcome_refused").payload).toEqual({
      stepId: "a",
      attempt: 1,
      outcome: "failed",
      because: "stale_attempt",
    });
    scene.then(finish("a", 2));
    expect(scene.says(failStep("a", 2))).toBe("STEP_ENDED step.outcome_refused");
    expect(scene.last("step.outcome_refused").payload).toMatchObject({ because: "step_ended" });
  });

  it("of an attempt that there never was is not recorded", () => {
    const scene = createDiamond().then(...beginSteps("a"), finish("a"));
    for (const attempt of [-1, 0, 2, 99]) expect(scene.says(failStep("a", attempt))).toBe("STALE_ATTEMPT");
  });

  it("is recorded at most so many times for one step", () => {
    const scene = createDiamond({}, { retryBudget: 50, backoffMs: 1 });
    for (let attempt = 1; attempt <= 20; attempt += 1) {
      scene.passes(BOUNDS.backoffMsMax);
      scene.then(dispatch("a", attempt), failStep("a", attempt));
    }
    for (let attempt = 1; attempt <= 20; attempt += 1) scene.when(finish("a", attempt));
    const refused = scene.log.filter(({ type }) => type === "step.outcome_refused");
    expect(refused).toHaveLength(BOUNDS.lateOutcomesPerStepMax);
  });
});
