/**
 * Owns: what the chat command `/coordination` answers. People ask and answer where they talk to the agent; the channel vouches for
 * who they are.
 *
 * H2 it never throws into the host: every reply is one short plain text. A reply may stay in the session, where models read it, so
 * it never holds what is kept back from them.
 */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import {
  canNumberOptions,
  type Answerer,
  type AnswerKind,
  type QuestionText,
} from "../../../agents/coordination/contracts/escalation.ts";
import {
  sessionKeySchema,
  type CoordinationId,
  type SessionKey,
} from "../../../agents/coordination/contracts/ids.ts";
import type { NamedQuestion, QuestionReads } from "../../reports/find-questions.ts";
import type { FoundQuestion, QuestionReport } from "../../reports/question-report.ts";
import { formatFailure, formatChatLine } from "../chats/chat-text.ts";
import type { PlanAccess, UsePlans } from "../runtime-access/plan-access.ts";
import {
  answerWaitingRun,
  askAgent,
  createRunStateReply,
  RUN_ID,
  type RunCommandDependencies,
} from "../chats/run-commands.ts";
import { answerQuestion, type AnswerTold, type QuestionChoice } from "./question-methods.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import type { CommandMessage } from "../chats/command-message.ts";

const HELP = [
  "/coordination questions: what is asked here",
  "/coordination questions all: what is asked anywhere",
  "/coordination approve ID",
  "/coordination deny ID",
  "/coordination answer ID TEXT",
  "/coordination ask AGENT TEXT: has an agent of a manifest do it",
  "/coordination run RUN: what came of it",
  "Without ID the only open question of this session is meant.",
].join("\n");

const MAY_ANSWER: ReadonlySet<string> = new Set(["operator.approvals", "operator.admin"]);
const NOT_ALLOWED = "You may not answer questions here.";

export interface CommandDependencies extends RunCommandDependencies {
  readonly use: UsePlans;
}

/**
 * Runs the chat command `/coordination ARGS` and returns its reply; a sender without authorization gets a refusal, and
 * an error becomes a reply. Never throws.
 */
export async function answerChatCommand(
  dependencies: CommandDependencies,
  message: CommandMessage,
): Promise<string> {
  if (!message.isAuthorizedSender && !isAgentCommand(message)) return refuseSender(dependencies, message);
  try {
    return await runChatCommand(dependencies, message);
  } catch (error) {
    return formatFailure(error);
  }
}

/** True for commands about agents. Who may call agents is decided apart from who may answer. */
function isAgentCommand({ args = "" }: CommandMessage): boolean {
  return ["ask", "run"].includes(splitFirstWord(args)[0].toLowerCase());
}

/** Runs the command that the first word names, and returns its reply. */
function runChatCommand(dependencies: CommandDependencies, message: CommandMessage): Promise<string> {
  const [verb, rest] = splitFirstWord(message.args ?? "");
  const command = verb.toLowerCase();
  switch (command) {
    case "ask":
      return askAgent(dependencies, message, splitFirstWord(rest));
    case "run":
      return createRunStateReply(dependencies, message, rest);
    case "approve":
    case "deny":
      return giveRuling(dependencies, message, { answer: command, id: rest });
    case "answer":
      return giveTextAnswer(dependencies, message, rest);
    case "questions":
      return tellOpenQuestions(dependencies, message, { isAll: rest.toLowerCase() === "all" });
    case "":
    case "help":
      return Promise.resolve(HELP);
    default:
      return Promise.resolve(
        `There is no command ${JSON.stringify(formatChatLine(command))}. There are:\n${HELP}`,
      );
  }
}

/** An approval or denial that was given by a command, and the id that it names. */
interface QuestionRuling {
  readonly answer: "approve" | "deny";
  readonly id: string;
}

/** Approves or denies what the id names, a run or a question; without an id the only open question. */
function giveRuling(
  dependencies: CommandDependencies,
  message: CommandMessage,
  { answer, id }: QuestionRuling,
): Promise<string> {
  if (RUN_ID.test(id)) return giveRulingToRun(dependencies, message, { answer, id });
  return /\s/u.test(id)
    ? Promise.resolve(`Too many words. Try: /coordination ${answer} ID`)
    : giveAnswer(dependencies, message, { answer, ...selectQuestion(id) });
}

/** Approves or denies what a run waits for. Those who may answer questions may answer for runs. */
function giveRulingToRun(
  dependencies: CommandDependencies,
  message: CommandMessage,
  { answer, id }: QuestionRuling,
): Promise<string> {
  return answerWaitingRun(dependencies, message, {
    answer,
    runId: id,
    mayAnswer: (runtime) => mayAnswerQuestions(message, runtime),
    refused: () => refuseSender(dependencies, message),
  });
}

function splitFirstWord(text: string): readonly [word: string, rest: string] {
  const trimmed = text.trim();
  const end = trimmed.search(/\s/u);
  return end === -1 ? [trimmed, ""] : [trimmed.slice(0, end), trimmed.slice(end).trim()];
}

/** Returns which question is meant; without an id the only open one. */
function selectQuestion(id: string): QuestionChoice {
  return id === "" ? {} : { id };
}

