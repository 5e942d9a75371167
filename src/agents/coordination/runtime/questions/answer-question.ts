/** Owns: what hosts ask about questions to people: answering one, putting one, waiting for what comes of it. */
import type { PolicyRef } from "../../contracts/fact-fields.ts";
import { BOUNDS } from "../../contracts/bounds.ts";
import type { Command } from "../../contracts/commands.ts";
import { isOwnerElsewhere } from "../../contracts/coordination-summary.ts";
import {
  addMs,
  type AgentId,
  type CoordinationId,
  type SessionKey,
  type StepId,
} from "../../contracts/ids.ts";
import { isAboutResult } from "../../ledger/evolve-questions.ts";
import { isQuestionWithheld } from "../../ledger/withheld-words.ts";
import {
  isEnded,
  type Coordination,
  type Escalation,
  type KnownCoordination,
  type OpenCoordination,
} from "../../ledger/state.ts";
import { nameOfChild, formatTraceName } from "../../ledger/summary.ts";
import { type Json, type JsonObject, isJsonObject } from "../../plan/step-graph.ts";
import { isWithinOutputBounds } from "../../plan/read-outputs.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import { contentFromOutputs } from "../attempts/attempt-outcome.ts";
import type { RuntimeParts } from "../environment/runtime-parts.ts";
import { stepOfChild } from "../log/step-of-child.ts";
import type { QuestionWaits } from "./question-waits.ts";
import {
  questionIdOf,
  parseQuestionId,
  type AnswerRequest,
  type ParentAnswer,
  type AskOutcome,
  type AskRequest,
  type QuestionAnswered,
  type QuestionOutcome,
  type QuestionRequests,
} from "./question-requests.ts";
import { withRules, type PolicyRules } from "../environment/policy-rules.ts";
import { questionPolicyOf } from "./question-policy.ts";
import { listQuestionsTo } from "./questions-to-session.ts";
import { writeQuestion } from "./question-text.ts";
import { answerSentence } from "./telling-message.ts";
import { findTextProblem } from "./text-problem.ts";
import { describeError } from "../../std/describe-error.ts";

export interface QuestionParts extends RuntimeParts {
  readonly newCoordinationId: () => CoordinationId;
  readonly waits: QuestionWaits;
}

export function createQuestionRequests(parts: QuestionParts): QuestionRequests {
  return {
    answer: async (request) => {
      const answered = await answer(parts, request);
      if (answered.kind === "refused") tellLog(parts, request, answered.code);
      return answered;
    },
    answerChild: (parentAnswer) => answerChild(parts, parentAnswer),
    listQuestionsTo: (session, coordinationId) => listQuestionsTo(parts, session, coordinationId),
    ask: (request) => ask(parts, request),
    outcome: (questionId, waitMs, signal) => awaitAnswer(parts, { questionId, waitMs, signal }),
  };
}

/**
 * Takes the answer of a session's model to its child. A question that the session was not asked does not exist for it, so that nothing
 * can be learnt from trying, and no question to people can be answered this way.
 */
async function answerChild(
  parts: QuestionParts,
  { questionId, session, text }: ParentAnswer,
): Promise<QuestionAnswered> {
  const named = parseQuestionId(questionId);
  const state = named && (await parts.runs.latest(named.coordinationId));
  const question = state && findQuestion(state, named.escalationId);
  if (!question || state.kind === "unopened" || !isAskedOf(parts, { state, question }, session))
    return refuseUnknownQuestion(questionId);
  return answer(parts, {
    questionId,
    answer: text === undefined ? "deny" : "answer",
    by: { kind: "agent", session },
    through: "session",
    ...(text !== undefined && { text }),
  });
}

/** Another gateway may have a session of the same key as the owner that was asked. */
function isAskedOf(
  { settings: { gateway } }: QuestionParts,
  { state, question }: { readonly state: KnownCoordination; readonly question: Escalation },
  session: SessionKey,
): boolean {
  return question.askedOf === session && !isOwnerElsewhere(state.created, { session, gateway });
}

