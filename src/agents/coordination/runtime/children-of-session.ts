/**
 * Owns: which children a session has, for a model whose history was compacted: a note that names them, and whether a spawn repeats
 * one of them. Does not own: when a history was compacted.
 */
import type { RunnerKind } from "../contracts/fact-fields.ts";
import {
  DELIVERY_STEP_ID,
  formatTimestamp,
  type AgentId,
  type CoordinationId,
  type EpochMs,
  type SessionKey,
} from "../contracts/ids.ts";
import { isOwnerElsewhere, type GatewayPlace } from "../contracts/coordination-summary.ts";
import type { ContentsReader } from "../ports/content-store.ts";
import type { LedgerQueries, RunsQuery } from "../ports/ledger-queries.ts";
import type { CoordinationView, StepView } from "./log/coordination-view.ts";
import { listFoundRuns } from "./log/read-found.ts";
import { readUnlessDamaged } from "./log/read-state.ts";
import { quoteUnlessPlain, removeUnseen } from "./questions/plain-text.ts";

/** A child of a session, as the ledger has it. */
export interface ChildOfSession {
  readonly coordinationId: CoordinationId;
  readonly step: StepView;
}

/** Reads for the sessions of one gateway, where several share the ledger. */
export interface ChildrenReads extends Pick<LedgerQueries, "findRuns">, ContentsReader, GatewayPlace {
  view(coordinationId: CoordinationId): Promise<CoordinationView | undefined>;
}

/** Coordinations that are looked into, the newest first: open ones, and others. */
const OPEN_RUNS_MAX = 200;
const RUNS_MAX = 20;
/** Coordinations looked at, where another gateway's session of the same key may have opened some. */
const LOOKED_MAX = 2_000;
/** The children that are enough. */
const CHILDREN_MAX = 200;

/**
 * Lists the recorded subagents that a session spawned, open and ended, the newest first, up to a bound. @throws
 * CoordinationError as `LedgerQueries.findRuns`
 */
export async function listChildrenOfSession(
  reads: Omit<ChildrenReads, "getMany">,
  session: SessionKey,
): Promise<readonly ChildOfSession[]> {
  return (await findChildrenWithCuts(reads, session)).children;
}

/** Says of which children the session may have more than were found. */
interface ChildrenCuts {
  readonly isOpenCut: boolean;
  readonly isEndedCut: boolean;
}

interface FoundChildren extends ChildrenCuts {
  readonly children: readonly ChildOfSession[];
}

/**
 * Finds the children of a session. Where they are too many, open ones come before those that have ended, and newer ones before older.
 * A coordination whose log is damaged is left out, and may have had more of them.
 */
async function findChildrenWithCuts(
  reads: Omit<ChildrenReads, "getMany">,
  session: SessionKey,
): Promise<FoundChildren> {
  const openRuns = await findRunsOfSession(reads, { filter: { session }, status: "running" }, OPEN_RUNS_MAX);
  const newestRuns = await findRunsOfSession(reads, { filter: { session } }, RUNS_MAX);
  const children: ChildOfSession[] = [];
  const damaged: CoordinationId[] = [];
  for (const [index, runId] of [...new Set([...openRuns.runIds, ...newestRuns.runIds])].entries()) {
    if (index >= openRuns.runIds.length && children.length > CHILDREN_MAX) break;
    const found = await readUnlessDamaged(() => listChildrenInCoordination(reads, runId, session));
    if (found) children.push(...found);
    else damaged.push(runId);
  }
  const ordered = orderOpenFirst(children.toSorted(compareNewestFirst));
  return {
    children: ordered.slice(0, CHILDREN_MAX).toSorted(compareNewestFirst),
    isOpenCut:
      openRuns.isCut ||
      ordered.slice(CHILDREN_MAX).some((child) => !hasEnded(child)) ||
      damaged.some((runId) => openRuns.runIds.includes(runId)),
    isEndedCut: newestRuns.isCut || ordered.length > CHILDREN_MAX || damaged.length > 0,
  };
}

