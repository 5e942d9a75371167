/**
 * Owns: deciding about questions to people: asked by agents, answered, expired, notified; and what follows from an answer.
 *
 * E1 the first valid answer counts, and every later one is recorded as refused. E2 a question that nobody answers in time is closed
 * at its deadline in the safe way: a held result stays withheld (G3). One of an agent whose attempt is over is withdrawn. E3 an
 * answer and its consequences are one append.
 */
import type { AnswerEscalation, AskPeople, Command } from "../contracts/commands.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import { createStepError } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { EpochMs, SessionKey } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { findAnswerRefusal } from "../escalation/rule-on-answer.ts";
import { isQuestionAboutResult } from "../ledger/evolve-questions.ts";
import {
  findSameQuestion,
  findUntoldQuestion,
  isQuestionAbandoned,
  isAskedOfParent,
  listAgentQuestions,
  listQuestionsInSameWords,
} from "../ledger/open-questions.ts";
import type { Escalation, OpenCoordination } from "../ledger/state.ts";
import { draftForwardingToPeople, draftQuestion } from "./ask-people.ts";
import { draftResolutionByAnswer } from "./conflict-questions.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import {
  findHeldStep,
  draftAcceptedResult,
  draftRejectedResult,
  findReleaseReason,
  type HeldStep,
} from "./decide-held.ts";
import { isPlanned } from "./plan-rules.ts";

/** How a question to people was closed. */
type EscalationResolution = FactPayloads["escalation.closed"]["resolution"];

/**
 * Decides on a question of an agent to people, or to its parent: accepted as a fact, a replay while the session has
 * the same one and was not told the answer, or refused where too many are open. One that its parent has not answered
 * goes to people as soon as the session asks them the same.
 */
export function askPeople(state: OpenCoordination, command: AskPeople, now: EpochMs): Decision {
  const { askedOf, stepId, answerMs } = command;
  const same = findSameQuestion(state, command);
  if (!same && !findUntoldQuestion(state, command)) return askNewQuestion(state, command, now);
  if (same && !askedOf && isAskedOfParent(same))
    return accept([draftForwardingToPeople(state, same, now, answerMs)], stepId);
  return { kind: "replay", ...(stepId && { stepId }) };
}

function askNewQuestion(state: OpenCoordination, command: AskPeople, now: EpochMs): Decision {
  const { askedBy, askedOf, stepId, kind, question, answerMs, hasDefault, openMax } = command;
  if (listAgentQuestions(state).length >= openMax || state.openQuestions.size >= BOUNDS.openQuestionsMax)
    return refuse("TOO_MANY_QUESTIONS", "as many questions are open as there may be; wait for an answer");
  const draft = draftQuestion(
    state,
    {
      cause: "agent",
      kind,
      question,
      askedBy,
      ...(askedOf && { askedOf }),
      ...(stepId && { stepId }),
      answers: kind === "approval" ? ["approve", "deny", "answer"] : ["answer", "deny"],
      onExpiry: hasDefault ? "default" : "deny",
      ...(answerMs !== undefined && { answerMs }),
    },
    { now },
  );
  return accept([draft, ...draftReplacedQuestionClosings(state, command)], stepId);
}

/** Closes what the session asked its parent in the same words, where it asks people now for something else in them. */
function draftReplacedQuestionClosings(state: OpenCoordination, command: AskPeople): FactDraft[] {
  if (command.askedOf) return [];
  return listQuestionsInSameWords(state, command)
    .filter(isAskedOfParent)
    .map(({ escalationId }) => ({
      type: "escalation.closed",
      payload: { escalationId, resolution: "cancelled" },
    }));
}

/**
 * Decides on an answer to a question: accepted with the end of the question and all that follows, or refused. The
 * refusal of an answer that is not valid is recorded, up to a bound.
 */
