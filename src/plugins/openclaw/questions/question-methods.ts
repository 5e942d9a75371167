/**
 * Owns: the gateway methods about questions to people, and what an answer comes to, whichever way it came.
 *
 * A person may name a question by a unique prefix: what it means is looked up here, in the ledger of the gateway. Held results are
 * never told here, because whoever may read in the gateway need not be a person.
 */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import {
  answerKindSchema,
  type Answerer,
  type AnswerKind,
  type Channel,
} from "../../../agents/coordination/contracts/escalation.ts";
import { coordinationIdSchema, type SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { ENVELOPE_BOUNDS, type ValueBounds } from "../../../agents/coordination/contracts/validation.ts";
import type { QuestionView } from "../../../agents/coordination/runtime/log/coordination-view.ts";
import type { QuestionAnswered } from "../../../agents/coordination/runtime/questions/question-requests.ts";
import type { NamedQuestion, QuestionReads, QuestionSelection } from "../../reports/find-questions.ts";
import type { FoundQuestion, QuestionReport } from "../../reports/question-report.ts";
import {
  createOkAnswer,
  actOnParams,
  createRefusedAnswer,
  type MethodAnswer,
  type RefusedMethodAnswer,
} from "../host/method-answer.ts";
import type { PlanAccess, UsePlans } from "../runtime-access/plan-access.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";

/** Who called a method, as the gateway knows it. */
export interface MethodCaller {
  readonly clientId?: string;
  /** Scopes that the host gives the caller. */
  readonly scopes?: readonly string[];
}

/** Lazy, as all that the entry reaches: they are needed with the first question. */
const loadFind = () => import("../../reports/find-questions.ts");
const loadReport = () => import("../../reports/question-report.ts");
const loadText = () => import("../../reports/question-lines.ts");

const questionId = z
  .string()
  .min(1)
  .max(BOUNDS.coordinationIdCharsMax + BOUNDS.idCharsMax + 1);
const LIMIT = { max: 500, default: 50 } as const;

const questionsParams = z.union([
  z.strictObject({ questionId }),
  z.strictObject({
    coordinationId: coordinationIdSchema.optional(),
    which: z.enum(["open", "all", "undelivered"]).default("open"),
    limit: z.int().min(1).max(LIMIT.max).default(LIMIT.default),
  }),
]);

/**
 * Returns the answer of the gateway method that reads questions: the one whose id is given, or the newest of a
 * coordination or of all; a refusal where the id finds none, or several.
 */
export function handleQuestions(use: UsePlans, params: unknown): Promise<MethodAnswer> {
  return actOnParams({ schema: questionsParams, params, bounds: ENVELOPE_BOUNDS }, (query) =>
    use(async (_, runtime) => {
      const { reads } = await runtime.coordinator();
      if (!("questionId" in query)) return createOkAnswer(await listQuestions(reads, query));
      const { findQuestion } = await loadFind();
      const named = await findQuestion(reads, query.questionId);
      return named.kind === "found"
        ? createOkAnswer({ question: await loadQuestionReport(reads, named.found) })
        : refuseUnfoundQuestion(named, query.questionId);
    }),
  );
}

async function listQuestions(
  reads: QuestionReads,
  { coordinationId, which, limit }: Exclude<z.output<typeof questionsParams>, { questionId: string }>,
): Promise<object> {
  const { findNewestQuestions: newestQuestions, selectQuestions: questionsIn } = await loadFind();
  const wanted: QuestionSelection = which;
  const view = coordinationId && (await reads.view(coordinationId));
  const selected =
    coordinationId === undefined
      ? await newestQuestions(reads, { wanted, limit })
      : { questions: view ? questionsIn(view, wanted).slice(0, limit) : [], unreadable: [] };
  const questions: QuestionReport[] = [];
  for (const each of selected.questions) questions.push(await loadQuestionReport(reads, each));
  const unreadable = selected.unreadable.length;
  return { questions, ...(unreadable > 0 && { unreadable }) };
}

async function loadQuestionReport(reads: QuestionReads, found: FoundQuestion): Promise<QuestionReport> {
  return (await loadReport()).createQuestionReport(reads, found, { isForOperator: false });
}

const ANSWER_BOUNDS: ValueBounds = {
  charsMax: BOUNDS.answerCharsMax + ENVELOPE_BOUNDS.charsMax,
  depthMax: ENVELOPE_BOUNDS.depthMax,
};

const answerParams = z
  .strictObject({
    questionId: questionId.optional(),
    /** In place of an id: the only question that is open. */
    only: z.literal(true).optional(),
    answer: answerKindSchema,
    text: z.string().min(1).max(BOUNDS.answerCharsMax).optional(),
    through: z.enum(["gateway", "cli"]).default("gateway"),
  })
  .refine((params) => (params.questionId === undefined) === (params.only === true), {
    message: "pass either questionId or only",
  })
  .refine((params) => (params.text !== undefined) === (params.answer === "answer"), {
    message: 'a text with "answer", and with nothing else',
    path: ["text"],
  });

/**
 * Records the answer that a client of the gateway gives to a question, and returns what it brought about or a refusal.
 * Whoever has the gateway's token is an operator.
 */
export function answerByOperator(
  use: UsePlans,
  params: unknown,
  caller: MethodCaller,
): Promise<MethodAnswer> {
  return actOnParams({ schema: answerParams, params, bounds: ANSWER_BOUNDS }, (givenAnswer) =>
    use(async (plans, runtime) => {
      const { clientId } = caller;
      const id = clientId?.slice(0, BOUNDS.idCharsMax);
      const by: Answerer = { kind: "operator", ...(id && { id }) };
      const which: QuestionChoice =
        givenAnswer.questionId === undefined ? {} : { id: givenAnswer.questionId };
      const outcome = await answerQuestion({ plans, runtime }, which, {
        answer: givenAnswer.answer,
        by,
        through: givenAnswer.through,
        ...(givenAnswer.text !== undefined && { text: givenAnswer.text }),
      });
      return outcome.ok
        ? createOkAnswer(outcome.told)
        : createRefusedAnswer(outcome.code, outcome.message, outcome.details);
    }),
  );
}

/** A question by its id or a prefix of it; without one, the only open one, among those of a session's coordinations if need be. */
export interface QuestionChoice {
  readonly id?: string;
  readonly ownerSession?: SessionKey;
}

interface GivenAnswer {
  readonly answer: AnswerKind;
  readonly text?: string;
  readonly by: Answerer;
  readonly through: Channel;
}

interface ToldAnswer {
  readonly questionId: string;
  readonly coordinationId: string;
  readonly stepId?: string;
  readonly resolution: (QuestionAnswered & { kind: "accepted" })["resolution"];
  /** One sentence without its end: what the answer brought about. */
  readonly happened: string;
}

export type AnswerTold =
  | { readonly ok: true; readonly told: ToldAnswer }
  | { readonly ok: false; readonly code: string; readonly message: string; readonly details?: object };

/**
 * Finds the question that is named, or the only open one, and records the answer to it; returns what that brought
 * about, or a record that says why it was refused, such as an answer that came first.
 */
export async function answerQuestion(
  { plans, runtime }: { readonly plans: PlanAccess; readonly runtime: SharedRuntime },
  which: QuestionChoice,
  givenAnswer: GivenAnswer,
): Promise<AnswerTold> {
  const { reads } = await runtime.coordinator();
  const { findQuestion, findOnlyOpenQuestion: onlyQuestion } = await loadFind();
  const named = await (which.id === undefined
    ? onlyQuestion(reads, which.ownerSession)
    : findQuestion(reads, which.id));
  if (named.kind !== "found") {
    const { error } = refuseUnfoundQuestion(named, which.id);
    return { ok: false, ...error };
  }
  const report = await loadQuestionReport(reads, named.found);
  const answered = await plans.answer({ questionId: report.questionId, ...givenAnswer });
  if (answered.kind === "refused") return createAnswerRefusal(reads, named.found, answered);
  const { describeEffect: happenedText } = await loadText();
  const { questionId: id, coordinationId, stepId, wordsWithheld } = report;
  const { resolution, option } = answered;
  const happened =
    option === undefined || wordsWithheld
      ? happenedText(report, resolution)
      : `the agent is told ${JSON.stringify(option)}`;
  return {
    ok: true,
    told: { questionId: id, coordinationId, ...(stepId && { stepId }), resolution, happened },
  };
}

/** Refuses an id that means no question, or several. */
function refuseUnfoundQuestion(
  named: Exclude<NamedQuestion, { kind: "found" }>,
  id: string | undefined,
): RefusedMethodAnswer {
  if (named.kind === "ambiguous") {
    const { questionIds } = named;
    const problem =
      id === undefined ? "several questions are open" : `${JSON.stringify(id)} names several questions`;
    return createRefusedAnswer("INPUT_INVALID", `${problem}: ${questionIds.join(", ")}`, { questionIds });
  }
  return createRefusedAnswer("REQUEST_REFUSED", describeMissingQuestion(named, id), {
    refusal: "UNKNOWN_QUESTION",
  });
}

function describeMissingQuestion(
  named: Extract<NamedQuestion, { kind: "pruned" | "unknown" }>,
  id: string | undefined,
): string {
  // A chat begins the sentence with a capital letter, which an id must not get.
  if (named.kind === "pruned") return `there is no such question any more: ${named.error.message}`;
  return id === undefined ? "no question is open" : `no question has the id ${JSON.stringify(id)}`;
}

/** Returns why an answer did not count; to somebody who is late, who or what came first. */
async function createAnswerRefusal(
  reads: QuestionReads,
  { view: { coordinationId }, question: { escalationId } }: FoundQuestion,
  { code, reason }: QuestionAnswered & { kind: "refused" },
): Promise<AnswerTold> {
  if (code === "TEXT_TOO_LONG") return { ok: false, code: "INPUT_INVALID", message: reason };
  const view = await reads.view(coordinationId);
  const newest = view?.escalations.find((each) => each.escalationId === escalationId);
  const isLate = newest?.closed !== undefined && LATE.has(code);
  return {
    ok: false,
    code: "REQUEST_REFUSED",
    message: isLate ? await describeEarlierClosing(newest) : reason,
    details: { refusal: code, ...(isLate && pickClosing(newest)) },
  };
}

const LATE: ReadonlySet<string> = new Set(["QUESTION_CLOSED", "COORDINATION_ENDED"]);

/** Describes who or what came first, for somebody who is late. */
async function describeEarlierClosing(question: QuestionView): Promise<string> {
  const { describeClosing: closedText } = await loadText();
  return `the question is closed already: ${closedText(question)}`;
}

function pickClosing({ closed, answered }: QuestionView): object {
  return { ...(closed && { closed }), ...(answered && { answered }) };
}
