/**
 * Owns: questions to people: asked by agents, answered, expired, told of; and what an answer sets going.
 *
 * E1 the first answer that may count does, and every later one is recorded as refused. E2 a question that nobody answers in time
 * is closed by its deadline, and then the safe way: what was held stays withheld (G3). E3 an answer and what it sets going are one
 * append.
 */
import type { AnswerEscalation, AskPeople } from "../contracts/commands.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import { stepError } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { EpochMs } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { refusalOf } from "../escalation/rule-on-answer.ts";
import { isAboutResult } from "../ledger/evolve-questions.ts";
import type { Escalation, OpenCoordination } from "../ledger/state.ts";
import { asking } from "./ask-people.ts";
import { conflictAnswered } from "./conflict-questions.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import { heldStepOf, letThrough, rejected } from "./decide-held.ts";
import { isPlanned } from "./plan-rules.ts";

type Resolution = FactPayloads["escalation.closed"]["resolution"];

export function askPeople(state: OpenCoordination, command: AskPeople, now: EpochMs): Decision {
  const { askedBy, stepId, kind, question, answerMs, hasDefault, openMax } = command;
  const open = openOfAgents(state);
  const same = open.find((one) => one.askedBy === askedBy && one.question?.sha256 === question.sha256);
  if (same) return { kind: "replay", ...(stepId && { stepId }) };
  if (open.length >= openMax || state.openQuestions.size >= BOUNDS.openQuestionsMax)
    return refuse("TOO_MANY_QUESTIONS", `${open.length} questions are open already; wait for an answer`);
  const asked = asking(
    state,
    {
      cause: "agent",
      ...{ kind, question, askedBy },
      ...(stepId && { stepId }),
      answers: kind === "approval" ? ["approve", "deny", "answer"] : ["answer", "deny"],
      onExpiry: hasDefault ? "default" : "deny",
      ...(answerMs !== undefined && { answerMs }),
    },
    { now },
  );
  return accept([asked], stepId);
}

function openOfAgents({ openQuestions, escalations }: OpenCoordination): Escalation[] {
  return openQuestions
    .keySeq()
    .toArray()
    .flatMap((escalationId) => escalations.get(escalationId) ?? [])
    .filter(({ cause }) => cause === "agent");
}

export function answerEscalation(state: OpenCoordination, command: AnswerEscalation, now: EpochMs): Decision {
  const { type: _, ...given } = command;
  const question = state.escalations.get(command.escalationId);
  if (!question) return refuse("UNKNOWN_QUESTION", `there is no question ${command.escalationId}`);
  const { answer, by } = command;
  const refused = refusalOf(question, { answer, by, hasText: command.text !== undefined, now });
  if (refused) return refusedAnswer(question, { given, refused });
  const fact: FactDraft = { type: "escalation.answered", payload: given };
  const resolution = resolutionOf(question, command);
  if (resolution === "retried" && isSpent(state, question))
    return refuse(
      "NOTHING_TO_RETRY",
      "the step has had as many attempts as a step may have; deny, or cancel the plan",
    );
  return accept([fact, ...closing(state, question, { resolution, given, now })], question.stepId);
}

type Given = FactPayloads["escalation.answered"];

/** E1: it is recorded, as often as is reasonable. */
function refusedAnswer(
  question: Escalation,
  { given, refused }: { readonly given: Given; readonly refused: NonNullable<Given["refused"]> },
): Decision {
  const code = refused === "closed" || refused === "expired" ? "QUESTION_CLOSED" : "ANSWER_REFUSED";
  const refusal = refuse(code, sentenceOn(question, refused));
  if ((question.refusedAnswers ?? 0) >= BOUNDS.refusedAnswersMax) return refusal;
  const { text: _, ...known } = given;
  return { ...refusal, facts: [{ type: "escalation.answered", payload: { ...known, refused } }] };
}

function sentenceOn(
  { closed, answers, answered }: Escalation,
  refused: NonNullable<Given["refused"]>,
): string {
  switch (refused) {
    case "closed": {
      const by = answered ? ` through ${answered.through}` : "";
      return `the question is closed already: ${closed?.resolution ?? "closed"}${by}`;
    }
    case "expired":
      return "the time to answer is over";
    case "not_an_answer":
      return `the question takes ${(answers ?? []).join(", ")}; "answer" comes with a text, the others without`;
    case "same_session":
      return "the session that the question is about may not answer it";
    case "not_allowed":
      return "whoever answered may not answer this question";
  }
}

