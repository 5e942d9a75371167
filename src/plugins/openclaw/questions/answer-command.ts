/**
 * Owns: what the chat command `/coordination` answers. People ask and answer where they talk to the agent; the channel vouches for
 * who they are.
 *
 * H2 it never throws into the host: every reply is one short plain text. A reply may stay in the session, where models read it, so
 * it never holds what is kept back from them.
 */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import {
  canBeNumbered,
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
import { formatFailure, formatLine } from "../chats/chat-text.ts";
import type { Plans, UsePlans } from "../runtime-access/plan-access.ts";
import {
  answerRun,
  askAgent,
  lookAtRun,
  RUN_ID,
  type RunCommandDependencies,
} from "../chats/run-commands.ts";
import { answerQuestion, type AnswerTold, type Which } from "./question-methods.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import type { ChatMessage } from "../chats/chat-message.ts";

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

/** The reply to `/coordination ARGS`. */
export async function answerCommand(
  dependencies: CommandDependencies,
  message: ChatMessage,
): Promise<string> {
  if (!message.isAuthorizedSender && !isForAgents(message)) return refuseSender(dependencies, message);
  try {
    return await replyTo(dependencies, message);
  } catch (error) {
    return formatFailure(error);
  }
}

/** True for messages to agents. Who may call agents is decided apart from who may answer. */
function isForAgents({ args = "" }: ChatMessage): boolean {
  return ["ask", "run"].includes(splitFirstWord(args)[0].toLowerCase());
}

function replyTo(dependencies: CommandDependencies, message: ChatMessage): Promise<string> {
  const [verb, rest] = splitFirstWord(message.args ?? "");
  const command = verb.toLowerCase();
  switch (command) {
    case "ask":
      return askAgent(dependencies, message, splitFirstWord(rest));
    case "run":
      return lookAtRun(dependencies, message, rest);
    case "approve":
    case "deny":
      return rule(dependencies, message, { answer: command, id: rest });
    case "answer":
      return giveText(dependencies, message, rest);
    case "questions":
      return tell(dependencies, message, { isAll: rest.toLowerCase() === "all" });
    case "":
    case "help":
      return Promise.resolve(HELP);
    default:
      return Promise.resolve(
        `There is no command ${JSON.stringify(formatLine(command))}. There are:\n${HELP}`,
      );
  }
}

interface Ruled {
  readonly answer: "approve" | "deny";
  readonly id: string;
}

function rule(
  dependencies: CommandDependencies,
  message: ChatMessage,
  { answer, id }: Ruled,
): Promise<string> {
  if (RUN_ID.test(id)) return giveToRun(dependencies, message, { answer, id });
  return /\s/u.test(id)
    ? Promise.resolve(`Too many words. Try: /coordination ${answer} ID`)
    : give(dependencies, message, { answer, ...idOf(id) });
}

/** Gives an answer to a run. Those who may answer questions may answer for runs. */
function giveToRun(
  dependencies: CommandDependencies,
  message: ChatMessage,
  { answer, id }: Ruled,
): Promise<string> {
  return answerRun(dependencies, message, {
    answer,
    runId: id,
    mayAnswer: (runtime) => mayAnswer(message, runtime),
    refused: () => refuseSender(dependencies, message),
  });
}

function splitFirstWord(text: string): readonly [word: string, rest: string] {
  const trimmed = text.trim();
  const end = trimmed.search(/\s/u);
  return end === -1 ? [trimmed, ""] : [trimmed.slice(0, end), trimmed.slice(end).trim()];
}

function idOf(id: string): Which {
  return id === "" ? {} : { id };
}

/** Ids of questions look so, and the first word of a text does not. */
const QUESTION_ID = /^\S+:[a-z]+-\d+$/u;

function giveText(dependencies: CommandDependencies, message: ChatMessage, rest: string): Promise<string> {
  const [word, more] = splitFirstWord(rest);
  const isNamed = QUESTION_ID.test(word);
  const text = isNamed ? more : rest;
  if (text === "") return Promise.resolve("There is no text. Try: /coordination answer ID TEXT");
  if (text.length > BOUNDS.answerCharsMax) return Promise.resolve("The text is too long.");
  return give(dependencies, message, {
    answer: "answer",
    text,
    ...(isNamed ? { id: word } : { firstWord: word }),
  });
}

/** A shorter beginning of an id is more likely a word of the answer. */
const PREFIX_CHARS_MIN = 6;

/** Returns a reply where the first word of a text was to name a question: a part of an id must not become a part of the answer. */
async function refusePartOfId(reads: QuestionReads, word: string): Promise<string | undefined> {
  const ids = word.length > BOUNDS.coordinationIdCharsMax ? [] : await findIds(reads, word);
  if (ids.length === 0 && !/escalation-\d/u.test(word)) return undefined;
  const hint =
    ids.length > 0 ? `${ids.map((id) => formatLine(id)).join(", ")}.` : "There are: /coordination questions";
  return `Name the whole id before the text: ${JSON.stringify(formatLine(word, 100))} is a part of one. ${hint}`;
}

/** Finds the ids of open questions that a word begins, or that are of the coordination that it names. */
async function findIds(reads: QuestionReads, word: string): Promise<readonly string[]> {
  const { findQuestionByPrefix, selectQuestions } = await import("../../reports/find-questions.ts");
  if (word.length >= PREFIX_CHARS_MIN) return idsOf(await findQuestionByPrefix(reads, word));
  const view = await reads.view(word as CoordinationId);
  return view ? selectQuestions(view, "open").map(formatId) : [];
}

function idsOf(named: NamedQuestion): readonly string[] {
  if (named.kind === "ambiguous") return named.questionIds;
  return named.kind === "found" ? [formatId(named.found)] : [];
}

function formatId({ view, question }: FoundQuestion): string {
  return `${view.coordinationId}:${question.escalationId}`;
}

interface Giving {
  readonly id?: string;
  /** The first word of a text that comes without an id. */
  readonly firstWord?: string;
  readonly answer: AnswerKind;
  readonly text?: string;
}

function give(
  dependencies: CommandDependencies,
  message: ChatMessage,
  { id, firstWord, ...answer }: Giving,
): Promise<string> {
  return dependencies.use(async (plans, runtime) => {
    if (!mayAnswer(message, runtime)) return refuseSender(dependencies, message);
    const refused = firstWord && (await refusePartOfId((await runtime.coordinator()).reads, firstWord));
    if (refused) return refused;
    const session = sessionOf(message);
    if (id === undefined && session === undefined)
      return `Which question? Try: /coordination ${answer.answer} ID`;
    const which: Which = { ...(id !== undefined ? { id } : session && { ownerSession: session }) };
    const by = answererOf(message, session);
    return replyOn(await answerQuestion({ plans, runtime }, which, { ...answer, by, through: "chat" }), id);
  });
}

const VERBS: ReadonlySet<string> = new Set(["approve", "deny", "answer", "questions"]);
const LOGGED_CHARS_MAX = 100;

/** The ledger is not asked about them, so that the log has who tried what, without what they wrote. */
function refuseSender(
  { logger }: CommandDependencies,
  { channel, senderId, args = "" }: ChatMessage,
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

function mayAnswer(
  { channel, senderId, gatewayClientScopes }: ChatMessage,
  { config }: SharedRuntime,
): boolean {
  // Whoever may only write in the gateway must not answer by writing.
  if (gatewayClientScopes && !gatewayClientScopes.some((scope) => MAY_ANSWER.has(scope))) return false;
  const { approvers } = config.escalations;
  if (!approvers) return true;
  return senderId !== undefined && senderId !== "" && approvers.includes(`${channel}:${senderId}`);
}

function sessionOf({ sessionKey }: ChatMessage): SessionKey | undefined {
  return sessionKeySchema.safeParse(sessionKey).data;
}

function answererOf({ channel, senderId }: ChatMessage, session: SessionKey | undefined): Answerer {
  const id = (senderId ? `${channel}:${senderId}` : channel).slice(0, BOUNDS.idCharsMax).toWellFormed();
  return { kind: "person", ...(id !== "" && { id }), ...(session && { session }) };
}

function replyOn(answered: AnswerTold, id: string | undefined): string {
  if (answered.ok) {
    const { questionId, resolution, happened } = answered.told;
    return `${capitalize(resolution)}: ${formatLine(happened)}. (${formatLine(questionId)})`;
  }
  const hint = id === undefined && answered.code === "INPUT_INVALID" ? " Name one of them." : "";
  return `${capitalize(formatLine(answered.message))}.${hint}`;
}

const QUESTIONS_MAX = 5;
/** The words of agents in one reply; one question alone may have all of them. */
const WORD_CHARS = 3_000;

function tell(
  { use }: CommandDependencies,
  message: ChatMessage,
  { isAll }: { readonly isAll: boolean },
): Promise<string> {
  return use(async (_: Plans, runtime) => {
    const { reads } = await runtime.coordinator();
    const session = sessionOf(message);
    const { findNewestQuestions: newestQuestions } = await import("../../reports/find-questions.ts");
    const { createQuestionReport: questionReport } = await import("../../reports/question-report.ts");
    const { questions: found, unreadable } = await newestQuestions(reads, {
      wanted: "open",
      limit: QUESTIONS_MAX + 1,
      ...(!isAll && session && { ownerSession: session }),
    });
    const damaged =
      unreadable.length > 0 ? ["Questions of a damaged coordination cannot be read: run `verify`."] : [];
    if (found.length + damaged.length === 0)
      return isAll ? "No question is open." : "No question is open here. Others: /coordination questions all";
    const lines: string[] = [];
    const shown = found.slice(0, QUESTIONS_MAX);
    for (const each of shown) {
      const report = await questionReport(reads, each, { isForOperator: false });
      lines.push(await formatQuestionLine(report, Math.floor(WORD_CHARS / shown.length)));
    }
    const more = found.length > QUESTIONS_MAX ? ["And more."] : [];
    return [...lines, ...more, ...damaged].join("\n");
  });
}

async function formatQuestionLine(question: QuestionReport, wordChars: number): Promise<string> {
  const { describeSubject, describeAnswers, describeCause } = await import("../../reports/question-lines.ts");
  const { formatInstant } = await import("../../../agents/coordination/std/quantities.ts");
  const { formatShellArguments } = await import("../../../agents/coordination/std/shell-arguments.ts");
  const { questionId, answers, deadlineAtMs, asked: askedText, reason, wordsWithheld } = question;
  const written = reason === undefined ? askedText : { question: reason };
  const words = written ? formatWords(written, formatShellArguments(questionId), wordChars) : "";
  const withheld = wordsWithheld ? " Its words are withheld until its result is let through." : "";
  const subject = formatLine(`${describeSubject(question)}: ${describeCause(question)}`);
  return `${formatLine(questionId)} (${describeAnswers(answers)}; until ${formatInstant(deadlineAtMs)}): ${subject}.${words}${withheld}`;
}

/**
 * Formats the question of an agent and its options: half of the room for each, and a part of that for every option. `typedId`: the
 * question's id as it is typed into a shell.
 */
function formatWords({ question, options = [] }: QuestionText, typedId: string, charsMax: number): string {
  const half = Math.floor(charsMax / 2);
  const optionChars = Math.floor(half / Math.max(1, options.length));
  const isNumbered = canBeNumbered(options);
  const offered = options.map((option, index) => {
    const shown = JSON.stringify(formatLine(option, optionChars));
    return isNumbered ? `${index + 1} ${shown}` : shown;
  });
  const head = isNumbered ? "one of these, or its number:" : "exactly one of";
  const choice = offered.length === 0 ? "" : ` It takes ${head} ${offered.join(", ")}.`;
  const isCut = isLonger(question, half) || options.some((option) => isLonger(option, optionChars));
  const cut = isCut
    ? ` Cut here: read all of it with \`openclaw coordination questions show ${typedId}\`.`
    : "";
  return ` It wrote: ${JSON.stringify(formatLine(question, half))}.${choice}${cut}`;
}

function isLonger(text: string, charsMax: number): boolean {
  return formatLine(text, Infinity).length > charsMax;
}

function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
