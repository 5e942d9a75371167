/**
 * Owns: what each fact about a question to people means: asked, told of, answered, forwarded, closed; and what sessions are still to be told.
 *
 * A question is closed once, and what waited for it goes on or ends with that.
 */
import type { FactPayloads } from "../contracts/facts.ts";
import { epochMsOf, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import { updateAfterQuestionClosed, updateAfterPlanQuestion, releaseApprovedStep } from "./plan-progress.ts";
import type { Escalation, OpenCoordination, Step, PendingTelling } from "./state.ts";
import { createQuestionTelling, nameQuestionTelling } from "./tellings.ts";

export type QuestionEvent = FactEvent & {
  type:
    | "coordination.escalated"
    | "escalation.answered"
    | "escalation.notified"
    | "escalation.forwarded"
    | "escalation.closed"
    | "session.told";
};

type UpdateStep = (state: OpenCoordination, stepId: StepId, change: (step: Step) => Step) => OpenCoordination;

/**
 * Returns the state of a coordination after a fact about a question, or about what a session was told; `withStep`
 * updates the step of the question.
 */
export function evolveQuestion(
  state: OpenCoordination,
  event: QuestionEvent,
  withStep: UpdateStep,
): OpenCoordination {
  const atMs = epochMsOf(event.timestamp);
  switch (event.type) {
    case "coordination.escalated":
      return evolveQuestionAsked(state, event.payload, { atMs, withStep });
    case "escalation.answered":
      return updateQuestion(state, event.payload.escalationId, (question) =>
        evolveQuestionAnswered(question, event.payload, atMs),
      );
    case "escalation.notified": {
      const { escalationId, notice, outcome } = event.payload;
      return updateQuestion(state, escalationId, (question) => ({
        ...question,
        notified: new Map([...(question.notified ?? []), [notice, outcome]]),
      }));
    }
    case "escalation.forwarded":
      return evolveQuestionForwarded(state, event.payload, atMs);
    case "escalation.closed":
      return evolveQuestionClosed(state, event, withStep);
    case "session.told":
      return evolveSessionTold(state, event.payload);
  }
}

function evolveQuestionAsked(
  state: OpenCoordination,
  payload: FactPayloads["coordination.escalated"],
  { atMs, withStep }: { readonly atMs: EpochMs; readonly withStep: UpdateStep },
): OpenCoordination {
  const { escalationId, deadlineAtMs, stepId } = payload;
  const next = {
    ...state,
    escalations: state.escalations.set(escalationId, { ...payload, askedAtMs: atMs }),
    openQuestions: state.openQuestions.set(escalationId, deadlineAtMs),
    tellings: addQuestionTelling(state.tellings, payload, atMs),
  };
  const withProgress = next.plan ? { ...next, plan: updateAfterPlanQuestion(next.plan, payload) } : next;
  const phase = stepId && withProgress.steps.get(stepId)?.phase;
  if (!stepId || phase?.status !== "held" || !isQuestionAboutResult(payload)) return withProgress;
  return withStep(withProgress, stepId, (step) => ({ ...step, phase: { ...phase, escalationId } }));
}

/** Adds a telling: the session that is asked in place of people hears of the question. */
function addQuestionTelling(
  tellings: OpenCoordination["tellings"],
  payload: FactPayloads["coordination.escalated"],
  sinceMs: EpochMs,
): OpenCoordination["tellings"] {
  const telling = createQuestionTelling(payload, sinceMs);
  return telling ? tellings.set(telling.tellingId, telling) : tellings;
}

function evolveSessionTold(
  state: OpenCoordination,
  { tellingId, delivery }: FactPayloads["session.told"],
): OpenCoordination {
  const untold = delivery === "not_delivered" ? state.untold.add(tellingId) : state.untold;
  return { ...state, tellings: state.tellings.remove(tellingId), untold };
}

/** Puts a question to people. The session that was asked first need not hear of it any more. */
function evolveQuestionForwarded(
  state: OpenCoordination,
  { escalationId, deadlineAtMs, notices }: FactPayloads["escalation.forwarded"],
  atMs: EpochMs,
): OpenCoordination {
  const forwarded = updateQuestion(state, escalationId, (question) => ({
    ...question,
    deadlineAtMs,
    forwardedAtMs: atMs,
    ...(notices && { notices }),
  }));
  return {
    ...forwarded,
    openQuestions: state.openQuestions.set(escalationId, deadlineAtMs),
    tellings: state.tellings.remove(nameQuestionTelling(escalationId)),
  };
}

/**
 * True when a question is about the result of its step. It is false for a question whether to begin the step, or about
 * what its agent wants to know.
 */
export function isQuestionAboutResult({
  cause,
  confidence,
}: FactPayloads["coordination.escalated"]): boolean {
  if (cause === "verifier" || cause === "mismatch" || cause === "merge") return true;
  return cause === "confidence" && (confidence?.of ?? "decision") !== "decision";
}

function evolveQuestionAnswered(
  question: Escalation,
  { escalationId: _, refused, ...answer }: FactPayloads["escalation.answered"],
  atMs: EpochMs,
): Escalation {
  return refused
    ? { ...question, refusedAnswers: (question.refusedAnswers ?? 0) + 1 }
    : { ...question, answered: { ...answer, atMs } };
}

function evolveQuestionClosed(
  state: OpenCoordination,
  event: FactEvent & { type: "escalation.closed" },
  withStep: UpdateStep,
): OpenCoordination {
  const { escalationId, resolution } = event.payload;
  const atMs = epochMsOf(event.timestamp);
  const question = state.escalations.get(escalationId);
  const withAnswer = updateQuestion(
    {
      ...state,
      openQuestions: state.openQuestions.remove(escalationId),
      tellings: state.tellings.remove(nameQuestionTelling(escalationId)),
    },
    escalationId,
    (open) => ({ ...open, closed: event.payload }),
  );
  const withTold = question ? addAnswerTelling(withAnswer, question, { resolution, atMs }) : withAnswer;
  const next = withTold.plan
    ? { ...withTold, plan: updateAfterQuestionClosed(withTold.plan, event.payload, atMs) }
    : withTold;
  return question?.stepId ? settleWaitingStep(next, { event, stepId: question.stepId, withStep }) : next;
}

/**
 * Lets a step that its planner doubted go on once approved, and ends a blocked one as its last attempt did, or as
 * cancelled; unchanged where it is to be retried or waits for another answer.
 */
function settleWaitingStep(
  state: OpenCoordination,
  {
    event,
    stepId,
    withStep,
  }: {
    readonly event: FactEvent & { type: "escalation.closed" };
    readonly stepId: StepId;
    readonly withStep: UpdateStep;
  },
): OpenCoordination {
  const { escalationId, resolution, by } = event.payload;
  const phase = state.steps.get(stepId)?.phase;
  if (phase?.status === "waiting" && resolution === "approved")
    return releaseApprovedStep(withStep(state, stepId, markApproved), stepId, epochMsOf(event.timestamp));
  if (phase?.status !== "blocked" || phase.escalationId !== escalationId || resolution === "retried")
    return state;
  const { status: _, cause, escalationId: _id, answerByMs: _by, ...tried } = phase;
  return withStep(state, stepId, (step) => ({
    ...step,
    lastFactId: event.eventId,
    phase: { ...tried, status: resolution === "cancelled" && by ? "cancelled" : cause },
  }));
}

function markApproved(step: Step): Step {
  return { ...step, isApproved: true };
}

/** Adds a telling: the session that asked is told the answer, or that there will be none. */
function addAnswerTelling(
  state: OpenCoordination,
  { escalationId, cause, askedBy }: Escalation,
  {
    resolution,
    atMs,
  }: { readonly resolution: FactPayloads["escalation.closed"]["resolution"]; readonly atMs: EpochMs },
): OpenCoordination {
  if (cause !== "agent" || !askedBy || resolution === "cancelled") return state;
  const telling: PendingTelling = {
    tellingId: `answer:${escalationId}`,
    session: askedBy,
    sinceMs: atMs,
    of: { kind: "answer", escalationId },
  };
  return { ...state, tellings: state.tellings.set(telling.tellingId, telling) };
}

function updateQuestion(
  state: OpenCoordination,
  escalationId: string,
  change: (question: Escalation) => Escalation,
): OpenCoordination {
  const before = state.escalations.get(escalationId);
  return before ? { ...state, escalations: state.escalations.set(escalationId, change(before)) } : state;
}
