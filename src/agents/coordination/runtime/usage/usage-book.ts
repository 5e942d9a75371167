/**
 * Owns: counting what model calls use as the host tells it, in memory, until it is recorded. No clock and no I/O: a hook
 * that counts costs microseconds.
 *
 * The host tells of a call first that it begins, with its session and run, and then what it used, with its session
 * alone. A session has one run at a time. A use without a call before it is the host's own copy of a message.
 */
import type { AgentId, CoordinationId, EpochMs, SessionKey, StepId } from "../../contracts/ids.ts";
import type { UsageTotals } from "../../contracts/usage.ts";
import { BOUNDS } from "../../contracts/bounds.ts";
import { rememberNewest } from "../../std/remember-newest.ts";

export interface ModelCall {
  readonly session: SessionKey;
  readonly runId: string;
  /** The W3C trace, by which an owner's coordination is found. */
  readonly traceId?: string;
}

/** Usage of one model call, as the host tells it. */
export interface CallUsage {
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** 0 where the host knows no price. */
  readonly costNanoUsd: number;
}

/** Where in the ledger a run's usage belongs. */
export interface UsagePlace {
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
  readonly agentId: AgentId;
  /** The child's coordination has ended: one that the child opens in this run is where it belongs. */
  readonly isLate?: true;
}

/** Usage of one run up to now. */
export interface RunCount extends ModelCall {
  readonly models: Set<string>;
  calls: number;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  /** Billionths, so that the millionths of many small calls are not lost. */
  costNanoUsd: number;
  /** A model call began whose use is not told yet. */
  isCalling: boolean;
  place?: UsagePlace;
  /** The usage that the ledger has; absent before the first record. */
  recorded?: UsageTotals;
  /** How often it was recorded. */
  records: number;
  /** When it is to be recorded; absent where there is nothing to record. */
  dueAtMs?: EpochMs;
  /** It has ended, and belonged to no coordination then. */
  isOver?: true;
}

export interface UsageBook {
  /** Names this process in the ledger. */
  readonly meter: string;
  beginCall(call: ModelCall): void;
  /** Counts what the call of a session used. Returns its run, or nothing where no call of it is under way. */
  addUsage(session: SessionKey, usage: CallUsage): RunCount | undefined;
  /** Runs with something that is not recorded. */
  listUnrecorded(): readonly RunCount[];
  /** The newest run of a session that called a model. */
  runOf(session: SessionKey): RunCount | undefined;
  /** Forgets what of a run is not recorded. */
  drop(run: RunCount): void;
}

/** Sessions whose newest run is remembered, and runs that wait to be recorded; the oldest give way. */
const RUNS_MAX = 10_000;

/**
 * Creates the counts, in memory, of what the model calls of sessions use, by run, until the ledger has them. A call is
 * counted with the newest run of its session. `meter` names this process in the ledger.
 */
export function createUsageBook(meter: string): UsageBook {
  const newest = new Map<SessionKey, RunCount>();
  const unrecorded = new Set<RunCount>();
  return {
    meter,
    beginCall: (call) => {
      const newestRun = newest.get(call.session);
      const run = newestRun?.runId === call.runId ? newestRun : createRunCount(call);
      run.isCalling = true;
      rememberNewest(newest, call.session, run, RUNS_MAX);
    },
    addUsage: (session, usage) => {
      const run = newest.get(session);
      if (!run?.isCalling) return undefined;
      run.isCalling = false;
      addCallUsage(run, usage);
      unrecorded.add(run);
      const [oldest] = unrecorded;
      if (unrecorded.size > RUNS_MAX && oldest) unrecorded.delete(oldest);
      return run;
    },
    listUnrecorded: () => {
      for (const run of unrecorded) if (run.recorded?.calls === run.calls) unrecorded.delete(run);
      return [...unrecorded];
    },
    runOf: (session) => newest.get(session),
    drop: (run) => {
      unrecorded.delete(run);
    },
  };
}

function createRunCount({ session, runId, traceId }: ModelCall): RunCount {
  return {
    session,
    runId,
    ...(traceId && { traceId }),
    models: new Set(),
    calls: 0,
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costNanoUsd: 0,
    isCalling: false,
    records: 0,
  };
}

function addCallUsage(run: RunCount, usage: CallUsage): void {
  run.calls += 1;
  run.inputTokens += usage.inputTokens;
  run.outputTokens += usage.outputTokens;
  run.cacheReadTokens += usage.cacheReadTokens;
  run.cacheWriteTokens += usage.cacheWriteTokens;
  run.costNanoUsd += usage.costNanoUsd;
  if (run.models.size < BOUNDS.modelsPerRunMax) run.models.add(usage.model);
}

const NANO_PER_MICRO = 1_000;

/**
 * Subtracts from the counts of a run, which are changed, what the ledger has of it: that stays where it is, and the
 * run goes on at another place.
 */
export function subtractRecorded(run: RunCount): void {
  const { recorded } = run;
  if (!recorded) return;
  run.calls -= recorded.calls;
  run.inputTokens -= recorded.inputTokens;
  run.outputTokens -= recorded.outputTokens;
  run.cacheReadTokens -= recorded.cacheReadTokens;
  run.cacheWriteTokens -= recorded.cacheWriteTokens;
  // The sums of the ledger are rounded.
  run.costNanoUsd = Math.max(0, run.costNanoUsd - recorded.costMicroUsd * NANO_PER_MICRO);
  delete run.recorded;
}

/** Returns the counts of a run in the form in which the ledger has them: its cost in millionths of a dollar. */
export function computeRunTotals(run: RunCount): UsageTotals {
  return {
    calls: run.calls,
    inputTokens: run.inputTokens,
    outputTokens: run.outputTokens,
    cacheReadTokens: run.cacheReadTokens,
    cacheWriteTokens: run.cacheWriteTokens,
    costMicroUsd: Math.round(run.costNanoUsd / NANO_PER_MICRO),
  };
}
