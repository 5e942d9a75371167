import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import {
  createEventId,
  type CoordinationId,
  type StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import {
  admit,
  cancel,
  DELIVERY,
  dispatch,
  failStep,
  finish,
  nameSessionOfAttempt,
  openPlan,
  planStep,
  planScene,
  report,
  retry,
  SETTLE_PLAN,
  skip,
  startStep,
  stopChildOf,
  TRIP,
  HITL,
  type PlanSetup,
  type PlanScene,
} from "./planned-scene.ts";
import { acknowledge, createContentRef, OPEN, spawn, timeAt, describeReason } from "./scene.ts";

const NOTHING_TO_RETRY = "only a step that waits for people or for its next attempt can be tried again";

const openTwo = (opened: Partial<PlanSetup> = {}): PlanScene =>
  planScene(
    openPlan({ steps: 2, ...opened }),
    admit(planStep("a", { retryBudget: 1 }), planStep("b", { after: ["a"] })),
  );
const openAtWork = (opened: Partial<PlanSetup> = {}): PlanScene =>
  openTwo(opened).then(dispatch("a"), startStep("a"));

describe("a command about a plan is refused with the reason", () => {
  it.each<readonly [string, () => PlanScene, Command]>([
    ["TOO_MANY_STEPS: the plan has 2 steps, not 3", () => openTwo(), admit(planStep("b"), planStep("c"))],
    [
      "NOT_A_FORK: only a fork can carry results of another plan",
      () => planScene(openPlan({ steps: 2 })),
      admit(
        planStep("a"),
        planStep("b", { carried: { eventId: createEventId("co-0" as CoordinationId, 1) } }),
      ),
    ],
    ["UNKNOWN_STEP: there is no step x", () => openTwo(), dispatch("x")],
    [
      "STALE_ATTEMPT: attempt 3 of step a cannot begin: the next attempt is 1",
      () => openTwo(),
      dispatch("a", 3),
    ],
    ["NOT_READY: step b is waiting and may not begin yet", () => openTwo(), dispatch("b")],
    ["NOT_READY: step a is running and may not begin yet", () => openAtWork(), dispatch("a", 2)],
    ["STEP_ENDED: step a is completed", () => openAtWork().then(finish("a")), dispatch("a", 2)],
    ["PLAN_STOPPED: no further attempt may begin: cancelled", () => openTwo().then(cancel()), dispatch("a")],
    [
      "PLAN_STOPPED: no further attempt may begin: deadline",
      () => openTwo({ plan: { deadlineAtMs: timeAt(2_500) } }),
      dispatch("a"),
    ],
    [
      "BUDGET_SPENT: the plan's budget is spent: spawns",
      () => openAtWork({ plan: { budget: { spawns: 1 } } }).then(finish("a")),
      dispatch("b"),
    ],
    [
      "BUDGET_SPENT: the plan's budget is spent: open question",
      () => openAtWork({ ...HITL, plan: { budget: { spawns: 1 } } }).then(finish("a"), TRIP),
      dispatch("b"),
    ],
    ["UNKNOWN_STEP: there is no step x", () => openTwo(), report("x")],
    ["UNKNOWN_STEP: there is no step x", () => openTwo(), retry("x")],
    ["PLAN_STOPPED: no further attempt may begin: cancelled", () => openTwo().then(cancel()), retry()],
    [`NOTHING_TO_RETRY: step a is waiting; ${NOTHING_TO_RETRY}`, () => openTwo(), retry("a")],
    [`NOTHING_TO_RETRY: no step waits; ${NOTHING_TO_RETRY}`, () => openTwo(), retry()],
    ["UNKNOWN_STEP: there is no step x", () => openTwo(), cancel("x")],
    ["STEP_ENDED: step a is completed", () => openAtWork().then(finish("a")), cancel("a")],
    [
      "COORDINATION_ENDED: all steps of the plan have ended, and its owner is being told the result",
      () => openAtWork({ steps: 2 }).then(finish("a"), dispatch("b"), finish("b"), SETTLE_PLAN),
      cancel(),
    ],
    ["NOT_READY: the budget of the plan is not spent yet", () => openTwo(), TRIP],
  ])("%s", (reason, open, command) => {
    expect(describeReason(open().when(command))).toBe(reason);
  });

  it("where people were asked whether the plan is to begin", () => {
    const { open } = openTwo();
    const doubted = { ...open, plan: { ...open.plan, decisionQuestion: "q-1" } };
    expect(describeReason(decide(doubted, dispatch("a"), timeAt(9_000)))).toBe(
      "NOT_READY: people were asked whether the plan is to begin, and have not answered",
    );
  });

  it("where it would begin a spawn of a model", () => {
    const observed = planScene(OPEN, spawn("a"), acknowledge(1));
    expect(describeReason(observed.when(dispatch("step-1", 2)))).toBe(
      "NOT_READY: step step-1 is running, and only the model that asked for a spawn can start it",
    );
  });
});

describe("a command about a plan that is there already is a replay", () => {
  it.each<readonly [string, () => PlanScene, Command]>([
    ["an admission", () => openTwo(), admit(planStep("a"))],
    ["a dispatch", () => openAtWork(), dispatch("a")],
    ["a report", () => openAtWork().then(report("a")), report("a")],
    ["a stop of a child that is none", () => openAtWork(), stopChildOf("a")],
    ["a skip of what need not be skipped", () => openTwo(), skip("a", "b", "x")],
    ["a retry that is due", () => openAtWork().then(failStep("a")), retry("a")],
    ["a cancellation", () => openAtWork().then(cancel()), cancel()],
    ["a cancellation of a step", () => openAtWork().then(cancel("a")), cancel("a")],
    ["a breaker of what has stopped", () => openTwo().then(cancel()), TRIP],
  ])("%s", (_, open, command) => {
    const scene = open();
    if (command.type === "retryStep") scene.passes(60_000);
    expect(scene.says(command)).toBe("replay");
  });
});

describe("a report", () => {
  it.each([
    ["of another outcome", { outcome: "failed" }],
    ["of another output", { output: createContentRef("x") }],
    ["of another confidence", { confidence: 5_000 }],
  ] as const)("%s is another report", (_, rest) => {
    expect(
      openAtWork()
        .then(report("a"))
        .says(report("a", 1, rest)),
    ).toBe("step.reported");
  });

  it("that came too late is recorded as that, and changes nothing", () => {
    const scene = openAtWork().then(finish("a"));
    expect(scene.says(report("a"))).toBe("STEP_ENDED step.outcome_refused");
    expect(scene.last("step.outcome_refused").payload).toMatchObject({ attempt: 1, outcome: "reported" });
  });

  it("is taken before its child is heard of, and so often and no more", () => {
    const scene = openTwo().then(dispatch("a"));
    for (let number = 0; number < BOUNDS.reportsPerAttemptMax; number += 1)
      scene.then(report("a", 1, { output: createContentRef(String.fromCodePoint(65 + number)) }));
    expect(describeReason(scene.when(report("a")))).toBe(
      "TOO_MANY_REPORTS: there are enough reports of this attempt; the newest one counts, so end your turn",
    );
  });
});

describe("an attempt of a plan's step", () => {
  it("has its own time, less where the plan ends before, and the delivery has all of it", () => {
    const readDeadline = (scene: PlanScene, name: string): unknown =>
      scene.last("step.dispatched").payload.stepId === name &&
      scene.last("step.dispatched").payload.deadlineAtMs;
    const whole = openTwo({ plan: { deadlineAtMs: timeAt(900_000) } }).then(dispatch("a"));
    expect(readDeadline(whole, "a")).toBe(timeAt(whole.nowMs + 60_000));
    const cut = openTwo({ plan: { deadlineAtMs: timeAt(9_000) } }).then(dispatch("a"));
    expect(readDeadline(cut, "a")).toBe(timeAt(9_000));
    cut.then(startStep("a"), finish("a"), dispatch("b"), finish("b"), SETTLE_PLAN, dispatch(DELIVERY));
    expect(readDeadline(cut, DELIVERY)).toBe(timeAt(cut.nowMs + 600_000));
  });

  it("knows its session, and its message and gateway where there are such", () => {
    const plain = openTwo().then(dispatch("a")).last("step.dispatched").payload;
    expect(Object.keys(plain)).toEqual([
      "stepId",
      "attempt",
      "lane",
      "idempotencyKey",
      "deadlineAtMs",
      "targetSession",
    ]);
    expect(plain).toMatchObject({ idempotencyKey: "co-1:a:1", targetSession: nameSessionOfAttempt("a") });
    const more = { message: createContentRef("m"), gateway: "gateway-1" };
    expect(
      openTwo()
        .then({ ...dispatch("a"), ...more } as Command)
        .last("step.dispatched").payload,
    ).toMatchObject(more);
  });
});

describe("a step that somebody cancels alone", () => {
  it.each<readonly [string, () => PlanScene, string]>([
    ["is skipped where it waits", () => openTwo(), "coordination.cancel_requested step.skipped"],
    [
      "ends where its next attempt is due later",
      () => openAtWork().then(failStep("a")),
      "coordination.cancel_requested step.skipped",
    ],
    [
      "ends with its question where people are asked",
      () => openAtWork(HITL).then(failStep("a", 1, "input_unavailable")),
      "coordination.cancel_requested escalation.closed",
    ],
    ["is stopped by its runner where it works", () => openAtWork(), "coordination.cancel_requested"],
  ])("%s", (_, open, facts) => {
    expect(open().says(cancel("a"))).toBe(facts);
  });

  it("says who closed the question", () => {
    const scene = openAtWork(HITL).then(failStep("a", 1, "input_unavailable"), cancel("a"));
    expect(scene.last("escalation.closed").payload).toEqual({
      escalationId: "escalation-1",
      resolution: "cancelled",
      by: "operator",
    });
  });
});

describe("the breaker of a plan", () => {
  it("stops it at once where nobody is to be asked, with a question that is closed", () => {
    const scene = openAtWork({ plan: { budget: { spawns: 1 } } }).then(finish("a"), TRIP);
    expect(scene.last("coordination.escalated").payload).toEqual({
      escalationId: "escalation-1",
      cause: "budget",
      kind: "approval",
      deadlineAtMs: timeAt(scene.nowMs),
    });
    expect(scene.last("escalation.closed").payload).toEqual({
      escalationId: "escalation-1",
      resolution: "cancelled",
    });
    expect(scene.open.plan.stop).toBe("budget");
  });
});

describe("a retry that a person grants", () => {
  it("is of what waits for its next attempt, and of what waits for people, whose question it closes", () => {
    const scene = openAtWork(HITL).then(failStep("a"));
    expect(scene.says(retry(), scene.nowMs + 1)).toBe("step.retry_granted");
    expect(scene.last("step.retry_granted").payload).toEqual({ stepId: "a" as StepId, by: "operator" });
    const blocked = openAtWork(HITL).then(failStep("a", 1, "input_unavailable"));
    expect(blocked.says(retry("a"))).toBe("escalation.closed step.retry_granted");
    expect(blocked.last("escalation.closed").payload).toEqual({
      escalationId: "escalation-1",
      resolution: "retried",
      by: "operator",
    });
  });

  it("is of the next steps where one append could not hold all, though none that was granted has begun", () => {
    const { stepsPerAppendMax } = BOUNDS;
    const names = Array.from({ length: stepsPerAppendMax * 2 + 1 }, (_, index) => `s${index}`);
    const scene = planScene(openPlan({ steps: names.length, ...HITL }));
    for (let from = 0; from < names.length; from += stepsPerAppendMax)
      scene.then(admit(...names.slice(from, from + stepsPerAppendMax).map((name) => planStep(name))));
    for (const name of names) scene.then(dispatch(name), startStep(name), failStep(name));
    const countBlocked = (): number => names.filter((name) => scene.status(name) === "blocked").length;
    expect(countBlocked()).toBe(names.length);
    scene.then(retry());
    expect(countBlocked()).toBe(stepsPerAppendMax + 1);
    scene.then(retry());
    expect(countBlocked()).toBe(1);
    scene.then(retry());
    expect(countBlocked()).toBe(0);
    expect(scene.says(retry())).toBe("replay");
  });
});
