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
import type { LedgerQueries } from "../ports/ledger-queries.ts";
import type { CoordinationView, StepView } from "./log/coordination-view.ts";
import { listFoundRuns } from "./log/read-found.ts";
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

/** Coordinations that are looked into, the newest first, and the children that are enough. */
const RUNS_MAX = 20;
/** Coordinations looked at, where another gateway's session of the same key may have opened some. */
const LOOKED_MAX = 2_000;
const CHILDREN_MAX = 200;

/** Lists the children of a session, the newest first. @throws CoordinationError as `LedgerQueries.findRuns` */
export async function listChildren(
  reads: Omit<ChildrenReads, "getMany">,
  session: SessionKey,
): Promise<readonly ChildOfSession[]> {
  const children: ChildOfSession[] = [];
  for (const runId of await findRunsOfSession(reads, session)) {
    const view = await reads.view(runId);
    const steps = (view?.steps ?? []).filter(
      ({ sourceSession, stepId }) => sourceSession === session && stepId !== DELIVERY_STEP_ID,
    );
    children.push(...steps.map((step) => ({ coordinationId: runId, step })));
    if (children.length >= CHILDREN_MAX) break;
  }
  return children.toSorted((a, b) => b.step.admittedAtMs - a.step.admittedAtMs).slice(0, CHILDREN_MAX);
}

/** Finds the newest coordinations that a session owns or takes part in, without those of such a session of another gateway. */
async function findRunsOfSession(
  reads: Pick<ChildrenReads, "findRuns" | keyof GatewayPlace>,
  session: SessionKey,
): Promise<readonly CoordinationId[]> {
  const runIds: CoordinationId[] = [];
  let looked = 0;
  for await (const { runId, summary } of listFoundRuns(reads, { filter: { session } })) {
    looked += 1;
    // A child's key is its own in every gateway, also where the coordination was opened in another one.
    if (!isOwnerElsewhere(summary, session, reads)) runIds.push(runId);
    if (runIds.length === RUNS_MAX || looked === LOOKED_MAX) break;
  }
  return runIds;
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
 * Returns what a session reads of its children after its history was compacted: the open ones, then those that have ended, the
 * newest first, as many as fit. `undefined` where it has none.
 */
export async function describeChildren(
  reads: ChildrenReads,
  session: SessionKey,
): Promise<string | undefined> {
  const children = await listChildren(reads, session);
  return children.length === 0 ? undefined : formatChildren(children, await readTasks(reads, children));
}

/** Children that the session did not name are told apart by how their tasks begin. */
function readTasks(
  reads: ChildrenReads,
  children: readonly ChildOfSession[],
): Promise<ReadonlyMap<string, string>> {
  const unnamed = children.filter(({ step }) => step.name === undefined).slice(0, LINES_MAX);
  return unnamed.length === 0
    ? Promise.resolve(new Map())
    : reads.getMany([...new Set(unnamed.map(({ step }) => step.input.sha256))]);
}

/** More lines do not fit. */
const LINES_MAX = 40;
/** For how many children are left out. */
const REST_CHARS = 80;

export function formatChildren(
  children: readonly ChildOfSession[],
  tasks: ReadonlyMap<string, string>,
): string {
  const open = children.filter(({ step }) => !ENDED.has(step.status));
  const ended = children.filter(({ step }) => ENDED.has(step.status));
  const head = `[Coordination] Your history was compacted. You have ${open.length} open and ${ended.length} ended subagents; do not spawn again what one of them does or did.`;
  const lines: string[] = [];
  let room = NOTE_CHARS_MAX - head.length - HOW.length - REST_CHARS;
  for (const child of [...open, ...ended]) {
    const line = `- ${describeChild(child, tasks)}`;
    if (lines.length === LINES_MAX || line.length + 1 > room) break;
    lines.push(line);
    room -= line.length + 1;
  }
  const left = children.length - lines.length;
  const rest = left === 0 ? [] : [`- and ${left} more: coordination_status lists your coordinations`];
  return [head, ...lines, ...rest, HOW].join("\n");
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
export interface Repetition {
  readonly agentId: AgentId;
  readonly runner: RunnerKind;
  /** The sha256 of its task. */
  readonly sha256: string;
  /** Only what the session spawned before its history was compacted can have been forgotten. */
  readonly compactedAtMs: EpochMs;
  /** Since when a completed child counts as just completed. */
  readonly completedSinceMs: EpochMs;
}

/** Finds the child that a spawn repeats: open, or just completed. One that failed may be spawned again. */
export function findRepeatedChild(
  children: readonly ChildOfSession[],
  { agentId, runner, sha256, compactedAtMs, completedSinceMs }: Repetition,
): ChildOfSession | undefined {
  return children.find(({ step }) => {
    const isSame = step.agentId === agentId && step.runner === runner && step.input.sha256 === sha256;
    if (!isSame || step.admittedAtMs >= compactedAtMs) return false;
    if (!ENDED.has(step.status)) return true;
    return step.status === "completed" && (step.endedAtMs ?? 0) >= completedSinceMs;
  });
}

/** Returns why such a spawn is refused, with the child that it repeats and how to go on. */
export function explainRepeated(child: ChildOfSession): string {
  const { status } = child.step;
  const next = ENDED.has(status)
    ? "read what it said with sessions_history and its session"
    : "its result comes to you when it ends";
  return `this session spawned the same task for the same agent before its history was compacted: ${describeChild(child, new Map())}. Do not spawn it again: ${next}. If a second one is really meant, spawn it with coordination: {"again": true}`;
}