function isSpent({ steps }: OpenCoordination, { stepId }: Escalation): boolean {
  const attempt = stepId && steps.get(stepId)?.phase.attempt;
  return typeof attempt === "number" && attempt > BOUNDS.retryBudgetMax;
}

function resolutionOf({ cause, stepId }: Escalation, { answer }: AnswerEscalation): Resolution {
  if (answer === "deny") return "denied";
  if (cause === "budget" && stepId === undefined) return "continued";
  if (cause === "retries_exhausted" || cause === "deadline" || cause === "budget") return "retried";
  return answer === "answer" ? "answered" : "approved";
}

interface Closing {
  readonly resolution: Resolution;
  readonly given?: Given;
  readonly now: EpochMs;
}

/** E3: the question is closed, and what waited for it goes on or ends. */
function closing(state: OpenCoordination, question: Escalation, closed: Closing): FactDraft[] {
  const { resolution, given } = closed;
  const { escalationId } = question;
  const by = given && given.by.kind !== "plugin" ? { by: "operator" as const } : {};
  const fact: FactDraft = { type: "escalation.closed", payload: { escalationId, resolution, ...by } };
  return [fact, ...setGoing(state, question, closed)];
}

function setGoing(state: OpenCoordination, question: Escalation, closed: Closing): FactDraft[] {
  const { stepId } = question;
  const { resolution } = closed;
  if (isAboutResult(question)) return ofResult(state, question, closed);
  if (question.cause === "conflict") return conflictAnswered(state, question, resolution);
  if (!stepId) return [];
  if (resolution === "retried") return [{ type: "step.retry_granted", payload: { stepId, by: "operator" } }];
  const isRefused = resolution === "denied" || resolution === "expired";
  const isDoubted = question.cause === "confidence" && state.steps.get(stepId)?.phase.status === "waiting";
  return isRefused && isDoubted ? [{ type: "step.skipped", payload: { stepId, because: "denied" } }] : [];
}

/** G3: approved, it counts; replaced, the text of people does; refused or expired, nothing does. */
function ofResult(
  state: OpenCoordination,
  question: Escalation,
  { resolution, given, now }: Closing,
): FactDraft[] {
  const step = heldStepOf(state, question.stepId);
  if (!step || step.phase.escalationId !== question.escalationId) return [];
  if (resolution === "approved") return letThrough(step, { released: "approved" });
  if (resolution === "answered" && given?.text)
    return letThrough(step, { released: "replaced", output: given.text });
  const why = resolution === "expired" ? "nobody answered in time" : "withheld by people";
  return rejected(state, step, { error: stepError("withheld", why), now });
}

/** E2: the deadline passed; also of a question whose step waits for nothing else. */
export function expireQuestion(
  state: OpenCoordination,
  { escalationId }: { readonly escalationId: string },
  now: EpochMs,
): Decision {
  const question = state.escalations.get(escalationId);
  if (!question || question.closed) return { kind: "replay" };
  if (now < question.deadlineAtMs) return refuse("NOT_READY", `the question ${escalationId} is still open`);
  return accept(closing(state, question, { resolution: "expired", now }));
}

export function recordNotice(
  state: OpenCoordination,
  payload: FactPayloads["escalation.notified"],
): Decision {
  const question = state.escalations.get(payload.escalationId);
  const isKnown = !question?.notices?.[payload.notice] || question.notified?.has(payload.notice);
  return isKnown ? { kind: "replay" } : accept([{ type: "escalation.notified", payload }]);
}

export function recordTelling(state: OpenCoordination, payload: FactPayloads["session.told"]): Decision {
  return state.tellings.has(payload.tellingId)
    ? accept([{ type: "session.told", payload }])
    : { kind: "replay" };
}

/** What nobody can rule on any more, because the coordination ends. */
export function openQuestionsClosed(state: OpenCoordination): FactDraft[] {
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
