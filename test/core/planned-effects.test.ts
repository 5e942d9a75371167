/** Owns: the effects that a plan comes to, with their ids, and which of its attempts begin within the room that there is. */
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Capacity } from "../../src/agents/coordination/dispatch/effects/capacity.ts";
import {
  findNextDeadline,
  planDispatch,
  planRecovery,
} from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import {
  admit,
  cancel,
  DELIVERY,
  dispatch,
  failStep,
  finish,
  judge,
  nameSessionOfAttempt,
  openPlan,
  planScene,
  planStep,
  retry,
  runOut,
  SETTLE_PLAN,
  skip,
  TRIP,
  HITL,
  beginSteps,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";
import { acknowledge, MAIN, OWNER, spawn, timeAt } from "./scene.ts";

const CRITERIA = { plan: { successCriteria: [{ key: "shipped" }] } };

/** Steps that wait for nothing, in the order of their names. */
function openSteps(names: string, opened: Partial<PlanSetup> = {}, fields: StepFields = {}): PlanScene {
  const steps = Array.from(names).map((name) => planStep(name, fields));
  return planScene(openPlan({ steps: steps.length, ...opened }), admit(...steps));
}
const createRun = (name: string, attempt: number, readyAtMs: number) => ({
  kind: "runStep",
  effectId: `co-1:${name}:${attempt}:run`,
  stepId: name,
  attempt,
  lane: "data",
  readyAtMs,
});
const createCapacity = (change: Partial<Capacity> = {}): Capacity => ({
  room: { control: 1, data: 1, escalation: 1 },
  agingMs: 60_000,
  isUnderway: () => false,
  ...change,
});
const createRoom = (data: number): Capacity => createCapacity({ room: { control: 0, data, escalation: 0 } });
const planWithin = (scene: PlanScene, capacity: Capacity): unknown[] =>
  planDispatch(scene.state, timeAt(scene.nowMs), capacity).map((effect) =>
    "stepId" in effect ? `${effect.stepId} ${effect.attempt}` : effect.kind,
  );

describe("an effect of a plan has an id of its own and all that its work needs", () => {
  it("where a step is ready, since it was admitted", () => {
    const scene = openSteps("a");
    expect(scene.effects()).toEqual([createRun("a", 1, timeAt(scene.nowMs))]);
  });

  it("where a step is ready again, since its wait is over", () => {
    const scene = openSteps("a", {}, { retryBudget: 1 }).then(...beginSteps("a"), failStep("a"));
    const { retryAtMs = 0 } = scene.last("step.failed").payload;
    expect(scene.effects(retryAtMs - timeAt(0))).toEqual([createRun("a", 2, retryAtMs)]);
  });

  it("where steps are to be admitted, from which one on", () => {
    const scene = planScene(openPlan({ steps: 2 }));
    expect(scene.effects()).toEqual([{ kind: "admitSteps", effectId: "co-1:admit:0", from: 0 }]);
    scene.then(admit(planStep("a")), dispatch("a"));
    expect(scene.effects()).toEqual([{ kind: "admitSteps", effectId: "co-1:admit:1", from: 1 }]);
  });

  it("where steps can no longer run", () => {
    const scene = openSteps("abc").then(...beginSteps("a"), cancel());
    expect(scene.effects()).toEqual([
      { kind: "stopStep", effectId: "co-1:a:1:run:stop", stepId: "a", attempt: 1 },
      { kind: "skipSteps", effectId: "co-1:skip:b", stepIds: ["b", "c"] },
    ]);
  });

  it("where its budget is spent, each time another one", () => {
    const scene = openSteps("abc", { ...HITL, plan: { budget: { spawns: 1 } } });
    scene.then(dispatch("a"), finish("a"));
    expect(scene.effects()).toEqual([{ kind: "tripBreaker", effectId: "co-1:trip:0" }]);
    scene.then(TRIP, retry(), dispatch("b"), finish("b"));
    expect(scene.effects()).toEqual([{ kind: "tripBreaker", effectId: "co-1:trip:1" }]);
  });

  it("where a child may be left of an attempt", () => {
    const scene = openSteps("a").then(...beginSteps("a"), runOut("a"));
    expect(scene.effects()).toEqual([
      {
        kind: "stopStray",
        effectId: "co-1:a:1:stray",
        stepId: "a",
        attempt: 1,
        childSessionKey: nameSessionOfAttempt("a"),
      },
    ]);
  });

  it("where all is done: it is judged first, where it names criteria, and then it ends", () => {
    const end = { kind: "endCoordination", effectId: "co-1:end" };
    expect(openSteps("a").then(dispatch("a"), finish("a")).effects()).toEqual([end]);
    const scene = openSteps("a", CRITERIA).then(dispatch("a"), finish("a"));
    expect(scene.effects()).toEqual([{ kind: "judgePlan", effectId: "co-1:judge" }]);
    expect(scene.then(judge()).effects()).toEqual([end]);
  });
});

describe("at the start of the runtime", () => {
  it("each attempt under way is taken up, since its step was admitted, and what is ready begins", () => {
    const scene = openSteps("abc").then(dispatch("a"), ...beginSteps("b"));
    expect(planRecovery(scene.state, timeAt(scene.nowMs))).toEqual(
      ["a", "b", "c"].map((name) => createRun(name, 1, scene.step(name).admittedAtMs)),
    );
  });

  it("what is to be stopped is stopped, and not taken up", () => {
    const scene = openSteps("ab").then(...beginSteps("a", "b"), cancel("a"));
    expect(
      planRecovery(scene.state, timeAt(scene.nowMs)).map((effect) => [effect.kind, effect.effectId]),
    ).toEqual([
      ["runStep", "co-1:b:1:run"],
      ["stopStep", "co-1:a:1:run:stop"],
    ]);
  });
});

describe("the room of the lanes", () => {
  it("is filled and no more, with those first that would run first", () => {
    const steps = [planStep("a", { priority: "low" }), planStep("b"), planStep("c", { priority: "high" })];
    const scene = planScene(openPlan({ steps: 3 }), admit(...steps));
    expect(planWithin(scene, createRoom(0))).toEqual([]);
    expect(planWithin(scene, createRoom(1))).toEqual(["c 1"]);
    expect(planWithin(scene, createRoom(2))).toEqual(["c 1", "b 1"]);
    expect(planWithin(scene, createRoom(3)).sort()).toEqual(["a 1", "b 1", "c 1"]);
  });

  it("counts a wait as much as a level of priority", () => {
    const scene = planScene(openPlan({ steps: 2 }), admit(planStep("a")));
    scene.passes(10_000);
    scene.then(admit(planStep("b", { priority: "high" })));
    expect(planWithin(scene, { ...createRoom(1), agingMs: 60_000 })).toEqual(["b 1"]);
    expect(planWithin(scene, { ...createRoom(1), agingMs: 1_000 })).toEqual(["a 1"]);
  });

  it("goes to the one with the longer way behind it, among equals", () => {
    const planned = { dependsOn: [], fanIn: 0, backoffMs: 1_000, criticalPathMs: 900_000 };
    const longer = { ...planStep("b"), planned };
    const steps = [planStep("a"), longer];
    const scene = planScene(openPlan({ steps: 2 }), admit(...steps));
    expect(planWithin(scene, createRoom(1))).toEqual(["b 1"]);
  });

  it("is each lane's own: a full one holds up no other, and no retry in another one", () => {
    const steps = [planStep("a"), planStep("b", { lane: "control" }), planStep("c", { lane: "escalation" })];
    const scene = planScene(openPlan({ steps: 3 }), admit(...steps));
    expect(planWithin(scene, createRoom(9))).toEqual(["a 1"]);
    expect(planWithin(scene, createCapacity({ room: { control: 1, data: 0, escalation: 1 } }))).toEqual([
      "b 1",
      "c 1",
    ]);
  });

  it("is not filled twice: what is under way already is left out", () => {
    const scene = openSteps("ab");
    const isUnderway = (effectId: string): boolean => effectId === "co-1:a:1:run";
    expect(planWithin(scene, createCapacity({ isUnderway }))).toEqual(["b 1"]);
  });

  it("holds no more of one session or agent than may hold a place there", () => {
    const steps = [planStep("a"), planStep("b"), planStep("c", { agentId: "other" as typeof MAIN })];
    const scene = planScene(openPlan({ steps: 3 }), admit(...steps));
    const countOfAgent = (agentId: string): number => (agentId === MAIN ? 1 : 9);
    expect(planWithin(scene, { ...createRoom(9), allowance: { ofAgent: countOfAgent } })).toEqual([
      "a 1",
      "c 1",
    ]);
    const countOfSession = (session: string): number => (session === OWNER ? 2 : 0);
    expect(planWithin(scene, { ...createRoom(9), allowance: { ofSession: countOfSession } })).toEqual([
      "a 1",
      "b 1",
    ]);
  });

  it("is asked for once a retry is due, and not for a step that is cancelled", () => {
    const scene = openSteps("a", {}, { retryBudget: 1 }).then(...beginSteps("a"), failStep("a"));
    const dueMs = Number(scene.last("step.failed").payload.retryAtMs) - timeAt(0);
    expect(scene.plans(dueMs - 1)).toEqual([]);
    expect(scene.plans(dueMs)).toEqual(["runStep a 2"]);
  });
});

describe("a plan that is held back", () => {
  it("begins its delivery all the same", () => {
    const scene = openSteps("a", { plan: { deadlineAtMs: timeAt(5_000) } }).then(dispatch("a"), finish("a"));
    scene.passes(60_000);
    scene.then(SETTLE_PLAN);
    expect(scene.plans()).toEqual([`runStep ${DELIVERY} 1`]);
  });

  it("trips no second breaker while people are asked, nor where it has stopped", () => {
    const scene = openSteps("ab", { ...HITL, plan: { budget: { spawns: 1 } } }).then(
      dispatch("a"),
      finish("a"),
      TRIP,
    );
    expect(scene.plans()).toEqual([]);
    expect(scene.then(cancel()).plans()).toEqual(["skipSteps b"]);
  });
});

describe("steps that can no longer run", () => {
  it("are ended in parts, as many as one append may hold", () => {
    const names = Array.from({ length: BOUNDS.stepsPerAppendMax + 1 }, (_, index) => `s${index}`);
    const scene = planScene(openPlan({ steps: names.length }));
    for (let from = 0; from < names.length; from += BOUNDS.stepsPerAppendMax)
      scene.then(admit(...names.slice(from, from + BOUNDS.stepsPerAppendMax).map((name) => planStep(name))));
    scene.then(cancel());
    const first = names.slice(0, BOUNDS.stepsPerAppendMax);
    expect(scene.effects()).toEqual([{ kind: "skipSteps", effectId: "co-1:skip:s0", stepIds: first }]);
    scene.then(skip(...first));
    expect(scene.plans()).toEqual([`skipSteps ${names.at(-1) ?? ""}`]);
  });

  it("are those that wait, that are tried again and that people are asked about", () => {
    const opened = { ...HITL, plan: { deadlineAtMs: timeAt(100_000) } };
    const steps = [planStep("a", { retryBudget: 1 }), planStep("b"), planStep("c", { after: ["a"] })];
    const scene = planScene(openPlan({ steps: 3, ...opened }), admit(...steps)).then(
      ...beginSteps("a", "b"),
      failStep("a"),
      failStep("b"),
    );
    expect(["a", "b", "c"].map((name) => scene.status(name))).toEqual(["backoff", "blocked", "waiting"]);
    const planned = scene.effects(100_000).filter(({ kind }) => kind === "skipSteps");
    expect(planned).toMatchObject([{ stepIds: ["a", "b", "c"] }]);
  });

  it("are not those at work, nor what their agents spawned, which are stopped", () => {
    const scene = openSteps("ab", { policy: { timeoutPolicy: "fail_fast" } }).then(...beginSteps("a", "b"));
    const child = { parentStepId: "a" as StepId, sourceSession: nameSessionOfAttempt("a") };
    scene.then(spawn("x", child));
    const [spawned = ""] = [...scene.open.steps.keys()].slice(-1);
    scene.then({ ...acknowledge(1, "n"), stepId: spawned as StepId } as Command, failStep("b"));
    expect(scene.plans()).toEqual([`stopObserved ${spawned} 1`, "stopStep a 1"]);
  });

  it("end one by one where their plan goes on", () => {
    const steps = [planStep("a"), planStep("b", { after: ["a"] }), planStep("c")];
    const scene = planScene(openPlan({ steps: 3 }), admit(...steps)).then(...beginSteps("a", "c"));
    scene.then(failStep("a"));
    expect(scene.effects()).toEqual([{ kind: "skipSteps", effectId: "co-1:skip:b", stepIds: ["b"] }]);
  });
});

describe("the times at which a plan needs a look", () => {
  const DEADLINE = { plan: { deadlineAtMs: timeAt(30_000) } };

  it("are its deadline, while a step of it is idle", () => {
    expect(findNextDeadline(openSteps("a", DEADLINE).state)).toBe(timeAt(30_000));
    expect(findNextDeadline(openSteps("a", DEADLINE).then(dispatch("a")).state)).toBeUndefined();
  });

  it("are the end of its wall time, while work waits to begin and it has not stopped", () => {
    const opened = { plan: { budget: { wallMs: 20_000 } } };
    expect(findNextDeadline(openSteps("a", opened).state)).toBe(timeAt(21_000));
    expect(findNextDeadline(openSteps("a", opened).then(dispatch("a")).state)).toBeUndefined();
    const failFast = { ...opened, policy: { timeoutPolicy: "fail_fast" } } as const;
    const scene = openSteps("ab", failFast).then(...beginSteps("a"), failStep("a"));
    expect(findNextDeadline(scene.state)).toBeUndefined();
  });

  it("are those of people alone, while they are asked about the whole plan, and its deadline", () => {
    const opened = { ...HITL, plan: { budget: { spawns: 1, wallMs: 900_000 }, escalateMs: 500_000 } };
    const scene = openSteps("ab", opened, { retryBudget: 1 }).then(...beginSteps("a"), failStep("a"), TRIP);
    expect(findNextDeadline(scene.state)).toBe(timeAt(scene.nowMs + 500_000));
    const bounded = { ...opened, plan: { ...opened.plan, deadlineAtMs: timeAt(90_000) } };
    const other = openSteps("ab", bounded, { retryBudget: 1 }).then(...beginSteps("a"), failStep("a"), TRIP);
    expect(findNextDeadline(other.state)).toBe(timeAt(90_000));
  });

  it("are its retries, the first of them first", () => {
    const scene = openSteps("ab", {}, { retryBudget: 1, backoffMs: 60_000 });
    scene.then(...beginSteps("a", "b"), failStep("a"), failStep("b"));
    const times = ["a", "b"].map((name) => {
      const { phase } = scene.step(name);
      return phase.status === "backoff" ? phase.retryAtMs : timeAt(0);
    });
    times.sort((one, other) => one - other);
    expect(findNextDeadline(scene.state)).toBe(times[0]);
    expect(findNextDeadline(scene.state, times[0])).toBe(times[1]);
  });
});
