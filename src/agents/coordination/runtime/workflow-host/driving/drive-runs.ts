/**
 * Owns: the loop of workflow runs: read, plan, append, act. One thing at a time for each run, many runs at once.
 *
 * D1 an effect is done only when the events that it follows from are on disk, and its outcome is appended. D2 the same effect
 * has the same id, so that doing it again after a crash is the same. L2 an append that lost a race is planned again on the
 * newer log, which may have come from another process.
 */
import { CoordinationError, isCoordinationError } from "../../../contracts/errors.ts";
import { addMs, type CoordinationId, type EpochMs } from "../../../contracts/ids.ts";
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
import {
  entryOf,
  forgetEntry,
  pendingOf,
  release,
  runInTurn,
  type Act,
  type DrivenRun,
  type DrivenRuns,
} from "./driven-runs.ts";
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
  /** Wakes a run that another process left when its time comes. Until then nothing of it is read. */
  sleep(runId: CoordinationId, wakesAtMs: EpochMs): Promise<void>;
  /** Hears of each append of this process. */
  onAppended(listener: (loadedRun: LoadedRun, events: readonly WorkflowEvent[]) => void): void;
  stop(): Promise<void>;
}

export type Deliver = (outcomes: readonly EffectOutcome[]) => Promise<void>;

/** What is left of an effect that only waits for something outside; it holds nothing of its run. */
export interface WaitingEffect {
  /** As far as its outcome is settled by it. */
  readonly effect: NodeEffect;
  readonly wait: (deliver: Deliver) => Promise<void>;
}

