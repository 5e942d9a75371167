/**
 * Owns: the loop read, decide, append for one coordination at a time, with the folded states it needs.
 *
 * L2 an append that lost a race is decided again on the newer state. D1 `submit` resolves only when the facts are on
 * disk. Submissions to one coordination overlap: each is decided on the state that the one before will leave, and if
 * that one fails, all behind it fail and reload (S1). O2 an append to a coordination that this gateway drives has its
 * token; to one that another gateway drives only requests are appended.
 */
import type { Command } from "../../contracts/commands.ts";
import { CoordinationError, isCoordinationError } from "../../contracts/errors.ts";
import type { CoordinationId, EpochMs, StepId } from "../../contracts/ids.ts";
import type { RunEvent } from "../../contracts/run-event.ts";
import { decide } from "../../dispatch/decide.ts";
import type { Decision, RefusalCode } from "../../dispatch/decision.ts";
import { recordFacts } from "../../dispatch/record.ts";
import { evolve } from "../../ledger/evolve.ts";
import { listClaimChanges } from "../../ledger/claim-changes.ts";
import type { Coordination } from "../../ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../../ledger/summary.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import type { AppendRequest, LedgerStore } from "../../ports/ledger-store.ts";
import type { AppendBasis } from "../../ports/run-store.ts";
import type { Logger } from "../../ports/logger.ts";
import { signAppend, type AppendSignature, type SigningRuns } from "../ownership/sign-append.ts";
import {
  createEventAnnouncer,
  isDrivenElsewhere,
  type AnnouncerDependencies,
  type EventAnnouncer,
} from "./event-announcer.ts";
import { readLog } from "./read-pages.ts";
import { readState } from "./read-state.ts";
import { assertReadable } from "./assert-readable.ts";

/** Decided again after this many lost races; then the caller hears of it. */
const APPEND_ATTEMPTS_MAX = 6;
const RETRIES_MAX = 2;
/** Folded states kept in memory; open ones with an append under way are kept beyond it. */
const STATES_MAX = 512;

/** Events of other processes that are folded onto a known state in one go. */
const NEWER_MAX = 1_000;

export interface RunLogDependencies extends AnnouncerDependencies {
  readonly store: LedgerStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ownRuns?: SigningRuns;
  /** Hears of a new state before it is on disk: what is decided on it joins its transaction, or fails with it. */
  readonly onDecided?: (state: Coordination, basis: AppendBasis) => void;
}

export type SubmitResult = BatchOutcome & { readonly state: Coordination };

export interface SubmitOptions {
  readonly keep?: NonNullable<AppendRequest["keep"]>;
  /** The basis of the state that the commands were made of: they are refused once it is void, and not decided again. */
  readonly madeOn?: AppendBasis;
}

export interface RunLog {
  /** All commands are accepted in one append, or none: the first refusal is the answer. @throws CoordinationError */
  submit(
    runId: CoordinationId,
    commands: readonly Command[],
    contents?: readonly ContentInput[],
    options?: SubmitOptions,
  ): Promise<SubmitResult>;
  /** The newest state, which may not be on disk yet. @throws CoordinationError */
  state(runId: CoordinationId): Promise<Coordination>;
  /** The newest state, and what it rests on: texts made of it are submitted with that. @throws CoordinationError */
  stateOnBasis(runId: CoordinationId): Promise<{ readonly state: Coordination; readonly basis: AppendBasis }>;
  /**
   * D1: returns what `find` finds in a state that is on disk, as it is in the newest one; `undefined` where either has
   * none. Nothing is done for what may still fail to reach the disk. @throws CoordinationError
   */
  findOnDisk<T>(runId: CoordinationId, find: (state: Coordination) => T | undefined): Promise<T | undefined>;
  /** The newest state with what other processes appended. @throws CoordinationError */
  latest(runId: CoordinationId): Promise<Coordination>;
  /** Reads what other processes appended. The listeners hear of it where it is driven here. @throws CoordinationError */
  catchUp(runId: CoordinationId): Promise<void>;
  /** Resolves when what `state` told is on disk, or could not be brought there. */
  settled(runId: CoordinationId): Promise<void>;
  /**
   * Lists the texts, by their sha256, of appends that are not on disk yet, which no store has. A decision on `state` may
   * rest on them: it joins their transaction, or fails with it.
   */
  listTextsUnderWay(runId: CoordinationId): ReadonlyMap<string, string>;
}

