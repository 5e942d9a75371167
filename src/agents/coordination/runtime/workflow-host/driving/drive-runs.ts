/**
 * Owns: the loop of workflow runs: read, plan, append, act. One thing at a time for each run, many runs at once.
 *
 * D1 an effect is done only when the events that it follows from are on disk, and its outcome is appended. D2 the same effect
 * has the same id, so that doing it again after a crash is the same. L2 an append that lost a race is planned again on the
 * newer log, which may have come from another process.
 */
import { CoordinationError, isCoordinationError } from "../../../contracts/errors.ts";
import { addMs, type CoordinationId } from "../../../contracts/ids.ts";
import type { WorkflowDraft, WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import type { EffectOutcome, NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import { isEndedPhase, isMaterialising } from "../../../workflow/state/workflow-state.ts";
import {
  appendPlanned,
  isConflict,
  planOn,
  draftResumption,
  settleAll,
  withFirst,
  type Planned,
  type PlanParts,
} from "./plan-runs.ts";
import type { LoadedRun, RunBook } from "../records/run-book.ts";
import { createTaking, type AskAgain, type Taken } from "./take-events.ts";

/** What is to be appended to a run as it is now; a text is the reason why nothing is. */
export type Asked<R> = { readonly drafts: readonly WorkflowDraft[] } | { readonly refused: R };

export interface RunDriver {
  /**
   * Appends the first event of a run, and goes on with it; of a fork, with a first page of what it takes from its source.
   * `undefined`: there is one already.
   */
  begin(first: WorkflowEvent, loadedRun: LoadedRun): Promise<LoadedRun | undefined>;
  /** Asks a known run for something. `undefined`: there is no such run. */
  ask<R>(
    runId: CoordinationId,
    request: (loadedRun: LoadedRun) => Asked<R>,
  ): Promise<{ readonly loadedRun: LoadedRun; readonly refused?: R } | undefined>;
  /** Goes on with a run that another process left. */
  adopt(runId: CoordinationId): Promise<void>;
  /** The newest state, with what other processes appended. */
  newest(runId: CoordinationId): Promise<LoadedRun | undefined>;
  isDriven(runId: string): boolean;
  /** Hears of each append of this process. */
  onAppended(listener: (loadedRun: LoadedRun, events: readonly WorkflowEvent[]) => void): void;
  stop(): Promise<void>;
}

export type Perform = (
  loadedRun: LoadedRun,
  effect: NodeEffect,
  signal: AbortSignal,
  deliver: (outcomes: readonly EffectOutcome[]) => Promise<void>,
) => Promise<void>;

interface Driven {
  loadedRun: LoadedRun;
  /** Everything that is done with the run, one after the other. */
  turn: Promise<unknown>;
  /** Turns that have not ended. */
  turns: number;
  /** While the first event of the run is not on disk. */
  beginning?: Promise<unknown>;
  /** What is under way, by its id. */
  readonly acts: Map<string, AbortController>;
  cancelWake?: () => void;
}

interface DriverParts extends PlanParts {
  readonly book: RunBook;
  readonly perform: Perform;
  readonly askAgain: AskAgain;
}

const RACES_MAX = 8;
/** Why effects are given up that the next process goes on with: what they began elsewhere is not to be ended. */
export const HOST_STOPS = "the host stops";

export function createRunDriver(parts: DriverParts): RunDriver {
  const driving: Driving = {
    ...parts,
    driven: new Map(),
    listeners: [],
    isStopping: false,
    stopping: new AbortController(),
  };
  return {
    begin: (first, loadedRun) => beginRun(driving, first, loadedRun),
    ask: (runId, request) => ask(driving, runId, request),
    adopt: (runId) => adoptRun(driving, runId),
    newest: (runId) => loadNewest(driving, runId),
    isDriven: (runId) => driving.driven.has(runId as CoordinationId),
    onAppended: (listener) => driving.listeners.push(listener),
    stop: async () => {
      driving.isStopping = true;
      driving.stopping.abort(HOST_STOPS);
      const turns = [...driving.driven.values()].map((entry) => {
        entry.cancelWake?.();
        for (const controller of entry.acts.values()) controller.abort(HOST_STOPS);
        return entry.turn;
      });
      await Promise.allSettled(turns);
    },
  };
}

interface Driving extends DriverParts {
  readonly driven: Map<CoordinationId, Driven>;
  readonly listeners: ((loadedRun: LoadedRun, events: readonly WorkflowEvent[]) => void)[];
  isStopping: boolean;
  readonly stopping: AbortController;
}

async function beginRun(
  driving: Driving,
  first: WorkflowEvent,
  loadedRun: LoadedRun,
): Promise<LoadedRun | undefined> {
  const { runId } = loadedRun.run;
  if (driving.driven.has(runId)) return undefined;
  const entry = entryOf(driving, loadedRun);
  const plan = async (now: LoadedRun): Promise<Planned> =>
    withFirst(first, isMaterialising(now.run) ? await takeFirstPage(driving, now) : planOn(driving, now));
  try {
    entry.beginning = runInTurn(driving, entry, () =>
      appendWithRetries(driving, entry, { plan, triesMax: 1 }),
    );
    keepTaking(driving, entry, entry.beginning);
    await entry.beginning;
    return entry.loadedRun;
  } catch (error) {
    if (driving.driven.get(runId) === entry) driving.driven.delete(runId);
    if (!isConflict(error)) {
      // It may have been written nevertheless.
      adoptRunLater(driving, runId);
      throw error;
    }
    const stored = await driving.store.entry(runId);
    // An earlier try of this process was written, and nobody goes on with it.
    if (stored?.summary.driver === driving.driver.id) await adoptRun(driving, runId);
    return undefined;
  } finally {
    delete entry.beginning;
  }
}

/** Goes on taking events for a fork. Whoever asked for the fork does not wait beyond its first page. */
function keepTaking(driving: Driving, entry: Driven, beginning: Promise<unknown>): void {
  if (!isMaterialising(entry.loadedRun.run)) return;
  const plan = (loadedRun: LoadedRun): Planned => planOn(driving, loadedRun);
  const takeInBackground = async (): Promise<void> => {
    await beginning;
    await advanceRun(driving, entry, { plan });
  };
  runInTurn(driving, entry, takeInBackground).catch((error: unknown) => {
    beginning.then(
      () => {
        stopDrivingFailed(driving, entry, error);
      },
      () => undefined,
    );
  });
}

async function ask<R>(
  driving: Driving,
  runId: CoordinationId,
  request: (loadedRun: LoadedRun) => Asked<R>,
): Promise<{ readonly loadedRun: LoadedRun; readonly refused?: R } | undefined> {
  const found = await loadNewest(driving, runId);
  if (!found) return undefined;
  const entry = entryOf(driving, found);
  let refused: R | undefined;
  const plan = (loadedRun: LoadedRun): Planned => {
    const answer = request(loadedRun);
    refused = "refused" in answer ? answer.refused : undefined;
    return planOn(driving, loadedRun, "drafts" in answer ? answer.drafts : []);
  };
  try {
    return await runInTurn(driving, entry, async () => {
      entry.loadedRun = await catchUpUnlessEnded(driving, entry.loadedRun);
      await advanceRun(driving, entry, { plan });
      return { loadedRun: entry.loadedRun, ...(refused !== undefined && { refused }) };
    });
  } catch (error) {
    stopDrivingFailed(driving, entry, error);
    throw error;
  }
}

async function adoptRun(driving: Driving, runId: CoordinationId): Promise<void> {
  // A parent that was adopted may be trying to create it, and find that it is there.
  await driving.driven.get(runId)?.beginning?.catch(() => undefined);
  if (driving.driven.has(runId) || driving.isStopping) return;
  const found = await loadNewest(driving, runId);
  if (!found || isEndedPhase(found.run.phase)) return;
  const entry = entryOf(driving, found);
  const plan = (loadedRun: LoadedRun): Planned =>
    planOn(driving, loadedRun, draftResumption(driving, loadedRun));
  try {
    await runInTurn(driving, entry, () => advanceRun(driving, entry, { plan }));
  } catch (error) {
    stopDrivingFailed(driving, entry, error);
  }
}

function adoptRunLater(driving: Driving, runId: CoordinationId): void {
  driving.clock.wakeAt(addMs(driving.clock.now(), RETRY_MS), () => {
    adoptRun(driving, runId).catch(() => {
      if (!driving.isStopping) adoptRunLater(driving, runId);
    });
  });
}

async function loadNewest(driving: Driving, runId: CoordinationId): Promise<LoadedRun | undefined> {
  await driving.driven.get(runId)?.beginning?.catch(() => undefined);
  const loadedRun = driving.driven.get(runId)?.loadedRun ?? (await driving.book.load(runId));
  return loadedRun && catchUpUnlessEnded(driving, loadedRun);
}

/** Reads what another process may have appended meanwhile, even to a run that this one drives. */
async function catchUpUnlessEnded(driving: Driving, loadedRun: LoadedRun): Promise<LoadedRun> {
  return isEndedPhase(loadedRun.run.phase) ? loadedRun : driving.book.catchUp(loadedRun);
}

function entryOf({ driven }: Driving, loadedRun: LoadedRun): Driven {
  const { runId } = loadedRun.run;
  const had = driven.get(runId);
  if (had) return had;
  const entry: Driven = { loadedRun, turn: Promise.resolve(), turns: 0, acts: new Map() };
  driven.set(runId, entry);
  return entry;
}

function runInTurn<T>(driving: Driving, entry: Driven, work: () => Promise<T>): Promise<T> {
  entry.turns += 1;
  const mine = entry.turn.then(work, work).finally(() => {
    entry.turns -= 1;
    release(driving, entry);
  });
  entry.turn = mine.then(
    () => undefined,
    () => undefined,
  );
  return mine;
}

/** Stops driving a run that nothing is done with and nobody has in hand. */
function release({ driven }: Driving, entry: Driven): void {
  const { runId } = entry.loadedRun.run;
  const isIdle = entry.turns === 0 && entry.acts.size === 0 && !entry.cancelWake;
  if (isIdle && driven.get(runId) === entry) driven.delete(runId);
}

interface Going {
  readonly plan: (loadedRun: LoadedRun) => Planned | Promise<Planned>;
  /** Absent: as many as a race may take. */
  readonly triesMax?: number;
}

/** Plans on the newest state, appends, and acts. What a fork still has to take comes first. */
async function advanceRun(driving: Driving, entry: Driven, pass: Going): Promise<void> {
  await takeAll(driving, entry);
  await appendWithRetries(driving, entry, pass);
}

/** @throws CoordinationError `LEDGER_CLOSED` when the host stops before all is taken */
async function takeAll(driving: Driving, entry: Driven): Promise<void> {
  const { origin } = entry.loadedRun.run;
  if (!origin || !isMaterialising(entry.loadedRun.run)) return;
  const taking = createTaking(driving, origin);
  const plan = async (loadedRun: LoadedRun): Promise<Planned> =>
    isMaterialising(loadedRun.run)
      ? asPlanned(await taking.next(loadedRun, driving.stopping.signal))
      : planOn(driving, loadedRun);
  while (isMaterialising(entry.loadedRun.run)) {
    if (driving.isStopping) throw new CoordinationError("LEDGER_CLOSED", HOST_STOPS);
    await appendWithRetries(driving, entry, { plan });
  }
}

async function takeFirstPage(driving: Driving, loadedRun: LoadedRun): Promise<Planned> {
  const { origin } = loadedRun.run;
  return asPlanned(
    origin
      ? await createTaking(driving, origin).next(loadedRun, driving.stopping.signal)
      : { run: loadedRun.run, events: [] },
  );
}

function asPlanned(takenEvents: Taken): Planned {
  return { ...takenEvents, memory: [], effects: [] };
}

async function appendWithRetries(
  driving: Driving,
  entry: Driven,
  { plan, triesMax = RACES_MAX }: Going,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const planned = await plan(entry.loadedRun);
    try {
      if (planned.events.length > 0) await appendPlanned(driving, planned);
    } catch (error) {
      if (!isConflict(error) || tries >= triesMax) throw error;
      entry.loadedRun = await driving.book.catchUp(entry.loadedRun);
      continue;
    }
    entry.loadedRun = { ...entry.loadedRun, run: planned.run };
    driving.book.keep(entry.loadedRun);
    if (planned.events.length > 0)
      for (const listener of driving.listeners) listener(entry.loadedRun, planned.events);
    performEffects(driving, entry, planned);
    return;
  }
}

function performEffects(driving: Driving, entry: Driven, { effects, wakeAtMs }: Planned): void {
  entry.cancelWake?.();
  delete entry.cancelWake;
  forgetOtherActs(entry, effects);
  if (driving.isStopping) return;
  for (const effect of effects) if (!entry.acts.has(effect.id)) performEffect(driving, entry, effect);
  if (wakeAtMs === undefined) return;
  entry.cancelWake = driving.clock.wakeAt(wakeAtMs, () => {
    delete entry.cancelWake;
    wakeRun(driving, entry);
  });
}

/** Forgets effects that nobody waits for any more. Those of a paused run are let end. */
function forgetOtherActs({ acts, loadedRun: { run } }: Driven, effects: readonly NodeEffect[]): void {
  if (run.phase.kind === "paused") return;
  const wanted = new Set(effects.map(({ id }) => id));
  for (const [id, controller] of acts) {
    if (wanted.has(id)) continue;
    acts.delete(id);
    if (isEndedPhase(run.phase)) controller.abort();
  }
}

function wakeRun(driving: Driving, entry: Driven, { isBlind = false } = {}): void {
  if (driving.isStopping) return;
  const plan = (loadedRun: LoadedRun): Planned => planOn(driving, loadedRun);
  runInTurn(driving, entry, async () => {
    if (isBlind) entry.loadedRun = await catchUpUnlessEnded(driving, entry.loadedRun);
    await advanceRun(driving, entry, { plan });
  }).catch((error: unknown) => {
    stopDrivingFailed(driving, entry, error);
  });
}

function performEffect(driving: Driving, entry: Driven, effect: NodeEffect): void {
  const controller = new AbortController();
  const { signal } = controller;
  entry.acts.set(effect.id, controller);
  // What comes of a call that was broken off is no outcome of it.
  const deliver = (outcomes: readonly EffectOutcome[]): Promise<void> =>
    runInTurn(driving, entry, async () => {
      if (signal.aborted) return;
      await advanceRun(driving, entry, {
        plan: (loadedRun) => settleAll(driving, loadedRun, { effect, outcomes }),
      });
    });
  const forgetAct = (): void => {
    if (entry.acts.get(effect.id) === controller) entry.acts.delete(effect.id);
  };
  driving.perform(entry.loadedRun, effect, signal, deliver).then(
    () => {
      forgetAct();
      if (!signal.aborted) wakeRun(driving, entry);
    },
    (error: unknown) => {
      forgetAct();
      if (signal.aborted) release(driving, entry);
      else stopDrivingFailed(driving, entry, error);
    },
  );
}

/** The state may be older than the log: what failed may have been written. */
function stopDrivingFailed(driving: Driving, failedEntry: Driven, error: unknown): void {
  if (driving.isStopping) return;
  const { runId } = failedEntry.loadedRun.run;
  const code = isCoordinationError(error) ? error.code : "UNKNOWN";
  driving.logger.error({ runId, code }, "a workflow run could not go on; it is looked at again");
  const entry = driving.driven.get(runId) ?? failedEntry;
  driving.driven.set(runId, entry);
  entry.cancelWake?.();
  entry.cancelWake = driving.clock.wakeAt(addMs(driving.clock.now(), RETRY_MS), () => {
    delete entry.cancelWake;
    wakeRun(driving, entry, { isBlind: true });
  });
}

const RETRY_MS = 1_000;