async function answer(parts: QuestionParts, request: AnswerRequest): Promise<QuestionAnswered> {
  const named = parseQuestionId(request.questionId);
  const state = named && (await parts.runs.latest(named.coordinationId));
  const question = state && findQuestion(state, named.escalationId);
  if (!question || state.kind === "unopened") return refuseUnknownQuestion(request.questionId);
  return state.kind === "ended"
    ? refuseClosedQuestion(state, question)
    : answerOpen(parts, { state, question, request });
}

const LOGGED_CHARS_MAX = 300;

/**
 * Logs a refused answer. The ledger does not hold all of them: an ended log takes no more, and some are stopped
 * before it.
 */
function tellLog(
  { logger }: QuestionParts,
  { questionId, answer: answerGiven, by, through }: AnswerRequest,
  refusal: (QuestionAnswered & { kind: "refused" })["code"],
): void {
  const id = by.id?.slice(0, LOGGED_CHARS_MAX);
  const fields = { question: questionId.slice(0, LOGGED_CHARS_MAX), answer: answerGiven, by: by.kind };
  logger.warn({ ...fields, ...(id !== undefined && { id }), through, refusal }, "an answer did not count");
}

async function answerOpen(parts: QuestionParts, pending: AskedNow): Promise<QuestionAnswered> {
  const text = await contentOf(parts, pending);
  if (text.kind === "refused") return text;
  const { coordinationId } = pending.state;
  const { escalationId } = pending.question;
  const { answer: kind, by, through, questionId } = pending.request;
  const answerText = text.content ? { text: text.content.ref } : {};
  const command: Command = {
    type: "answerEscalation",
    escalationId,
    answer: kind,
    by,
    through,
    ...answerText,
  };
  const submitted = await parts.runs.submit(coordinationId, [command], text.content ? [text.content] : []);
  parts.watch(submitted.state);
  if (submitted.kind === "refused")
    return { kind: "refused", code: submitted.code, reason: submitted.reason };
  const closed = findQuestion(submitted.state, escalationId)?.closed;
  return { kind: "accepted", questionId, resolution: closed?.resolution ?? "answered" };
}

interface AskedNow {
  readonly state: OpenCoordination;
  readonly question: Escalation;
  readonly request: AnswerRequest;
}

function findQuestion(state: Coordination, escalationId: string): Escalation | undefined {
  return state.kind === "unopened" ? undefined : state.escalations.get(escalationId);
}

function refuseUnknownQuestion(questionId: string): QuestionAnswered {
  return { kind: "refused", code: "NOT_FOUND", reason: `there is no question ${JSON.stringify(questionId)}` };
}

function refuseClosedQuestion(
  state: Coordination & { kind: "ended" },
  { closed }: Escalation,
): QuestionAnswered {
  const reason = `the question is closed already: ${closed?.resolution ?? "cancelled"}; its coordination has ended as ${state.status}, so that this answer changes nothing`;
  return { kind: "refused", code: "QUESTION_CLOSED", reason };
}

type AnswerText =
  | { readonly kind: "text"; readonly content?: ContentInput }
  | (QuestionAnswered & { readonly kind: "refused" });

/** Returns the content of an answer. One that replaces a result must meet the contract of its step. */
async function contentOf(
  parts: QuestionParts,
  pending: {
    readonly state: OpenCoordination;
    readonly question: Escalation;
    readonly request: AnswerRequest;
  },
): Promise<AnswerText> {
  const { text, answer: kind } = pending.request;
  if (text === undefined) return { kind: "text" };
  if (text.length > BOUNDS.answerCharsMax || text.trim() === "")
    return {
      kind: "refused",
      code: "TEXT_TOO_LONG",
      reason: `an answer has 1 to ${BOUNDS.answerCharsMax} characters`,
    };
  const outputs = parseOutputsOrWrap(text);
  const problem =
    (kind === "answer" ? await findTextProblem(parts, describeReadable(pending), text) : undefined) ??
    (isAboutResult(pending.question) ? await findContractProblem(parts, pending, outputs) : undefined);
  if (problem) return { kind: "refused", code: "ANSWER_REFUSED", reason: problem };
  return { kind: "text", content: contentFromOutputs(parts, outputs) };
}