interface LoadedCoordination {
  state: Coordination;
  /** Whether every append up to the newest is on disk; settles after all of them and never rejects. */
  durable: Promise<boolean>;
  /** The texts of each append that is under way. */
  readonly underWay: Set<readonly ContentInput[]>;
  /** An append failed: what was decided on top of it is void. */
  failed: boolean;
  readonly basis: AppendBasis;
}

export function createRunLog(dependencies: RunLogDependencies): RunLog {
  const entries = new Map<CoordinationId, LoadedCoordination>();
  const log: LogCollaborators = { ...dependencies, announcer: createEventAnnouncer(dependencies) };

  const load = async (runId: CoordinationId): Promise<LoadedCoordination> => {
    for (let entry = entries.get(runId); entry; entry = entries.get(runId)) {
      if (!entry.failed) return rememberEntry(entries, runId, entry);
      // Appends that were decided on the failed one may still be under way, and compare-and-set knows only lengths:
      // reading before they have failed too could give them the very length that they expect.
      await entry.durable;
      if (entries.get(runId) === entry) entries.delete(runId);
    }
    const state = await readState(dependencies.store, runId);
    const news = await readNews(log, state);
    const raced = entries.get(runId);
    if (raced) return raced.failed ? load(runId) : raced;
    const entry = rememberEntry(entries, runId, createEntry(state));
    log.announcer.announceLoaded(state, news);
    return entry;
  };

  const readNewer = async (runId: CoordinationId): Promise<LoadedCoordination> => {
    await foldNewerEvents(log, runId, await load(runId));
    return load(runId);
  };

  const loadNewest = async (runId: CoordinationId): Promise<LoadedCoordination> => {
    const isRemembered = entries.has(runId);
    const entry = await load(runId);
    return isRemembered && isDrivenElsewhere(dependencies, runId) ? readNewer(runId) : entry;
  };

  const tryAppend = async (runId: CoordinationId, batch: CommandBatch): Promise<SubmitResult | "again"> => {
    const entry = await loadNewest(runId);
    // From here to the append nothing awaits: the state cannot change under the decision.
    if (batch.madeOn && batch.madeOn !== entry.basis) return { ...MADE_OF_VOID, state: entry.state };
    const decided = decideAll(entry.state, batch.commands, dependencies.clock);
    const { outcome, state } = decided;
    if (decided.events.length === 0) {
      // The decision may rest on an append that is still under way and may fail.
      return (await isDurable(entry)) ? { ...outcome, state } : "again";
    }
    const signature = dependencies.ownRuns && signAppend(dependencies.ownRuns, entry.state, batch.commands);
    const appended = appendDecided(log, { runId, batch, decided, signature, basis: entry.basis });
    trackAppend(entry, { appended, state, contents: batch.contents });
    dependencies.onDecided?.(state, entry.basis);
    await appended;
    return { ...outcome, state };
  };

  return {
    state: async (runId) => (await loadNewest(runId)).state,
    stateOnBasis: async (runId) => {
      const { state, basis } = await loadNewest(runId);
      return { state, basis };
    },
    findOnDisk: (runId, find) => findOnDisk(() => loadNewest(runId), find),
    latest: async (runId) => (await readNewer(runId)).state,
    catchUp: async (runId) => {
      // An append under way would hide what others appended behind it, where its answer is late and nothing follows it.
      await entries.get(runId)?.durable;
      await readNewer(runId);
    },
    settled: async (runId) => void (await entries.get(runId)?.durable),
    listTextsUnderWay: (runId) => listTextsOfAppends(entries.get(runId)?.underWay ?? []),
    submit: (runId, commands, contents = [], options = {}) =>
      repeatAfterRaces(runId, () => tryAppend(runId, { commands, contents, ...options })),
  };
}

