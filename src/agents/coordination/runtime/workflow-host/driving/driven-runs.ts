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
export interface OutsideAct {
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
  readonly acts: Map<string, OutsideAct>;
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

/**
 * Returns this process's entry of a run, with its state as it was last known here and the queue of its turns; creates
 * it from the loaded run where there is none.
 */
export function enterDrivenRun(runs: DrivenRuns, loadedRun: LoadedRun): DrivenRun {
  const { driven } = runs;
  const { runId } = loadedRun.run;
  const had = driven.get(runId);
  if (had) return had;
  const pending = enterPendingRun(runs, runId);
  const entry: DrivenRun = { loadedRun, turn: Promise.resolve(), turns: 0, pending };
  driven.set(runId, entry);
  return entry;
}

/**
 * Returns the record of a run that is kept while the run waits: its effects, its token and when it wakes. Creates it
 * where there is none.
 */
export function enterPendingRun({ pending, ownRuns }: DrivenRuns, runId: CoordinationId): PendingRun {
  const had = pending.get(runId);
  if (had) return had;
  const created: PendingRun = { acts: new Map(), token: ownRuns.tokenOf(runId) };
  pending.set(runId, created);
  return created;
}

/**
 * Does work on a run after all earlier work on it has ended, and settles as the work does; releases the run where it
 * is idle then.
 */
export function runInTurn<T>(runs: DrivenRuns, entry: DrivenRun, work: () => Promise<T>): Promise<T> {
  entry.turns += 1;
  const mine = entry.turn.then(work, work).finally(() => {
    entry.turns -= 1;
    releaseIdleRun(runs, entry);
  });
  entry.turn = mine.then(
    () => undefined,
    () => undefined,
  );
  return mine;
}

/**
 * Forgets the values of a run whose turns have ended and whose effects only wait (I1), and its pending record where
 * nothing is left to wait for; does nothing for a run at work.
 */
export function releaseIdleRun({ driven, pending: pendingRuns }: DrivenRuns, entry: DrivenRun): void {
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

/**
 * True for the signal of an effect that was aborted because the host stops or lost the run: another process goes on,
 * so what the effect began outside is to be left.
 */
export function isLeftToOthers({ reason }: AbortSignal): boolean {
  return reason === HOST_STOPS || reason === RUN_LOST;
}

/**
 * Forgets all of a run that another process drives now, its token included, and aborts its effects. Turns of it that
 * have not ended write nothing (O2).
 */
export function dropRun({ driven, pending: pendingRuns, ownRuns }: DrivenRuns, runId: CoordinationId): void {
  ownRuns.remove(runId);
  const pending = pendingRuns.get(runId);
  driven.delete(runId);
  pendingRuns.delete(runId);
  pending?.cancelWake?.();
  for (const { controller } of pending?.acts.values() ?? []) controller.abort(RUN_LOST);
}

/** Forgets a run that could not be begun, unless it was dropped and entered again meanwhile. */
export function forgetUnbegunRun({ driven, pending }: DrivenRuns, entry: DrivenRun): void {
  const { runId } = entry.loadedRun.run;
  if (driven.get(runId) !== entry) return;
  driven.delete(runId);
  pending.delete(runId);
}
