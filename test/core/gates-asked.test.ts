import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import {
  answer,
  ask,
  contentRef,
  DOUBTING,
  filterByType,
  findQuestion,
  createRunningScene,
  createSpawnedScene,
  recordTold,
} from "./gates-scene.ts";
import {
  admit,
  cancel,
  dispatch,
  expire,
  finish,
  failStep,
  openPlan,
  planStep,
  planScene,
  SETTLE_PLAN,
  nameSessionOfAttempt,
  startStep,
  TRIP,
  type PlanScene,
} from "./planned-scene.ts";
import { acknowledge, timeAt, nameChild, complete, OPEN, spawn } from "./scene.ts";

const PEOPLE = { policy: { escalationPolicy: "hitl" } } as const;
const listActions = (scene: PlanScene): string[] =>
  filterByType(scene, "interrupt.resolved").map(({ payload }) => payload.resumeValue.action);

/** A step whose last attempt failed, and people are asked. */
const createBlockedScene = (): PlanScene =>
  planScene(
    openPlan({ steps: 1, ...PEOPLE }),
    admit(planStep("a")),
    dispatch("a"),
    startStep("a"),
    failStep("a"),
  );

describe("a question of an agent", () => {
  const createAskedScene = (rest: Parameters<typeof ask>[0] = {}): PlanScene =>
    createSpawnedScene(DOUBTING).then(ask({ stepId: "step-1" as never, ...rest }));

  it("is asked with who asks and what, and takes an answer or a refusal", () => {
    const scene = createAskedScene();
    expect(findQuestion(scene)).toMatchObject({
      cause: "agent",
      kind: "clarification",
      askedBy: nameChild(1),
      question: contentRef("question"),
      answers: ["answer", "deny"],
      onExpiry: "deny",
    });
    expect(scene.last("interrupt.requested").payload).toMatchObject({ kind: "clarification" });
    expect(JSON.stringify(scene.last("interrupt.requested").payload)).not.toContain(
      contentRef("question").sha256,
    );
    expect(findQuestion(createAskedScene({ kind: "approval" })).answers).toEqual([
      "approve",
      "deny",
      "answer",
    ]);
  });

  it("asked again while it is open or untold is the same; another one, or one of another session, is not", () => {
    const scene = createAskedScene();
    expect(scene.says(ask({ stepId: "step-1" as never }))).toBe("replay");
    expect(scene.says(ask({ question: contentRef("other") }))).toBe("coordination.escalated");
    expect(scene.says(ask({ askedBy: nameChild(2) }))).toBe("coordination.escalated");
    scene.then(answer("deny"));
    expect(scene.says(ask({ stepId: "step-1" as never }))).toBe("replay");
    const tellingsUnderWay = ["answer:escalation-1"];
    expect(scene.says(ask({ stepId: "step-1" as never, tellingsUnderWay }))).toBe("coordination.escalated");
  });

  it("is refused where too many are open", () => {
    const scene = createAskedScene({ openMax: 1 });
    expect(scene.says(ask({ question: contentRef("other"), openMax: 1 }))).toBe("TOO_MANY_QUESTIONS");
    scene.then(answer("deny"), ask({ question: contentRef("other"), openMax: 1 }));
  });

  it("has its own deadline, and none after the coordination's own", () => {
    const scene = createAskedScene({ answerMs: 5_000 });
    expect(findQuestion(scene).deadlineAtMs).toBe(timeAt(scene.nowMs + 5_000));
    const plan = createRunningScene(DOUBTING, { opened: { plan: { escalateMs: 10_000 } } }).then(
      ask({ answerMs: 60_000 }),
    );
    expect(findQuestion(plan).deadlineAtMs).toBe(timeAt(plan.nowMs + 10_000));
  });

  it("stops nothing: its step goes on, and ends as it ends", () => {
    const scene = createAskedScene();
    scene.then(complete(1));
    expect(scene.status("step-1")).toBe("completed");
  });

  it.each([
    ["approve", { kind: "approval" }, "accept"],
    ["deny", { kind: "approval" }, "reject"],
    ["answer", {}, "answer"],
  ] as const)("that is answered with %s is told to whoever asked, once", (kind, rest, action) => {
    const scene = createAskedScene(rest).then(answer(kind));
    expect(listActions(scene)).toEqual([action]);
    expect(scene.plans()).toEqual([]);
    // A child is told when its own work is over: a turn in the middle of it would take its place.
    scene.then(complete(1));
    expect(scene.effects().filter(({ kind: subject }) => subject === "tellSession")).toMatchObject([
      { tellingId: "answer:escalation-1" },
    ]);
    scene.then(recordTold("answer:escalation-1"));
    expect(scene.says(recordTold("answer:escalation-1"))).toBe("replay");
    expect(scene.plans()).toEqual([]);
  });

  it("that nobody answers counts as denied, or as what the agent named, and is told too", () => {
    for (const hasDefault of [true, false]) {
      const scene = createAskedScene({ hasDefault });
      expect(findQuestion(scene).onExpiry).toBe(hasDefault ? "default" : "deny");
      scene.when(expire(), findQuestion(scene).deadlineAtMs - timeAt(0));
      expect(findQuestion(scene).closed).toMatchObject({ resolution: "expired" });
      scene.then(complete(1));
      expect(scene.effects().filter(({ kind }) => kind === "tellSession")).toHaveLength(1);
    }
  });

  it("and its telling keep observed spawns from ending", () => {
    const scene = createAskedScene().then(complete(1));
    expect(scene.plans(1_000_000)).toEqual([]);
    expect(scene.says(SETTLE_PLAN)).toBe("QUESTIONS_OPEN");
    scene.then(answer("deny"));
    expect(scene.plans(1_000_000)).toEqual(["tellSession"]);
    expect(scene.says(SETTLE_PLAN)).toBe("STEPS_OPEN");
    scene.then(recordTold("answer:escalation-1"));
    expect(scene.plans(1_000_000)).toEqual(["endCoordination"]);
    scene.then(SETTLE_PLAN);
  });

  it("does not keep what was cancelled from ending, and is withdrawn with it without being told", () => {
    const scene = createAskedScene().then(complete(1), cancel());
    expect(scene.plans(1_000_000)).toEqual(["endCoordination"]);
    scene.then(SETTLE_PLAN);
    expect(scene.last("escalation.closed").payload).toMatchObject({ resolution: "cancelled" });
    expect(listActions(scene)).toEqual(["cancelled"]);
  });

  it("of a plan's agent is withdrawn when all work of the plan is done", () => {
    const scene = createRunningScene({ threshold: 0 }).then(
      ask({ askedBy: nameSessionOfAttempt("a"), stepId: "a" as never }),
    );
    scene.then(finish("a"), SETTLE_PLAN);
    expect(findQuestion(scene).closed).toMatchObject({ resolution: "cancelled" });
    expect(scene.plans()).toEqual(["runStep @delivery 1"]);
  });

  it("holds no result back and is no ruling on one", () => {
    const gate: Gate = { ...DOUBTING };
    const scene = createSpawnedScene(gate).then(ask({ stepId: "step-1" as never, kind: "approval" }));
    scene.then({ ...complete(1), stated: { confidence: 1 } } as Command);
    expect(scene.status("step-1")).toBe("held");
    scene.then(answer("approve", { number: 1 }));
    expect(scene.status("step-1")).toBe("held");
    scene.then(answer("approve", { number: 2 }));
    expect(scene.status("step-1")).toBe("completed");
  });
});