function listTextsOfAppends(appends: Iterable<readonly ContentInput[]>): ReadonlyMap<string, string> {
  return new Map([...appends].flat().map(({ ref, text }) => [ref.sha256, text]));
}

/** Returns an entry for a state that is on disk. */
function createEntry(state: Coordination): LoadedCoordination {
  return {
    state,
    durable: Promise.resolve(true),
    underWay: new Set(),
    failed: false,
    basis: { isVoid: false },
  };
}

async function repeatAfterRaces(
  runId: CoordinationId,
  tryOnce: () => Promise<SubmitResult | "again">,
): Promise<SubmitResult> {
  for (let tries = 1; ; tries += 1) {
    try {
      const submitted = await tryOnce();
      if (submitted !== "again") return submitted;
    } catch (error) {
      if (tries >= countAttemptsAllowed(error)) throw error;
    }
    if (tries >= APPEND_ATTEMPTS_MAX)
      throw new CoordinationError("LEDGER_CONFLICT", `${runId}: lost ${tries} races`);
  }
}

interface LogCollaborators extends RunLogDependencies {
  readonly announcer: EventAnnouncer;
}

/** Reads what a state has that nobody here has heard of: others appended it, or it got there though its append failed. */
async function readNews(
  log: LogCollaborators,
  { coordinationId, nextSequence: to }: Coordination,
): Promise<RunEvent[][]> {
  const from = log.announcer.markOf(coordinationId) ?? to;
  if (from >= to || isDrivenElsewhere(log, coordinationId)) return [];
  return Array.fromAsync(readLog(log.store, coordinationId, { from, to }));
}

/** Brings the state up to the ledger, a page at a time. With an append under way compare-and-set will tell. */
async function foldNewerEvents(
  { store, announcer }: LogCollaborators,
  runId: CoordinationId,
  entry: LoadedCoordination,
): Promise<void> {
  let isMore = true;
  while (isMore && !entry.failed && entry.underWay.size === 0) {
    const { state } = entry;
    const events = await store.read(runId, { from: state.nextSequence, limit: NEWER_MAX });
    // Others changed it meanwhile: it is read on from where they left it.
    if (entry.state !== state) continue;
    entry.state = events.reduce<Coordination>(evolve, state);
    announcer.announce(entry.state, events);
    isMore = events.length === NEWER_MAX;
  }
}

async function findOnDisk<T>(
  load: () => Promise<LoadedCoordination>,
  find: (state: Coordination) => T | undefined,
): Promise<T | undefined> {
  for (;;) {
    const entry = await load();
    const found = find(entry.state);
    // An append that fails may also hide something.
    if (await isDurable(entry)) return found === undefined ? undefined : find(entry.state);
  }
}

async function isDurable(entry: LoadedCoordination): Promise<boolean> {
  return (await entry.durable) && !entry.failed;
}

const MADE_OF_VOID = {
  kind: "refused",
  code: "STATE_VOID",
  reason: "what the commands were made of did not reach the ledger",
} as const;

/** Returns how often to try in all after an error; 1 for most errors. */
function countAttemptsAllowed(error: unknown): number {
  if (!isCoordinationError(error)) return 1;
  // Tried again as somebody who does not drive it.
  if (error.code === "LEDGER_BUSY" || error.code === "NOT_OWNER") return RETRIES_MAX;
  return error.code === "LEDGER_CONFLICT" ? APPEND_ATTEMPTS_MAX : 1;
}

interface BatchDecision {
  readonly outcome: BatchOutcome;
  readonly events: readonly RunEvent[];
  readonly state: Coordination;
}

type BatchOutcome =
  | { readonly kind: "accepted" | "replay"; readonly stepId?: StepId }
  | { readonly kind: "refused"; readonly code: RefusalCode; readonly reason: string };

