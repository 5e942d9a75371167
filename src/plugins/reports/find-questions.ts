/**
 * Owns: which question an argument means, and finding the newest of all coordinations without reading every log. A ledger that a
 * command reads and a running coordinator are looked into alike.
 */
import { isBudgetStop } from "../../agents/coordination/contracts/escalation.ts";
import type { CoordinationId, SessionKey } from "../../agents/coordination/contracts/ids.ts";
import {
  isOwnedBy,
  QUESTIONS_NAME,
  type GatewayPlace,
  type OwnerPlace,
} from "../../agents/coordination/contracts/coordination-summary.ts";
import {
  readCoordinationView,
  type CoordinationView,
} from "../../agents/coordination/runtime/log/coordination-view.ts";
import { listOwnersAround } from "../../agents/coordination/runtime/questions/plan-owners.ts";
import {
  createQuestionId,
  parseQuestionId,
} from "../../agents/coordination/runtime/questions/question-requests.ts";
import { findPrunedError, type PrunedError } from "./find-coordination.ts";
import type { ReportedLedger } from "./reported-ledger.ts";
import type { FoundQuestion } from "./question-report.ts";
import { listRuns } from "../../agents/coordination/runtime/log/read-pages.ts";
import { readUnlessDamaged } from "../../agents/coordination/runtime/log/read-state.ts";

/** Reads for the sessions of one gateway, where several share the ledger, or for those of every gateway. */
export interface QuestionReads
  extends Pick<ReportedLedger, "list" | "findUnproven" | "get" | "holders" | "pruned">, GatewayPlace {
  /** `undefined` for a coordination that the ledger does not know. */
  view(coordinationId: CoordinationId): Promise<CoordinationView | undefined>;
}

/** Creates the reads of questions over a ledger that a command reads, which see the sessions of every gateway. */
export function createQuestionReads(reader: ReportedLedger): QuestionReads {
  return { ...reader, view: (coordinationId) => readCoordinationView(reader, coordinationId) };
}

/** `undelivered`: people were not told as they should have been, whether or not the question is still open. */
export type QuestionSelection = "open" | "all" | "undelivered";

interface QuestionQuery {
  readonly wanted: QuestionSelection;
  readonly limit: number;
  /** Only those of coordinations of this session, and of the subagents that work for it. */
  readonly ownerSession?: SessionKey;
  /** Without those that the parent of an agent is asked. */
  readonly isOfPeople?: true;
}

/** Coordinations that are looked into. */
const HOLDERS_MAX = 10_000;
/** Beyond that it is enough to know that there are many. */
export const OPEN_QUESTIONS_MAX = 10_000;

interface NewestQuestions {
  readonly questions: readonly FoundQuestion[];
  /** Coordinations whose logs are damaged: whether they have such questions, nobody can say. */
  readonly unreadable: readonly CoordinationId[];
}

/**
 * Reads the newest questions of all coordinations that fit the query, and the ids of those whose logs are damaged.
 * Coordinations come by their newest question, so that the rest need not be read.
 */
export async function findNewestQuestions(
  reads: QuestionReads,
  query: QuestionQuery,
): Promise<NewestQuestions> {
  const { wanted, limit, isOfPeople } = query;
  const unreadable: CoordinationId[] = [];
  let newest: FoundQuestion[] = [];
  const isOfOwner = createOwnerCheck(reads, query);
  for (const runId of await readAskingCoordinations(reads, query, isOfOwner)) {
    const readable = await readUnlessDamaged(async () => ({ view: await reads.view(runId) }));
    if (!readable) unreadable.push(runId);
    const view = readable?.view;
    if (!view) continue;
    if (newest.length >= limit && findNewestAskedAt(view) < findOldestAskedAt(newest)) break;
    if (!(await isOfOwner(view))) continue;
    const runQuestions = selectQuestions(view, wanted).filter((each) => !isOfPeople || isPutToPeople(each));
    newest = sortNewestFirst([...newest, ...runQuestions]).slice(0, limit);
  }
  return { questions: newest, unreadable };
}

/** True unless the question is still its agent's parent's to answer. */
function isPutToPeople({ question: { askedOf, forwardedAtMs } }: FoundQuestion): boolean {
  return askedOf === undefined || forwardedAtMs !== undefined;
}

