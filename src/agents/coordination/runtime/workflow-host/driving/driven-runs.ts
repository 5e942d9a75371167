/**
 * Owns: which runs this process works on, and which of them only wait.
 *
 * I1 A run that waits for a time, for people or for a child costs its id, its time to wake and what it waits for. Its values
 * are in memory only while something is done with it, or as long as the run book has room for them.
 */
import type { CoordinationId, EpochMs } from "../../../contracts/ids.ts";
import type { OwnRuns } from "../../ownership/own-runs.ts";
import type { LoadedRun } from "../records/run-book.ts";

/** Something outside that a run began. */
export interface Act {
  readonly controller: AbortController;
  /** True while the run itself is not needed until the act ends, as for a child that was created. */
  isWaiting: boolean;
}

/** Keeps what is left of a run in memory while it waits. */
export interface PendingRun {
  /** The token by which this process may write to the run (O2). An earlier ownership had another one. */
  token: number | undefined;
  /** The length of the log up to which all was planned. */
  plannedLength?: number;
  /** Holds what is under way, by its id. */
  readonly acts: Map<string, Act>;
  cancelWake?: () => void;
  /** Since when at the earliest nobody drives the run. Absent while this process does. */
  awaySinceMs?: EpochMs;
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
  readonly ownRuns: OwnRuns;
  readonly driven: Map<CoordinationId, DrivenRun>;
  /** Holds runs that are driven, and those that wait. */
  readonly pending: Map<CoordinationId, PendingRun>;
}

export function entryOf(runs: DrivenRuns, loadedRun: LoadedRun): DrivenRun {
  const { driven } = runs;
  const { runId } = loadedRun.run;
  const had = driven.get(runId);
  if (had) return had;
  const pending = pendingOf(runs, runId);
  const entry: DrivenRun = { loadedRun, turn: Promise.resolve(), turns: 0, pending };
  driven.set(runId, entry);
  return entry;
}

export function pendingOf({ pending, ownRuns }: DrivenRuns, runId: CoordinationId): PendingRun {
  const had = pending.get(runId);
  if (had) return had;
  const created: PendingRun = { acts: new Map(), token: ownRuns.tokenOf(runId) };
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
  const { acts, cancelWake, awaySinceMs } = entry.pending;
  const isIdle = entry.turns === 0 && [...acts.values()].every(({ isWaiting }) => isWaiting);
  if (!isIdle || driven.get(runId) !== entry) return;
  driven.delete(runId);
  if (acts.size === 0 && !cancelWake && awaySinceMs === undefined) pendingRuns.delete(runId);
}

/** Why effects are given up that another process goes on with: what they began elsewhere is not to be ended. */
export const HOST_STOPS = "the host stops";
export const RUN_LOST = "another process drives the run now";

/** Why a run is not looked at again before the next start. */
export const LOG_IS_DAMAGED =
  "a log that a workflow run needs is damaged, so the run does not go on: run `openclaw coordination verify`";

/** True for an effect whose run goes on elsewhere. */
export function isLeftToOthers({ reason }: AbortSignal): boolean {
  return reason === HOST_STOPS || reason === RUN_LOST;
}

/** Forgets all of a run that another process drives now. Turns of it that have not ended write nothing (O2). */
export function dropRun({ driven, pending: pendingRuns, ownRuns }: DrivenRuns, runId: CoordinationId): void {
  ownRuns.remove(runId);
  const pending = pendingRuns.get(runId);
  driven.delete(runId);
  pendingRuns.delete(runId);
  pending?.cancelWake?.();
  for (const { controller } of pending?.acts.values() ?? []) controller.abort(RUN_LOST);
}

/** Forgets a run that could not be begun, unless it was dropped and entered again meanwhile. */
export function forgetEntry({ driven, pending }: DrivenRuns, entry: DrivenRun): void {
  const { runId } = entry.loadedRun.run;
  if (driven.get(runId) !== entry) return;
  driven.delete(runId);
  pending.delete(runId);
}
