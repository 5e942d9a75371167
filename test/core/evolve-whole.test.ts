import { describe, expect, it } from "vitest";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import {
  createEventId,
  type CoordinationId,
  type StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { FactDraft, RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";
import { openOf } from "./claims-scene.ts";
import {
  admit,
  DELIVERY,
  dispatch,
  finish,
  nameSessionOfAttempt,
  openPlan,
  planStep,
  runOut,
  startStep,
} from "./planned-scene.ts";
import {
  acknowledge,
  complete,
  createContentRef,
  createDispatched,
  fail,
  nameChild,
  OPEN,
  openScene,
  openWaitingScene,
  OWNER,
  RUN,
  spawn,
  stepId,
  timeAt,
  type Scene,
} from "./scene.ts";

const idOf = (name: string) => name as StepId;
const stepOf = (scene: Scene, name = "step-1"): Step => openOf(scene).steps.get(idOf(name))!;
const newestOf = (scene: Scene, type: RunEvent["type"]) =>
  scene.log.findLast((event) => event.type === type)!.eventId;

describe("a coordination that was opened", () => {
  it("has nothing in it", () => {
    const state = openOf(openScene(OPEN));
    const { type: _, ...created } = OPEN as typeof OPEN & { type: "openCoordination" };
    expect(state).toMatchObject({
      kind: "open",
      coordinationId: RUN,
      createdEventId: "co-1:0",
      createdAtMs: timeAt(0),
      lastFactId: "co-1:0",
      endedSteps: { completed: 0, failed: 0, cancelled: 0, timed_out: 0, skipped: 0 },
      iterations: 0,
      conflicts: [],
      newestToken: 0,
      created,
    });
    const { steps, openSteps, children, reviews, claims, holdings, changes, escalations } = state;
    const kept = [steps, openSteps, children, reviews, claims, holdings, changes, escalations];
    const waiting = [state.openQuestions, state.held, state.tellings, state.worktrees];
    expect([...kept, ...waiting].map(({ size }) => size)).toEqual(Array.from({ length: 12 }, () => 0));
    expect(state).not.toHaveProperty("plan");
  });

  it("knows when it last changed, and by which fact", () => {
    const scene = openScene(OPEN);
    scene.when(spawn("a"), 7_000);
    expect(scene.state).toMatchObject({ changedAtMs: timeAt(7_000), createdAtMs: timeAt(0) });
    expect(openOf(scene).lastFactId).toBe(newestOf(scene, "step.dispatched"));
    expect(openOf(scene).nextSequence).toBe(scene.log.length);
  });
});

describe("a step that is admitted", () => {
  it("waits, and is among the steps that did not end", () => {
    const scene = openWaitingScene();
    const { spec, ...rest } = stepOf(scene);
    expect(spec).toMatchObject({ stepId: "step-1", timeoutMs: 60_000 });
    expect(rest).toStrictEqual({
      admittedAtMs: timeAt(1_000),
      phase: { status: "waiting", attempt: 0 },
      lastFactId: newestOf(scene, "step.admitted"),
      chainEventId: scene.log.at(-1)?.eventId,
    });
    expect(openOf(scene).openSteps.toArray()).toEqual(["step-1"]);
    scene.happened([createDispatched(1)]);
    scene.when(complete(1));
    expect(openOf(scene).openSteps.toArray()).toEqual([]);
    expect(openOf(scene).endedSteps).toMatchObject({ completed: 1, failed: 0 });
  });

  it("is admitted once: other logs are damaged", () => {
    const scene = openWaitingScene();
    expect(() => {
      scene.happened([{ type: "step.admitted", payload: stepOf(scene).spec }]);
    }).toThrow("admitted twice: step-1");
  });
});

describe("D6: a result that a fork took from its source", () => {
  const SOURCE = "co-0" as CoordinationId;
  const FORKED = { steps: 2, forkedFrom: { coordinationId: SOURCE, sequence: 9 } };
  const eventId = createEventId(SOURCE, 7);
  const OUTPUT = createContentRef("out");
  const createCarried = (rest: object = {}): FactDraft => ({
    type: "step.admitted",
    payload: { ...planStep("a"), carried: { eventId, ...rest } },
  });

  it("completes its step with the admission, and what depends on it is ready", () => {
    const scene = openScene(openPlan(FORKED));
    scene.happened([createCarried({ output: OUTPUT, released: "approved" })], 4_000);
    scene.happened([{ type: "step.admitted", payload: planStep("b", { after: ["a"] }) }]);
    expect(stepOf(scene, "a").phase).toStrictEqual({
      status: "completed",
      attempt: 0,
      endedAtMs: timeAt(4_000),
      carriedFrom: eventId,
      output: OUTPUT,
      released: "approved",
    });
    expect(openOf(scene).openSteps.toArray()).toEqual(["b"]);
    expect(openOf(scene).plan?.ready.data.keySeq().toArray()).toEqual(["b"]);
  });

  it("has no output where there was none", () => {
    const scene = openScene(openPlan(FORKED));
    scene.happened([createCarried()], 4_000);
    expect(stepOf(scene, "a").phase).toStrictEqual({
      status: "completed",
      attempt: 0,
      endedAtMs: timeAt(4_000),
      carriedFrom: eventId,
    });
  });

  it("is of a fork, and of a step of its plan: other logs are damaged", () => {
    const expectDamaged = (scene: Scene, fact: FactDraft, message: string): void => {
      expect(() => {
        scene.happened([fact]);
      }).toThrow(message);
    };
    expectDamaged(openScene(openPlan({ steps: 1 })), createCarried(), "a result from nowhere: co-1:");
    expectDamaged(openScene(OPEN), createCarried(), "a result for what is no step of a plan: co-1:");
    const { planned: _, ...observed } = planStep("a");
    const fact: FactDraft = { type: "step.admitted", payload: { ...observed, carried: { eventId } } };
    expectDamaged(openScene(openPlan(FORKED)), fact, "a result for what is no step of a plan: co-1:");
  });
});

describe("D6: a step of a plan", () => {
  it("begins after enough of its dependencies: other logs are damaged", () => {
    const steps = [planStep("a"), planStep("b"), planStep("c", { after: ["a", "b"], fanIn: 1 })];
    const scene = openScene(openPlan({ steps: 3 }), admit(...steps));
    const begin: FactDraft = {
      type: "step.dispatched",
      payload: {
        stepId: idOf("c"),
        attempt: 1,
        lane: "data",
        idempotencyKey: "co-1:c:1",
        deadlineAtMs: timeAt(90_000),
      },
    };
    expect(() => {
      scene.happened([begin]);
    }).toThrow("D6: dispatched too early: co-1:");
    for (const command of [dispatch("a"), startStep("a"), finish("a")]) scene.when(command);
    scene.happened([begin]);
    expect(stepOf(scene, "c").phase.status).toBe("dispatched");
  });

  it("may begin again when nothing counts its dependencies any more", () => {
    const steps = [planStep("a"), planStep("b", { after: ["a"], retryBudget: 1 })];
    const scene = openScene(openPlan({ steps: 2 }), admit(...steps));
    const commands = [
      dispatch("a"),
      startStep("a"),
      finish("a"),
      dispatch("b"),
      runOut("b"),
      dispatch("b", 2),
    ];
    for (const command of commands) expect(scene.when(command).kind).toBe("accepted");
    expect(stepOf(scene, "b").phase.attempt).toBe(2);
  });
});

describe("H3: the session that works on a step", () => {
  const listChildren = (scene: Scene): unknown => openOf(scene).children.toJS();

  it("is known from the dispatch on where we chose it, and stays known", () => {
    const scene = openScene(openPlan({ steps: 1 }), admit(planStep("a", { retryBudget: 1 })), dispatch("a"));
    expect(listChildren(scene)).toEqual({ [nameSessionOfAttempt("a")]: "a" });
    for (const command of [startStep("a"), runOut("a"), dispatch("a", 2)]) scene.when(command);
    expect(listChildren(scene)).toEqual({
      [nameSessionOfAttempt("a")]: "a",
      [nameSessionOfAttempt("a", 2)]: "a",
    });
  });

  it("is known when it is heard of where the host chose it", () => {
    const scene = openScene(OPEN, spawn("a"));
    expect(listChildren(scene)).toEqual({});
    scene.when(acknowledge(1));
    expect(listChildren(scene)).toEqual({ [nameChild(1)]: "step-1" });
    scene.when(complete(1));
    expect(listChildren(scene)).toEqual({ [nameChild(1)]: "step-1" });
  });

  it("is not the owner's, which is only told", () => {
    const scene = openScene(openPlan({ steps: 1 }));
    scene.happened([
      { type: "step.admitted", payload: { ...planStep("x"), stepId: idOf(DELIVERY) } },
      {
        type: "step.dispatched",
        payload: {
          stepId: idOf(DELIVERY),
          attempt: 1,
          lane: "data",
          idempotencyKey: "k",
          deadlineAtMs: timeAt(90_000),
          targetSession: OWNER,
        },
      },
    ]);
    expect(listChildren(scene)).toEqual({});
  });
});

describe("a result that was kept from the parent", () => {
  const withhold = (text = "x"): FactDraft => ({
    type: "result.withheld",
    payload: { stepId: stepId(1), attempt: 1, text: createContentRef(text) },
  });
  const createHeld = (name = "step-1"): FactDraft => ({
    type: "result.held",
    payload: { stepId: idOf(name), attempt: 1, via: "hook" },
  });
  const listTellings = (scene: Scene): unknown => openOf(scene).tellings.toArray();
  const openRunning = (): Scene => openScene(OPEN, spawn("a"), acknowledge(1));

  it("is among the held ones until it is ruled on", () => {
    const scene = openRunning();
    scene.happened([createHeld()]);
    expect(openOf(scene).held.toArray()).toEqual(["step-1"]);
    scene.happened([withhold()]);
    expect(openOf(scene).held.toArray()).toEqual(["step-1"]);
    scene.happened([{ type: "step.completed", payload: { stepId: stepId(1), attempt: 1, via: "gate" } }]);
    expect(openOf(scene).held.toArray()).toEqual([]);
  });

  it("is what the parent hears of when the step ends, from then on", () => {
    const scene = openRunning();
    scene.happened([withhold()]);
    expect(listTellings(scene)).toEqual([]);
    scene.when(complete(1), 8_000);
    expect(listTellings(scene)).toEqual([
      [
        "result:step-1:1",
        {
          tellingId: "result:step-1:1",
          session: OWNER,
          sinceMs: timeAt(8_000),
          of: { kind: "result", stepId: "step-1", attempt: 1 },
        },
      ],
    ]);
  });

  it("is what the parent hears of where it was lost", () => {
    const scene = openRunning();
    scene.when(fail(1, "result_lost"));
    expect(openOf(scene).tellings.keySeq().toArray()).toEqual(["result:step-1:1"]);
  });

  it("is nothing to hear of where nothing was kept back, or where a plan tells", () => {
    const scene = openRunning();
    scene.when(fail(1));
    expect(listTellings(scene)).toEqual([]);
    const plan = openScene(openPlan({ steps: 1 }), admit(planStep("a")), dispatch("a"), startStep("a"));
    plan.happened([
      { type: "result.withheld", payload: { stepId: idOf("a"), attempt: 1, text: createContentRef("x") } },
    ]);
    plan.when(finish("a"));
    expect([stepOf(plan, "a").phase.status, listTellings(plan)]).toEqual(["completed", []]);
  });

  it("is nothing to hear of before the step ends, whatever else becomes of it", () => {
    const scene = openRunning();
    scene.happened([withhold(), createHeld()]);
    expect(listTellings(scene)).toEqual([]);
  });

  it("is nothing to hear of again where its step ended before", () => {
    const scene = openWaitingScene(1);
    scene.happened([createDispatched(1), withhold()]);
    scene.when(fail(1));
    scene.happened([
      { type: "session.told", payload: { tellingId: "result:step-1:1", delivery: "delivered" } },
    ]);
    scene.happened([createDispatched(2)]);
    expect(listTellings(scene)).toEqual([]);
  });
});

describe("a fact about the whole coordination", () => {
  it("is of a step that there is, where it names one: other logs are damaged", () => {
    const scene = openScene(OPEN);
    expect(() => {
      scene.happened([
        { type: "coordination.cancel_requested", payload: { by: "agent", stepId: stepId(9) } },
      ]);
    }).toThrow("no step step-9 in co-1");
  });

  it("says how far its plan reached what it is for", () => {
    const scene = openScene(openPlan({ steps: 1 }));
    const successCriteria = [{ key: "shipped", met: true }];
    scene.happened([{ type: "plan.judged", payload: { successCriteria } }]);
    expect(openOf(scene).successCriteria).toEqual(successCriteria);
  });

  it("says who asked for its end, or for the end of a step", () => {
    const scene = openScene(OPEN, spawn("a"), spawn("b"));
    scene.happened([{ type: "coordination.cancel_requested", payload: { by: "agent", stepId: stepId(1) } }]);
    expect(stepOf(scene)).toMatchObject({
      cancelledBy: "agent",
      lastFactId: newestOf(scene, "coordination.cancel_requested"),
    });
    expect(openOf(scene)).not.toHaveProperty("cancelledBy");
    scene.happened([{ type: "coordination.cancel_requested", payload: { by: "operator" } }]);
    expect(openOf(scene).cancelledBy).toBe("operator");
    expect(stepOf(scene, "step-2")).not.toHaveProperty("cancelledBy");
  });

  it("says who was stopped by the operator's budget, one after the other", () => {
    const scene = openScene(OPEN);
    const stops = ["spawn", "call"].map((stopped) => ({
      stepId: idOf("@owner"),
      limit: "spawns" as const,
      allowed: 1,
      used: 1,
      stopped: stopped as FactPayloads["budget.reached"]["stopped"],
    }));
    for (const payload of stops) scene.happened([{ type: "budget.reached", payload }]);
    expect(openOf(scene).bill.stops).toEqual(stops);
    expect(openOf(scene).bill.spawnCount).toBe(0);
  });

  it("changes nothing where a child was stopped and no plan counts them", () => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1));
    const payload = {
      stepId: stepId(1),
      attempt: 1,
      childSessionKey: nameChild(1),
      outcome: "stopped",
    } as const;
    const { lastFactId: _, nextSequence: _at, changedAtMs: _ms, ...before } = openOf(scene);
    scene.happened([{ type: "step.child_stopped", payload }]);
    const { lastFactId, nextSequence: _next, changedAtMs: _then, ...after } = openOf(scene);
    expect(after).toStrictEqual(before);
    expect(lastFactId).toBe(newestOf(scene, "step.child_stopped"));
  });
});

describe("calls that a step's privileges do not allow", () => {
  it("are noted with the step in their order, and nothing is caused by them", () => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1));
    const before = stepOf(scene);
    const RULE = { rule: "tools.deny", from: { by: "step", stepId: stepId(1) } } as const;
    const refuse = (tool: string): FactDraft => ({
      type: "privilege.refused",
      payload: {
        stepId: stepId(1),
        tool,
        ...RULE,
      },
    });
    scene.happened([refuse("write"), refuse("exec")], 6_000);
    expect(stepOf(scene)).toEqual({
      ...before,
      refusedCalls: ["write", "exec"].map((tool) => ({
        tool,
        ...RULE,
        atMs: timeAt(6_000),
      })),
    });
  });
});