/** Ids of questions look so, and the first word of a text does not. */
const QUESTION_ID = /^\S+:[a-z]+-\d+$/u;

/** Answers a question in words. The text may begin with the question's id. */
function giveTextAnswer(
  dependencies: CommandDependencies,
  message: CommandMessage,
  rest: string,
): Promise<string> {
  const [word, more] = splitFirstWord(rest);
  const isNamed = QUESTION_ID.test(word);
  const text = isNamed ? more : rest;
  if (text === "") return Promise.resolve("There is no text. Try: /coordination answer ID TEXT");
  if (text.length > BOUNDS.answerCharsMax) return Promise.resolve("The text is too long.");
  return giveAnswer(dependencies, message, {
    answer: "answer",
    text,
    ...(isNamed ? { id: word } : { firstWord: word }),
  });
}

/** A shorter beginning of an id is more likely a word of the answer. */
const PREFIX_CHARS_MIN = 6;

/** Returns a refusal where a text begins with a part of a question's id, which must not become a part of the answer. */
async function refusePartOfId(reads: QuestionReads, word: string): Promise<string | undefined> {
  const ids = word.length > BOUNDS.coordinationIdCharsMax ? [] : await findQuestionIds(reads, word);
  if (ids.length === 0 && !/escalation-\d/u.test(word)) return undefined;
  const hint =
    ids.length > 0
      ? `${ids.map((id) => formatChatLine(id)).join(", ")}.`
      : "There are: /coordination questions";
  return `Name the whole id before the text: ${JSON.stringify(formatChatLine(word, 100))} is a part of one. ${hint}`;
}

/** Finds the ids of open questions that a word begins, or that are of the coordination that it names. */
async function findQuestionIds(reads: QuestionReads, word: string): Promise<readonly string[]> {
  const { findQuestionByPrefix, selectQuestions } = await import("../../reports/find-questions.ts");
  if (word.length >= PREFIX_CHARS_MIN) return listFoundIds(await findQuestionByPrefix(reads, word));
  const view = await reads.view(word as CoordinationId);
  return view ? selectQuestions(view, "open").map(formatQuestionId) : [];
}

function listFoundIds(named: NamedQuestion): readonly string[] {
  if (named.kind === "ambiguous") return named.questionIds;
  return named.kind === "found" ? [formatQuestionId(named.found)] : [];
}

function formatQuestionId({ view, question }: FoundQuestion): string {
  return `${view.coordinationId}:${question.escalationId}`;
}

/** An answer that was given by a command, and the question that it names. */
interface CommandAnswer {
  readonly id?: string;
  /** The first word of a text that comes without an id. */
  readonly firstWord?: string;
  readonly answer: AnswerKind;
  readonly text?: string;
}

/** Gives an answer to its question where the sender may answer, and returns the reply. */
function giveAnswer(
  dependencies: CommandDependencies,
  message: CommandMessage,
  { id, firstWord, ...answer }: CommandAnswer,
): Promise<string> {
  return dependencies.use(async (plans, runtime) => {
    if (!mayAnswerQuestions(message, runtime)) return refuseSender(dependencies, message);
    const refused = firstWord && (await refusePartOfId((await runtime.coordinator()).reads, firstWord));
    if (refused) return refused;
    const session = readMessageSession(message);
    if (id === undefined && session === undefined)
      return `Which question? Try: /coordination ${answer.answer} ID`;
    const which: QuestionChoice = { ...(id !== undefined ? { id } : session && { ownerSession: session }) };
    const by = createAnswerer(message, session);
    return formatAnswerReply(
      await answerQuestion({ plans, runtime }, which, { ...answer, by, through: "chat" }),
      id,
    );
  });
}

const VERBS: ReadonlySet<string> = new Set(["approve", "deny", "answer", "questions"]);
const LOGGED_CHARS_MAX = 100;

/** Logs who tried what, without what they wrote, and returns the refusal. The ledger is not asked about them. */
function refuseSender(
  { logger }: CommandDependencies,
  { channel, senderId, args = "" }: CommandMessage,
): string {
  const [verb, rest] = splitFirstWord(args);
  const [word] = splitFirstWord(rest);
  const command = verb.toLowerCase();
  const question = QUESTION_ID.test(word) ? word.slice(0, LOGGED_CHARS_MAX) : undefined;
  logger.warn(
    {
      channel: channel.slice(0, LOGGED_CHARS_MAX),
      ...(senderId && { sender: senderId.slice(0, LOGGED_CHARS_MAX) }),
      ...(VERBS.has(command) && { command }),
      ...(question !== undefined && { question }),
    },
    "a sender who may not answer questions by chat was refused",
  );
  return NOT_ALLOWED;
}

/** True where the sender is an approver, or none is configured; a client of the gateway needs a scope, too. */
function mayAnswerQuestions(
  { channel, senderId, gatewayClientScopes }: CommandMessage,
  { config }: SharedRuntime,
): boolean {
  // Whoever may only write in the gateway must not answer by writing.
  if (gatewayClientScopes && !gatewayClientScopes.some((scope) => MAY_ANSWER.has(scope))) return false;
  const { approvers } = config.escalations;
  if (!approvers) return true;
  return senderId !== undefined && senderId !== "" && approvers.includes(`${channel}:${senderId}`);
}