/** Resolves when the effect is done, or with what is left to wait for. */
export type Perform = (
  loadedRun: LoadedRun,
  effect: NodeEffect,
  signal: AbortSignal,
  deliver: Deliver,
) => Promise<WaitingEffect | undefined>;

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
    pending: new Map(),
    listeners: [],
    isStopping: false,
    stopping: new AbortController(),
  };
  return {
    begin: (first, loadedRun) => beginRun(driving, first, loadedRun),
    ask: (runId, request) => ask(driving, runId, request),
    adopt: (runId) => adoptRun(driving, runId),
    newest: (runId) => loadNewest(driving, runId),
    sleep: async (runId, wakesAtMs) => {
      await driving.driven.get(runId)?.beginning?.catch(() => undefined);
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

interface Driving extends DriverParts, DrivenRuns {
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
  if (driving.pending.has(runId)) return undefined;
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
    forgetEntry(driving, entry);
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

/** What a fork takes beyond its first page is not waited for by whoever asked for it. */
function keepTaking(driving: Driving, entry: DrivenRun, beginning: Promise<unknown>): void {
  if (!isMaterialising(entry.loadedRun.run)) return;
  const plan = (loadedRun: LoadedRun): Planned => planOn(driving, loadedRun);
  const takeInBackground = async (): Promise<void> => {
    await beginning;
    await advanceRun(driving, entry, { plan });
  };
  runInTurn(driving, entry, takeInBackground).catch((error: unknown) => {
    beginning.then(
      () => {
        retryLater(driving, entry.loadedRun.run.runId, error);
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
    retryLater(driving, entry.loadedRun.run.runId, error);
    throw error;
  }
}

async function adoptRun(driving: Driving, runId: CoordinationId): Promise<void> {
  // A parent that was adopted may be trying to create it, and find that it is there.
  await driving.driven.get(runId)?.beginning?.catch(() => undefined);
  if (driving.pending.has(runId) || driving.isStopping) return;
  const found = await loadNewest(driving, runId);
  if (!found || isEndedPhase(found.run.phase)) return;
  const entry = entryOf(driving, found);
  const plan = (loadedRun: LoadedRun): Planned =>
    planOn(driving, loadedRun, draftResumption(driving, loadedRun));
  try {
    await runInTurn(driving, entry, () => advanceRun(driving, entry, { plan }));
  } catch (error) {
    retryLater(driving, entry.loadedRun.run.runId, error);
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

interface Going {
  readonly plan: (loadedRun: LoadedRun) => Planned | Promise<Planned>;
  /** Absent: as many as a race may take. */
  readonly triesMax?: number;
}

/** Plans on the newest state, appends, and acts. What a fork still has to take comes first. */
async function advanceRun(driving: Driving, entry: DrivenRun, pass: Going): Promise<void> {
  await takeAll(driving, entry);
  await appendWithRetries(driving, entry, pass);
}

/** @throws CoordinationError `LEDGER_CLOSED` when the host stops before all is taken */
async function takeAll(driving: Driving, entry: DrivenRun): Promise<void> {
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
  entry: DrivenRun,
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

function performEffects(driving: Driving, entry: DrivenRun, { effects, wakeAtMs }: Planned): void {
  const { runId } = entry.loadedRun.run;
  const { pending } = entry;
  pending.cancelWake?.();
  delete pending.cancelWake;
  forgetOtherActs(entry, effects);
  if (driving.isStopping) return;
  for (const effect of effects) if (!pending.acts.has(effect.id)) performEffect(driving, entry, effect);
  if (wakeAtMs !== undefined) wakeAt(driving, runId, { atMs: wakeAtMs });
}

/** What a paused run began is let end; what nobody waits for any more is not. */
function forgetOtherActs(
  { pending: { acts }, loadedRun: { run } }: DrivenRun,
  effects: readonly NodeEffect[],
): void {
  if (run.phase.kind === "paused") return;
  const wanted = new Set(effects.map(({ id }) => id));
  for (const [id, { controller }] of acts) {
    if (wanted.has(id)) continue;
    acts.delete(id);
    if (isEndedPhase(run.phase)) controller.abort();
  }
}

/** Holds nothing of the run but its id. */
function wakeAt(
  driving: Driving,
  runId: CoordinationId,
  { atMs, isBlind = false }: { readonly atMs: EpochMs; readonly isBlind?: boolean },
): void {
  const pending = pendingOf(driving, runId);
  pending.cancelWake = driving.clock.wakeAt(atMs, () => {
    delete pending.cancelWake;
    wakeRun(driving, runId, { isBlind });
  });
}

function wakeRun(driving: Driving, runId: CoordinationId, { isBlind = false } = {}): void {
  if (driving.isStopping) return;
  inTurnOf(driving, runId, async (entry) => {
    if (isBlind) entry.loadedRun = await catchUpUnlessEnded(driving, entry.loadedRun);
    await advanceRun(driving, entry, { plan: (loadedRun) => planOn(driving, loadedRun) });
  }).catch((error: unknown) => {
    retryLater(driving, runId, error);
  });
}

/** A turn of a run that may have slept: then it is read again, with what was appended meanwhile. */
async function inTurnOf(
  driving: Driving,
  runId: CoordinationId,
  work: (entry: DrivenRun) => Promise<void>,
): Promise<void> {
  const driven = driving.driven.get(runId);
  if (driven) return runInTurn(driving, driven, () => work(driven));
  const found = await driving.book.load(runId);
  if (!found) return;
  const entry = entryOf(driving, found);
  return runInTurn(driving, entry, async () => {
    entry.loadedRun = await catchUpUnlessEnded(driving, entry.loadedRun);
    await work(entry);
  });
}

function performEffect(driving: Driving, entry: DrivenRun, effect: NodeEffect): void {
  const { runId } = entry.loadedRun.run;
  const act: Act = { controller: new AbortController(), isWaiting: false };
  entry.pending.acts.set(effect.id, act);
  const { signal } = act.controller;
  const deliver = createDeliver(driving, runId, { effect, signal });
  const performing = driving.perform(entry.loadedRun, effect, signal, deliver);
  followAct(driving, { runId, effectId: effect.id, act }, performing);
}

interface FollowedAct {
  readonly runId: CoordinationId;
  readonly effectId: string;
  readonly act: Act;
}

function followAct(
  driving: Driving,
  followed: FollowedAct,
  performing: Promise<WaitingEffect | undefined>,
): void {
  const { runId, effectId, act } = followed;
  const { signal } = act.controller;
  const forgetAct = (): void => {
    const acts = driving.pending.get(runId)?.acts;
    if (acts?.get(effectId) === act) acts.delete(effectId);
  };
  performing.then(
    (waiting) => {
      if (waiting) {
        waitInSleep(driving, followed, waiting);
        return;
      }
      forgetAct();
      if (!signal.aborted) wakeRun(driving, runId);
    },
    (error: unknown) => {
      forgetAct();
      const entry = driving.driven.get(runId);
      if (!signal.aborted) retryLater(driving, runId, error);
      else if (entry) release(driving, entry);
    },
  );
}

function waitInSleep(driving: Driving, followed: FollowedAct, { effect, wait }: WaitingEffect): void {
  const { runId, act } = followed;
  act.isWaiting = true;
  const waiting = wait(createDeliver(driving, runId, { effect, signal: act.controller.signal }));
  followAct(
    driving,
    followed,
    waiting.then(() => undefined),
  );
  const entry = driving.driven.get(runId);
  if (entry) release(driving, entry);
}

/** What comes of a call that was broken off is no outcome of it. */
function createDeliver(
  driving: Driving,
  runId: CoordinationId,
  { effect, signal }: { readonly effect: NodeEffect; readonly signal: AbortSignal },
): Deliver {
  return (outcomes) =>
    inTurnOf(driving, runId, async (entry) => {
      if (signal.aborted) return;
      await advanceRun(driving, entry, {
        plan: (loadedRun) => settleAll(driving, loadedRun, { effect, outcomes }),
      });
    });
}

/** The state may be older than the log: what failed may have been written. */
function retryLater(driving: Driving, runId: CoordinationId, error: unknown): void {
  if (driving.isStopping) return;
  const code = isCoordinationError(error) ? error.code : "UNKNOWN";
  driving.logger.error({ runId, code }, "a workflow run could not go on; it is looked at again");
  driving.pending.get(runId)?.cancelWake?.();
  wakeAt(driving, runId, { atMs: addMs(driving.clock.now(), RETRY_MS), isBlind: true });
}

const RETRY_MS = 1_000;
