/**
 * Owns: the loop of workflow runs: read, plan, append, act. One thing at a time for each run, many runs at once.
 *
 * D1 an effect is done only when the events that it follows from are on disk, and its outcome is appended. D2 the same effect
 * has the same id, so that doing it again after a crash is the same. L2 an append that lost a race is planned again on the
 * newer log, which may have come from another process.
 */
import { isCoordinationError } from "../../../contracts/errors.ts";
import { addMs, type CoordinationId, type EpochMs } from "../../../contracts/ids.ts";
import type { OwnedRun } from "../../../ports/run-owners.ts";
import { isOnThisHost, type WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import { isEndedPhase, isMaterialising } from "../../../workflow/state/workflow-state.ts";
import { isConflict, planOn, withFirst, type Planned } from "./plan-runs.ts";
import { dropRun, entryOf, forgetEntry, HOST_STOPS, runInTurn, type DrivenRun } from "./driven-runs.ts";
import type { LoadedRun } from "../records/run-book.ts";
import {
  type Driving,
  type DriverDependencies,
  advanceRun,
  takeFirstPage,
  appendWithRetries,
  giveUpRun,
  retryLater,
  awaitBeginning,
  isBeginning,
  wakeAt,
  wakeRun,
  catchUpUnlessEnded,
  RETRY_MS,
} from "./advance-driven.ts";
import { askElsewhere } from "./append-arrival.ts";
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

export function createRunDriver(dependencies: DriverDependencies): RunDriver {
  const driving: Driving = {
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
  return {
    begin: (first, loadedRun) => beginRun(driving, first, loadedRun),
    ask: (runId, request) => ask(driving, runId, request),
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
    newest: (runId) => loadNewest(driving, runId),
    sleep: async (runId, wakesAtMs) => {
      while (isBeginning(driving, runId)) await awaitBeginning(driving, runId);
      if (!driving.pending.has(runId) && !driving.isStopping) wakeAt(driving, runId, { atMs: wakesAtMs });
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

async function beginRun(
  driving: Driving,
  first: WorkflowEvent,
  loadedRun: LoadedRun,
): Promise<LoadedRun | undefined> {
  const { runId } = loadedRun.run;
  if (driving.pending.has(runId)) return undefined;
  const entry = entryOf(driving, loadedRun);
  entry.pending.token = FIRST_TOKEN;
  const plan = async (now: LoadedRun): Promise<Planned> =>
    withFirst(first, isMaterialising(now.run) ? await takeFirstPage(driving, now) : planOn(driving, now));
  const beginning = runInTurn(driving, entry, () => appendWithRetries(driving, entry, { plan, triesMax: 1 }))
    .catch((error: unknown) => {
      forgetEntry(driving, entry);
      throw error;
    })
    .finally(() => {
      delete entry.beginning;
    });
  entry.beginning = beginning;
  try {
    keepTaking(driving, entry, beginning);
    await beginning;
    return entry.loadedRun;
  } catch (error) {
    if (!isConflict(error)) {
      // It may have been written nevertheless.
      adoptRunLater(driving, runId);
      throw error;
    }
    // An earlier try of this process may have been written, with nobody who goes on with it.
    await adoptIfOwn(driving, runId);
    return undefined;
  }
}

/** Keeps taking events of a fork beyond its first page; whoever asked for the fork does not wait for them. */
function keepTaking(driving: Driving, entry: DrivenRun, beginning: Promise<unknown>): void {
  if (!isMaterialising(entry.loadedRun.run)) return;
  const { runId } = entry.loadedRun.run;
  const plan = (loadedRun: LoadedRun): Planned => planOn(driving, loadedRun);
  const takeInBackground = async (): Promise<void> => {
    await beginning;
    await advanceRun(driving, entry, { plan });
  };
  runInTurn(driving, entry, takeInBackground).catch((error: unknown) => {
    beginning.then(
      () => {
        retryLater(driving, runId, { error, token: FIRST_TOKEN });
      },
      () => undefined,
    );
  });
}

async function ask<R>(
  driving: Driving,
  runId: CoordinationId,
  request: (loadedRun: LoadedRun) => RequestDrafts<R>,
): Promise<RequestOutcome<R> | undefined> {
  const found = await loadNewest(driving, runId);
  if (!found) return undefined;
  await driving.ownRuns.confirm();
  const token = driving.ownRuns.tokenOf(runId);
  if (token === undefined) return askElsewhere(driving, found, request);
  try {
    return await askOwn(driving, found, request);
  } catch (error) {
    retryLater(driving, runId, { error, token });
    if (!isLost(error)) throw error;
    return askElsewhere(driving, found, request);
  }
}

/** Asks after events of others were planned: the request may be about what follows from them. */
async function askOwn<R>(
  driving: Driving,
  found: LoadedRun,
  request: (loadedRun: LoadedRun) => RequestDrafts<R>,
): Promise<RequestOutcome<R>> {
  while (isBeginning(driving, found.run.runId)) await awaitBeginning(driving, found.run.runId);
  const entry = entryOf(driving, found);
  let refused: R | undefined;
  const plan = (loadedRun: LoadedRun): Planned => {
    const answer = request(loadedRun);
    refused = "refused" in answer ? answer.refused : undefined;
    return planOn(driving, loadedRun, "drafts" in answer ? answer.drafts : []);
  };
  return runInTurn(driving, entry, async () => {
    entry.loadedRun = await catchUpUnlessEnded(driving, entry.loadedRun);
    if (entry.pending.plannedLength !== entry.loadedRun.run.nextSequence)
      await advanceRun(driving, entry, { plan: (loadedRun) => planOn(driving, loadedRun) });
    if (isEndedPhase(entry.loadedRun.run.phase)) plan(entry.loadedRun);
    else await advanceRun(driving, entry, { plan });
    return { loadedRun: entry.loadedRun, ...(refused !== undefined && { refused }) };
  });
}

/** When the process before went is not known, only when it recorded something last. */
const SINCE_LAST_EVENT = 0 as EpochMs;

async function adoptRun(driving: Driving, runId: CoordinationId): Promise<void> {
  // A parent that was adopted may be trying to create it, and find that it is there.
  while (isBeginning(driving, runId)) await awaitBeginning(driving, runId);
  if (driving.pending.has(runId) || driving.isStopping) return;
  const found = await loadNewest(driving, runId);
  if (!found || isEndedPhase(found.run.phase)) {
    driving.ownRuns.remove(runId);
    driving.usage.forget(runId);
    return;
  }
  while (isBeginning(driving, runId)) await awaitBeginning(driving, runId);
  const entry = entryOf(driving, found);
  const token = driving.ownRuns.tokenOf(runId);
  entry.pending.awaySinceMs = SINCE_LAST_EVENT;
  const plan = (loadedRun: LoadedRun): Planned => planOn(driving, loadedRun);
  try {
    await runInTurn(driving, entry, () => advanceRun(driving, entry, { plan }));
  } catch (error) {
    retryLater(driving, runId, { error, token });
  }
}

/** Goes on with a run that this process began, where it was written. */
async function adoptIfOwn(driving: Driving, runId: CoordinationId): Promise<void> {
  const { store, ownRuns, owner } = driving;
  const owned = (await store.owners.ownersOf([runId])).get(runId);
  if (owned?.id !== owner.id || driving.pending.has(runId)) return;
  const parent = (await store.entry(runId))?.summary.parent;
  ownRuns.add(runId, owned.token, { isChild: isOnThisHost(parent) });
  await adoptRun(driving, runId);
}

function isLost(error: unknown): boolean {
  return isCoordinationError(error) && error.code === "NOT_OWNER";
}

function adoptRunLater(driving: Driving, runId: CoordinationId): void {
  driving.clock.wakeAt(addMs(driving.clock.now(), RETRY_MS), () => {
    adoptIfOwn(driving, runId).catch(() => {
      if (!driving.isStopping) adoptRunLater(driving, runId);
    });
  });
}

async function loadNewest(driving: Driving, runId: CoordinationId): Promise<LoadedRun | undefined> {
  while (isBeginning(driving, runId)) await awaitBeginning(driving, runId);
  const loadedRun = driving.driven.get(runId)?.loadedRun ?? (await driving.book.load(runId));
  return loadedRun && catchUpUnlessEnded(driving, loadedRun);
}
