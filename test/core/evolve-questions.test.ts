import { describe, expect, it } from "vitest";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import { isQuestionAboutResult } from "../../src/agents/coordination/ledger/evolve-questions.ts";
import type { Escalation, Step } from "../../src/agents/coordination/ledger/state.ts";
import { openOf } from "./claims-scene.ts";
import { admit, dispatch, failStep, openPlan, planStep, startStep } from "./planned-scene.ts";
import {
  acknowledge,
  nameChild,
  OPEN,
  openScene,
  OWNER,
  spawn,
  stepId,
  timeAt,
  type Scene,
} from "./scene.ts";

type EscalationPayload = FactPayloads["coordination.escalated"];

const DEADLINE = timeAt(600_000);

/** A question of an agent, unless the payload says otherwise. */
const createAsked = (rest: Partial<EscalationPayload> = {}): FactDraft => ({
  type: "coordination.escalated",
  payload: {
    escalationId: "q-1",
    cause: "agent",
    kind: "clarification",
    deadlineAtMs: DEADLINE,
    ...rest,
  },
});
const createAnswered = (rest: Partial<FactPayloads["escalation.answered"]> = {}): FactDraft => ({
  type: "escalation.answered",
  payload: { escalationId: "q-1", answer: "approve", by: { kind: "operator" }, through: "cli", ...rest },
});
const createClosed = (
  resolution: FactPayloads["escalation.closed"]["resolution"],
  rest: Partial<FactPayloads["escalation.closed"]> = {},
): FactDraft => ({ type: "escalation.closed", payload: { escalationId: "q-1", resolution, ...rest } });
const createForwarded = (rest: Partial<FactPayloads["escalation.forwarded"]> = {}): FactDraft => ({
  type: "escalation.forwarded",
  payload: { escalationId: "q-1", deadlineAtMs: timeAt(900_000), ...rest },
});
const createNotified = (
  notice: number,
  outcome: FactPayloads["escalation.notified"]["outcome"],
): FactDraft => ({
  type: "escalation.notified",
  payload: { escalationId: "q-1", notice, channel: "chat", outcome },
});

/** A spawn whose child is at work since two seconds after the start. */
const openRunning = (): Scene => openScene(OPEN, spawn("a"), acknowledge(1));
const questionOf = (scene: Scene, name = "q-1"): Escalation => openOf(scene).escalations.get(name)!;
const stepOf = (scene: Scene, name = "step-1"): Step => openOf(scene).steps.get(name as StepId)!;
const listTellings = (scene: Scene): unknown => openOf(scene).tellings.toArray();
const listOpen = (scene: Scene): unknown => openOf(scene).openQuestions.toArray();
const QUESTION_TELLING = "question:q-1";

describe("a question", () => {
  it("is open until its deadline from the time on at which it was put", () => {
    const scene = openRunning();
    scene.happened([createAsked({ stepId: stepId(1) })], 5_000);
    expect(questionOf(scene)).toStrictEqual({
      escalationId: "q-1",
      stepId: stepId(1),
      cause: "agent",
      kind: "clarification",
      deadlineAtMs: DEADLINE,
      askedAtMs: timeAt(5_000),
    });
    expect(listOpen(scene)).toEqual([["q-1", DEADLINE]]);
    expect(listTellings(scene)).toEqual([]);
  });

  it("knows the answer that counted, with its time, and how many did not count", () => {
    const scene = openRunning();
    scene.happened([createAsked(), createAnswered({ refused: "not_allowed" })]);
    expect(questionOf(scene)).toMatchObject({ refusedAnswers: 1 });
    expect(questionOf(scene)).not.toHaveProperty("answered");
    scene.happened([createAnswered({ refused: "not_allowed" })]);
    scene.happened([createAnswered({ answer: "deny" })], 8_000);
    expect(questionOf(scene)).toMatchObject({ refusedAnswers: 2 });
    expect(questionOf(scene).answered).toStrictEqual({
      answer: "deny",
      by: { kind: "operator" },
      through: "cli",
      atMs: timeAt(8_000),
    });
    expect(listOpen(scene)).toEqual([["q-1", DEADLINE]]);
  });

  it("knows how each of its notices ended", () => {
    const scene = openRunning();
    scene.happened([createAsked(), createNotified(0, "delivered"), createNotified(2, "failed")]);
    expect(questionOf(scene).notified).toEqual(
      new Map([
        [0, "delivered"],
        [2, "failed"],
      ]),
    );
  });

  it("is closed once, and no other is", () => {
    const scene = openRunning();
    scene.happened([createAsked(), createAsked({ escalationId: "q-2" }), createClosed("denied")]);
    expect(questionOf(scene).closed).toEqual({ escalationId: "q-1", resolution: "denied" });
    expect(questionOf(scene, "q-2")).not.toHaveProperty("closed");
    expect(listOpen(scene)).toEqual([["q-2", DEADLINE]]);
  });

  it("that never was is none, whatever a log says became of it", () => {
    const scene = openRunning();
    scene.happened([createAnswered(), createNotified(0, "delivered"), createClosed("denied")]);
    expect(openOf(scene).escalations.size).toBe(0);
    expect(listTellings(scene)).toEqual([]);
  });
});

