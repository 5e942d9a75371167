import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { findNextDeadline } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { timeAt, MAIN, spawn, type stepId } from "./scene.ts";
import {
  admit,
  cancel,
  DELIVERY,
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
  nameSessionOfAttempt,
  SETTLE_PLAN,
  skip,
  startStep,
  TRIP,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";

const HITL = { escalationPolicy: "hitl" } as const;

/** Steps a, b and c that wait for nothing. */
function createThreeSteps(opened: Partial<PlanSetup> = {}, fields: StepFields = {}): PlanScene {
  const names = ["a", "b", "c"];
  return planScene(openPlan({ steps: 3, ...opened }), admit(...names.map((name) => planStep(name, fields))));
}
const runSteps = (...names: string[]): Command[] => names.flatMap((name) => [dispatch(name), finish(name)]);
const spawnBy = (name: string, call = "x"): Command =>
  spawn(call, { parentStepId: stepIdOf(name), sourceSession: nameSessionOfAttempt(name) });
const stepIdOf = (name: string): ReturnType<typeof stepId> => name as ReturnType<typeof stepId>;

describe("D6: a fan-in", () => {
  /** `x` waits for so many of the three. */
  const createFanIn = (count: number): PlanScene => {
    const after = ["a", "b", "c"];
    const steps = after.map((name) => planStep(name));
    return planScene(
      openPlan({ steps: 4 }),
      admit(...steps, planStep("x", { after, fanIn: count })),
      ...after.map((name) => dispatch(name)),
    );
  };
  const isReady = (scene: PlanScene): boolean => scene.plans().includes("runStep x 1");
  const isDoomed = (scene: PlanScene): boolean => scene.plans().includes("skipSteps x");

  it.each([
    [1, ["finish"], "ready"],
    [1, ["fail", "fail"], "waiting"],
    [1, ["fail", "fail", "finish"], "ready"],
    [1, ["fail", "fail", "fail"], "doomed"],
    [2, ["finish"], "waiting"],
    [2, ["finish", "finish"], "ready"],
    [2, ["fail"], "waiting"],
    [2, ["fail", "fail"], "doomed"],
    [2, ["finish", "fail", "finish"], "ready"],
    [3, ["finish", "finish"], "waiting"],
    [3, ["finish", "finish", "finish"], "ready"],
    [3, ["fail"], "doomed"],
  ])("of %i is, after %j, %s", (count, ends, expected) => {
    const scene = createFanIn(count);
    for (const [index, end] of ends.entries()) {
      const name = ["a", "b", "c"][index]!;
      scene.then(end === "finish" ? finish(name) : failStep(name));
    }
    expect([isReady(scene), isDoomed(scene)]).toEqual([expected === "ready", expected === "doomed"]);
    expect(scene.says(dispatch("x")).includes("step.dispatched")).toBe(expected === "ready");
  });

  it("that is met stays met, whatever becomes of the others", () => {
    const scene = createFanIn(1).then(finish("b"), failStep("a"), failStep("c"));
    expect(isReady(scene)).toBe(true);
    expect(isDoomed(scene)).toBe(false);
    expect(scene.says(skip("x"))).toBe("replay");
  });

  it("counts dependencies that ended before the step was admitted", () => {
    const scene = planScene(openPlan({ steps: 4 }), admit(planStep("a"), planStep("b")));
    scene.then(...runSteps("a"), dispatch("b"), failStep("b"));
    scene.then(
      admit(planStep("x", { after: ["a", "b"], fanIn: 1 }), planStep("y", { after: ["a", "b"], fanIn: 2 })),
    );
    expect(scene.plans()).toEqual(["skipSteps y", "runStep x 1"]);
  });

  it("that is lost takes everything behind it along", () => {
    const scene = planScene(openPlan({ steps: 3 }), admit(planStep("a")));
    scene.then(admit(planStep("b", { after: ["a"] }), planStep("c", { after: ["b"] })));
    scene.then(dispatch("a"), failStep("a"), skip("b"));
    expect(scene.plans()).toEqual(["skipSteps c"]);
  });

  it("is waited for by a step that was admitted before what it waits for", () => {
    const scene = planScene(openPlan({ steps: 2 }), admit(planStep("x", { after: ["a"] })));
    scene.then(admit(planStep("a")), ...runSteps("a"));
    expect(isReady(scene)).toBe(true);
  });
});

describe("L3: the dispatch of a step", () => {
  const findCause = (scene: PlanScene, name: string): unknown => {
    const event = scene.log.findLast(({ type, nodeId }) => type === "step.dispatched" && nodeId === name);
    const by = scene.log.find(({ eventId }) => eventId === event?.causationId);
    return by && `${by.type} ${by.nodeId ?? ""}`;
  };
  const x = planStep("x", { after: ["a", "b"], retryBudget: 1 });
  const createJoinedScene = (): PlanScene =>
    planScene(openPlan({ steps: 3 }), admit(planStep("a"), planStep("b"), x));

  it("is caused by the dependency that completed last", () => {
    const scene = createJoinedScene().then(dispatch("a"), ...runSteps("b"), finish("a"), dispatch("x"));
    expect(findCause(scene, "x")).toBe("step.completed a");
    expect(findCause(scene, "a")).toBe("step.admitted a");
    const other = createJoinedScene().then(...runSteps("a"), ...runSteps("b"), dispatch("x"));
    expect(findCause(other, "x")).toBe("step.completed b");
  });

  it("is not caused by an outcome that came too late", () => {
    const scene = createJoinedScene().then(...runSteps("a"), ...runSteps("b"));
    expect(scene.says(failStep("a"))).toBe("STEP_ENDED step.outcome_refused");
    scene.then(dispatch("x"));
    expect(findCause(scene, "x")).toBe("step.completed b");
  });

  it("is caused by its own admission, failure or grant where that came later", () => {
    const scene = planScene(openPlan({ steps: 3 }), admit(planStep("a"), planStep("b")));
    scene.then(...runSteps("a"), ...runSteps("b"), admit(x), dispatch("x"));
    expect(findCause(scene, "x")).toBe("step.admitted x");
    scene.then(failStep("x"), dispatch("x", 2));
    expect(findCause(scene, "x")).toBe("step.failed x");
  });
});

describe("the budget of a plan", () => {
  const createBudgetedScene = (
    budget: NonNullable<PlanSetup["plan"]>["budget"],
    policy: PlanSetup["policy"] = HITL,
  ) => createThreeSteps({ policy: { escalationPolicy: "none", ...policy }, plan: { budget } });

  it.each([
    [{ spawns: 1 }, finish("a")],
    [{ tokens: 100 }, finish("a", 1, { usage: { tokens: 100 } })],
    [{ tokens: 100 }, failStep("a", 1, "child_cancelled", { tokens: 100 })],
    [{ costMicroUsd: 5 }, finish("a", 1, { usage: { costMicroUsd: 7 } })],
    [{ wallMs: 3_000 }, finish("a")],
  ])("of %j that is spent stops what would begin, and people are asked: %o", (budget, end) => {
    const scene = createBudgetedScene(budget).then(dispatch("a"), end);
    expect(scene.plans()).toEqual(["tripBreaker"]);
    expect(scene.says(dispatch("b"))).toBe("BUDGET_SPENT");
    scene.then(TRIP);
    expect(scene.last("coordination.escalated").payload).toEqual({
      escalationId: "escalation-1",
      cause: "budget",
      kind: "approval",
      deadlineAtMs: timeAt(scene.nowMs + ESCALATE_MS),
      answers: ["approve", "deny"],
      onExpiry: "deny",
    });
    expect(scene.plans()).toEqual([]);
    expect(scene.says(TRIP)).toBe("replay");
    expect(findNextDeadline(scene.state)).toBe(timeAt(scene.nowMs - 1_000 + ESCALATE_MS));
  });

  it.each([
    [{ spawns: 2 }, finish("a")],
    [{ tokens: 101 }, finish("a", 1, { usage: { tokens: 100 } })],
    [{ tokens: 1 }, finish("a")],
    [{ wallMs: 60_000 }, finish("a")],
  ])("of %j that is not spent stops nothing: %o", (budget, end) => {
    expect(createBudgetedScene(budget).then(dispatch("a"), end).plans()).toEqual([
      "runStep b 1",
      "runStep c 1",
    ]);
  });

  it("is not asked about while nothing waits to begin", () => {
    const scene = planScene(openPlan({ steps: 1, plan: { budget: { spawns: 1 } } }), admit(planStep("a")));
    scene.then(dispatch("a"));
    expect(scene.plans()).toEqual([]);
    expect(scene.says(TRIP)).toBe("NOT_READY");
    expect(scene.then(finish("a")).plans()).toEqual(["endCoordination"]);
  });

  it("counts from where people let it go on", () => {
    const scene = createBudgetedScene({ spawns: 1 }).then(...runSteps("a"), TRIP, retry());
    expect(scene.last("escalation.closed").payload).toMatchObject({ resolution: "continued" });
    expect(scene.says(dispatch("b"))).toBe("step.dispatched");
    expect(scene.says(dispatch("c"))).toBe("BUDGET_SPENT");
    scene.then(TRIP, retry(), ...runSteps("c"));
    expect(scene.status("c")).toBe("completed");
  });

  it("of wall time counts from there, too", () => {
    const scene = createBudgetedScene({ wallMs: 10_000 }).then(...runSteps("a"));
    scene.passes(10_000);
    scene.then(TRIP, retry());
    const from = scene.nowMs;
    expect(scene.plans()).toEqual(["runStep b 1", "runStep c 1"]);
    expect(scene.plans(from + 9_999)).toEqual(["runStep b 1", "runStep c 1"]);
    expect(scene.plans(from + 10_000)).toEqual(["tripBreaker"]);
  });

  it("stops the plan when nobody answers, and the plan ends as escalated", () => {
    const scene = createBudgetedScene({ spawns: 1 }).then(...runSteps("a"), TRIP);
    const dueMs = scene.nowMs + ESCALATE_MS;
    expect(scene.plans(dueMs)).toEqual(["expireQuestion"]);
    expect(scene.says(expire(), dueMs)).toBe("escalation.closed");
    expect(scene.plans()).toEqual(["skipSteps b,c"]);
    scene.then(skip("b", "c"));
    expect(scene.step("b").phase).toMatchObject({ because: "budget" });
    scene.then(SETTLE_PLAN, ...runSteps(DELIVERY), SETTLE_PLAN);
    expect(scene.last("coordination.terminal").payload).toMatchObject({ status: "escalated" });
  });

  it("stops the plan at once where nobody is to be asked", () => {
    const scene = createBudgetedScene({ spawns: 1 }, {}).then(dispatch("a"));
    expect(scene.says(TRIP)).toBe("coordination.escalated escalation.closed");
    expect(scene.plans()).toEqual(["skipSteps b,c"]);
    expect(scene.status("a")).toBe("dispatched");
    scene.then(finish("a"), skip("b", "c"), SETTLE_PLAN, ...runSteps(DELIVERY), SETTLE_PLAN);
    expect(scene.last("coordination.terminal").payload).toMatchObject({ status: "partial" });
  });

  it("leaves no question open when the plan ends otherwise", () => {
    const scene = createBudgetedScene({ spawns: 1 }).then(...runSteps("a"), TRIP, cancel("b"), cancel("c"));
    scene.then(SETTLE_PLAN);
    expect(scene.open.escalations.every(({ closed }) => closed !== undefined)).toBe(true);
    scene.passes(ESCALATE_MS);
    scene.then(...runSteps(DELIVERY), SETTLE_PLAN);
    expect(scene.last("coordination.terminal").payload).toMatchObject({ status: "partial" });
  });

  it("counts what children spawn, and refuses them more in words for a model", () => {
    const scene = createBudgetedScene({ spawns: 2 }).then(dispatch("a"), startStep("a"));
    expect(scene.says(spawnBy("a", "1"))).toBe("step.admitted step.dispatched");
    expect(scene.when(spawnBy("a", "2"))).toMatchObject({
      code: "BUDGET_SPENT",
      reason: "the spawn budget of the plan is spent; finish without another subagent",
    });
    expect(scene.open.plan.spent.spawns).toBe(2);
    expect(scene.step("a").spent).toMatchObject({ spawns: 2 });
  });

  it("is not touched by telling the owner", () => {
    const scene = createBudgetedScene({ spawns: 3 }).then(
      ...runSteps("a"),
      ...runSteps("b"),
      ...runSteps("c"),
    );
    scene.then(SETTLE_PLAN, dispatch(DELIVERY), finish(DELIVERY, 1, { usage: { tokens: 9 } }));
    expect(scene.open.plan.spent).toEqual({ spawns: 3, tokens: 0, costMicroUsd: 0 });
  });
});

describe("the budget of a step", () => {
  const createLimitedScene = (budget: StepFields["budget"], fields: StepFields = {}): PlanScene =>
    createThreeSteps({ policy: HITL }, { retryBudget: 5, budget, ...fields });

  it.each([
    [{ spawns: 1 }, failStep("a")],
    [{ tokens: 100 }, failStep("a", 1, "child_failed", { tokens: 100 })],
    [{ costMicroUsd: 1 }, failStep("a", 1, "child_failed", { costMicroUsd: 1 })],
    [{ wallMs: 1_000 }, failStep("a")],
  ])("of %j that is spent asks rather than to try again: %o", (budget, end) => {
    const scene = createLimitedScene(budget).then(dispatch("a"), end);
    expect(scene.status("a")).toBe("blocked");
    expect(scene.last("coordination.escalated").payload).toMatchObject({ stepId: "a", cause: "budget" });
  });

  it("that is not spent lets it try again", () => {
    const scene = createLimitedScene({ spawns: 2, tokens: 101 }).then(dispatch("a"));
    scene.then(failStep("a", 1, "child_failed", { tokens: 100 }));
    expect(scene.status("a")).toBe("backoff");
  });

  it("of wall time ends an attempt", () => {
    const scene = createLimitedScene({ wallMs: 5_000 }).then(dispatch("a"));
    expect(scene.step("a").phase).toMatchObject({ deadlineAtMs: timeAt(scene.nowMs + 5_000) });
  });

  it("of wall time has no place for an attempt that would begin behind it", () => {
    const scene = createLimitedScene({ wallMs: 5_000 }, { backoffMs: 60_000 }).then(
      dispatch("a"),
      failStep("a"),
    );
    expect(scene.status("a")).toBe("blocked");
    expect(scene.last("coordination.escalated").payload).toMatchObject({ cause: "budget" });
  });

  it("of wall time begins anew for an attempt that a person grants", () => {
    const scene = createLimitedScene({ wallMs: 5_000 }).then(dispatch("a"));
    scene.passes(5_000);
    scene.then(runOut("a"), retry("a"), dispatch("a", 2));
    expect(scene.step("a").phase).toMatchObject({ deadlineAtMs: timeAt(scene.nowMs + 5_000) });
  });

  it("of spawns also holds for what its child spawns", () => {
    const scene = createLimitedScene({ spawns: 2 }).then(dispatch("a"), startStep("a"));
    expect(scene.says(spawnBy("a", "1"))).toBe("step.admitted step.dispatched");
    expect(scene.says(spawnBy("a", "2"))).toBe("BUDGET_SPENT");
  });
});

describe("a cancellation", () => {
  it("of the plan reaches all that runs and skips all that does not", () => {
    const scene = createThreeSteps({}, { agentId: MAIN }).then(
      ...runSteps("a"),
      dispatch("b"),
      startStep("b"),
      cancel(),
    );
    expect(scene.plans()).toEqual(["stopStep b 1", "skipSteps c"]);
    expect(scene.says(dispatch("c"))).toBe("PLAN_STOPPED");
    scene.then(
      skip("c"),
      failStep("b", 1, "child_cancelled"),
      SETTLE_PLAN,
      ...runSteps(DELIVERY),
      SETTLE_PLAN,
    );
    expect(scene.last("coordination.terminal").payload).toMatchObject({
      status: "cancelled",
      steps: { total: 3, completed: 1, cancelled: 1, skipped: 1 },
    });
  });

  it("of one step leaves the others alone", () => {
    const scene = createThreeSteps().then(dispatch("a"), startStep("a"), cancel("a"));
    expect(scene.plans()).toEqual(["stopStep a 1", "runStep b 1", "runStep c 1"]);
    scene.then(failStep("a", 1, "child_cancelled"));
    expect(scene.status("a")).toBe("cancelled");
  });

  it("does not take a success back", () => {
    const scene = createThreeSteps().then(
      ...runSteps("a"),
      ...runSteps("b"),
      dispatch("c"),
      cancel(),
      finish("c"),
    );
    scene.then(SETTLE_PLAN, ...runSteps(DELIVERY), SETTLE_PLAN);
    expect(scene.last("coordination.terminal").payload).toMatchObject({ status: "success" });
  });

  it("is not taken any more once the owner is being told how the plan ended", () => {
    const scene = createThreeSteps().then(
      ...runSteps("a"),
      ...runSteps("b"),
      dispatch("c"),
      failStep("c"),
      SETTLE_PLAN,
    );
    expect(scene.says(cancel())).toBe("COORDINATION_ENDED");
    scene.then(...runSteps(DELIVERY), SETTLE_PLAN);
    expect(scene.last("coordination.terminal").payload).toMatchObject({ status: "partial" });
  });
});
