/** Owns: what is due of spawns: which are asked about, stopped or continued, when, and with which ids. */
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Capacity } from "../../src/agents/coordination/dispatch/effects/capacity.ts";
import { isContinuedByUs } from "../../src/agents/coordination/dispatch/effects/followed-steps.ts";
import {
  findNextDeadline,
  mustStopSpawn,
  planDispatch,
  planRecovery,
} from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import type { PlannedCoordination } from "../../src/agents/coordination/dispatch/plan-rules.ts";
import { createAsk, createContest, createContestant, createHolder, NOTES, request } from "./claims-scene.ts";
import {
  ask,
  CHECKING,
  createHeldSpawn,
  createRunningScene,
  createSpawnedScene,
  DOUBTING,
  finishDone,
  ruleVerdict,
} from "./gates-scene.ts";
import {
  cancel,
  dispatch,
  failStep,
  finish,
  nameSessionOfAttempt,
  planScene,
  planStep,
  retry,
  runOut,
  startStep,
  TRIP,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";
import {
  acknowledge,
  ACKNOWLEDGE_MS,
  complete,
  fail,
  nameChild,
  OPEN,
  SETTLE_MS,
  spawn,
  stepId,
  timeAt,
  TIMEOUT_MS,
} from "./scene.ts";

const dispatchAgain: Command = { ...dispatch("step-1", 2), targetSession: nameChild(1) } as Command;

/** A spawn whose result goes back to its agent. */
function openRevised(): PlanScene {
  const scene = createHeldSpawn(CHECKING);
  return scene.then(ruleVerdict(scene, "step-1", "revise"));
}
const listIds = (scene: PlanScene, ms = scene.nowMs): string[] =>
  scene.effects(ms).map((each) => each.effectId);

describe("a spawn of a model", () => {
  it("is stopped while it runs and somebody cancelled it, alone or with all", () => {
    for (const command of [cancel("step-1"), cancel()]) {
      const scene = planScene(OPEN, spawn("a"), acknowledge(1), command);
      expect(scene.effects()).toEqual([
        { kind: "stopObserved", effectId: "co-1:step-1:1:stop", stepId: "step-1", attempt: 1 },
      ]);
      expect(planRecovery(scene.state, timeAt(scene.nowMs))).toContainEqual(scene.effects()[0]);
      expect(findNextDeadline(scene.state)).toBe(timeAt(scene.nowMs));
    }
  });

  it("is not stopped before its child is known", () => {
    const scene = planScene(OPEN, spawn("a"), cancel("step-1"));
    expect(scene.plans()).toEqual([]);
    expect(findNextDeadline(scene.state)).toBe(timeAt(2_000 + ACKNOWLEDGE_MS));
  });

  it("is not asked about while its result is held, nor when it goes back to its agent", () => {
    const late = 10 * TIMEOUT_MS;
    expect(createHeldSpawn(DOUBTING, 100).plans(late)).toEqual([]);
    expect(openRevised().plans(late)).toEqual(["runStep step-1 2"]);
    const recovered = planRecovery(createHeldSpawn(DOUBTING, 100).state, timeAt(late));
    expect(recovered.filter(({ kind }) => kind === "askHost")).toEqual([]);
  });

  it("that waits for people has no time of its own", () => {
    const scene = createHeldSpawn(DOUBTING, 100);
    const { deadlineAtMs } = scene.last("coordination.escalated").payload;
    expect(findNextDeadline(scene.state)).toBe(deadlineAtMs);
  });
});

describe("a spawn whose result goes back to its agent", () => {
  it("is continued by us from then on: the next attempt at once, and that one until it has ended", () => {
    const scene = openRevised();
    const { phase } = scene.step("step-1");
    const next = {
      kind: "runStep",
      effectId: "co-1:step-1:2:run",
      stepId: "step-1",
      attempt: 2,
      lane: "data",
    };
    expect(phase.status === "backoff" && phase.retryAtMs).toBe(timeAt(scene.nowMs));
    expect(scene.effects()).toEqual([{ ...next, readyAtMs: timeAt(scene.nowMs) }]);
    const { admittedAtMs } = scene.step("step-1");
    for (const command of [dispatchAgain, acknowledge(1, 1, 2)]) {
      scene.then(command);
      expect(scene.effects()).toEqual([{ ...next, readyAtMs: admittedAtMs }]);
      expect(planRecovery(scene.state, timeAt(scene.nowMs))).toEqual(scene.effects());
    }
    scene.then(complete(1, 2));
    expect(scene.plans()).toEqual(["verifyResult step-1 2"]);
  });

  it("is due at once, and not when its first attempt was to end", () => {
    const scene = openRevised();
    expect(findNextDeadline(scene.state)).toBe(timeAt(scene.nowMs));
  });

  it("is continued once: what is under way is left out", () => {
    const scene = openRevised();
    const createCapacity = (name: string): Capacity => ({
      room: { control: 1, data: 1, escalation: 1 },
      agingMs: 1_000,
      isUnderway: (effectId) => effectId === name,
    });
    const planWith = (name: string) => planDispatch(scene.state, timeAt(scene.nowMs), createCapacity(name));
    expect(planWith("co-1:step-1:2:run")).toEqual([]);
    expect(planWith("co-1:step-1:1:run")).toHaveLength(1);
  });

  it("is not continued where somebody cancelled it meanwhile", () => {
    const scene = openRevised().then(dispatchAgain, acknowledge(1, 1, 2), cancel("step-1"));
    expect(scene.plans()).toEqual(["stopObserved step-1 2"]);
  });

  it("is told from spawns that the model itself follows", () => {
    const scene = createSpawnedScene(CHECKING);
    expect(isContinuedByUs(scene.step("step-1"))).toBe(false);
    scene.then(complete(1));
    scene.then(ruleVerdict(scene, "step-1", "revise"));
    expect(isContinuedByUs(scene.step("step-1"))).toBe(true);
    scene.then(dispatchAgain);
    expect(isContinuedByUs(scene.step("step-1"))).toBe(true);
    scene.then(complete(1, 2));
    expect(isContinuedByUs(scene.step("step-1"))).toBe(false);
    const planned = createRunningScene(CHECKING).then(finishDone("a"));
    planned.then(ruleVerdict(planned, "a", "revise"));
    expect(isContinuedByUs(planned.step("a"))).toBe(false);
  });
});

describe("what a child of a plan spawned", () => {
  const SPAWNED = "@step-2" as StepId;

  /** A plan whose step `a` is at work, and whose agent has a spawn with a gate, which runs. */
  function openParent(
    fields: StepFields = {},
    others: readonly ReturnType<typeof planStep>[] = [],
  ): PlanScene {
    const scene = createRunningScene(CHECKING, { fields, others }).then(
      spawn("x", { gate: CHECKING, parentStepId: "a" as StepId, sourceSession: nameSessionOfAttempt("a") }),
    );
    const spawned = [...scene.open.steps.keys()].at(-1) ?? SPAWNED;
    return scene.then({ ...acknowledge(1, "x"), stepId: spawned } as Command);
  }
  const isStopped = (scene: PlanScene): boolean => {
    const spawned = [...scene.open.steps.values()].find(({ spec }) => !spec.planned);
    return spawned !== undefined && mustStopSpawn(scene.open, spawned, timeAt(scene.nowMs));
  };

  it("is let alone while its parent works, waits for a ruling or goes on in the same session", () => {
    const scene = openParent();
    expect(isStopped(scene)).toBe(false);
    scene.then(finishDone("a"));
    expect([scene.status("a"), isStopped(scene)]).toEqual(["held", false]);
    scene.then(ruleVerdict(scene, "a", "revise"));
    expect([scene.status("a"), isStopped(scene)]).toEqual(["backoff", false]);
    const again = { ...dispatch("a", 2), targetSession: nameSessionOfAttempt("a") } as Command;
    scene.then(again);
    expect([scene.status("a"), isStopped(scene)]).toEqual(["dispatched", false]);
    scene.then(startStep("a", 2, nameSessionOfAttempt("a")));
    expect([scene.status("a"), isStopped(scene)]).toEqual(["running", false]);
  });

  it("is stopped where its parent is tried again, from the wait on, and where another attempt works", () => {
    const scene = openParent({ retryBudget: 1 }).then(failStep("a"));
    expect([scene.status("a"), isStopped(scene)]).toEqual(["backoff", true]);
    scene.passes(60_000);
    scene.then(dispatch("a", 2));
    expect([scene.status("a"), isStopped(scene)]).toEqual(["dispatched", true]);
    scene.then(startStep("a", 2));
    expect([scene.status("a"), isStopped(scene)]).toEqual(["running", true]);
  });

  it.each<readonly [string, Command]>([
    ["failed", failStep("a")],
    ["cancelled", failStep("a", 1, "child_cancelled")],
    ["timed_out", runOut("a")],
  ])("is stopped where its parent has %s", (status, end) => {
    const scene = openParent().then(end);
    expect([scene.status("a"), isStopped(scene)]).toEqual([status, true]);
  });

  it("is stopped where people are asked about its parent", () => {
    const scene = createRunningScene(
      { threshold: 0 },
      { opened: { policy: { escalationPolicy: "hitl" } } },
    ).then(spawn("x", { parentStepId: "a" as StepId, sourceSession: nameSessionOfAttempt("a") }));
    const spawned = [...scene.open.steps.keys()].at(-1) ?? SPAWNED;
    scene.then({ ...acknowledge(1, "x"), stepId: spawned } as Command, failStep("a"));
    expect([scene.status("a"), isStopped(scene)]).toEqual(["blocked", true]);
  });

  it("goes on where its parent completed", () => {
    const scene = openParent().then(finishDone("a"));
    scene.then(ruleVerdict(scene, "a", "pass"));
    expect([scene.status("a"), isStopped(scene)]).toEqual(["completed", false]);
  });

  it("goes back to its agent while the plan goes on, and not once it has stopped", () => {
    const scene = openParent();
    const spawned = [...scene.open.steps.keys()].at(-1) ?? SPAWNED;
    scene.then({ ...complete(1), stepId: spawned } as Command);
    scene.then(ruleVerdict(scene, spawned, "revise"));
    expect(scene.plans()).toContain(`runStep ${spawned} 2`);
    const stopped: PlannedCoordination = { ...scene.open, plan: { ...scene.open.plan, stop: "budget" } };
    expect(planDispatch(stopped, timeAt(scene.nowMs)).filter(({ kind }) => kind === "runStep")).toEqual([]);
    scene.then({ ...dispatch(spawned, 2), targetSession: nameChild("x") } as Command);
    const working: PlannedCoordination = { ...scene.open, plan: { ...scene.open.plan, stop: "budget" } };
    const kinds = planDispatch(working, timeAt(scene.nowMs)).filter(({ kind }) => kind === "runStep");
    expect(kinds).toMatchObject([{ stepId: spawned, attempt: 2 }]);
  });

  it("is due at its own time while people are asked about the plan, unless it waits to go on", () => {
    const scene = openParent();
    const spawned = [...scene.open.steps.keys()].at(-1) ?? SPAWNED;
    const askAbout = (state: PlannedCoordination, question: "budgetQuestion" | "decisionQuestion") => ({
      ...state,
      plan: { ...state.plan, [question]: "escalation-9" },
    });
    const dueAtMs = findNextDeadline(scene.state);
    expect(dueAtMs).toBeDefined();
    for (const question of ["budgetQuestion", "decisionQuestion"] as const)
      expect(findNextDeadline(askAbout(scene.open, question))).toBe(dueAtMs);
    scene.then({ ...complete(1), stepId: spawned } as Command);
    scene.then(ruleVerdict(scene, spawned, "revise"));
    expect(findNextDeadline(scene.state)).toBe(timeAt(scene.nowMs));
    for (const question of ["budgetQuestion", "decisionQuestion"] as const)
      expect(findNextDeadline(askAbout(scene.open, question))).toBeUndefined();
  });
});

describe("what an observed child spawned", () => {
  const openNested = (...more: readonly Command[]): PlanScene =>
    planScene(
      OPEN,
      spawn("a"),
      acknowledge(1),
      spawn("b", { parentStepId: stepId(1), sourceSession: nameChild(1) }),
      acknowledge(2),
      ...more,
    );

  it("outlives it, unless it was cancelled", () => {
    expect(openNested().plans()).toEqual([]);
    expect(openNested(fail(1)).plans()).toEqual([]);
    expect(openNested(complete(1)).plans()).toEqual([]);
    expect(openNested(fail(1, "child_cancelled")).plans()).toEqual(["stopObserved step-2 1"]);
  });
});

describe("a coordination without open steps", () => {
  it("ends after a quiet time, which hides nothing and is not hidden", () => {
    const scene = planScene(OPEN, spawn("a"), acknowledge(1), complete(1));
    const endsMs = scene.nowMs + SETTLE_MS;
    expect(findNextDeadline(scene.state)).toBe(timeAt(endsMs));
    expect(findNextDeadline(scene.state, timeAt(endsMs))).toBe(timeAt(endsMs));
    expect([listIds(scene, endsMs - 1), listIds(scene, endsMs)]).toEqual([[], ["co-1:end"]]);
  });

  it("waits for the answers to its questions, unless it was cancelled", () => {
    const open = (...more: readonly Command[]): PlanScene =>
      planScene(OPEN, spawn("a"), acknowledge(1), ask(), complete(1), ...more);
    const scene = open();
    expect(scene.plans(scene.nowMs + SETTLE_MS)).toEqual([]);
    const cancelled = planScene(OPEN, spawn("a"), acknowledge(1), ask(), cancel(), complete(1));
    expect(cancelled.plans(cancelled.nowMs + SETTLE_MS)).toEqual(["endCoordination"]);
  });
});

describe("at the start of the runtime", () => {
  it("reviews that are overdue are closed, and the others are waited for", () => {
    const reviewed = createAsk(NOTES, 4, {
      contest: createContest([createContestant(1, 4), createHolder(2, 3)], {
        strategy: "manual_review",
        reviewByMs: timeAt(40_000),
      }),
    });
    const scene = planScene(OPEN, spawn("a"), acknowledge(1), spawn("b"), acknowledge(2));
    scene.then(request(2, createAsk(NOTES, 3)), request(1, reviewed));
    const recover = (ms: number): string[] =>
      planRecovery(scene.state, timeAt(ms)).flatMap((effect) =>
        effect.kind === "closeReview" ? effect.effectId : [],
      );
    expect(recover(54_999)).toEqual([]);
    expect(recover(55_000)).toEqual(["co-1:review:co-1:conflict-1"]);
  });

  it("a spawn is asked about with its id, and one of a plan beside the plan's own", () => {
    const scene = planScene(OPEN, spawn("a"));
    expect(planRecovery(scene.state, timeAt(0))).toEqual([
      { kind: "askHost", effectId: "co-1:step-1:1:ask", stepId: "step-1", attempt: 1 },
    ]);
    const planned = createRunningScene({ threshold: 0 }).then(
      spawn("x", { parentStepId: "a" as StepId, sourceSession: nameSessionOfAttempt("a") }),
    );
    expect(planRecovery(planned.state, timeAt(planned.nowMs)).map(({ kind }) => kind)).toEqual([
      ...["askHost", "runStep"],
    ]);
  });
});

describe("the budget of a plan that people are asked about", () => {
  it("lets nothing be tried again until they answer", () => {
    const opened = { policy: { escalationPolicy: "hitl" }, plan: { budget: { spawns: 1 } } } as const;
    const scene = createRunningScene({ threshold: 0 }, { opened, others: [planStep("b")] }).then(
      finish("a"),
      TRIP,
    );
    expect(scene.plans()).toEqual([]);
    expect(scene.then(retry()).plans()).toEqual(["runStep b 1"]);
  });
});
