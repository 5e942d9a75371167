import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import type { FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import {
  addAdmittedStep,
  createEmptyProgress,
  releaseApprovedStep,
} from "../../src/agents/coordination/ledger/plan-progress.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";
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
  type PlanSetup,
} from "./planned-scene.ts";
import { OPEN, openScene, spawn, stepId, timeAt, type Scene } from "./scene.ts";

const listReady = (scene: Scene): unknown => planOf(scene).ready.data.keySeq().toArray();
const openWith = (steps: readonly ReturnType<typeof planStep>[], opened: Partial<PlanSetup> = {}): Scene =>
  openScene(openPlan({ steps: steps.length, ...opened }), admit(...steps));
const runTo = (name: string, end: Command): readonly Command[] => [dispatch(name), startStep(name), end];

const createAsked = (rest: Partial<FactPayloads["coordination.escalated"]> = {}): FactDraft => ({
  type: "coordination.escalated",
  payload: {
    escalationId: "q-1",
    cause: "budget",
    kind: "approval",
    deadlineAtMs: timeAt(600_000),
    ...rest,
  },
});
const createClosed = (
  resolution: FactPayloads["escalation.closed"]["resolution"],
  escalationId = "q-1",
): FactDraft => ({ type: "escalation.closed", payload: { escalationId, resolution } });

describe("the progress of a plan", () => {
  it("is nothing when it is opened, and its budget counts from then on", () => {
    const { ready, ...plan } = planOf(openScene(openPlan({ steps: 1 })));
    expect([ready.control.size, ready.data.size, ready.escalation.size]).toEqual([0, 0, 0]);
    const counts = [plan.running, plan.timed, plan.doomed, plan.waits, plan.dependents, plan.strays];
    expect(counts.map(({ size }) => size)).toEqual([0, 0, 0, 0, 0, 0]);
    expect(plan).toMatchObject({
      admitted: 0,
      hasExpired: false,
      spent: NOTHING_SPENT,
      allowedFrom: NOTHING_SPENT,
      allowedFromMs: timeAt(0),
    });
    expect(plan).not.toHaveProperty("stop");
  });

  it("counts the steps that are admitted, and not the delivery", () => {
    const scene = openWith([planStep("a"), planStep("b")]);
    expect(planOf(scene).admitted).toBe(2);
    const { planned } = stepOf(scene, "a").spec;
    const delivery = { spec: { ...stepOf(scene, "a").spec, stepId: idOf(DELIVERY), planned } } as Step;
    expect(addAdmittedStep(planOf(scene), delivery, openOf(scene).steps).admitted).toBe(2);
  });

  it("has nothing of a step that is none of the plan", () => {
    const scene = openScene(OPEN, spawn("a"));
    const plan = createEmptyProgress(timeAt(0));
    expect(addAdmittedStep(plan, stepOf(scene, "step-1"), openOf(scene).steps)).toBe(plan);
  });
});

describe("a step is ready", () => {
  it("at once where it depends on nothing, in its lane", () => {
    const scene = openWith([planStep("a"), planStep("b", { lane: "control" })]);
    const { ready, waits } = planOf(scene);
    expect(ready.data.toArray()).toEqual([["a", timeAt(1_000)]]);
    expect(ready.control.toArray()).toEqual([["b", timeAt(1_000)]]);
    expect(waits.toJS()).toEqual({ a: { met: 0, lost: 0 }, b: { met: 0, lost: 0 } });
  });

  it("when enough of its dependencies have completed, and from then on", () => {
    const scene = openWith([
      planStep("a"),
      planStep("b"),
      planStep("all", { after: ["a", "b"] }),
      planStep("one", { after: ["a", "b"], fanIn: 1 }),
    ]);
    expect(planOf(scene).dependents.toJS()).toEqual({ a: ["all", "one"], b: ["all", "one"] });
    play(scene, ...runTo("a", finish("a")));
    expect(planOf(scene).ready.data.toArray()).toEqual([
      ["b", timeAt(1_000)],
      ["one", timeAt(4_000)],
    ]);
    expect(planOf(scene).waits.toJS()).toMatchObject({ all: { met: 1, lost: 0 } });
    play(scene, ...runTo("b", finish("b")));
    expect(planOf(scene).ready.data.toArray()).toEqual([
      ["one", timeAt(4_000)],
      ["all", timeAt(7_000)],
    ]);
    expect(planOf(scene).doomed.size).toBe(0);
  });

  it("no more once it begins, and not again when another dependency completes", () => {
    const scene = openWith([planStep("a"), planStep("b"), planStep("one", { after: ["a", "b"], fanIn: 1 })]);
    play(scene, ...runTo("a", finish("a")), dispatch("one"));
    expect(listReady(scene)).toEqual(["b"]);
    expect(planOf(scene).waits.has(idOf("one"))).toBe(false);
    play(scene, ...runTo("b", finish("b")));
    expect(listReady(scene)).toEqual([]);
    expect(planOf(scene).waits.size).toBe(0);
  });

  it("or not by what its dependencies came to before it was admitted", () => {
    const scene = openWith([planStep("a"), planStep("b"), planStep("c")], { steps: 6 });
    play(scene, ...runTo("a", finish("a")), ...runTo("b", failStep("b")));
    const later = [
      planStep("met", { after: ["a", "b"], fanIn: 1 }),
      planStep("lost", { after: ["a", "b"] }),
      planStep("open", { after: ["a", "c"] }),
    ];
    for (const step of later) scene.happened([{ type: "step.admitted", payload: step }]);
    expect(listReady(scene)).toEqual(["c", "met"]);
    expect(planOf(scene).doomed.toArray()).toEqual(["lost"]);
    expect(planOf(scene).waits.toJS()).toMatchObject({
      met: { met: 1, lost: 1 },
      lost: { met: 1, lost: 1 },
      open: { met: 1, lost: 0 },
    });
  });

  it("no sooner where a dependency is admitted after it", () => {
    const scene = openScene(openPlan({ steps: 2 }));
    for (const step of [planStep("b", { after: ["a"] }), planStep("a")])
      scene.happened([{ type: "step.admitted", payload: step }]);
    expect(listReady(scene)).toEqual(["a"]);
    play(scene, ...runTo("a", finish("a")));
    expect(listReady(scene)).toEqual(["b"]);
  });

  it("only after people let it begin, where its planner doubts it", () => {
    const doubt = { decision: { confidence: 1_000, floor: 5_000 } };
    const scene = openWith([planStep("a"), planStep("b", { after: ["a"], ...doubt })]);
    play(scene, ...runTo("a", finish("a")));
    expect(listReady(scene)).toEqual([]);
    expect(planOf(scene).waits.toJS()).toEqual({ b: { met: 1, lost: 0 } });
    const early = openWith([planStep("a"), planStep("b", { after: ["a"], ...doubt })]);
    early.happened([createAsked({ cause: "confidence", stepId: idOf("b") }), createClosed("approved")]);
    expect(listReady(early)).toEqual(["a"]);
    play(early, ...runTo("a", finish("a")));
    expect(listReady(early)).toEqual(["b"]);
  });

  it("by no approval of what does not wait in a plan", () => {
    const states = [openScene(OPEN, spawn("a")), openWith([planStep("a")])].map(openOf);
    for (const state of states) {
      expect(releaseApprovedStep(state, stepId(1), timeAt(0))).toBe(state);
      expect(releaseApprovedStep(state, stepId(9), timeAt(0))).toBe(state);
    }
    const running = openWith([planStep("a")]);
    play(running, dispatch("a"));
    expect(releaseApprovedStep(openOf(running), idOf("a"), timeAt(0))).toBe(openOf(running));
  });
});