/** Reads which coordinations have questions. Every question is closed before its coordination ends. */
async function readAskingCoordinations(
  reads: QuestionReads,
  { wanted }: QuestionQuery,
  isOfOwner: OwnerCheck,
): Promise<readonly CoordinationId[]> {
  const holders = await reads.holders(QUESTIONS_NAME, HOLDERS_MAX);
  if (wanted !== "open" || holders.length === 0) return holders;
  const asking = new Set(holders);
  const running = new Set<CoordinationId>();
  // Whose they are is read of their summaries, which are there for damaged logs, too.
  for await (const { runId, summary } of listRuns(reads, { status: "running" }))
    if (asking.has(runId) && (await isOfOwner(summary))) running.add(runId);
  return holders.filter((runId) => running.has(runId));
}

type OwnerCheck = (opening: OwnerPlace) => Promise<boolean>;

/**
 * Creates a check whether a coordination is of the session that is asked for, or of a subagent that works for it.
 * Without such a session it is always true.
 */
function createOwnerCheck(reads: QuestionReads, { ownerSession }: QuestionQuery): OwnerCheck {
  if (ownerSession === undefined) return () => Promise.resolve(true);
  const checked = new Map<SessionKey, Promise<boolean>>();
  const isAround = async (session: SessionKey): Promise<boolean> =>
    (await listOwnersAround(reads, session)).some((owner) => isOwnedBy(owner, ownerSession, reads));
  return async (opening) => {
    if (isOwnedBy(opening, ownerSession, reads)) return true;
    const { ownerSession: session } = opening;
    const found = checked.get(session) ?? isAround(session);
    checked.set(session, found);
    return found;
  };
}

/** Returns those questions of a coordination that are wanted, the newest first, each with the coordination's view. */
export function selectQuestions(view: CoordinationView, wanted: QuestionSelection): FoundQuestion[] {
  return sortNewestFirst(
    view.escalations
      .filter((question) => isWantedQuestion(question, wanted))
      .toReversed()
      .map((question) => ({ view, question })),
  );
}

function isWantedQuestion(question: FoundQuestion["question"], wanted: QuestionSelection): boolean {
  const { closed, notified = {} } = question;
  if (isBudgetStop(question)) return false;
  if (wanted === "open") return !closed;
  return wanted === "all" || Object.values(notified).includes("failed");
}

function sortNewestFirst(found: readonly FoundQuestion[]): FoundQuestion[] {
  return found.toSorted((a, b) => b.question.askedAtMs - a.question.askedAtMs);
}

/** Returns when the newest question of a coordination was asked, in ms; 0 without any. */
function findNewestAskedAt({ escalations }: CoordinationView): number {
  return escalations.reduce((latest, { askedAtMs }) => Math.max(latest, askedAtMs), 0);
}

function findOldestAskedAt(newest: readonly FoundQuestion[]): number {
  return newest.at(-1)?.question.askedAtMs ?? 0;
}

export type NamedQuestion =
  | { readonly kind: "found"; readonly found: FoundQuestion }
  /** Ids of some of the questions that it may mean. */
  | { readonly kind: "ambiguous"; readonly questionIds: readonly string[] }
  /** The id is that of a coordination that `ledger prune` removed. */
  | { readonly kind: "pruned"; readonly error: PrunedError }
  | { readonly kind: "unknown" };

const CANDIDATES_MAX = 10;

/**
 * Returns the question that the text names: by its whole id, an open one also by a unique prefix, or with a unique
 * prefix of its coordination's id; else that it is unknown, ambiguous or pruned. The whole id of a coordination means
 * no other one that begins with it, whether the ledger still has it or not. @throws CoordinationError of a damaged log
 * that the text may mean
 */
export async function findQuestion(reads: QuestionReads, text: string): Promise<NamedQuestion> {
  const named = parseQuestionId(text);
  const isWhole = named !== undefined && WHOLE_ESCALATION_ID.test(named.escalationId);
  const ofNamed = isWhole ? await findInCoordination(reads, named.coordinationId, text) : undefined;
  return (
    ofNamed ??
    (await findInCoordination(reads, text as CoordinationId, text)) ??
    (await findQuestionByPrefix(reads, text))
  );
}

const WHOLE_ESCALATION_ID = /^escalation-\d+$/u;

/** Finds a question among those of one coordination; `undefined` where there never was a coordination with this id. */
async function findInCoordination(
  reads: QuestionReads,
  coordinationId: CoordinationId,
  text: string,
): Promise<NamedQuestion | undefined> {
  const view = await reads.view(coordinationId);
  if (view) {
    const exact = view.escalations.find((question) => formatQuestionId({ view, question }) === text);
    if (exact) return { kind: "found", found: { view, question: exact } };
    return chooseOnlyQuestion(
      selectQuestions(view, "open").filter((found) => formatQuestionId(found).startsWith(text)),
    );
  }
  const error = await findPrunedError(reads, coordinationId);
  return error && { kind: "pruned", error };
}

