/**
 * Owns: which runs this process works on, and which of them only wait.
 *
 * I1 A run that waits for a time, for people or for a child costs its id, its time to wake and what it waits for. Its values
 * are in memory only while something is done with it, or as long as the run book has room for them.
 */
import type { CoordinationId } from "../../../contracts/ids.ts";
import type { LoadedRun } from "../records/run-book.ts";

/** Something outside that a run began. */
export interface Act {
  readonly controller: AbortController;
  /** True while the run itself is not needed until the act ends, as for a child that was created. */
  isWaiting: boolean;
}

/** What is left of a run in memory while it waits. */
export interface PendingRun {
  /** What is under way, by its id. */
  readonly acts: Map<string, Act>;
  cancelWake?: () => void;
}

export interface DrivenRun {
  loadedRun: LoadedRun;
  /** Everything that is done with the run, one after the other. */
  turn: Promise<unknown>;
  /** Turns that have not ended. */
  turns: number;
  /** While the first event of the run is not on disk. */
  beginning?: Promise<unknown>;
  readonly pending: PendingRun;
}

export interface DrivenRuns {
  readonly driven: Map<CoordinationId, DrivenRun>;
  /** Of runs that are driven, and of those that wait. */
  readonly pending: Map<CoordinationId, PendingRun>;
}

export function entryOf({ driven, pending: pendingRuns }: DrivenRuns, loadedRun: LoadedRun): DrivenRun {
  const { runId } = loadedRun.run;
  const had = driven.get(runId);
  if (had) return had;
  const pending = pendingOf({ pending: pendingRuns }, runId);
  const entry: DrivenRun = { loadedRun, turn: Promise.resolve(), turns: 0, pending };
  driven.set(runId, entry);
  return entry;
}

export function pendingOf({ pending }: Pick<DrivenRuns, "pending">, runId: CoordinationId): PendingRun {
  const had = pending.get(runId);
  if (had) return had;
  const created: PendingRun = { acts: new Map() };
  pending.set(runId, created);
  return created;
}

export function runInTurn<T>(runs: DrivenRuns, entry: DrivenRun, work: () => Promise<T>): Promise<T> {
  entry.turns += 1;
  const mine = entry.turn.then(work, work).finally(() => {
    entry.turns -= 1;
    release(runs, entry);
  });
  entry.turn = mine.then(
    () => undefined,
    () => undefined,
  );
  return mine;
}

/** Forgets the values of a run that waits (I1), and all of a run that waits for nothing. */
export function release({ driven, pending: pendingRuns }: DrivenRuns, entry: DrivenRun): void {
  const { runId } = entry.loadedRun.run;
  const { acts, cancelWake } = entry.pending;
  const isIdle = entry.turns === 0 && [...acts.values()].every(({ isWaiting }) => isWaiting);
  if (!isIdle || driven.get(runId) !== entry) return;
  driven.delete(runId);
  if (acts.size === 0 && !cancelWake) pendingRuns.delete(runId);
}

/** Forgets a run that could not be begun, unless somebody else works on it meanwhile. */
export function forgetEntry({ driven, pending }: DrivenRuns, entry: DrivenRun): void {
  const { runId } = entry.loadedRun.run;
  if (entry.turns > 0 || driven.get(runId) !== entry) return;
  driven.delete(runId);
  pending.delete(runId);
}