function describeReadable({ state, question }: AskedNow) {
  return { question, isWithheld: isQuestionWithheld(state.steps, question) };
}

function parseOutputsOrWrap(text: string): JsonObject {
  try {
    const value = JSON.parse(text) as Json;
    if (isJsonObject(value) && isWithinOutputBounds(value)) return value;
  } catch {
    // Any other text is an answer in words.
  }
  return { text };
}

async function findContractProblem(
  { plans, contract }: QuestionParts,
  { state, question }: { readonly state: OpenCoordination; readonly question: Escalation },
  outputs: JsonObject,
): Promise<string | undefined> {
  const { stepId } = question;
  if (!stepId || !state.steps.get(stepId)?.spec.planned) return undefined;
  const schema = (await plans.graphOf(state)).stepOf.get(stepId)?.outputSchema;
  const [problem] = schema ? (await contract()).check(schema, outputs) : [];
  return problem && `the answer breaks the contract of step ${stepId}: ${problem.path}: ${problem.message}`;
}

/** H3: the question belongs to the step that the session works on, else to a coordination of the session's own. */
async function ask(parts: QuestionParts, request: AskRequest): Promise<AskOutcome> {
  const parent = request.to === "parent" ? await findParent(parts, request.askedBy) : undefined;
  if (request.to === "parent" && !parent) return { kind: "refused", code: "UNKNOWN_STEP", reason: NO_PARENT };
  const content = createQuestionContent(parts, request);
  const place = await placeOf(parts, request);
  const ruled = withRules(parts, place.rules);
  const command = draftAsking(ruled, request, { parent, place, question: content.ref });
  const opening = { ruled, policy: place.rules?.policy };
  const commands =
    place.kind === "new" ? [draftOpeningOfQuestion(opening, request, content), command] : [command];
  const submitted = await parts.runs.submit(place.runId, commands, [content]);
  if (submitted.kind === "refused")
    return { kind: "refused", code: submitted.code, reason: submitted.reason };
  parts.watch(submitted.state);
  const open = openQuestionOf(submitted.state, content.ref.sha256);
  if (!open) return { kind: "refused", code: "QUESTION_CLOSED", reason: "the question is closed already" };
  return {
    kind: "asked",
    questionId: questionIdOf(place.runId, open.escalationId),
    deadlineAtMs: open.deadlineAtMs,
  };
}

function createQuestionContent(
  { refOf }: QuestionParts,
  { question, options, otherwise }: AskRequest,
): ContentInput {
  const text = writeQuestion({
    question,
    ...(options && { options: [...options] }),
    ...(otherwise !== undefined && { otherwise }),
  });
  return { ref: refOf(text), text, keepWhileRunning: true };
}

interface Asking {
  readonly parent: SessionKey | undefined;
  readonly place: Place;
  readonly question: ContentInput["ref"];
}

function draftAsking(
  { escalations: { openMax, parentAnswerMs } }: QuestionParts,
  { askedBy, kind, otherwise, answerMs: wishedMs }: AskRequest,
  { parent, place, question }: Asking,
): Command {
  const answerMs = wishedMs ?? (parent && parentAnswerMs);
  return {
    type: "askPeople",
    askedBy,
    kind,
    question,
    hasDefault: otherwise !== undefined,
    openMax,
    ...(parent && { askedOf: parent }),
    ...(place.stepId && { stepId: place.stepId }),
    ...(answerMs !== undefined && { answerMs }),
  };
}

const NO_PARENT =
  "this session works on no open step, so it has no parent to ask; leave `to` out to ask a person";

/** H3: whose child a session is comes from the ledger. */
async function findParent(parts: QuestionParts, child: SessionKey): Promise<SessionKey | undefined> {
  const found = await stepOfChild(parts, child);
  const isOpen = found?.state.kind === "open" && !isEnded(found.step.phase);
  return isOpen ? found.step.spec.sourceSession : undefined;
}

function openQuestionOf(state: Coordination, sha256: string): Escalation | undefined {
  if (state.kind === "unopened") return undefined;
  return state.escalations.findLast(({ question, closed }) => !closed && question?.sha256 === sha256);
}

