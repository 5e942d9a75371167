/**
 * Owns: which question an argument means, and finding the newest of all coordinations without reading every log. A ledger that a
 * command reads and a running coordinator are looked into alike.
 */
import type { CoordinationId, SessionKey } from "../../agents/coordination/contracts/ids.ts";
import { isOwnedBy, QUESTIONS_NAME } from "../../agents/coordination/contracts/coordination-summary.ts";
import {
  readCoordination,
  type CoordinationView,
} from "../../agents/coordination/runtime/log/coordination-view.ts";
import {
  questionIdOf,
  parseQuestionId,
} from "../../agents/coordination/runtime/questions/question-requests.ts";
import type { ReportedLedger } from "./reported-ledger.ts";
import type { FoundQuestion } from "./question-report.ts";
import { listRuns } from "../../agents/coordination/runtime/log/read-pages.ts";

export interface QuestionReads extends Pick<ReportedLedger, "list" | "get" | "holders"> {
  /** Whose sessions are meant, where several gateways share the ledger; absent: those of every gateway. */
  readonly gateway?: string;
  /** `undefined` for a coordination that the ledger does not know. */
  view(coordinationId: CoordinationId): Promise<CoordinationView | undefined>;
}

export function createQuestionReads(reader: ReportedLedger): QuestionReads {
  return {
    list: (query) => reader.list(query),
    get: (sha256) => reader.get(sha256),
    holders: (name, limit) => reader.holders(name, limit),
    view: (coordinationId) => readCoordination(reader, coordinationId),
  };
}

/** `undelivered`: people were not told as they should have been, whether or not the question is still open. */
export type Wanted = "open" | "all" | "undelivered";

interface QuestionQuery {
  readonly wanted: Wanted;
  readonly limit: number;
  /** Only those of coordinations of this session. */
  readonly ownerSession?: SessionKey;
  /** Without those that the parent of an agent is asked. */
  readonly isOfPeople?: true;
}

/** Coordinations that are looked into. */
const HOLDERS_MAX = 10_000;
/** Beyond that it is enough to know that there are many. */
export const OPEN_QUESTIONS_MAX = 10_000;

/**
 * Finds questions, the newest first. Coordinations come by their newest question, so that the rest need not be read.
 */
export async function findNewestQuestions(
  reads: QuestionReads,
  { wanted, limit, ownerSession, isOfPeople }: QuestionQuery,
): Promise<FoundQuestion[]> {
  const { gateway } = reads;
  let newest: FoundQuestion[] = [];
  for (const runId of await readHolders(reads, wanted)) {
    const view = await reads.view(runId);
    if (!view) continue;
    if (newest.length >= limit && findLatest(view) < oldestOf(newest)) break;
    if (ownerSession !== undefined && !isOwnedBy(view, { session: ownerSession, gateway })) continue;
    const found = selectQuestions(view, wanted).filter((each) => !isOfPeople || isPutToPeople(each));
    newest = sortNewestFirst([...newest, ...found]).slice(0, limit);
  }
  return newest;
}

/** True unless the question is still its agent's parent's to answer. */
function isPutToPeople({ question: { askedOf, forwardedAtMs } }: FoundQuestion): boolean {
  return askedOf === undefined || forwardedAtMs !== undefined;
}

/** Reads which coordinations have questions. Every question is closed before its coordination ends. */
async function readHolders(reads: QuestionReads, wanted: Wanted): Promise<readonly CoordinationId[]> {
  const holders = await reads.holders(QUESTIONS_NAME, HOLDERS_MAX);
  if (wanted !== "open" || holders.length === 0) return holders;
  const running = await readRunningIds(reads);
  return holders.filter((runId) => running.has(runId));
}

async function readRunningIds(reads: QuestionReads): Promise<ReadonlySet<CoordinationId>> {
  const ids = new Set<CoordinationId>();
  for await (const { runId } of listRuns(reads, { status: "running" })) ids.add(runId);
  return ids;
}