describe("a question to a session in place of people", () => {
  const ASKED_OF = createAsked({ askedBy: nameChild(1), askedOf: OWNER });

  it("is for that session to hear of", () => {
    const scene = openRunning();
    scene.happened([ASKED_OF], 5_000);
    expect(listTellings(scene)).toEqual([
      [
        QUESTION_TELLING,
        {
          tellingId: QUESTION_TELLING,
          session: OWNER,
          sinceMs: timeAt(5_000),
          of: { kind: "question", escalationId: "q-1" },
        },
      ],
    ]);
    scene.happened([
      { type: "session.told", payload: { tellingId: QUESTION_TELLING, delivery: "delivered" } },
    ]);
    expect(listTellings(scene)).toEqual([]);
  });

  it("goes to people with another deadline, and that session need not hear of it any more", () => {
    const scene = openRunning();
    scene.happened([ASKED_OF]);
    scene.happened([createForwarded()], 8_000);
    expect(questionOf(scene)).toMatchObject({
      cause: "agent",
      deadlineAtMs: timeAt(900_000),
      forwardedAtMs: timeAt(8_000),
    });
    expect(questionOf(scene)).not.toHaveProperty("notices");
    expect(listOpen(scene)).toEqual([["q-1", timeAt(900_000)]]);
    expect(listTellings(scene)).toEqual([]);
  });

  it("has the notices by which people hear of it", () => {
    const scene = openRunning();
    const notices = [{ channel: "chat", atMs: timeAt(8_000) }];
    scene.happened([ASKED_OF, createForwarded({ notices })]);
    expect(questionOf(scene).notices).toEqual(notices);
  });

  it("is nothing to hear of once it is closed", () => {
    const scene = openRunning();
    scene.happened([ASKED_OF, createClosed("cancelled")]);
    expect(listTellings(scene)).toEqual([]);
  });
});

describe("the session that asked", () => {
  it.each(["answered", "denied", "expired"] as const)("hears that its question was %s", (resolution) => {
    const scene = openRunning();
    scene.happened([createAsked({ askedBy: nameChild(1) })]);
    scene.happened([createClosed(resolution)], 9_000);
    expect(listTellings(scene)).toEqual([
      [
        "answer:q-1",
        {
          tellingId: "answer:q-1",
          session: nameChild(1),
          sinceMs: timeAt(9_000),
          of: { kind: "answer", escalationId: "q-1" },
        },
      ],
    ]);
  });

  it.each<readonly [string, Partial<EscalationPayload>, "cancelled" | "denied"]>([
    ["its question was cancelled", { askedBy: nameChild(1) }, "cancelled"],
    ["nobody is known to have asked", {}, "denied"],
    ["it was no agent's question", { askedBy: nameChild(1), cause: "conflict" }, "denied"],
  ])("hears nothing where %s", (_, fields, resolution) => {
    const scene = openRunning();
    scene.happened([createAsked(fields), createClosed(resolution)]);
    expect(listTellings(scene)).toEqual([]);
  });
});

describe("a question about a result", () => {
  const createConfidence = (of?: "decision" | "result" | "verdict") => ({
    floor: 5_000,
    ...(of && { of }),
  });

  it.each<readonly [boolean, Partial<EscalationPayload>]>([
    [true, { cause: "verifier" }],
    [true, { cause: "mismatch" }],
    [true, { cause: "merge" }],
    [true, { cause: "confidence", confidence: createConfidence("result") }],
    [true, { cause: "confidence", confidence: createConfidence("verdict") }],
    [false, { cause: "confidence", confidence: createConfidence("decision") }],
    [false, { cause: "confidence", confidence: createConfidence() }],
    [false, { cause: "confidence" }],
    [false, { cause: "agent", confidence: createConfidence("result") }],
    [false, { cause: "retries_exhausted" }],
  ])("is %s of %j", (is, fields) => {
    expect(isQuestionAboutResult(createAsked(fields).payload as EscalationPayload)).toBe(is);
  });

  it("is noted with the held result, and no other question is", () => {
    const scene = openRunning();
    scene.happened([{ type: "result.held", payload: { stepId: stepId(1), attempt: 1, via: "hook" } }]);
    scene.happened([
      createAsked({ escalationId: "q-0", stepId: stepId(1) }),
      createAsked({ cause: "verifier" }),
    ]);
    expect(stepOf(scene).phase).not.toHaveProperty("escalationId");
    scene.happened([createAsked({ cause: "verifier", stepId: stepId(1) })]);
    expect(stepOf(scene).phase).toMatchObject({ status: "held", escalationId: "q-1" });
  });

  it("is of no step where there is none of its name", () => {
    const scene = openRunning();
    const unknown = { stepId: stepId(9), cause: "verifier" } as const;
    scene.happened([createAsked(unknown), createClosed("approved")]);
    expect(questionOf(scene).closed).toMatchObject({ resolution: "approved" });
    expect(openOf(scene).steps.size).toBe(1);
  });

  it("changes nothing of a step that holds none", () => {
    const scene = openRunning();
    const before = stepOf(scene);
    scene.happened([createAsked({ cause: "verifier", stepId: stepId(1) })]);
    expect(stepOf(scene)).toEqual(before);
  });
});

