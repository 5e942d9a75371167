/** Owns: what hosts ask about questions to people: answering one, putting one, waiting for what comes of it. */
import type { PolicyRef } from "../../contracts/fact-fields.ts";
import { BOUNDS } from "../../contracts/bounds.ts";
import type { AskPeople, Command } from "../../contracts/commands.ts";
import { isOwnerElsewhere } from "../../contracts/coordination-summary.ts";
import { type AgentId, type CoordinationId, type SessionKey, type StepId } from "../../contracts/ids.ts";
import { isAboutResult } from "../../ledger/evolve-questions.ts";
import { findAskedQuestion } from "../../ledger/open-questions.ts";
import { isQuestionWithheld } from "../../ledger/withheld-words.ts";
import {
  isEnded,
  type Coordination,
  type Escalation,
  type KnownCoordination,
  type OpenCoordination,
} from "../../ledger/state.ts";
import { nameOfChild, formatTraceName } from "../../ledger/summary.ts";
import type { JsonObject } from "../../plan/step-graph.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import { contentFromOutputs } from "../attempts/attempt-outcome.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
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
  type QuestionRequests,
} from "./question-requests.ts";
import type { TurnsByName } from "../../std/turns-by-name.ts";
import { chooseRules, withRules, type PolicyRules } from "../environment/policy-rules.ts";
import { questionPolicyOf } from "./question-policy.ts";
import { listPlanOwners } from "./plan-owners.ts";
import { listQuestionsTo } from "./questions-to-session.ts";
import { writeQuestion } from "./question-text.ts";
import { awaitAnswer, findQuestion } from "./await-answer.ts";
import { isCountedAnswer, parseOutputsOrWrap } from "./counted-answer.ts";
import { readAnswerText, type GivenText, type ReadText } from "./text-problem.ts";

export interface QuestionDependencies extends RuntimeDependencies {
  readonly newCoordinationId: () => CoordinationId;
  readonly waits: QuestionWaits;
  /** Looking up and opening take turns by name: one for questions and spawns. */
  readonly opening: TurnsByName;
}

export function createQuestionRequests(dependencies: QuestionDependencies): QuestionRequests {
  return {
    answer: async (request) => {
      const answered = await answer(dependencies, request);
      if (answered.kind === "refused") tellLog(dependencies, request, answered.code);
      return answered;
    },
    isCountedAnswer: (request) => isCountedAnswer(dependencies, request),
    answerChild: (parentAnswer) => answerChild(dependencies, parentAnswer),
    listQuestionsTo: (session, coordinationId) => listQuestionsTo(dependencies, session, coordinationId),
    ask: (request) => ask(dependencies, request),
    outcome: (questionId, waitMs, signal) => awaitAnswer(dependencies, { questionId, waitMs, signal }),
  };
}

/**
 * Takes the answer of a session's model to its child. A question that the session was not asked does not exist for it, so that nothing
 * can be learnt from trying, and no question to people can be answered this way.
 */
async function answerChild(
  dependencies: QuestionDependencies,
  { questionId, session, text }: ParentAnswer,
): Promise<QuestionAnswered> {
  const named = parseQuestionId(questionId);
  const state = named && (await dependencies.runs.latest(named.coordinationId));
  const question = state && findQuestion(state, named.escalationId);
  if (!question || state.kind === "unopened" || !isAskedOf(dependencies, { state, question }, session))
    return refuseUnknownQuestion(questionId);
  return answer(dependencies, {
    questionId,
    answer: text === undefined ? "deny" : "answer",
    by: { kind: "agent", session },
    through: "session",
    ...(text !== undefined && { text }),
  });
}

/** Another gateway may have a session of the same key as the owner that was asked. */
function isAskedOf(
  { settings }: QuestionDependencies,
  { state, question }: { readonly state: KnownCoordination; readonly question: Escalation },
  session: SessionKey,
): boolean {
  return question.askedOf === session && !isOwnerElsewhere(state.created, session, settings);
}

async function answer(dependencies: QuestionDependencies, request: AnswerRequest): Promise<QuestionAnswered> {
  const named = parseQuestionId(request.questionId);
  const state = named && (await dependencies.runs.latest(named.coordinationId));
  const question = state && findQuestion(state, named.escalationId);
  if (!question || state.kind === "unopened") return refuseUnknownQuestion(request.questionId);
  return state.kind === "ended"
    ? refuseClosedQuestion(state, question)
    : answerOpen(dependencies, { state, question, request });
}

const LOGGED_CHARS_MAX = 300;

/**
 * Logs a refused answer. The ledger does not hold all of them: an ended log takes no more, and some are stopped
 * before it.
 */