async function listChildrenInCoordination(
  reads: Pick<ChildrenReads, "view">,
  coordinationId: CoordinationId,
  session: SessionKey,
): Promise<readonly ChildOfSession[]> {
  const { steps = [] } = (await reads.view(coordinationId)) ?? {};
  return steps
    .filter(({ sourceSession, stepId }) => sourceSession === session && stepId !== DELIVERY_STEP_ID)
    .map((step) => ({ coordinationId, step }));
}

function compareNewestFirst(a: ChildOfSession, b: ChildOfSession): number {
  return b.step.admittedAtMs - a.step.admittedAtMs;
}

function orderOpenFirst(children: readonly ChildOfSession[]): readonly ChildOfSession[] {
  return [...children.filter((child) => !hasEnded(child)), ...children.filter(hasEnded)];
}

function hasEnded({ step }: ChildOfSession): boolean {
  return ENDED.has(step.status);
}

interface FoundRuns {
  readonly runIds: readonly CoordinationId[];
  /** There may be more. */
  readonly isCut: boolean;
}

/** Finds the newest coordinations that a session owns or takes part in, without those of such a session of another gateway. */
async function findRunsOfSession(
  reads: Pick<ChildrenReads, "findRuns" | keyof GatewayPlace>,
  query: RunsOfSession,
  runsMax: number,
): Promise<FoundRuns> {
  const runIds: CoordinationId[] = [];
  let looked = 0;
  for await (const { runId, summary } of listFoundRuns(reads, query)) {
    if (runIds.length === runsMax || looked === LOOKED_MAX) return { runIds, isCut: true };
    looked += 1;
    // A child's key is its own in every gateway, also where the coordination was opened in another one.
    if (!isOwnerElsewhere(summary, query.filter.session, reads)) runIds.push(runId);
  }
  return { runIds, isCut: false };
}

interface RunsOfSession extends Pick<RunsQuery, "status"> {
  readonly filter: { readonly session: SessionKey };
}

const ENDED: ReadonlySet<StepView["status"]> = new Set([
  "completed",
  "failed",
  "timed_out",
  "cancelled",
  "skipped",
]);

/** The longest note to a session about its children. */
export const NOTE_CHARS_MAX = 2_000;

const HOW =
  "Results of open ones come to you as usual. What one said: sessions_history with its session. Outputs of a step: coordination_status with its coordinationId and outputsOf.";

/**
 * Returns the note that a session reads of its subagents after its history was compacted: the open ones, then those
 * that have ended, the newest first, as many as fit. `undefined` where it has none.
 */
export async function describeChildren(
  reads: ChildrenReads,
  session: SessionKey,
): Promise<string | undefined> {
  const { children, ...cuts } = await findChildrenWithCuts(reads, session);
  if (children.length === 0) return undefined;
  return formatChildrenNote(children, await readTasksOfUnnamed(reads, children), cuts);
}

/**
 * Reads the tasks of the children without a name, of as many as a note may list, by sha256: how these begin tells the
 * children apart.
 */
function readTasksOfUnnamed(
  reads: ChildrenReads,
  children: readonly ChildOfSession[],
): Promise<ReadonlyMap<string, string>> {
  const unnamed = orderOpenFirst(children)
    .filter(({ step }) => step.name === undefined)
    .slice(0, LINES_MAX);
  return unnamed.length === 0
    ? Promise.resolve(new Map())
    : reads.getMany([...new Set(unnamed.map(({ step }) => step.input.sha256))]);
}

/** More lines do not fit. */
const LINES_MAX = 40;
/** For how many children are left out. */
const REST_CHARS = 80;

/**
 * Formats the note to a session, whose history was compacted, about its subagents: a line for each that fits, then how
 * many are left out. `tasks`: those of subagents without a name, by sha256.
 */