describe("a step is doomed", () => {
  it("when too many of its dependencies will never complete, until it is skipped", () => {
    const scene = openWith([
      planStep("a"),
      planStep("b"),
      planStep("all", { after: ["a", "b"] }),
      planStep("one", { after: ["a", "b"], fanIn: 1 }),
    ]);
    play(scene, ...runTo("a", failStep("a")));
    expect(planOf(scene).doomed.toArray()).toEqual(["all"]);
    expect(planOf(scene).waits.toJS()).toMatchObject({ one: { met: 0, lost: 1 } });
    scene.happened([{ type: "step.skipped", payload: { stepId: idOf("all"), because: "dependency" } }]);
    expect(planOf(scene).doomed.toArray()).toEqual([]);
    play(scene, ...runTo("b", runOut("b")));
    expect(planOf(scene).doomed.toArray()).toEqual(["one"]);
    expect(listReady(scene)).toEqual([]);
  });
});

describe("steps at work and steps that wait for a time", () => {
  const listMoved = (scene: Scene): unknown => [
    planOf(scene).running.toArray(),
    planOf(scene).timed.toArray(),
  ];

  it("are told apart through the attempts of a step", () => {
    const scene = openWith([planStep("a", { retryBudget: 1 })], { policy: { escalationPolicy: "hitl" } });
    expect(listMoved(scene)).toEqual([[], []]);
    play(scene, dispatch("a"));
    expect(listMoved(scene)).toEqual([["a"], []]);
    play(scene, startStep("a"));
    expect(listMoved(scene)).toEqual([["a"], []]);
    play(scene, failStep("a"));
    expect([stepOf(scene, "a").phase.status, listMoved(scene)]).toEqual(["backoff", [[], ["a"]]]);
    play(scene, dispatch("a", 2));
    expect(listMoved(scene)).toEqual([["a"], []]);
    play(scene, startStep("a", 2), failStep("a", 2));
    expect([stepOf(scene, "a").phase.status, listMoved(scene)]).toEqual(["blocked", [[], ["a"]]]);
    scene.happened([createClosed("denied", "escalation-1")]);
    expect([stepOf(scene, "a").phase.status, listMoved(scene)]).toEqual(["failed", [[], []]]);
  });

  it("have a child's own spawn among those that wait until it ends", () => {
    const scene = openWith([planStep("a")]);
    const session = nameSessionOfAttempt("a");
    play(
      scene,
      dispatch("a"),
      startStep("a"),
      spawn("own", { parentStepId: idOf("a"), sourceSession: session }),
    );
    expect(listMoved(scene)).toEqual([["a"], ["@step-2"]]);
    play(scene, startStep("@step-2"));
    expect(listMoved(scene)).toEqual([["a"], ["@step-2"]]);
    play(scene, finish("@step-2"));
    expect(listMoved(scene)).toEqual([["a"], []]);
  });

  it("have no step among them whose result is held", () => {
    const scene = openWith([planStep("a")]);
    play(scene, dispatch("a"), startStep("a"));
    scene.happened([{ type: "result.held", payload: { stepId: idOf("a"), attempt: 1, via: "runner" } }]);
    expect(listMoved(scene)).toEqual([[], []]);
  });
});
