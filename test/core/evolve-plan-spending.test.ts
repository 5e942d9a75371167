import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import type { FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import {
  addStepSpending,
  addStray,
  addSpawnSpending,
  createEmptyProgress,
  ONE_SPAWN,
  spentFromUsage,
} from "../../src/agents/coordination/ledger/plan-progress.ts";
import type { PlanProgress, Step } from "../../src/agents/coordination/ledger/state.ts";
import { openOf } from "./claims-scene.ts";
import { idOf, NOTHING_SPENT, planOf, play, stepOf } from "./plan-progress-scene.ts";
import {
  admit,
  DELIVERY,
  dispatch,
  failStep,
  finish,
  nameSessionOfAttempt,
  openPlan,
  planStep,
  runOut,
  startStep,
  stopChildOf,
  type PlanSetup,
} from "./planned-scene.ts";
import { openScene, OWNER, spawn, stepId, timeAt, type Scene } from "./scene.ts";

/** A plan of the steps `a` and `b`, of which `a` is at work. */
const openAtWork = (opened: Partial<PlanSetup> = {}): Scene =>
  openScene(
    openPlan({ steps: 2, ...opened }),
    admit(planStep("a", { retryBudget: 1 }), planStep("b")),
    dispatch("a"),
    startStep("a"),
  );
const SPAWN_OF_A: Command = spawn("own", {
  parentStepId: idOf("a"),
  sourceSession: nameSessionOfAttempt("a"),
});
/** The step that tells the owner of the results, as it is after a plan's steps. */
const deliveryOf = (scene: Scene, phase: Step["phase"]): Step => {
  const { spec, ...rest } = stepOf(scene, "a");
  return { ...rest, spec: { ...spec, stepId: idOf(DELIVERY) }, phase };
};
const USAGE = { tokens: 400, costMicroUsd: 3_000 };

describe("the spending of a plan", () => {
  it("is that of its steps, each attempt with its spawn, and is known of each step", () => {
    const scene = play(openAtWork(), failStep("a", 1, "child_failed", USAGE), dispatch("a", 2));
    play(scene, startStep("a", 2), finish("a", 2, { usage: { tokens: 1, costMicroUsd: 2 } }), dispatch("b"));
    const spentByA = { spawns: 2, tokens: 401, costMicroUsd: 3_002 };
    expect(stepOf(scene, "a").spent).toEqual(spentByA);
    expect(stepOf(scene, "b").spent).toEqual(ONE_SPAWN);
    expect(planOf(scene).spent).toEqual({ ...spentByA, spawns: 3 });
  });

  it("has the usage that was said of a result which is held", () => {
    const scene = openAtWork();
    const payload = { stepId: idOf("a"), attempt: 1, via: "runner", usage: USAGE } as const;
    scene.happened([{ type: "result.held", payload }]);
    expect(planOf(scene).spent).toEqual({ spawns: 1, ...USAGE });
    expect(openOf(scene).bill.sum).toEqual(USAGE);
  });

  it("has the spawns of a step's child, which count for the step, too", () => {
    const scene = play(openAtWork(), SPAWN_OF_A);
    expect([planOf(scene).spent.spawns, stepOf(scene, "a").spent?.spawns]).toEqual([2, 2]);
    const below = spawn("below", { parentStepId: idOf("@step-3"), sourceSession: OWNER });
    play(scene, below);
    expect([planOf(scene).spent.spawns, stepOf(scene, "a").spent?.spawns]).toEqual([3, 2]);
    expect(stepOf(scene, "@step-3")).not.toHaveProperty("spent");
  });

  it("has a spawn of nobody that is known", () => {
    const scene = openAtWork();
    const open = openOf(scene);
    for (const parent of [undefined, stepId(9)]) {
      const counted = addSpawnSpending({ ...open, plan: planOf(scene) }, parent);
      expect(counted.plan?.spent.spawns).toBe(2);
      expect(counted.steps).toBe(open.steps);
    }
  });

  it("has nothing of what is none of the plan's steps, and nothing of the delivery", () => {
    const scene = play(openAtWork(), SPAWN_OF_A);
    const open = openOf(scene);
    const steps = open.steps.set(idOf(DELIVERY), deliveryOf(scene, { status: "waiting", attempt: 0 }));
    const withDelivery = { ...open, steps };
    expect(addStepSpending(withDelivery, idOf(DELIVERY), ONE_SPAWN)).toBe(withDelivery);
    expect(addStepSpending(open, idOf("@step-3"), ONE_SPAWN)).toBe(open);
    expect(addStepSpending(open, stepId(9), ONE_SPAWN)).toBe(open);
    const { plan: _, ...observed } = open;
    expect(addStepSpending(observed, idOf("a"), ONE_SPAWN)).toBe(observed);
  });

  it("is nothing where no usage was said", () => {
    expect(spentFromUsage(undefined)).toEqual(NOTHING_SPENT);
    expect(spentFromUsage({})).toEqual(NOTHING_SPENT);
    expect(spentFromUsage(USAGE)).toEqual({ spawns: 0, ...USAGE });
  });
});

describe("D3: a child of an attempt that was given up", () => {
  const listStrays = (scene: Scene): unknown => planOf(scene).strays.toArray();
  const SESSION = nameSessionOfAttempt("a");

  it("may still be at work, until it is stopped", () => {
    const scene = play(openAtWork(), runOut("a"));
    const stray = { stepId: "a", attempt: 1, dispatchedAtMs: timeAt(2_000), childRunId: "run-of-a-1" };
    expect(listStrays(scene)).toEqual([[SESSION, stray]]);
    play(scene, stopChildOf("a"));
    expect(listStrays(scene)).toEqual([]);
  });

  it("may be there though it was not heard of, where we chose its session", () => {
    const scene = play(openAtWork(), dispatch("b"), runOut("b"));
    const stray = { stepId: "b", attempt: 1, dispatchedAtMs: timeAt(4_000) };
    expect(listStrays(scene)).toStrictEqual([[nameSessionOfAttempt("b"), stray]]);
  });

  it("is none where the host says that its time was over", () => {
    expect(listStrays(play(openAtWork(), runOut("a", 1, "runner")))).toEqual([]);
  });

  it("is none of a spawn, of the delivery, of a session that nobody knows or of an attempt that is over", () => {
    const scene = play(openAtWork(), SPAWN_OF_A, startStep("@step-3"), runOut("@step-3"));
    expect(listStrays(scene)).toEqual([]);
    const plan = createEmptyProgress(timeAt(0));
    const { spec, phase, ...rest } = stepOf(scene, "a");
    expect(addStray(plan, { ...rest, spec, phase }).strays.size).toBe(1);
    expect(addStray(plan, deliveryOf(scene, phase))).toBe(plan);
    const times = { attempt: 1, dispatchedAtMs: timeAt(0), deadlineAtMs: timeAt(1) };
    expect(addStray(plan, { ...rest, spec, phase: { status: "dispatched", ...times } })).toBe(plan);
    const ended = { status: "failed", ...times, endedAtMs: timeAt(1), targetSession: SESSION } as const;
    expect(addStray(plan, { ...rest, spec, phase: ended })).toBe(plan);
  });
});

describe("no further step of a plan begins", () => {
  const FAIL_FAST = { policy: { timeoutPolicy: "fail_fast" } } as const;
  const createEnded = (stepIdOfEnd: string, cancelled: boolean): FactDraft => ({
    type: "step.failed",
    payload: {
      stepId: idOf(stepIdOfEnd),
      attempt: 1,
      error: { code: "child_failed", message: "it went wrong" },
      cancelled,
      via: "runner",
    },
  });

  const createBegun = () => ({
    stepId: idOf(DELIVERY),
    attempt: 1,
    lane: "data" as const,
    idempotencyKey: "co-1:delivery:1",
    deadlineAtMs: timeAt(90_000),
  });

  it.each<readonly [string, FactDraft]>([
    ["fails", createEnded("a", false)],
    [
      "runs out of time",
      {
        type: "step.timed_out",
        payload: { stepId: idOf("a"), attempt: 1, deadlineAtMs: timeAt(62_000), via: "runner" },
      },
    ],
  ])("after one that %s, where the plan says so", (_, ended) => {
    const [fast, other] = [openAtWork(FAIL_FAST), openAtWork()];
    for (const scene of [fast, other]) scene.happened([ended]);
    expect([planOf(fast).stop, planOf(other).stop]).toEqual(["fail_fast", undefined]);
  });

  it("for another reason, and a failure does not change that", () => {
    const scene = openAtWork(FAIL_FAST);
    scene.happened([createAsked(), createClosed("denied"), createEnded("a", false)]);
    expect(planOf(scene).stop).toBe("budget");
  });

  it.each<readonly [string, (scene: Scene) => void]>([
    ["its step was completed", (scene) => play(scene, finish("a"))],
    [
      "its step was cancelled",
      (scene) => {
        scene.happened([createEnded("a", true)]);
      },
    ],
    ["its step is tried again", (scene) => play(scene, failStep("a"))],
    [
      "its owner could not be told",
      (scene) => {
        scene.happened([
          { type: "step.admitted", payload: { ...planStep("x"), stepId: idOf(DELIVERY) } },
          { type: "step.dispatched", payload: createBegun() },
          createEnded(DELIVERY, false),
        ]);
      },
    ],
    [
      "a child of its step's child failed",
      (scene) => {
        play(scene, SPAWN_OF_A, startStep("@step-3"));
        scene.happened([createEnded("@step-3", false)]);
      },
    ],
  ])("not because %s", (_, end) => {
    const scene = openAtWork(FAIL_FAST);
    end(scene);
    expect(planOf(scene)).not.toHaveProperty("stop");
  });
});

function createAsked(rest: Partial<FactPayloads["coordination.escalated"]> = {}): FactDraft {
  return {
    type: "coordination.escalated",
    payload: {
      escalationId: "q-1",
      cause: "budget",
      kind: "approval",
      deadlineAtMs: timeAt(600_000),
      ...rest,
    },
  };
}
function createClosed(
  resolution: FactPayloads["escalation.closed"]["resolution"],
  escalationId = "q-1",
): FactDraft {
  return { type: "escalation.closed", payload: { escalationId, resolution } };
}

describe("a question about a plan", () => {
  /** The question was put, and closed nine seconds after the start. */
  const openAnswered = (
    cause: FactPayloads["coordination.escalated"]["cause"],
    resolution: FactPayloads["escalation.closed"]["resolution"],
  ): PlanProgress => {
    const scene = play(openAtWork(), finish("a", 1, { usage: USAGE }));
    scene.happened([createAsked({ cause })]);
    scene.happened([createClosed(resolution)], 9_000);
    return planOf(scene);
  };
  const SPENT = { spawns: 1, ...USAGE };

  it.each<readonly [object, Partial<FactPayloads["coordination.escalated"]>]>([
    [{ budgetQuestion: "q-1" }, { cause: "budget" }],
    [{ decisionQuestion: "q-1" }, { cause: "confidence" }],
    [{}, { cause: "budget", stepId: idOf("a") }],
    [{}, { cause: "confidence", stepId: idOf("a") }],
    [{}, { cause: "agent" }],
  ])("is noted as %j where it is %j", (noted, fields) => {
    const scene = openAtWork();
    const before = planOf(scene);
    scene.happened([createAsked(fields)]);
    expect(planOf(scene)).toStrictEqual({ ...before, ...noted });
  });

  it.each(["continued", "approved"] as const)(
    "of its budget that is %s lets it spend as much again, from now on",
    (resolution) => {
      const plan = openAnswered("budget", resolution);
      expect(plan).toMatchObject({ allowedFrom: SPENT, allowedFromMs: timeAt(9_000), hasExpired: false });
      expect(plan).not.toHaveProperty("stop");
      expect(plan).not.toHaveProperty("budgetQuestion");
    },
  );

  it.each(["denied", "expired"] as const)("of its budget that is %s ends it", (resolution) => {
    const plan = openAnswered("budget", resolution);
    expect(plan).toMatchObject({
      stop: "budget",
      allowedFrom: NOTHING_SPENT,
      allowedFromMs: timeAt(0),
      hasExpired: resolution === "expired",
    });
    expect(plan).not.toHaveProperty("budgetQuestion");
  });

  it("whether it begins gives it all its time from the approval on, and what it spent counts", () => {
    const plan = openAnswered("confidence", "approved");
    expect(plan).toMatchObject({
      allowedFrom: NOTHING_SPENT,
      allowedFromMs: timeAt(9_000),
      hasExpired: false,
    });
    expect(plan).not.toHaveProperty("stop");
    expect(plan).not.toHaveProperty("decisionQuestion");
  });

  it.each(["denied", "expired"] as const)("whether it begins that is %s ends it", (resolution) => {
    const plan = openAnswered("confidence", resolution);
    expect(plan).toMatchObject({
      stop: "denied",
      allowedFromMs: timeAt(0),
      hasExpired: resolution === "expired",
    });
    expect(plan).not.toHaveProperty("decisionQuestion");
  });

  it("about something else changes nothing of it, but that nobody answered is known", () => {
    const scene = openAtWork();
    scene.happened([
      createAsked(),
      createAsked({ escalationId: "q-2", cause: "confidence" }),
      createAsked({ escalationId: "q-3", cause: "agent" }),
    ]);
    const before = planOf(scene);
    scene.happened([createClosed("approved", "q-3")]);
    expect(planOf(scene)).toEqual(before);
    scene.happened([createClosed("expired", "q-3")]);
    expect(planOf(scene)).toEqual({ ...before, hasExpired: true });
  });

  it("does not end it for another reason than the first", () => {
    const scene = openAtWork();
    scene.happened([createAsked(), createAsked({ escalationId: "q-2", cause: "confidence" })]);
    scene.happened([createClosed("denied", "q-2"), createClosed("denied")]);
    expect(planOf(scene).stop).toBe("denied");
    const other = openAtWork();
    other.happened([createAsked(), createAsked({ escalationId: "q-2", cause: "confidence" })]);
    other.happened([createClosed("denied"), createClosed("denied", "q-2")]);
    expect(planOf(other).stop).toBe("budget");
  });
});