export function answerEscalation(state: OpenCoordination, command: AnswerEscalation, now: EpochMs): Decision {
  const { type: _, planOwners = listOwnerOfPlan(state), ...payload } = command;
  const question = state.escalations.get(command.escalationId);
  if (!question) return refuse("UNKNOWN_QUESTION", `there is no question ${command.escalationId}`);
  const { answer, by } = command;
  const hasText = command.text !== undefined;
  const refused = findAnswerRefusal(question, { answer, by, hasText, planOwners, now });
  if (refused) return refuseAndRecordAnswer(question, { given: payload, refused });
  const fact: FactDraft = { type: "escalation.answered", payload };
  const resolution = deriveResolution(question, command);
  if (resolution === "retried" && hasNoAttemptLeft(state, question))
    return refuse(
      "NOTHING_TO_RETRY",
      "the step has had as many attempts as a step may have; deny, or cancel the plan",
    );
  return accept(
    [fact, ...draftClosingWithConsequences(state, question, { resolution, given: payload, now })],
    question.stepId,
  );
}

/** Lists the one session that owns the plan; empty where the coordination has no plan. */
function listOwnerOfPlan(state: OpenCoordination): SessionKey[] {
  return isPlanned(state) ? [state.created.ownerSession] : [];
}

type AnswerPayload = FactPayloads["escalation.answered"];

/** Refuses an answer and records that (E1), up to the bound of recorded refusals. */
function refuseAndRecordAnswer(
  question: Escalation,
  {
    given: answer,
    refused,
  }: { readonly given: AnswerPayload; readonly refused: NonNullable<AnswerPayload["refused"]> },
): Decision {
  const code = refused === "closed" || refused === "expired" ? "QUESTION_CLOSED" : "ANSWER_REFUSED";
  const refusal = refuse(code, describeRefusedAnswer(question, refused));
  if ((question.refusedAnswers ?? 0) >= BOUNDS.refusedAnswersMax) return refusal;
  const { text: _, ...fields } = answer;
  return { ...refusal, facts: [{ type: "escalation.answered", payload: { ...fields, refused } }] };
}

function describeRefusedAnswer(
  { closed, answers, answered }: Escalation,
  refused: NonNullable<AnswerPayload["refused"]>,
): string {
  switch (refused) {
    case "closed": {
      if (closed?.resolution === "cancelled")
        return "the question was withdrawn: nobody needs an answer any more";
      const by = answered ? ` through ${answered.through}` : "";
      return `the question is closed already: ${closed?.resolution ?? "closed"}${by}`;
    }
    case "expired":
      return "the time to answer is over";
    case "not_an_answer":
      return `the question takes ${(answers ?? []).join(", ")}; "answer" comes with a text, the others without`;
    case "same_session":
      return "the session that the question is about, or whose plan it is, may not answer it";
    case "not_allowed":
      return "whoever answered may not answer this question";
  }
}

function hasNoAttemptLeft({ steps }: OpenCoordination, { stepId }: Escalation): boolean {
  const attempt = stepId && steps.get(stepId)?.phase.attempt;
  return typeof attempt === "number" && attempt > BOUNDS.retryBudgetMax;
}

/** Returns in which way an answer closes its question. */
function deriveResolution({ cause, stepId }: Escalation, { answer }: AnswerEscalation): EscalationResolution {
  if (answer === "deny") return "denied";
  if (cause === "budget" && stepId === undefined) return "continued";
  if (cause === "retries_exhausted" || cause === "deadline" || cause === "budget") return "retried";
  return answer === "answer" ? "answered" : "approved";
}

interface QuestionClosing {
  readonly resolution: EscalationResolution;
  readonly given?: AnswerPayload;
  readonly now: EpochMs;
}

/** Drafts the end of a question, and of what waited for it (E3). */
function draftClosingWithConsequences(
  state: OpenCoordination,
  question: Escalation,
  closed: QuestionClosing,
): FactDraft[] {
  const { resolution, given: answer } = closed;
  const { escalationId } = question;
  const isOfPeople = answer?.by.kind === "operator" || answer?.by.kind === "person";
  const by = isOfPeople ? { by: "operator" as const } : {};
  const fact: FactDraft = { type: "escalation.closed", payload: { escalationId, resolution, ...by } };
  return [fact, ...draftClosingConsequences(state, question, closed)];
}