function tellLog(
  { logger }: QuestionDependencies,
  { questionId, answer: answerGiven, by, through }: AnswerRequest,
  refusal: (QuestionAnswered & { kind: "refused" })["code"],
): void {
  const id = by.id?.slice(0, LOGGED_CHARS_MAX);
  const fields = { question: questionId.slice(0, LOGGED_CHARS_MAX), answer: answerGiven, by: by.kind };
  logger.warn({ ...fields, ...(id !== undefined && { id }), through, refusal }, "an answer did not count");
}

async function answerOpen(dependencies: QuestionDependencies, pending: AskedNow): Promise<QuestionAnswered> {
  const text = await contentOf(dependencies, pending);
  if (text.kind === "refused") return text;
  const { coordinationId } = pending.state;
  const { escalationId } = pending.question;
  const { answer: kind, by, through, questionId } = pending.request;
  const answerText = text.content ? { text: text.content.ref } : {};
  const planOwners = await listPlanOwners(dependencies.runs, pending);
  const command: Command = {
    type: "answerEscalation",
    escalationId,
    answer: kind,
    by,
    through,
    ...answerText,
    ...(planOwners && { planOwners }),
  };
  const submitted = await dependencies.runs.submit(
    coordinationId,
    [command],
    text.content ? [text.content] : [],
  );
  const { resolution } = findQuestion(submitted.state, escalationId)?.closed ?? {};
  if (submitted.kind === "refused") {
    const { code, reason } = submitted;
    return { kind: "refused", code, reason, ...(resolution && { resolution }) };
  }
  return { kind: "accepted", questionId, resolution: resolution ?? "answered", ...nameOption(text) };
}

function nameOption({ option }: { readonly option?: string }): { readonly option?: string } {
  return option === undefined ? {} : { option };
}

interface AskedNow {
  readonly state: OpenCoordination;
  readonly question: Escalation;
  readonly request: AnswerRequest;
}

function refuseUnknownQuestion(questionId: string): QuestionAnswered {
  return { kind: "refused", code: "NOT_FOUND", reason: `there is no question ${JSON.stringify(questionId)}` };
}

function refuseClosedQuestion(
  state: Coordination & { kind: "ended" },
  { closed }: Escalation,
): QuestionAnswered {
  const { resolution = "cancelled" } = closed ?? {};
  const reason = `the question is closed already: ${resolution}; its coordination has ended as ${state.status}, so that this answer changes nothing`;
  return { kind: "refused", code: "QUESTION_CLOSED", reason, resolution };
}

type AnswerText =
  | { readonly kind: "text"; readonly content?: ContentInput; readonly option?: string }
  | (QuestionAnswered & { readonly kind: "refused" });

/** Returns the content of an answer. One that replaces a result must meet the contract of its step. */
async function contentOf(dependencies: QuestionDependencies, pending: AskedNow): Promise<AnswerText> {
  const { text, answer: kind } = pending.request;
  if (text === undefined) return { kind: "text" };
  if (text.length > BOUNDS.answerCharsMax || text.trim() === "")
    return {
      kind: "refused",
      code: "TEXT_TOO_LONG",
      reason: `an answer has 1 to ${BOUNDS.answerCharsMax} characters`,
    };
  const read: ReadText =
    kind === "answer" ? await readAnswerText(dependencies, createGivenText(pending, text)) : { text };
  if ("problem" in read) return refuseText(read.problem);
  // Only a result has outputs: an agent is told the answer of people as they wrote it.
  if (!isAboutResult(pending.question)) {
    const { text: words, option } = read;
    const content = contentFromOutputs(dependencies, { text: words });
    return { kind: "text", content, ...(option !== undefined && { option }) };
  }
  const outputs = parseOutputsOrWrap(text);
  const problem = await findContractProblem(dependencies, pending, outputs);
  return problem === undefined
    ? { kind: "text", content: contentFromOutputs(dependencies, outputs) }
    : refuseText(problem);
}

function refuseText(reason: string): AnswerText {
  return { kind: "refused", code: "ANSWER_REFUSED", reason };
}

function createGivenText({ state, question, request }: AskedNow, text: string): GivenText {
  const isWithheld = isQuestionWithheld(state.steps, question);
  return { question, text, isWithheld, isByChat: request.through === "chat" };
}