/** @throws CoordinationError `INPUT_INVALID` for an event that could not be read again */
function decideAll(before: Coordination, commands: readonly Command[], clock: Clock): BatchDecision {
  const now = clock.now();
  const events: RunEvent[] = [];
  let state = before;
  let stepId: StepId | undefined;
  for (const command of commands) {
    const decision = decide(state, command, now);
    if (decision.kind === "refused") return decideRefusal(before, decision, now);
    stepId = decision.stepId ?? stepId;
    if (decision.kind === "replay") continue;
    const recorded = recordFacts(state, decision.facts, now);
    events.push(...recorded.events);
    state = recorded.state;
  }
  assertReadable(events);
  const kind = events.length > 0 ? "accepted" : "replay";
  return { outcome: { kind, ...(stepId && { stepId }) }, events, state };
}

/** Returns the decision to do none of the commands; that one was refused may be a fact itself. */
function decideRefusal(
  before: Coordination,
  decision: Decision & { kind: "refused" },
  now: EpochMs,
): BatchDecision {
  const { code, reason, facts = [] } = decision;
  const { events, state } = recordFacts(before, facts, now);
  assertReadable(events);
  return { outcome: { kind: "refused", code, reason }, events, state };
}

interface DecidedAppend {
  readonly runId: CoordinationId;
  readonly batch: CommandBatch;
  readonly decided: BatchDecision;
  /** As whom it is appended. Absent where no other gateway reaches the ledger. */
  readonly signature: AppendSignature | undefined;
  readonly basis: AppendBasis;
}

async function appendDecided(log: LogCollaborators, appending: DecidedAppend): Promise<void> {
  const { store, ownRuns, announcer, logger, onAppended } = log;
  const { runId, signature } = appending;
  const { events } = appending.decided;
  const request = draftAppend(appending);
  if (signature) await signature.attend(() => store.append(request));
  else await store.append(request);
  if (request.summary.status !== "running") ownRuns?.remove(runId);
  announcer.noteAppended(runId, events);
  onAppended?.(events, request.summary.ownerSession);
  const last = events.at(-1);
  logger.debug(
    { runId, sequence: last?.sequence, type: last?.type, stepId: last?.nodeId, events: events.length },
    "appended",
  );
}

function draftAppend({ runId, batch, decided, signature, basis }: DecidedAppend): AppendRequest {
  const { events, state } = decided;
  if (state.kind === "unopened")
    throw new CoordinationError("INVARIANT_VIOLATED", `${runId}: events without a state`);
  const claims = events.flatMap(listClaimChanges);
  return {
    runId,
    events,
    summary: summarizeCoordination(state),
    references: events.flatMap(listEventReferences),
    contents: batch.contents,
    basis,
    ...(batch.keep && batch.keep.length > 0 && { keep: batch.keep }),
    ...(claims.length > 0 && { claims }),
    ...(signature?.owner && { owner: signature.owner }),
  };
}

interface CommandBatch extends SubmitOptions {
  readonly commands: readonly Command[];
  readonly contents: readonly ContentInput[];
}

interface PendingAppend {
  readonly appended: Promise<void>;
  /** The state with its events. */
  readonly state: Coordination;
  readonly contents: readonly ContentInput[];
}

function trackAppend(entry: LoadedCoordination, { appended, state, contents }: PendingAppend): void {
  // An append of its own, also where two bring the same texts.
  const texts = [...contents];
  entry.state = state;
  entry.underWay.add(texts);
  const settleAppend = (ok: boolean): boolean => {
    entry.underWay.delete(texts);
    if (!ok) {
      entry.failed = true;
      entry.basis.isVoid = true;
    }
    return ok;
  };
  const before = entry.durable;
  entry.durable = appended.then(
    async () => settleAppend(true) && (await before),
    async () => {
      settleAppend(false);
      await before;
      return false;
    },
  );
}

function rememberEntry(
  entries: Map<CoordinationId, LoadedCoordination>,
  runId: CoordinationId,
  entry: LoadedCoordination,
): LoadedCoordination {
  entries.delete(runId);
  entries.set(runId, entry);
  for (const [oldest, candidate] of entries) {
    if (entries.size <= STATES_MAX) break;
    if (candidate.underWay.size === 0 && oldest !== runId) entries.delete(oldest);
  }
  return entry;
}