/**
 * Returns the open question that a prefix names, or a closed one by the whole of its own id behind a prefix of its
 * coordination's; else that it is unknown, or ambiguous. @throws CoordinationError of a damaged log that the prefix
 * may mean
 */
export async function findQuestionByPrefix(reads: QuestionReads, text: string): Promise<NamedQuestion> {
  const named = parseQuestionId(text);
  const query = { wanted: "open", limit: OPEN_QUESTIONS_MAX } as const;
  const { questions, unreadable } = await findNewestQuestions(reads, query);
  const begun = questions.filter((found) => isQuestionNamedBy(found, text));
  const prefix = named?.coordinationId ?? text;
  const alsoMeant = unreadable.filter((runId) => prefix !== "" && runId.startsWith(prefix));
  if (begun.length < 2) await rereadDamagedLogs(reads, alsoMeant);
  if (begun.length > 0) return chooseOnlyQuestion(begun);
  return named ? chooseOnlyQuestion(await findByCoordinationPrefix(reads, named)) : { kind: "unknown" };
}

/**
 * Returns the only open question to people, of all or of one owner's session; else that there is none, or that several
 * are meant. @throws CoordinationError of a damaged log that may have another
 */
export async function findOnlyOpenQuestion(
  reads: QuestionReads,
  ownerSession?: SessionKey,
): Promise<NamedQuestion> {
  const owned = ownerSession ? { ownerSession } : {};
  const query = { wanted: "open", limit: CANDIDATES_MAX, isOfPeople: true, ...owned } as const;
  const { questions, unreadable } = await findNewestQuestions(reads, query);
  if (questions.length < 2) await rereadDamagedLogs(reads, unreadable);
  return chooseOnlyQuestion(questions);
}

/**
 * Reads logs again that could not be read; throws what is wrong with the first that still cannot, and returns where
 * there is none. @throws CoordinationError
 */
async function rereadDamagedLogs(reads: QuestionReads, unreadable: readonly CoordinationId[]): Promise<void> {
  for (const runId of unreadable) await reads.view(runId);
}

/**
 * Returns the only question; `unknown` where there is none, and `ambiguous` with up to ten of their ids where there
 * are several.
 */
function chooseOnlyQuestion(found: readonly FoundQuestion[]): NamedQuestion {
  const [only, ...others] = found;
  if (!only) return { kind: "unknown" };
  if (others.length === 0) return { kind: "found", found: only };
  return { kind: "ambiguous", questionIds: found.slice(0, CANDIDATES_MAX).map(formatQuestionId) };
}

function formatQuestionId({ view, question }: FoundQuestion): string {
  return createQuestionId(view.coordinationId, question.escalationId);
}

/** True where the text is the beginning of the question's id, or its own id behind a prefix of its coordination's. */
function isQuestionNamedBy(found: FoundQuestion, text: string): boolean {
  if (text === "") return false;
  const named = parseQuestionId(text);
  const { coordinationId } = found.view;
  const isOfPrefix = named !== undefined && coordinationId.startsWith(named.coordinationId);
  return isOfPrefix && named.escalationId === found.question.escalationId
    ? true
    : formatQuestionId(found).startsWith(text);
}

/** The ids of a question and of its coordination. */
type QuestionIds = NonNullable<ReturnType<typeof parseQuestionId>>;

async function readQuestionById(
  reads: QuestionReads,
  { coordinationId, escalationId }: QuestionIds,
): Promise<FoundQuestion | undefined> {
  const view = await reads.view(coordinationId);
  const question = view?.escalations.find((each) => each.escalationId === escalationId);
  return view && question && { view, question };
}

/** Finds questions, open or closed, of the coordinations whose ids begin so: whoever answers late is told what came first. */
async function findByCoordinationPrefix(
  reads: QuestionReads,
  { coordinationId, escalationId }: QuestionIds,
): Promise<FoundQuestion[]> {
  const entries = await reads.list({ limit: CANDIDATES_MAX, idPrefix: coordinationId });
  const found = await Promise.all(
    entries.map(({ runId }) => readQuestionById(reads, { coordinationId: runId, escalationId })),
  );
  return found.filter((each) => each !== undefined);
}