export function formatChildrenNote(
  children: readonly ChildOfSession[],
  tasks: ReadonlyMap<string, string>,
  { isOpenCut, isEndedCut }: ChildrenCuts = { isOpenCut: false, isEndedCut: false },
): string {
  const endedCount = children.filter(hasEnded).length;
  const openCount = children.length - endedCount;
  const head = `[Coordination] Your history was compacted. You have ${formatCount(openCount, isOpenCut)} open and ${formatCount(endedCount, isEndedCut)} ended subagents; do not spawn again what one of them does or did.`;
  const lines: string[] = [];
  let room = NOTE_CHARS_MAX - head.length - HOW.length - REST_CHARS;
  for (const child of orderOpenFirst(children)) {
    const line = `- ${describeChild(child, tasks)}`;
    if (lines.length === LINES_MAX || line.length + 1 > room) break;
    lines.push(line);
    room -= line.length + 1;
  }
  const unlistedCount = children.length - lines.length;
  const leftCount = formatCount(unlistedCount, isOpenCut || isEndedCut);
  const unlistedLines =
    unlistedCount === 0 ? [] : [`- and ${leftCount} more: coordination_status lists your coordinations`];
  return [head, ...lines, ...unlistedLines, HOW].join("\n");
}

function formatCount(count: number, isCut: boolean): string {
  return isCut ? `at least ${count}` : String(count);
}

function describeChild({ coordinationId, step }: ChildOfSession, tasks: ReadonlyMap<string, string>): string {
  const { stepId, agentId, childSessionKey } = step;
  const session = childSessionKey === undefined ? "" : `, session ${quoteUnlessPlain(childSessionKey)}`;
  return `${nameChild(step, tasks)}: ${describeState(step)} (agent ${quoteUnlessPlain(agentId)}, step ${quoteUnlessPlain(stepId)} of ${quoteUnlessPlain(coordinationId)}${session})`;
}

const TASK_CHARS_MAX = 60;

function nameChild({ name, input }: StepView, tasks: ReadonlyMap<string, string>): string {
  if (name !== undefined) return JSON.stringify(name);
  const task = tasks.get(input.sha256);
  if (task === undefined) return "a subagent without a name";
  const head = removeUnseen(task.slice(0, TASK_CHARS_MAX).toWellFormed()).replace(/\s+/gu, " ").trim();
  return `a subagent for ${JSON.stringify(head)}`;
}

function describeState({ status, admittedAtMs, endedAtMs }: StepView): string {
  const state = status.replace("_", " ");
  return endedAtMs === undefined || !ENDED.has(status)
    ? `${state} since ${formatTimestamp(admittedAtMs)}`
    : `${state} at ${formatTimestamp(endedAtMs)}`;
}

/** A spawn that a session asks for, and what it may repeat. */
export interface SpawnRepetition {
  readonly agentId: AgentId;
  readonly runner: RunnerKind;
  /** The sha256 of its task. */
  readonly sha256: string;
  /** Only what the session spawned before its history was compacted can have been forgotten. */
  readonly compactedAtMs: EpochMs;
  /** Since when a completed child counts as just completed. */
  readonly completedSinceMs: EpochMs;
}

/**
 * Returns the child from before the session's history was compacted that a spawn repeats, by agent, runner and task:
 * still open, or just completed; `undefined` where there is none. One that failed may be spawned again.
 */
export function findRepeatedChild(
  children: readonly ChildOfSession[],
  { agentId, runner, sha256, compactedAtMs, completedSinceMs }: SpawnRepetition,
): ChildOfSession | undefined {
  return children.find(({ step }) => {
    const isSame = step.agentId === agentId && step.runner === runner && step.input.sha256 === sha256;
    if (!isSame || step.admittedAtMs >= compactedAtMs) return false;
    if (!ENDED.has(step.status)) return true;
    return step.status === "completed" && (step.endedAtMs ?? 0) >= completedSinceMs;
  });
}

/** Returns the text that tells a model why a spawn is refused: which of its subagents it repeats, and how to go on. */
export function explainRepeatedSpawn(child: ChildOfSession): string {
  const { status } = child.step;
  const next = ENDED.has(status)
    ? "read what it said with sessions_history and its session"
    : "its result comes to you when it ends";
  return `this session spawned the same task for the same agent before its history was compacted: ${describeChild(child, new Map())}. Do not spawn it again: ${next}. If a second one is really meant, spawn it with coordination: {"again": true}`;
}