async function findContractProblem(
  { plans, contract }: QuestionDependencies,
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
async function ask(dependencies: QuestionDependencies, request: AskRequest): Promise<AskOutcome> {
  const parent = request.to === "parent" ? await findParent(dependencies, request.askedBy) : undefined;
  if (request.to === "parent" && !parent) return { kind: "refused", code: "UNKNOWN_STEP", reason: NO_PARENT };
  const place = await findPlace(dependencies, request);
  return place
    ? askAt(dependencies, request, { parent, place })
    : openInTurn(dependencies, request, async () =>
        askAt(dependencies, request, {
          parent,
          place: (await findPlace(dependencies, request)) ?? (await createPlace(dependencies, request)),
        }),
      );
}

/**
 * Parallel questions of a session open one coordination between them, where they are counted together; with spawns of the same
 * trace, too.
 */
function openInTurn<T>(
  { opening, settings: { gateway } }: QuestionDependencies,
  { askedBy, traceId = QUESTIONS_TRACE }: AskRequest,
  work: () => Promise<T>,
): Promise<T> {
  const trace = formatTraceName({ session: askedBy, gateway }, traceId);
  return opening.run(nameOfChild(askedBy), () => opening.run(trace, work));
}

async function askAt(
  dependencies: QuestionDependencies,
  request: AskRequest,
  { parent, place }: Pick<Asking, "parent" | "place">,
): Promise<AskOutcome> {
  const content = createQuestionContent(dependencies, request);
  const ruled = withRules(dependencies, place.rules);
  const command = draftAsking(ruled, request, { parent, place, question: content.ref });
  const opening = { ruled, policy: place.rules?.policy };
  const commands =
    place.kind === "new" ? [draftOpeningOfQuestion(opening, request, content), command] : [command];
  const submitted = await dependencies.runs.submit(place.runId, commands, [content]);
  if (submitted.kind === "refused")
    return { kind: "refused", code: submitted.code, reason: submitted.reason };
  const found = findAskedQuestion(submitted.state, command);
  if (!found) return { kind: "refused", code: "QUESTION_CLOSED", reason: "the question is closed already" };
  return {
    kind: "asked",
    questionId: questionIdOf(place.runId, found.escalationId),
    deadlineAtMs: found.deadlineAtMs,
  };
}

function createQuestionContent(
  { refOf }: QuestionDependencies,
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
  { escalations: { openMax, parentAnswerMs }, waits }: QuestionDependencies,
  { askedBy, kind, otherwise, answerMs: wishedMs }: AskRequest,
  { parent, place, question }: Asking,
): AskPeople {
  const answerMs = wishedMs ?? (parent && parentAnswerMs);
  return {
    type: "askPeople",
    askedBy,
    kind,
    question,
    hasDefault: otherwise !== undefined,
    openMax,
    tellingsUnderWay: waits.listTellings(place.runId),
    ...(parent && { askedOf: parent }),
    ...(place.stepId && { stepId: place.stepId }),
    ...(answerMs !== undefined && { answerMs }),
  };
}

const NO_PARENT =
  "this session works on no open step, so it has no parent to ask; leave `to` out to ask a person";

/** H3: whose child a session is comes from the ledger. */
async function findParent(
  dependencies: QuestionDependencies,
  child: SessionKey,
): Promise<SessionKey | undefined> {
  const found = await stepOfChild(dependencies, child);
  const isOpen = found?.state.kind === "open" && !isEnded(found.step.phase);
  return isOpen ? found.step.spec.sourceSession : undefined;
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

/** Finds the open coordination that the question belongs to. */
async function findPlace(
  dependencies: QuestionDependencies,
  { askedBy, traceId }: AskRequest,
): Promise<Place | undefined> {
  const traces = traceId ? [traceId, QUESTIONS_TRACE] : [QUESTIONS_TRACE];
  const { gateway, movedFrom } = dependencies.settings;
  // Before the ledger was moved, the gateway that it was moved from named itself nowhere.
  const gateways = gateway !== undefined && gateway === movedFrom ? [gateway, undefined] : [gateway];
  const names = [
    nameOfChild(askedBy),
    ...gateways.flatMap((home) =>
      traces.map((trace) => formatTraceName({ session: askedBy, gateway: home }, trace)),
    ),
  ];
  for (const name of names) {
    const found = await dependencies.store.find(name);
    if (!found) continue;
    const state = await dependencies.runs.state(found.runId);
    if (state.kind !== "open") continue;
    const rules = dependencies.policies?.find(state.created.policy);
    return { kind: "known", runId: found.runId, rules, ...(found.stepId && { stepId: found.stepId }) };
  }
  return undefined;
}

async function createPlace(
  dependencies: QuestionDependencies,
  { askedBy, agentId }: AskRequest,
): Promise<Place> {
  const around = await stepOfChild(dependencies, askedBy);
  const owner = { agent: agentId as AgentId, session: askedBy };
  const rules = chooseRules(dependencies.policies, around, owner);
  return { kind: "new", runId: dependencies.newCoordinationId(), rules };
}

/** A question of a session that coordinates nothing yet. */
function draftOpeningOfQuestion(
  { ruled, policy }: { readonly ruled: QuestionDependencies; readonly policy: PolicyRef | undefined },
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
