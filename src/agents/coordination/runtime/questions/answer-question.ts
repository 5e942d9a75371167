/** Owns: what hosts ask about questions to people, and of that answering one. */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { Command } from "../../contracts/commands.ts";
import { isOwnerElsewhere } from "../../contracts/coordination-summary.ts";
import type { SessionKey } from "../../contracts/ids.ts";
import { isQuestionAboutResult } from "../../ledger/evolve-questions.ts";
import { isQuestionWithheld } from "../../ledger/withheld-words.ts";
import {
  type Coordination,
  type Escalation,
  type KnownCoordination,
  type OpenCoordination,
} from "../../ledger/state.ts";
import type { JsonObject } from "../../plan/step-graph.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import { createOutputsContent } from "../attempts/attempt-outcome.ts";
import {
  parseQuestionId,
  type AnswerRequest,
  type ParentAnswer,
  type QuestionAnswered,
  type QuestionRequests,
} from "./question-requests.ts";
import { listPlanOwners } from "./plan-owners.ts";
import { listOpenQuestionsToSession } from "./questions-to-session.ts";
import { askQuestion, type QuestionDependencies } from "./ask-question.ts";
import { awaitAnswer, findQuestion } from "./await-answer.ts";
import { isCountedAnswer, parseOutputsOrWrap } from "./counted-answer.ts";
import { readAnswerText, type GivenText, type ReadText } from "./text-problem.ts";

/**
 * Creates the requests about questions: to ask, to answer, to list and to wait for the outcome. Refused answers are
 * logged.
 */
export function createQuestionRequests(dependencies: QuestionDependencies): QuestionRequests {
  return {
    answer: async (request) => logIfRefused(dependencies, request, await takeAnswer(dependencies, request)),
    isCountedAnswer: (request) => isCountedAnswer(dependencies, request),
    answerChild: async (parentAnswer) => {
      const request = createParentRequest(parentAnswer);
      return logIfRefused(
        dependencies,
        request,
        await answerChild(dependencies, request, parentAnswer.session),
      );
    },
    listQuestionsTo: (session, coordinationId) =>
      listOpenQuestionsToSession(dependencies, session, coordinationId),
    ask: (request) => askQuestion(dependencies, request),
    outcome: (questionId, waitMs, signal) => awaitAnswer(dependencies, { questionId, waitMs, signal }),
  };
}

/** Returns the answer of a session's model as a request: in words, or "deny" where it does not know or says no. */
function createParentRequest({ questionId, session, text }: ParentAnswer): AnswerRequest {
  return {
    questionId,
    answer: text === undefined ? "deny" : "answer",
    by: { kind: "agent", session },
    through: "session",
    ...(text !== undefined && { text }),
  };
}

/**
 * Takes the answer of a session's model to its child. A question that the session was not asked does not exist for it, so that nothing
 * can be learnt from trying, and no question to people can be answered this way.
 */
async function answerChild(
  dependencies: QuestionDependencies,
  request: AnswerRequest,
  session: SessionKey,
): Promise<QuestionAnswered> {
  const { questionId } = request;
  const named = parseQuestionId(questionId);
  const state = named && (await dependencies.runs.latest(named.coordinationId));
  const question = state && findQuestion(state, named.escalationId);
  if (
    !question ||
    state.kind === "unopened" ||
    !isQuestionToSession(dependencies, { state, question }, session)
  )
    return refuseUnknownQuestion(questionId);
  return takeAnswer(dependencies, request);
}

function isQuestionToSession(
  { settings }: QuestionDependencies,
  { state, question }: { readonly state: KnownCoordination; readonly question: Escalation },
  session: SessionKey,
): boolean {
  return question.askedOf === session && !isOwnerElsewhere(state.created, session, settings);
}

async function takeAnswer(
  dependencies: QuestionDependencies,
  request: AnswerRequest,
): Promise<QuestionAnswered> {
  const named = parseQuestionId(request.questionId);
  const state = named && (await dependencies.runs.latest(named.coordinationId));
  const question = state && findQuestion(state, named.escalationId);
  if (!question || state.kind === "unopened") return refuseUnknownQuestion(request.questionId);
  return state.kind === "ended"
    ? refuseClosedQuestion(state, question)
    : answerOpenQuestion(dependencies, { state, question, request });
}

const LOGGED_CHARS_MAX = 300;

/**
 * Logs an answer that was refused, and returns how it was answered. The ledger does not hold all of them: an ended log
 * takes no more, and some are stopped before it. A question is left out where it is named by what is no id of one,
 * because a model may have written anything there.
 */
function logIfRefused(
  { logger }: QuestionDependencies,
  { questionId, answer: answerGiven, by, through }: AnswerRequest,
  answered: QuestionAnswered,
): QuestionAnswered {
  if (answered.kind !== "refused") return answered;
  const { id, session } = by;
  const fields = {
    ...(parseQuestionId(questionId) && { question: questionId.slice(0, LOGGED_CHARS_MAX) }),
    answer: answerGiven,
    by: by.kind,
    ...(id !== undefined && { id: id.slice(0, LOGGED_CHARS_MAX) }),
    ...(session !== undefined && { session: session.slice(0, LOGGED_CHARS_MAX) }),
    through,
    refusal: answered.code,
  };
  logger.warn(fields, "an answer did not count");
  return answered;
}

async function answerOpenQuestion(
  dependencies: QuestionDependencies,
  pending: AskedNow,
): Promise<QuestionAnswered> {
  const text = await createAnswerContent(dependencies, pending);
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
  return { kind: "accepted", questionId, resolution: resolution ?? "answered", ...createOptionField(text) };
}

function createOptionField({ option }: { readonly option?: string }): { readonly option?: string } {
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

async function createAnswerContent(
  dependencies: QuestionDependencies,
  pending: AskedNow,
): Promise<AnswerText> {
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
  if ("problem" in read) return refuseAnswerText(read.problem);
  // Only a result has outputs: an agent is told the answer of people as they wrote it.
  if (!isQuestionAboutResult(pending.question)) {
    const { text: words, option } = read;
    const content = createOutputsContent(dependencies, { text: words });
    return { kind: "text", content, ...(option !== undefined && { option }) };
  }
  const outputs = parseOutputsOrWrap(text);
  const problem = await findContractProblem(dependencies, pending, outputs);
  return problem === undefined
    ? { kind: "text", content: createOutputsContent(dependencies, outputs) }
    : refuseAnswerText(problem);
}

function refuseAnswerText(reason: string): AnswerText {
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
