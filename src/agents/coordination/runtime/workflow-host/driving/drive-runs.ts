/**
 * Owns: the loop of workflow runs: read, plan, append, act. One thing at a time for each run, many runs at once.
 *
 * D1 an effect is done only when the events that it follows from are on disk, and its outcome is appended. D2 the same effect
 * has the same id, so that doing it again after a crash is the same. L2 an append that lost a race is planned again on the
 * newer log, which may have come from another process.
 */
import { isCoordinationError, readErrorCode } from "../../../contracts/errors.ts";
import { addMs, type CoordinationId, type EpochMs } from "../../../contracts/ids.ts";
import type { OwnedRun } from "../../../ports/run-owners.ts";
import { isParentOnThisHost, type WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import { isEndedPhase, isMaterialising } from "../../../workflow/state/workflow-state.ts";
import { isLedgerConflict, planTurn, addFirstEvent, type PlannedProgress } from "./plan-runs.ts";
import {
  dropRun,
  enterDrivenRun,
  forgetUnbegunRun,
  HOST_STOPS,
  runInTurn,
  type DrivenRun,
} from "./driven-runs.ts";
import type { LoadedRun } from "../records/run-book.ts";
import {
  advanceDrivenRun,
  planFirstSourcePage,
  appendWithRetries,
  giveUpRun,
  retryRunLater,
  awaitBeginning,
  isBeginning,
  wakeRunAt,
  wakeRun,
  catchUpUnlessEnded,
  RETRY_MS,
} from "./advance-driven.ts";
import { type RunDriverState } from "./run-driver-state.ts";
import { type DriverDependencies } from "./run-driver-state.ts";
import { applyRequestToForeignRun } from "./append-arrival.ts";
import type { RequestDrafts, RequestOutcome } from "./request-drafts.ts";
import { FIRST_TOKEN } from "../../ownership/own-runs.ts";

/** Loads runs as they are now. */
export type NewestRuns = Pick<RunDriver, "newest">;

export interface RunDriver {
  /**
   * Appends the first event of a run, and goes on with it; of a fork, with a first page of what it takes from its source.
   * `undefined`: there is one already.
   */
  begin(first: WorkflowEvent, loadedRun: LoadedRun): Promise<LoadedRun | undefined>;
  /** Asks a known run for something. `undefined`: there is no such run. */
  ask<R>(
    runId: CoordinationId,
    request: (loadedRun: LoadedRun) => RequestDrafts<R>,
  ): Promise<RequestOutcome<R> | undefined>;
  /** Notes that this process drives a run which it took over. */
  noteOwned(run: OwnedRun, more: { readonly isChild: boolean }): void;
  /** Goes on with a run that it took over. */
  adopt(runId: CoordinationId): Promise<void>;
  /** Goes on with a run that is its own by the ledger, where it does not know it as such: an append may be committed late. */
  adoptUnknown(runId: CoordinationId): Promise<void>;
  /** Goes on with a run to which other processes appended. */
  wake(runId: CoordinationId): void;
  /** The newest state, with what other processes appended. */
  newest(runId: CoordinationId): Promise<LoadedRun | undefined>;
  /** Wakes a run that it took over when its time comes. Until then nothing of it is read. */
  sleep(runId: CoordinationId, wakesAtMs: EpochMs): Promise<void>;
  /** Hears of each append of this process. */
  onAppended(listener: (loadedRun: LoadedRun, events: readonly WorkflowEvent[]) => void): void;
  stop(): Promise<void>;
}

/**
 * Creates the driver of this process's workflow runs: it begins and adopts them, wakes them in time, applies requests
 * to them, and gives those up that another process drives.
 */
export function createRunDriver(dependencies: DriverDependencies): RunDriver {
  const driving: RunDriverState = {
    ...dependencies,
    driven: new Map(),
    pending: new Map(),
    listeners: [],
    isStopping: false,
    stopping: new AbortController(),
  };
  driving.ownRuns.onLost((runId) => {
    giveUpRun(driving, runId);
  });
  driving.ownRuns.onSilence((silentMs) => {
    resumeAfterSilence(driving, silentMs);
  });
  return {
    begin: (first, loadedRun) => beginRun(driving, first, loadedRun),
    ask: (runId, request) => applyRequest(driving, runId, request),
    noteOwned: ({ runId, token }, more) => {
      // It may have been its own once, by another token.
      dropRun(driving, runId);
      driving.ownRuns.add(runId, token, more);
    },
    adopt: (runId) => adoptRun(driving, runId),
    adoptUnknown: async (runId) => {
      if (driving.ownRuns.tokenOf(runId) === undefined) await adoptIfOwn(driving, runId);
    },
    wake: (runId) => {
      wakeRun(driving, runId, { isBlind: true });
    },
    newest: (runId) => loadNewestRun(driving, runId),
    sleep: async (runId, wakesAtMs) => {
      while (isBeginning(driving, runId)) await awaitBeginning(driving, runId);
      if (!driving.pending.has(runId) && !driving.isStopping) wakeRunAt(driving, runId, { atMs: wakesAtMs });
    },
    onAppended: (listener) => driving.listeners.push(listener),
    stop: async () => {
      driving.isStopping = true;
      driving.stopping.abort(HOST_STOPS);
      for (const { acts, cancelWake } of driving.pending.values()) {
        cancelWake?.();
        for (const { controller } of acts.values()) controller.abort(HOST_STOPS);
      }
      const turns = [...driving.driven.values()].map(({ turn }) => turn);
      await Promise.allSettled(turns);
    },
  };
}

/** Appends a run's first event with what follows, and goes on with it; `undefined` where there is one already. */
async function beginRun(
  driving: RunDriverState,
  first: WorkflowEvent,
  loadedRun: LoadedRun,
): Promise<LoadedRun | undefined> {
  const { runId } = loadedRun.run;
  if (driving.pending.has(runId)) return undefined;
  const entry = enterDrivenRun(driving, loadedRun);
  entry.pending.token = FIRST_TOKEN;
  const plan = async (now: LoadedRun): Promise<PlannedProgress> =>
    addFirstEvent(
      first,
      isMaterialising(now.run) ? await planFirstSourcePage(driving, now) : planTurn(driving, now),
    );
  const beginning = runInTurn(driving, entry, () => appendWithRetries(driving, entry, { plan, triesMax: 1 }))
    .catch((error: unknown) => {
      forgetUnbegunRun(driving, entry);
      throw error;
    })
    .finally(() => {
      delete entry.beginning;
    });
  entry.beginning = beginning;
  try {
    keepTakingSourceEvents(driving, entry, beginning);
    await beginning;
    return entry.loadedRun;
  } catch (error) {
    if (!isLedgerConflict(error)) {
      // It may have been written nevertheless.
      adoptRunLater(driving, runId);
      throw error;
    }
    // An earlier try of this process may have been written, with nobody who goes on with it.
    await adoptIfOwn(driving, runId);
    return undefined;
  }
}

/** Takes a fork's events beyond its first page in the background; whoever asked for the fork does not wait. */
function keepTakingSourceEvents(
  driving: RunDriverState,
  entry: DrivenRun,
  beginning: Promise<unknown>,
): void {
  if (!isMaterialising(entry.loadedRun.run)) return;
  const { runId } = entry.loadedRun.run;
  const plan = (loadedRun: LoadedRun): PlannedProgress => planTurn(driving, loadedRun);
  const takeInBackground = async (): Promise<void> => {
    await beginning;
    await advanceDrivenRun(driving, entry, { plan });
  };
  runInTurn(driving, entry, takeInBackground).catch((error: unknown) => {
    beginning.then(
      () => {
        retryRunLater(driving, runId, { error, token: FIRST_TOKEN });
      },
      () => undefined,
    );
  });
}

/** Plans and appends what a request asks of a run, whoever drives it; `undefined` where there is no such run. */
async function applyRequest<R>(
  driving: RunDriverState,
  runId: CoordinationId,
  request: (loadedRun: LoadedRun) => RequestDrafts<R>,
): Promise<RequestOutcome<R> | undefined> {
  const newestRun = await loadNewestRun(driving, runId);
  if (!newestRun) return undefined;
  await driving.ownRuns.confirm();
  const token = driving.ownRuns.tokenOf(runId);
  if (token === undefined) return applyRequestToForeignRun(driving, newestRun, request);
  try {
    return await applyRequestToOwnRun(driving, newestRun, request);
  } catch (error) {
    retryRunLater(driving, runId, { error, token });
    if (!isLostRunError(error)) throw error;
    return applyRequestToForeignRun(driving, newestRun, request);
  }
}

/**
 * Plans and appends the request on the newest state, after events of others were planned: it may be about what follows
 * from them. To an ended run nothing is appended.
 */
async function applyRequestToOwnRun<R>(
  driving: RunDriverState,
  found: LoadedRun,
  request: (loadedRun: LoadedRun) => RequestDrafts<R>,
): Promise<RequestOutcome<R>> {
  while (isBeginning(driving, found.run.runId)) await awaitBeginning(driving, found.run.runId);
  const entry = enterDrivenRun(driving, found);
  let refused: R | undefined;
  const plan = (loadedRun: LoadedRun): PlannedProgress => {
    const answer = request(loadedRun);
    refused = "refused" in answer ? answer.refused : undefined;
    return planTurn(driving, loadedRun, "drafts" in answer ? answer.drafts : []);
  };
  return runInTurn(driving, entry, async () => {
    entry.loadedRun = await catchUpUnlessEnded(driving, entry.loadedRun);
    if (entry.pending.plannedLength !== entry.loadedRun.run.nextSequence)
      await advanceDrivenRun(driving, entry, { plan: (loadedRun) => planTurn(driving, loadedRun) });
    if (isEndedPhase(entry.loadedRun.run.phase)) plan(entry.loadedRun);
    else await advanceDrivenRun(driving, entry, { plan });
    return { loadedRun: entry.loadedRun, ...(refused !== undefined && { refused }) };
  });
}

/**
 * Returns since when nobody drove a run that is taken over. Nobody knows when the earlier process ended, only when it
 * last recorded something, so what it worked since then is left out too. That happens once between two other events:
 * where the last event is a takeover, all time since then counts, so that a run that makes each process end meets its limit.
 */
function findAwaySinceMs({ clock }: RunDriverState, { run }: LoadedRun): EpochMs {
  return run.awaySequence === run.nextSequence - 1 ? clock.now() : SINCE_LAST_EVENT;
}

const SINCE_LAST_EVENT = 0 as EpochMs;

/** Goes on with a run that was taken over, unless it has ended; a failure is tried again later. */
async function adoptRun(driving: RunDriverState, runId: CoordinationId): Promise<void> {
  // A parent that was adopted may be trying to create it, and find that it is there.
  while (isBeginning(driving, runId)) await awaitBeginning(driving, runId);
  if (driving.pending.has(runId) || driving.isStopping) return;
  const found = await loadNewestRun(driving, runId);
  if (!found || isEndedPhase(found.run.phase)) {
    driving.ownRuns.remove(runId);
    driving.usage.forget(runId);
    return;
  }
  while (isBeginning(driving, runId)) await awaitBeginning(driving, runId);
  const entry = enterDrivenRun(driving, found);
  const token = driving.ownRuns.tokenOf(runId);
  entry.pending.awaySinceMs = findAwaySinceMs(driving, found);
  const plan = (loadedRun: LoadedRun): PlannedProgress => planTurn(driving, loadedRun);
  try {
    await runInTurn(driving, entry, () => advanceDrivenRun(driving, entry, { plan }));
  } catch (error) {
    retryRunLater(driving, runId, { error, token });
  }
}

/**
 * Notes for each run of this process that the time in which the process was stopped or cut off does not count for its
 * time limit. A run that only waits for its time is not woken for that.
 */
function resumeAfterSilence(driving: RunDriverState, silentMs: number): void {
  const sinceMs = addMs(driving.clock.now(), -silentMs);
  for (const runId of driving.ownRuns.ids()) {
    const pending = driving.pending.get(runId);
    if (!pending) continue;
    pending.awaySinceMs ??= sinceMs;
    if (pending.acts.size > 0) wakeRun(driving, runId, { isBlind: true });
  }
}

/** Goes on with a run that this process began, where it was written. */
async function adoptIfOwn(driving: RunDriverState, runId: CoordinationId): Promise<void> {
  const { store, ownRuns, owner } = driving;
  const owned = (await store.owners.ownersOf([runId])).get(runId);
  if (owned?.id !== owner.id || driving.pending.has(runId)) return;
  const parent = (await store.entry(runId))?.summary.parent;
  ownRuns.add(runId, owned.token, { isChild: isParentOnThisHost(parent) });
  await adoptRun(driving, runId);
}

function isLostRunError(error: unknown): boolean {
  return isCoordinationError(error) && error.code === "NOT_OWNER";
}

/** Looks again in `RETRY_MS` if the run is this process's, until the ledger can tell, and goes on with it. */
function adoptRunLater(driving: RunDriverState, runId: CoordinationId): void {
  driving.clock.wakeAt(addMs(driving.clock.now(), RETRY_MS), () => {
    adoptIfOwn(driving, runId).catch((error: unknown) => {
      if (driving.isStopping) return;
      const code = readErrorCode(error);
      driving.logger.warn(
        { runId, code },
        "it cannot be told yet whether a run was written; it is looked at again",
      );
      adoptRunLater(driving, runId);
    });
  });
}

async function loadNewestRun(driving: RunDriverState, runId: CoordinationId): Promise<LoadedRun | undefined> {
  while (isBeginning(driving, runId)) await awaitBeginning(driving, runId);
  const loadedRun = driving.driven.get(runId)?.loadedRun ?? (await driving.book.load(runId));
  return loadedRun && catchUpUnlessEnded(driving, loadedRun);
}
