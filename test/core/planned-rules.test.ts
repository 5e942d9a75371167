import { describe, expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  findReachedPlanLimit,
  hasIdleSteps,
  hasStoppedBeginning,
  hasWorkToBegin,
  isWorkedOff,
  type PlannedCoordination,
} from "../../src/agents/coordination/dispatch/plan-rules.ts";
import {
  admit,
  cancel,
  dispatch,
  failStep,
  finish,
  nameSessionOfAttempt,
  openPlan,
  planStep,
  planScene,
  retry,
  startStep,
  TRIP,
  HITL,
  type PlanSetup,
  type PlanScene,
} from "./planned-scene.ts";
import { OWNER, spawn, timeAt } from "./scene.ts";

const NOW = timeAt(20_000);
const ONE_STEP = [planStep("a", { retryBudget: 1 })];

/** A plan of these steps, of which `a` is at work. */
const openAtWork = (opened: Partial<PlanSetup> = {}, steps = ONE_STEP): PlanScene =>
  planScene(openPlan({ steps: steps.length, ...opened }), admit(...steps), dispatch("a"), startStep("a"));
const SPAWN_OF_A = spawn("own", {
  parentStepId: "a" as StepId,
  sourceSession: nameSessionOfAttempt("a"),
});

describe("the budget of a plan that people let go on", () => {
  it.each([
    ["tokens", { tokens: 100 }],
    ["costMicroUsd", { costMicroUsd: 100 }],
  ] as const)("counts the %s that were used since then", (name, budget) => {
    const steps = [...ONE_STEP, planStep("b"), planStep("c")];
    const scene = openAtWork({ ...HITL, plan: { budget } }, steps);
    scene.then(finish("a", 1, { usage: budget }));
    expect(findReachedPlanLimit(scene.open, NOW)).toBe(name);
    scene.then(TRIP, retry());
    expect(findReachedPlanLimit(scene.open, NOW)).toBeUndefined();
    scene.then(dispatch("b"), finish("b", 1, { usage: { [name]: 99 } }));
    expect(findReachedPlanLimit(scene.open, NOW)).toBeUndefined();
  });
});

describe("a step of a plan", () => {
  it("is idle where it waits or is tried again, and neither where it works nor where its child's spawn does", () => {
    expect(hasIdleSteps(planScene(openPlan({ steps: 1 }), admit(...ONE_STEP)).open)).toBe(true);
    const scene = openAtWork();
    expect(hasIdleSteps(scene.open)).toBe(false);
    scene.then(SPAWN_OF_A);
    expect(hasIdleSteps(scene.open)).toBe(false);
    expect(hasIdleSteps(scene.then(failStep("a")).open)).toBe(true);
  });

  it("is work to begin where it is ready or tried again, and not where it works or people are asked", () => {
    expect(hasWorkToBegin(planScene(openPlan({ steps: 1 }), admit(...ONE_STEP)).open)).toBe(true);
    const scene = openAtWork(HITL).then(SPAWN_OF_A);
    expect(hasWorkToBegin(scene.open)).toBe(false);
    scene.then(failStep("a"));
    expect([scene.status("a"), hasWorkToBegin(scene.open)]).toEqual(["backoff", true]);
    scene.passes(60_000);
    scene.then(dispatch("a", 2), failStep("a", 2));
    expect([scene.status("a"), hasWorkToBegin(scene.open)]).toEqual(["blocked", false]);
  });
});

describe("a plan is worked off", () => {
  const openFinished = (): PlannedCoordination => openAtWork().then(finish("a")).open;

  const leaveTelling = (state: PlannedCoordination): PlannedCoordination => ({
    ...state,
    tellings: state.tellings.set("answer:q-1", {
      tellingId: "answer:q-1",
      session: OWNER,
      sinceMs: NOW,
      of: { kind: "answer", escalationId: "q-1" },
    }),
  });

  it("also while a session waits to be told, where the attempt is over whose agent submitted it", () => {
    expect(isWorkedOff({ ...leaveTelling(openFinished()), cancelledBy: "parent" })).toBe(true);
    expect(isWorkedOff({ ...leaveTelling(openFinished()), cancelledBy: "operator" })).toBe(false);
  });

  it("when all its steps were admitted and ended", () => {
    expect(isWorkedOff(openFinished())).toBe(true);
    expect(isWorkedOff(openAtWork().open)).toBe(false);
    expect(isWorkedOff(openAtWork({ steps: 2 }).then(finish("a")).open)).toBe(false);
  });

  it.each<readonly [string, (state: PlannedCoordination) => PlannedCoordination]>([
    [
      "a worktree",
      (state) => ({
        ...state,
        worktrees: state.worktrees.set("a\n1", { stepId: "a" as StepId, attempt: 1 }),
      }),
    ],
    ["a session that waits to be told", leaveTelling],
    [
      "a child that may still be at work",
      (state) => {
        const stray = { stepId: "a" as StepId, attempt: 1, dispatchedAtMs: NOW };
        const strays = state.plan.strays.set(nameSessionOfAttempt("a"), stray);
        return { ...state, plan: { ...state.plan, strays } };
      },
    ],
  ])("not while %s is left", (_, leave) => {
    expect(isWorkedOff(leave(openFinished()))).toBe(false);
  });
});

describe("a plan begins nothing more but telling its owner", () => {
  const STEPS = [...ONE_STEP, planStep("b")];
  const withPlan = (change: Partial<PlannedCoordination["plan"]>): PlannedCoordination => {
    const { open } = openAtWork({}, STEPS);
    return { ...open, plan: { ...open.plan, ...change } };
  };

  it.each([
    ["people are asked about its budget", withPlan({ budgetQuestion: "q-1" })],
    ["people are asked whether it begins", withPlan({ decisionQuestion: "q-1" })],
    ["it has stopped", withPlan({ stop: "fail_fast" })],
    ["it was cancelled", openAtWork({}, STEPS).then(cancel()).open],
    ["its deadline has come", openAtWork({ plan: { deadlineAtMs: NOW } }, STEPS).open],
    ["its budget is spent", openAtWork({ plan: { budget: { spawns: 1 } } }, STEPS).open],
  ])("where %s", (_, state) => {
    expect(hasStoppedBeginning(state, NOW)).toBe(true);
  });

  it("but goes on where nothing of that is so", () => {
    const plan = { deadlineAtMs: timeAt(20_001), budget: { spawns: 2 } };
    expect(hasStoppedBeginning(openAtWork({ plan }, STEPS).open, NOW)).toBe(false);
    expect(hasStoppedBeginning(openAtWork({}, STEPS).open, NOW)).toBe(false);
  });
});
