/** Owns: the facts about one step as tests make them, and what they made of it. */
import type { ChildDifference } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import type { FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";
import { openOf } from "./claims-scene.ts";
import {
  acknowledge,
  createContentRef,
  createDispatched,
  nameChild,
  OPEN,
  openScene,
  spawn,
  stepId,
  timeAt,
  type Scene,
} from "./scene.ts";

export const OUTPUT = createContentRef("out");
export const ERROR = { code: "child_failed", message: "it went wrong" } as const;
export const CHILD = { childSessionKey: nameChild(1), childRunId: "run-of-1" };
export const TIMES = { attempt: 1, dispatchedAtMs: timeAt(1_000), deadlineAtMs: timeAt(61_000) };
export const ANSWER_BY = timeAt(900_000);
export const BLOCKED = { escalationId: "q-1", answerByMs: ANSWER_BY };

export const attemptOf = (attempt = 1) => ({ stepId: stepId(1), attempt });
export const createAgain = (
  attempt: number,
  rest: Partial<FactPayloads["step.dispatched"]> = {},
): FactDraft => {
  const { payload } = createDispatched(attempt) as FactDraft & { type: "step.dispatched" };
  return { type: "step.dispatched", payload: { ...payload, ...rest } };
};
export const createAcknowledged = (attempt = 1): FactDraft => ({
  type: "step.acknowledged",
  payload: { ...attemptOf(attempt), ...CHILD, via: "hook" },
});
export const createCompleted = (rest: Partial<FactPayloads["step.completed"]> = {}): FactDraft => ({
  type: "step.completed",
  payload: { ...attemptOf(), via: "hook", ...rest },
});
export const createFailed = (rest: Partial<FactPayloads["step.failed"]> = {}): FactDraft => ({
  type: "step.failed",
  payload: { ...attemptOf(), error: ERROR, cancelled: false, via: "hook", ...rest },
});
export const createTimedOut = (rest: Partial<FactPayloads["step.timed_out"]> = {}): FactDraft => ({
  type: "step.timed_out",
  payload: { ...attemptOf(), deadlineAtMs: timeAt(61_000), via: "deadline", ...rest },
});
export const createGranted = (): FactDraft => ({
  type: "step.retry_granted",
  payload: { stepId: stepId(1), by: "operator" },
});
export const createSkipped = (because: FactPayloads["step.skipped"]["because"]): FactDraft => ({
  type: "step.skipped",
  payload: { stepId: stepId(1), because },
});
export const createReported = (text: string, attempt = 1): FactDraft => ({
  type: "step.reported",
  payload: { ...attemptOf(attempt), outcome: "completed", output: createContentRef(text) },
});
export const createProgressed = (percent: number, attempt = 1): FactDraft => ({
  type: "step.progressed",
  payload: { ...attemptOf(attempt), percent, line: createContentRef("line") },
});
export const createDiffered = (field: ChildDifference["field"], attempt = 1): FactDraft => ({
  type: "child.differed",
  payload: { ...attemptOf(attempt), field, asked: "a", ran: "b" },
});
export const createObserved = (
  ran: FactPayloads["child.observed"]["ran"],
  rest: Partial<FactPayloads["child.observed"]> = {},
): FactDraft => ({ type: "child.observed", payload: { ...attemptOf(), ran, ...rest } });

/** A spawn of which its child was not heard yet. */
export const openDispatched = (): Scene => openScene(OPEN, spawn("a"));
/** A spawn whose child is at work since two seconds after the start. */
export const openRunning = (): Scene => openScene(OPEN, spawn("a"), acknowledge(1));
export const stepOf = (scene: Scene): Step => openOf(scene).steps.get(stepId(1))!;

/** The step after facts that happened five seconds after the start, and those that came before it. */
export function playOn(scene: Scene, ...facts: readonly FactDraft[]): Step {
  scene.happened(facts, 5_000);
  return stepOf(scene);
}