/** Selects questions, the newest first. */
export function selectQuestions(view: CoordinationView, wanted: Wanted): FoundQuestion[] {
  return sortNewestFirst(
    view.escalations
      .filter((question) => isWanted(question, wanted))
      .toReversed()
      .map((question) => ({ view, question })),
  );
}

function isWanted({ closed, notified = {} }: FoundQuestion["question"], wanted: Wanted): boolean {
  if (wanted === "open") return !closed;
  return wanted === "all" || Object.values(notified).includes("failed");
}

function sortNewestFirst(found: readonly FoundQuestion[]): FoundQuestion[] {
  return found.toSorted((a, b) => b.question.askedAtMs - a.question.askedAtMs);
}

function findLatest({ escalations }: CoordinationView): number {
  return escalations.reduce((latest, { askedAtMs }) => Math.max(latest, askedAtMs), 0);
}

function oldestOf(newest: readonly FoundQuestion[]): number {
  return newest.at(-1)?.question.askedAtMs ?? 0;
}

export type NamedQuestion =
  | { readonly kind: "found"; readonly found: FoundQuestion }
  /** Ids of some of the questions that it may mean. */
  | { readonly kind: "ambiguous"; readonly questionIds: readonly string[] }
  | { readonly kind: "unknown" };

const CANDIDATES_MAX = 10;

/** A question by its id; an open one also by a unique prefix, or with a unique prefix of its coordination's id. */
export async function findQuestion(reads: QuestionReads, text: string): Promise<NamedQuestion> {
  const named = parseQuestionId(text);
  const exact = named && (await questionOf(reads, named));
  if (exact) return { kind: "found", found: exact };
  const open = await findNewestQuestions(reads, { wanted: "open", limit: OPEN_QUESTIONS_MAX });
  const begun = open.filter((found) => isNamedBy(found, text));
  if (begun.length > 0) return oneOf(begun);
  return named ? oneOf(await findByCoordinationPrefix(reads, named)) : { kind: "unknown" };
}

/** The only open question, where there is one only. */
export async function findOnlyQuestion(
  reads: QuestionReads,
  ownerSession?: SessionKey,
): Promise<NamedQuestion> {
  const owned = ownerSession ? { ownerSession } : {};
  const query = { wanted: "open", limit: CANDIDATES_MAX, isOfPeople: true, ...owned } as const;
  return oneOf(await findNewestQuestions(reads, query));
}

function oneOf(found: readonly FoundQuestion[]): NamedQuestion {
  const [only, ...others] = found;
  if (!only) return { kind: "unknown" };
  if (others.length === 0) return { kind: "found", found: only };
  return { kind: "ambiguous", questionIds: found.slice(0, CANDIDATES_MAX).map(idOf) };
}

function idOf({ view, question }: FoundQuestion): string {
  return questionIdOf(view.coordinationId, question.escalationId);
}

function isNamedBy(found: FoundQuestion, text: string): boolean {
  if (text === "") return false;
  const named = parseQuestionId(text);
  const { coordinationId } = found.view;
  const isOfPrefix = named !== undefined && coordinationId.startsWith(named.coordinationId);
  return isOfPrefix && named.escalationId === found.question.escalationId
    ? true
    : idOf(found).startsWith(text);
}

type Named = NonNullable<ReturnType<typeof parseQuestionId>>;

async function questionOf(
  reads: QuestionReads,
  { coordinationId, escalationId }: Named,
): Promise<FoundQuestion | undefined> {
  const view = await reads.view(coordinationId);
  const question = view?.escalations.find((each) => each.escalationId === escalationId);
  return view && question && { view, question };
}

/** Finds questions, open or closed, of the coordinations whose ids begin so: whoever answers late is told what came first. */
async function findByCoordinationPrefix(
  reads: QuestionReads,
  { coordinationId, escalationId }: Named,
): Promise<FoundQuestion[]> {
  const entries = await reads.list({ limit: CANDIDATES_MAX, idPrefix: coordinationId });
  const found = await Promise.all(
    entries.map(({ runId }) => questionOf(reads, { coordinationId: runId, escalationId })),
  );
  return found.filter((each) => each !== undefined);
}