describe("an interrupt in OpenWOP", () => {
  it("is resolved once for every question that is closed, whichever way", () => {
    const scene = planScene(OPEN, spawn("a"), acknowledge(1));
    for (let number = 1; number <= 4; number += 1)
      scene.then(
        ask({ kind: "approval", question: { ...contentRef("q"), sha256: String(number).repeat(64) } }),
      );
    scene.then(
      answer("approve", { number: 1 }),
      answer("deny", { number: 2 }),
      answer("answer", { number: 3 }),
    );
    scene.when(expire(4), findQuestion(scene, 4).deadlineAtMs - timeAt(0));
    expect(listActions(scene)).toEqual(["accept", "reject", "answer", "expired"]);
    const requests = filterByType(scene, "interrupt.requested").map(({ payload }) => payload.key);
    expect(filterByType(scene, "interrupt.resolved").map(({ payload }) => payload.interruptId)).toEqual(
      requests,
    );
  });

  it("never carries a text", () => {
    const scene = createSpawnedScene(DOUBTING).then(ask(), answer("answer"));
    expect(scene.last("interrupt.resolved").payload).toEqual({
      nodeId: "orchestrator",
      interruptId: "escalation-1",
      kind: "clarification",
      resumeValue: { action: "answer" },
    });
  });

  it("of a question of 0.1.0 is not resolved, because it was not then (L4)", () => {
    const scene = createBlockedScene();
    const [last] = filterByType(scene, "coordination.escalated").slice(-1);
    expect(last?.payload.answers).toBeDefined();
    const none = planScene(
      openPlan({ steps: 2, plan: { budget: { spawns: 1 } } }),
      admit(planStep("a"), planStep("b")),
      dispatch("a"),
      startStep("a"),
      finish("a"),
      TRIP,
    );
    expect(findQuestion(none).answers).toBeUndefined();
    expect(filterByType(none, "escalation.closed")).toHaveLength(1);
    expect(filterByType(none, "interrupt.resolved")).toEqual([]);
  });
});