describe("a step that waits for an answer after its last attempt", () => {
  /** The first question is about the step `a`, which failed. */
  const openBlocked = (): Scene =>
    openScene(
      openPlan({ steps: 1, policy: { escalationPolicy: "hitl" } }),
      admit(planStep("a")),
      dispatch("a"),
      startStep("a"),
      failStep("a"),
    );
  const createEnd = (
    resolution: FactPayloads["escalation.closed"]["resolution"],
    rest: Partial<FactPayloads["escalation.closed"]> = {},
  ) => createClosed(resolution, { escalationId: "escalation-1", ...rest });

  it.each<readonly [string, FactDraft, string]>([
    ["fails as it did where the answer is no", createEnd("denied"), "failed"],
    ["fails as it did where nobody answers", createEnd("expired"), "failed"],
    ["is cancelled where somebody cancels it", createEnd("cancelled", { by: "operator" }), "cancelled"],
    ["fails as it did where the question goes with something else", createEnd("cancelled"), "failed"],
    ["fails as it did where somebody says no", createEnd("denied", { by: "operator" }), "failed"],
  ])("%s", (_, closed, status) => {
    const scene = openBlocked();
    const { phase } = stepOf(scene, "a");
    if (phase.status !== "blocked") throw new Error("it is blocked");
    scene.happened([closed], 9_000);
    const { cause: _cause, escalationId: _id, answerByMs: _by, ...tried } = phase;
    expect(stepOf(scene, "a").phase).toStrictEqual({ ...tried, status });
    expect(stepOf(scene, "a").lastFactId).toBe(
      scene.log.findLast(({ type }) => type === "escalation.closed")?.eventId,
    );
  });

  it("goes on waiting where it is to be tried again, or where another question is closed", () => {
    const scene = openBlocked();
    const before = stepOf(scene, "a").phase;
    scene.happened([createAsked({ escalationId: "q-2", stepId: "a" as StepId })]);
    scene.happened([createClosed("denied", { escalationId: "q-2" })]);
    expect(stepOf(scene, "a").phase).toEqual(before);
    scene.happened([createEnd("retried")]);
    expect(stepOf(scene, "a").phase).toEqual(before);
  });
});

describe("a step that may not begin before people say so", () => {
  const FLOOR = 5_000;
  const openDoubted = (): Scene =>
    openScene(
      openPlan({ steps: 1 }),
      admit(planStep("a", { decision: { confidence: 1_000, floor: FLOOR } })),
    );
  const createDoubt = createAsked({ cause: "confidence", stepId: "a" as StepId });

  it("is ready from their answer on", () => {
    const scene = openDoubted();
    scene.happened([createDoubt]);
    expect(openOf(scene).plan?.ready.data.size).toBe(0);
    scene.happened([createClosed("approved")], 9_000);
    expect(openOf(scene).plan?.ready.data.toArray()).toEqual([["a", timeAt(9_000)]]);
    expect(stepOf(scene, "a")).toMatchObject({ isApproved: true, phase: { status: "waiting" } });
  });

  it("is not where they deny it", () => {
    const scene = openDoubted();
    scene.happened([createDoubt, createClosed("denied")]);
    expect(openOf(scene).plan?.ready.data.size).toBe(0);
    expect(stepOf(scene, "a")).not.toHaveProperty("isApproved");
  });

  it("has nothing of an approval where it is at work already", () => {
    const scene = openRunning();
    scene.happened([createAsked({ stepId: stepId(1) }), createClosed("approved")]);
    expect(stepOf(scene)).not.toHaveProperty("isApproved");
  });
});