/** Drafts what the end of a question means for the result, the conflict or the step that waited for it. */
function draftClosingConsequences(
  state: OpenCoordination,
  question: Escalation,
  closed: QuestionClosing,
): FactDraft[] {
  const { stepId } = question;
  const { resolution } = closed;
  if (isQuestionAboutResult(question)) return draftResultRuling(state, question, closed);
  if (question.cause === "conflict") return draftResolutionByAnswer(state, question, resolution);
  if (!stepId) return [];
  if (resolution === "retried") return [{ type: "step.retry_granted", payload: { stepId, by: "operator" } }];
  const isRefused = resolution === "denied" || resolution === "expired";
  const isDoubted = question.cause === "confidence" && state.steps.get(stepId)?.phase.status === "waiting";
  return isRefused && isDoubted ? [{ type: "step.skipped", payload: { stepId, because: "denied" } }] : [];
}

const LETTING_THROUGH: ReadonlySet<EscalationResolution> = new Set(["approved", "answered"]);

/** Drafts the fate of a held result: approved it counts, replaced the text of people counts, refused or expired nothing counts (G3). */
function draftResultRuling(
  state: OpenCoordination,
  question: Escalation,
  { resolution, given: answer, now }: QuestionClosing,
): FactDraft[] {
  const step = findHeldStep(state, question.stepId);
  if (!step || step.phase.escalationId !== question.escalationId) return [];
  if (step.spec.isolate && LETTING_THROUGH.has(resolution))
    return draftAcceptedIsolatedResult(state, question, step);
  if (resolution === "approved") return draftAcceptedResult(step, { released: "approved" });
  if (resolution === "answered" && answer?.text)
    return draftAcceptedResult(step, { released: "replaced", output: answer.text });
  const why = resolution === "expired" ? "nobody answered in time" : "withheld by people";
  return draftRejectedResult(state, step, { error: createStepError("withheld", why), now });
}

/**
 * Drafts the acceptance of an isolated step's result that people let through. Nothing where its work is to be merged
 * first.
 */
function draftAcceptedIsolatedResult(
  state: OpenCoordination,
  { cause }: Escalation,
  step: HeldStep,
): FactDraft[] {
  return cause === "merge" ? draftAcceptedResult(step, findReleaseReason(state, step)) : [];
}

/**
 * Decides on closing a question whose deadline has passed, or whose answer nobody waits for any more (E2); refused
 * before that, a replay once closed. One that the session of its parent did not answer in time goes to people, unless
 * it names an answer for this case.
 */
export function expireQuestion(
  state: OpenCoordination,
  { escalationId }: { readonly escalationId: string },
  now: EpochMs,
): Decision {
  const question = state.escalations.get(escalationId);
  if (!question || question.closed) return { kind: "replay" };
  if (now < question.deadlineAtMs)
    return isQuestionAbandoned(state, question)
      ? accept(draftClosingWithConsequences(state, question, { resolution: "cancelled", now }))
      : refuse("NOT_READY", `the question ${escalationId} is still open: its deadline has not passed`);
  if (isAskedOfParent(question) && question.onExpiry !== "default")
    return accept([draftForwardingToPeople(state, question, now)]);
  return accept(draftClosingWithConsequences(state, question, { resolution: "expired", now }));
}

/**
 * Decides on a notice of a question, sent or failed: accepted as a fact; a replay where it is recorded or there is no
 * such notice.
 */
export function recordNotice(
  state: OpenCoordination,
  { type: _, ...payload }: Command & { type: "recordNotice" },
): Decision {
  const question = state.escalations.get(payload.escalationId);
  const isKnown = !question?.notices?.[payload.notice] || question.notified?.has(payload.notice);
  return isKnown ? { kind: "replay" } : accept([{ type: "escalation.notified", payload }]);
}

/**
 * Decides on a telling to a session, done or failed: accepted as a fact; a replay where none with this id is waiting.
 */
export function recordTelling(
  state: OpenCoordination,
  { type: _, ...payload }: Command & { type: "recordTelling" },
): Decision {
  return state.tellings.has(payload.tellingId)
    ? accept([{ type: "session.told", payload }])
    : { kind: "replay" };
}

/** Drafts the facts that cancel all open questions, because the coordination ends. */
export function draftOpenQuestionClosings(state: OpenCoordination): FactDraft[] {
  return state.openQuestions
    .keySeq()
    .toArray()
    .map((escalationId) => ({
      type: "escalation.closed",
      payload: {
        escalationId,
        resolution: "cancelled",
        ...(isPlanned(state) && state.cancelledBy && { by: state.cancelledBy }),
      },
    }));
}