interface Place {
  readonly kind: "known" | "new";
  readonly runId: CoordinationId;
  readonly stepId?: StepId;
  /** Those of the pack that holds there alone. */
  readonly rules: PolicyRules | undefined;
}

/** A session that coordinates nothing has one coordination for its questions, so that they are counted together. */
const QUESTIONS_TRACE = "questions";

async function placeOf(parts: QuestionParts, { askedBy, agentId, traceId }: AskRequest): Promise<Place> {
  const traces = traceId ? [traceId, QUESTIONS_TRACE] : [QUESTIONS_TRACE];
  const session = { session: askedBy, gateway: parts.settings.gateway };
  const names = [nameOfChild(askedBy), ...traces.map((trace) => formatTraceName(session, trace))];
  for (const name of names) {
    const found = await parts.store.find(name);
    if (!found) continue;
    const state = await parts.runs.state(found.runId);
    if (state.kind !== "open") continue;
    const rules = parts.policies?.find(state.created.policy);
    return { kind: "known", runId: found.runId, rules, ...(found.stepId && { stepId: found.stepId }) };
  }
  const rules = parts.policies?.choose({ agent: agentId as AgentId, session: askedBy });
  return { kind: "new", runId: parts.newCoordinationId(), rules };
}

/** A question of a session that coordinates nothing yet. */
function draftOpeningOfQuestion(
  { ruled, policy }: { readonly ruled: QuestionParts; readonly policy: PolicyRef | undefined },
  { askedBy, agentId, traceId }: AskRequest,
  { ref }: ContentInput,
): Command {
  const { settings } = ruled;
  return {
    type: "openCoordination",
    origin: "observed",
    ownerSession: askedBy,
    ownerAgent: agentId as AgentId,
    objective: ref,
    trace: { traceId: traceId ?? QUESTIONS_TRACE },
    failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    settleMs: settings.settleMs,
    acknowledgeMs: settings.acknowledgeMs,
    questions: questionPolicyOf(ruled),
    ...(policy && { policy }),
    ...(settings.gateway !== undefined && { gateway: settings.gateway }),
  };
}

const TOLD_BEFORE = "You were told the answer in this session.";

/** Waits for an answer. An answer that is told here is not told again as a turn. */
async function awaitAnswer(
  parts: QuestionParts,
  {
    questionId,
    waitMs,
    signal,
  }: { readonly questionId: string; readonly waitMs: number; readonly signal: AbortSignal | undefined },
): Promise<QuestionOutcome> {
  const named = parseQuestionId(questionId);
  if (!named) return { kind: "open" };
  const { coordinationId, escalationId } = named;
  const tellingId = `answer:${escalationId}`;
  const claim = parts.waits.claim(coordinationId, tellingId);
  try {
    const untilMs = addMs(parts.clock.now(), waitMs);
    await parts.waits.until(
      async () => findQuestion(await parts.runs.latest(coordinationId), escalationId)?.closed !== undefined,
      { untilMs, ...(signal && { signal }) },
    );
    const state = await parts.runs.latest(coordinationId);
    const question = findQuestion(state, escalationId);
    if (!question?.closed) return { kind: "open" };
    const { resolution } = question.closed;
    if (signal?.aborted) return { kind: "open" };
    const submitted = await parts.runs.submit(coordinationId, [
      { type: "recordTelling", tellingId, delivery: "delivered" },
    ]);
    parts.watch(submitted.state);
    const isTold = submitted.kind === "replay";
    return { kind: "closed", resolution, text: isTold ? TOLD_BEFORE : await answerSentence(parts, question) };
  } finally {
    // Sessions that were left to tell are told once nobody waits for it.
    claim.release(() => void lookAgain(parts, coordinationId));
  }
}

async function lookAgain({ runs, watch, logger }: QuestionParts, runId: CoordinationId): Promise<void> {
  try {
    watch(await runs.state(runId));
  } catch (error) {
    logger.warn({ runId }, `could not look again: ${describeError(error)}`);
  }
}
