/**
 * Owns: one turn of a run that this process drives: plan on the newest state, append, act, and wake it again.
 */
import { CoordinationError, isLogDamage, readErrorCode } from "../../../contracts/errors.ts";
import { addMs, type CoordinationId, type EpochMs } from "../../../contracts/ids.ts";
import { isParentOnThisHost, type WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import type { NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import { isEndedPhase, isMaterialising } from "../../../workflow/state/workflow-state.ts";
import {
  appendPlanned,
  isLedgerConflict,
  planTurn,
  planResumption,
  planOutcomes,
  type PlannedProgress,
} from "./plan-runs.ts";
import {
  dropRun,
  enterDrivenRun,
  HOST_STOPS,
  LOG_IS_DAMAGED,
  enterPendingRun,
  releaseIdleRun,
  runInTurn,
  type OutsideAct,
  type DrivenRun,
} from "./driven-runs.ts";
import type { LoadedRun } from "../records/run-book.ts";
import { createLostRunError, FIRST_TOKEN } from "../../ownership/own-runs.ts";
import { createSourceTaking, type TakenEvents } from "./take-events.ts";
import type { OutcomeSink, RunDriverState, WaitingEffect } from "./run-driver-state.ts";

/** Tries to append in all, where others append first. */
export const RACES_MAX = 8;

/**
 * Returns the run with what was appended meanwhile; an ended run as it is. Another process may have gone on with it,
 * also with what this one drives.
 */
export async function catchUpUnlessEnded(driving: RunDriverState, loadedRun: LoadedRun): Promise<LoadedRun> {
  return isEndedPhase(loadedRun.run.phase) ? loadedRun : driving.book.catchUp(loadedRun);
}

interface DrivingPass {
  readonly plan: (loadedRun: LoadedRun) => PlannedProgress | Promise<PlannedProgress>;
  /** Absent: as many as a race may take. */
  readonly triesMax?: number;
}

/**
 * Plans on the newest state, appends, and acts. Events that a fork still has to take come first.
 * @throws CoordinationError `NOT_OWNER` for a run that another process drives
 */
export async function advanceDrivenRun(
  driving: RunDriverState,
  entry: DrivenRun,
  pass: DrivingPass,
): Promise<void> {
  await driving.ownRuns.confirm();
  if (!isOwnRun(driving, entry)) throw createLostRunError(entry.loadedRun.run.runId);
  await takeAllSourceEvents(driving, entry);
  const { awaySinceMs } = entry.pending;
  if (awaySinceMs !== undefined)
    await appendWithRetries(driving, entry, {
      plan: (loadedRun) => planResumption(driving, loadedRun, awaySinceMs),
    });
  await appendWithRetries(driving, entry, pass);
}

/** @throws CoordinationError `LEDGER_CLOSED` when the host stops before all is taken */
async function takeAllSourceEvents(driving: RunDriverState, entry: DrivenRun): Promise<void> {
  const { origin } = entry.loadedRun.run;
  if (!origin || !isMaterialising(entry.loadedRun.run)) return;
  const taking = createSourceTaking(driving, origin);
  const plan = async (loadedRun: LoadedRun): Promise<PlannedProgress> =>
    isMaterialising(loadedRun.run)
      ? asPlanned(await taking.next(loadedRun, driving.stopping.signal))
      : planTurn(driving, loadedRun);
  while (isMaterialising(entry.loadedRun.run)) {
    if (driving.isStopping) throw new CoordinationError("LEDGER_CLOSED", HOST_STOPS);
    await appendWithRetries(driving, entry, { plan });
  }
}

export async function planFirstSourcePage(
  driving: RunDriverState,
  loadedRun: LoadedRun,
): Promise<PlannedProgress> {
  const { origin } = loadedRun.run;
  return asPlanned(
    origin
      ? await createSourceTaking(driving, origin).next(loadedRun, driving.stopping.signal)
      : { run: loadedRun.run, events: [] },
  );
}

function asPlanned(takenEvents: TakenEvents): PlannedProgress {
  return { ...takenEvents, memory: [], effects: [] };
}

export async function appendWithRetries(
  driving: RunDriverState,
  entry: DrivenRun,
  { plan, triesMax = RACES_MAX }: DrivingPass,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const planned = await plan(entry.loadedRun);
    try {
      if (planned.events.length > 0) await appendPlanned(driving, planned, entry.pending.token);
    } catch (error) {
      if (!isLedgerConflict(error) || tries >= triesMax) throw error;
      entry.loadedRun = await driving.book.catchUp(entry.loadedRun);
      continue;
    }
    entry.loadedRun = { ...entry.loadedRun, run: planned.run };
    driving.book.keep(entry.loadedRun);
    noteAppended(driving, entry, planned.events);
    if (isOwnRun(driving, entry) || isEndedPhase(planned.run.phase)) performEffects(driving, entry, planned);
    return;
  }
}

/** True while this process drives the run by the same token as when its turn began. */
function isOwnRun(
  { ownRuns }: RunDriverState,
  { pending: { token }, loadedRun: { run } }: DrivenRun,
): boolean {
  return token !== undefined && ownRuns.tokenOf(run.runId) === token;
}

/** Notes an append. No process drives an ended run. */
function noteAppended(driving: RunDriverState, entry: DrivenRun, events: readonly WorkflowEvent[]): void {
  const { ownRuns, usage, listeners } = driving;
  const { run } = entry.loadedRun;
  const isNews = events.length > 0 || (isEndedPhase(run.phase) && ownRuns.tokenOf(run.runId) !== undefined);
  if (isEndedPhase(run.phase)) {
    ownRuns.remove(run.runId);
    usage.forget(run.runId);
  } else if (events[0]?.sequence === 0)
    ownRuns.add(run.runId, FIRST_TOKEN, { isChild: isParentOnThisHost(run.started.parent) });
  entry.pending.plannedLength = run.nextSequence;
  delete entry.pending.awaySinceMs;
  if (isNews) for (const listener of listeners) listener(entry.loadedRun, events);
}

function performEffects(
  driving: RunDriverState,
  entry: DrivenRun,
  { effects, events, wakeAtMs }: PlannedProgress,
): void {
  const { runId } = entry.loadedRun.run;
  const { pending } = entry;
  pending.cancelWake?.();
  delete pending.cancelWake;
  forgetOtherActs(entry, effects);
  if (driving.isStopping) return;
  for (const effect of effects) {
    if (pending.acts.has(effect.id)) continue;
    // An effect that was planned just now follows from an event of its node in the same append.
    const isTakenUp = !events.some(({ nodeId }) => nodeId === effect.nodeId);
    startEffect(driving, entry, { effect, isTakenUp });
  }
  if (wakeAtMs !== undefined) wakeRunAt(driving, runId, { atMs: wakeAtMs });
}

/** Forgets work that the run no longer waits for, and aborts it when the run has ended. A paused run's work goes on. */
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

/** Wakes the run at a time, which replaces the time that was set before. Holds nothing of the run but its id. */
export function wakeRunAt(
  driving: RunDriverState,
  runId: CoordinationId,
  { atMs, isBlind = false }: { readonly atMs: EpochMs; readonly isBlind?: boolean },
): void {
  const pending = enterPendingRun(driving, runId);
  pending.cancelWake?.();
  pending.cancelWake = driving.clock.wakeAt(atMs, () => {
    delete pending.cancelWake;
    wakeRun(driving, runId, { isBlind });
  });
}

/**
 * Begins a turn of a run that this process drives, without waiting for it; one that fails is tried again later.
 * `isBlind`: others may have appended, also before its first append was answered.
 */
export function wakeRun(driving: RunDriverState, runId: CoordinationId, { isBlind = false } = {}): void {
  if (driving.isStopping) return;
  const token = driving.ownRuns.tokenOf(runId);
  if (token === undefined) {
    driving.driven.get(runId)?.beginning?.then(
      () => wakeRun(driving, runId, { isBlind }),
      () => undefined,
    );
    return;
  }
  loadAndRunInTurn(driving, runId, async (entry) => {
    if (isBlind) entry.loadedRun = await catchUpUnlessEnded(driving, entry.loadedRun);
    await advanceDrivenRun(driving, entry, { plan: (loadedRun) => planTurn(driving, loadedRun) });
  }).catch((error: unknown) => {
    retryRunLater(driving, runId, { error, token });
  });
}

/** True while this process tries to begin the run. Nobody else may use its entry: its first event may never be written. */
export function isBeginning({ driven }: RunDriverState, runId: CoordinationId): boolean {
  return driven.get(runId)?.beginning !== undefined;
}

/** Resolves when the try to begin the run has ended. Another one may have begun by then: ask `isBeginning` again. */
export async function awaitBeginning({ driven }: RunDriverState, runId: CoordinationId): Promise<void> {
  await driven.get(runId)?.beginning?.catch(() => undefined);
}

/**
 * Does the work in the run's turn; reads a run that has slept first, and does nothing where there is none. A run that
 * is being begun may turn out to be there already, with another beginning.
 */
async function loadAndRunInTurn(
  driving: RunDriverState,
  runId: CoordinationId,
  work: (entry: DrivenRun) => Promise<void>,
): Promise<void> {
  while (isBeginning(driving, runId)) await awaitBeginning(driving, runId);
  const driven = driving.driven.get(runId);
  if (driven) return runInTurn(driving, driven, () => work(driven));
  const found = await driving.book.load(runId);
  if (!found) return;
  while (isBeginning(driving, runId)) await awaitBeginning(driving, runId);
  const entry = enterDrivenRun(driving, found);
  return runInTurn(driving, entry, async () => {
    entry.loadedRun = await catchUpUnlessEnded(driving, entry.loadedRun);
    await work(entry);
  });
}

function startEffect(
  driving: RunDriverState,
  entry: DrivenRun,
  { effect, isTakenUp }: { readonly effect: NodeEffect; readonly isTakenUp: boolean },
): void {
  const { runId } = entry.loadedRun.run;
  const act: OutsideAct = { controller: new AbortController(), isWaiting: false };
  entry.pending.acts.set(effect.id, act);
  const { signal } = act.controller;
  const deliver = createDeliver(driving, runId, { effect, signal });
  const performing = driving.perform(entry.loadedRun, effect, { signal, deliver, isTakenUp });
  followStartedAct(driving, { runId, effectId: effect.id, act }, performing);
}

interface FollowedAct {
  readonly runId: CoordinationId;
  readonly effectId: string;
  readonly act: OutsideAct;
}

function followStartedAct(
  driving: RunDriverState,
  followed: FollowedAct,
  performing: Promise<WaitingEffect | undefined>,
): void {
  const { runId, effectId, act } = followed;
  const { signal } = act.controller;
  const token = driving.ownRuns.tokenOf(runId);
  const forgetAct = (): void => {
    const acts = driving.pending.get(runId)?.acts;
    if (acts?.get(effectId) === act) acts.delete(effectId);
  };
  performing.then(
    (waiting) => {
      if (waiting) {
        releaseWhileWaiting(driving, followed, waiting);
        return;
      }
      forgetAct();
      if (!signal.aborted) wakeRun(driving, runId);
    },
    (error: unknown) => {
      forgetAct();
      const entry = driving.driven.get(runId);
      if (!signal.aborted) retryRunLater(driving, runId, { error, token, isOfEffect: true });
      else if (entry) releaseIdleRun(driving, entry);
    },
  );
}

function releaseWhileWaiting(
  driving: RunDriverState,
  followed: FollowedAct,
  { effect, wait }: WaitingEffect,
): void {
  const { runId, act } = followed;
  act.isWaiting = true;
  const waiting = wait(createDeliver(driving, runId, { effect, signal: act.controller.signal }));
  followStartedAct(
    driving,
    followed,
    waiting.then(() => undefined),
  );
  const entry = driving.driven.get(runId);
  if (entry) releaseIdleRun(driving, entry);
}

/** Creates the function that plans and appends an effect's outcomes in the run's turn, unless it was aborted. */
function createDeliver(
  driving: RunDriverState,
  runId: CoordinationId,
  { effect, signal }: { readonly effect: NodeEffect; readonly signal: AbortSignal },
): OutcomeSink {
  return async (outcomes) => {
    if (signal.aborted) return;
    await loadAndRunInTurn(driving, runId, async (entry) => {
      if (signal.aborted) return;
      await advanceDrivenRun(driving, entry, {
        plan: (loadedRun) => planOutcomes(driving, loadedRun, { effect, outcomes }),
      });
    });
  };
}

/** A turn that failed. */
interface FailedTurn {
  readonly error: unknown;
  /** By which the run was driven when the turn was asked for. */
  readonly token: number | undefined;
  /** True where an effect failed, which may have read the log of another run, while the run itself was driven. */
  readonly isOfEffect?: boolean;
}

/**
 * Wakes the run again in `RETRY_MS`, as its log may be newer; gives it up where another process drives it, and leaves
 * it where a log is damaged.
 */
export function retryRunLater(
  driving: RunDriverState,
  runId: CoordinationId,
  { error, token, isOfEffect = false }: FailedTurn,
): void {
  if (driving.isStopping) return;
  const code = readErrorCode(error);
  if (code === "NOT_OWNER") {
    // A run that was lost may have been taken over again meanwhile: the failure is about the time before.
    if (driving.ownRuns.tokenOf(runId) === token) giveUpRun(driving, runId);
    return;
  }
  if (isLogDamage(error)) {
    driving.logger.error({ runId, code }, LOG_IS_DAMAGED);
    if (!isOfEffect) driving.usage.forget(runId);
    return;
  }
  driving.logger.error({ runId, code }, "a workflow run could not go on; it is looked at again");
  if (!isOfEffect) enterPendingRun(driving, runId).awaySinceMs ??= driving.clock.now();
  wakeRunAt(driving, runId, { atMs: addMs(driving.clock.now(), RETRY_MS), isBlind: true });
}

/** Forgets a run that another process drives now, and aborts what is under way for it here. */
export function giveUpRun(driving: RunDriverState, runId: CoordinationId): void {
  if (driving.ownRuns.tokenOf(runId) !== undefined)
    driving.logger.info({ runId }, "another process drives the run now");
  dropRun(driving, runId);
  driving.usage.forget(runId);
}

export const RETRY_MS = 1_000;
