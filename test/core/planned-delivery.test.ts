import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { findNextDeadline } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { timeAt, OWNER } from "./scene.ts";
import {
  admit,
  cancel,
  DELIVERY,
  dispatch,
  finish,
  failStep,
  openPlan,
  planStep,
  planScene,
  runOut,
  SETTLE_PLAN,
  startStep,
  type PlanSetup,
  type PlanScene,
} from "./planned-scene.ts";

const createWorkedScene = (opened: Partial<PlanSetup> = {}): PlanScene =>
  planScene(openPlan({ steps: 1, ...opened }), admit(planStep("a")), dispatch("a"), finish("a"));
const createTellingScene = (opened: Partial<PlanSetup> = {}): PlanScene =>
  createWorkedScene(opened).then(SETTLE_PLAN, dispatch(DELIVERY));

describe("telling the owner", () => {
  it("is a step like any other, admitted when all else has ended", () => {
    const scene = createWorkedScene();
    expect(scene.plans()).toEqual(["endCoordination"]);
    scene.then(SETTLE_PLAN);
    expect(scene.step(DELIVERY).spec).toMatchObject({
      lane: "control",
      runner: "owner",
      sourceSession: OWNER,
      deliveryMode: "at_least_once",
    });
    expect(scene.plans()).toEqual([`runStep ${DELIVERY} 1`]);
    expect(scene.says(SETTLE_PLAN)).toBe("STEPS_OPEN");
  });

  it("is not admitted before all steps of the plan are", () => {
    const scene = planScene(openPlan({ steps: 2 }), admit(planStep("a")), dispatch("a"), finish("a"));
    expect(scene.says(SETTLE_PLAN)).toBe("STEPS_OPEN");
    expect(scene.plans()).toEqual(["admitSteps"]);
  });

  it.each([
    ["a cancelled plan", cancel()],
    ["a plan that was cancelled before it began", cancel("a")],
  ])("is held back by nothing in %s", (_, command) => {
    const scene = planScene(openPlan({ steps: 1 }), admit(planStep("a")), command);
    scene.when({ type: "skipSteps", stepIds: [scene.step("a").spec.stepId] });
    scene.then(SETTLE_PLAN, dispatch(DELIVERY), startStep(DELIVERY), finish(DELIVERY), SETTLE_PLAN);
    expect(scene.last("coordination.terminal").payload).toMatchObject({ delivery: "delivered" });
  });

  it("is not held back by a deadline that has passed, nor cut to it", () => {
    const scene = createWorkedScene({
      plan: { deadlineAtMs: timeAt(5_000), budget: { spawns: 1, wallMs: 5_000 } },
    });
    scene.passes(60_000);
    scene.then(SETTLE_PLAN, dispatch(DELIVERY));
    expect(scene.step(DELIVERY).phase).toMatchObject({ deadlineAtMs: timeAt(scene.nowMs + 600_000) });
  });

  it("leaves the owner free to spawn: its session is no child of the plan", () => {
    expect(createTellingScene().then(startStep(DELIVERY)).open.children.has(OWNER)).toBe(false);
  });
});

describe("what became of telling the owner", () => {
  const describeOutcome = (...ends: Command[]): unknown => {
    const scene = createTellingScene().then(...ends, SETTLE_PLAN);
    return scene.last("coordination.terminal").payload.delivery;
  };

  it("is that it was told", () => {
    expect(describeOutcome(finish(DELIVERY))).toBe("delivered");
    expect(describeOutcome(startStep(DELIVERY), finish(DELIVERY))).toBe("delivered");
  });

  it("is that it was not told where its turn was cancelled before it had the message", () => {
    expect(describeOutcome(failStep(DELIVERY, 1, "child_cancelled"))).toBe("not_delivered");
  });

  it("is unknown where nobody can say", () => {
    expect(describeOutcome(runOut(DELIVERY))).toBe("unknown");
    expect(describeOutcome(startStep(DELIVERY), runOut(DELIVERY, 1, "runner"))).toBe("unknown");
    expect(describeOutcome(startStep(DELIVERY), failStep(DELIVERY, 1, "child_lost"))).toBe("unknown");
  });

  it.each([
    ["spawn_refused", []],
    ["spawn_not_confirmed", []],
    ["child_failed", [startStep(DELIVERY)]],
  ] as const)("is tried again after %s, five times, and then that it was not told", (code, begun) => {
    const scene = createTellingScene().then(...begun);
    for (let attempt = 1; attempt <= 6; attempt += 1) {
      scene.then(failStep(DELIVERY, attempt, code));
      const { retryAtMs } = scene.last("step.failed").payload;
      if (attempt === 6) break;
      expect(retryAtMs).toBeDefined();
      scene.passes(120_000);
      scene.then(dispatch(DELIVERY, attempt + 1));
    }
    scene.then(SETTLE_PLAN);
    expect(scene.last("coordination.terminal").payload.delivery).toBe("not_delivered");
  });

  it.each([
    [failStep(DELIVERY, 1, "child_lost")],
    [failStep(DELIVERY, 1, "child_cancelled")],
    [runOut(DELIVERY)],
    [runOut(DELIVERY, 1, "runner")],
  ])("is never tried again where the message may have been passed on: %o", (end) => {
    const scene = createTellingScene().then(startStep(DELIVERY), end);
    expect(scene.open.openSteps.size).toBe(0);
    expect(scene.plans(scene.nowMs + 1e9)).toEqual(["endCoordination"]);
    expect(scene.says(dispatch(DELIVERY, 2))).toBe("STEP_ENDED");
  });

  it("is looked after in time though the deadline or the wall time of the plan has passed", () => {
    for (const plan of [{ deadlineAtMs: timeAt(5_000) }, { budget: { wallMs: 5_000 } }]) {
      const scene = createWorkedScene({ plan });
      scene.passes(10_000);
      scene.then(SETTLE_PLAN, dispatch(DELIVERY), failStep(DELIVERY, 1, "spawn_refused"));
      const { retryAtMs } = scene.last("step.failed").payload;
      expect(findNextDeadline(scene.state)).toBe(retryAtMs);
      expect(scene.plans()).toEqual([]);
      expect(scene.plans(retryAtMs! - timeAt(0))).toEqual([`runStep ${DELIVERY} 2`]);
    }
  });

  it("never stops a plan that fails fast, nor asks people", () => {
    const policy = { timeoutPolicy: "fail_fast", escalationPolicy: "hitl" } as const;
    const scene = createTellingScene({ policy }).then(failStep(DELIVERY, 1, "child_cancelled"));
    expect(scene.open.escalations.size).toBe(0);
    scene.then(SETTLE_PLAN);
    expect(scene.last("coordination.terminal").payload).toMatchObject({
      status: "success",
      delivery: "not_delivered",
    });
  });
});