function readMessageSession({ sessionKey }: CommandMessage): SessionKey | undefined {
  return sessionKeySchema.safeParse(sessionKey).data;
}

function createAnswerer({ channel, senderId }: CommandMessage, session: SessionKey | undefined): Answerer {
  const id = (senderId ? `${channel}:${senderId}` : channel).slice(0, BOUNDS.idCharsMax).toWellFormed();
  return { kind: "person", ...(id !== "" && { id }), ...(session && { session }) };
}

function formatAnswerReply(answered: AnswerTold, id: string | undefined): string {
  if (answered.ok) {
    const { questionId, resolution, happened } = answered.told;
    return `${capitalize(resolution)}: ${formatChatLine(happened)}. (${formatChatLine(questionId)})`;
  }
  const hint = id === undefined && answered.code === "INPUT_INVALID" ? " Name one of them." : "";
  return `${capitalize(formatChatLine(answered.message))}.${hint}`;
}

const QUESTIONS_MAX = 5;
/** The words of agents in one reply; one question alone may have all of them. */
const WORD_CHARS = 3_000;

/** Returns the reply that lists at most five open questions, of this session or of all. */
function tellOpenQuestions(
  { use }: CommandDependencies,
  message: CommandMessage,
  { isAll }: { readonly isAll: boolean },
): Promise<string> {
  return use(async (_: PlanAccess, runtime) => {
    const { reads } = await runtime.coordinator();
    const session = readMessageSession(message);
    const { findNewestQuestions: newestQuestions } = await import("../../reports/find-questions.ts");
    const { createQuestionReport: questionReport } = await import("../../reports/question-report.ts");
    const { questions: openQuestions, unreadable } = await newestQuestions(reads, {
      wanted: "open",
      limit: QUESTIONS_MAX + 1,
      ...(!isAll && session && { ownerSession: session }),
    });
    const damaged =
      unreadable.length > 0 ? ["Questions of a damaged coordination cannot be read: run `verify`."] : [];
    if (openQuestions.length + damaged.length === 0)
      return isAll ? "No question is open." : "No question is open here. Others: /coordination questions all";
    const lines: string[] = [];
    const shown = openQuestions.slice(0, QUESTIONS_MAX);
    for (const each of shown) {
      const report = await questionReport(reads, each, { isForOperator: false });
      lines.push(await formatQuestionLine(report, Math.floor(WORD_CHARS / shown.length)));
    }
    const more = openQuestions.length > QUESTIONS_MAX ? ["And more."] : [];
    return [...lines, ...more, ...damaged].join("\n");
  });
}

async function formatQuestionLine(question: QuestionReport, wordChars: number): Promise<string> {
  const { describeSubject, describeAnswers, describeCause } = await import("../../reports/question-lines.ts");
  const { formatInstant } = await import("../../../agents/coordination/std/quantities.ts");
  const { formatShellArguments } = await import("../../../agents/coordination/std/shell-arguments.ts");
  const { questionId, answers, deadlineAtMs, asked: askedText, reason, wordsWithheld } = question;
  const written = reason === undefined ? askedText : { question: reason };
  const words = written ? formatQuestionText(written, formatShellArguments(questionId), wordChars) : "";
  const withheld = wordsWithheld ? " Its words are withheld until its result is let through." : "";
  const subject = formatChatLine(`${describeSubject(question)}: ${describeCause(question)}`);
  return `${formatChatLine(questionId)} (${describeAnswers(answers)}; until ${formatInstant(deadlineAtMs)}): ${subject}.${words}${withheld}`;
}

/**
 * Formats an agent's question and its options: half of the room for each, and a part of that for every option.
 * `typedId`: the question's id as it is typed into a shell.
 */
function formatQuestionText(
  { question, options = [] }: QuestionText,
  typedId: string,
  charsMax: number,
): string {
  const half = Math.floor(charsMax / 2);
  const optionChars = Math.floor(half / Math.max(1, options.length));
  const isNumbered = canNumberOptions(options);
  const offered = options.map((option, index) => {
    const shown = JSON.stringify(formatChatLine(option, optionChars));
    return isNumbered ? `${index + 1} ${shown}` : shown;
  });
  const head = isNumbered ? "one of these, or its number:" : "exactly one of";
  const choice = offered.length === 0 ? "" : ` It takes ${head} ${offered.join(", ")}.`;
  const isCut =
    isLongerAsLine(question, half) || options.some((option) => isLongerAsLine(option, optionChars));
  const cut = isCut
    ? ` Cut here: read all of it with \`openclaw coordination questions show ${typedId}\`.`
    : "";
  return ` It wrote: ${JSON.stringify(formatChatLine(question, half))}.${choice}${cut}`;
}

function isLongerAsLine(text: string, charsMax: number): boolean {
  return formatChatLine(text, Infinity).length > charsMax;
}

function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
