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
  resuming,
  settleAll,
  withFirst,
  type Planned,
  type PlanParts,
} from "./plan-runs.ts";
import type { KnownRun, RunBook } from "../records/run-book.ts";
import { createTaking, type AskAgain, type Taken } from "./take-events.ts";

/** What is to be appended to a run as it is now; a text is the reason why nothing is. */
export type Asked<R> = { readonly drafts: readonly WorkflowDraft[] } | { readonly refused: R };

export interface RunDriver {
  /**
   * Appends the first event of a run, and goes on with it; of a fork, with a first page of what it takes from its source.
   * `undefined`: there is one already.
   */
  begin(first: WorkflowEvent, known: KnownRun): Promise<KnownRun | undefined>;
  /** Asks a known run for something. `undefined`: there is no such run. */
  ask<R>(
    runId: CoordinationId,
    asked: (known: KnownRun) => Asked<R>,
  ): Promise<{ readonly known: KnownRun; readonly refused?: R } | undefined>;
  /** Goes on with a run that another process left. */
  adopt(runId: CoordinationId): Promise<void>;
  /** The newest state, with what other processes appended. */
  newest(runId: CoordinationId): Promise<KnownRun | undefined>;
  isDriven(runId: string): boolean;
  /** Hears of each append of this process. */
  onAppended(listener: (known: KnownRun, events: readonly WorkflowEvent[]) => void): void;
  stop(): Promise<void>;
}

export type Perform = (
  known: KnownRun,
  effect: NodeEffect,
  signal: AbortSignal,
  deliver: (outcomes: readonly EffectOutcome[]) => Promise<void>,
) => Promise<void>;

interface Driven {
  known: KnownRun;
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
  const it: Driving = {
    ...{ ...parts, driven: new Map(), listeners: [], isStopping: false },
    stopping: new AbortController(),
  };
  return {
    begin: (first, known) => begin(it, first, known),
    ask: (runId, asked) => ask(it, runId, asked),
    adopt: (runId) => adopt(it, runId),
    newest: (runId) => newest(it, runId),
    isDriven: (runId) => it.driven.has(runId as CoordinationId),
    onAppended: (listener) => it.listeners.push(listener),
    stop: async () => {
      it.isStopping = true;
      it.stopping.abort(HOST_STOPS);
      const turns = [...it.driven.values()].map((entry) => {
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
  readonly listeners: ((known: KnownRun, events: readonly WorkflowEvent[]) => void)[];
  isStopping: boolean;
  readonly stopping: AbortController;
}

async function begin(it: Driving, first: WorkflowEvent, known: KnownRun): Promise<KnownRun | undefined> {
  const { runId } = known.run;
  if (it.driven.has(runId)) return undefined;
  const entry = entryOf(it, known);
  const plan = async (now: KnownRun): Promise<Planned> =>
    withFirst(first, isMaterialising(now.run) ? await firstPage(it, now) : planOn(it, now));
  try {
    entry.beginning = inTurn(it, entry, () => tryOn(it, entry, { plan, triesMax: 1 }));
    goOnTaking(it, entry, entry.beginning);
    await entry.beginning;
    return entry.known;
  } catch (error) {
    if (it.driven.get(runId) === entry) it.driven.delete(runId);
    if (!isConflict(error)) {
      // It may have been written nevertheless.
      adoptLater(it, runId);
      throw error;
    }
    const stored = await it.store.entry(runId);
    // An earlier try of this process was written, and nobody goes on with it.
    if (stored?.summary.driver === it.driver.id) await adopt(it, runId);
    return undefined;
  } finally {
    delete entry.beginning;
  }
}

/** What a fork takes beyond its first page is not waited for by whoever asked for it. */
function goOnTaking(it: Driving, entry: Driven, beginning: Promise<unknown>): void {
  if (!isMaterialising(entry.known.run)) return;
  const plan = (known: KnownRun): Planned => planOn(it, known);
  const taking = async (): Promise<void> => {
    await beginning;
    await goOn(it, entry, { plan });
  };
  inTurn(it, entry, taking).catch((error: unknown) => {
    beginning.then(
      () => {
        failed(it, entry, error);
      },
      () => undefined,
    );
  });
}

async function ask<R>(
  it: Driving,
  runId: CoordinationId,
  asked: (known: KnownRun) => Asked<R>,
): Promise<{ readonly known: KnownRun; readonly refused?: R } | undefined> {
  const found = await newest(it, runId);
  if (!found) return undefined;
  const entry = entryOf(it, found);
  let refused: R | undefined;
  const plan = (known: KnownRun): Planned => {
    const answer = asked(known);
    refused = "refused" in answer ? answer.refused : undefined;
    return planOn(it, known, "drafts" in answer ? answer.drafts : []);
  };
  try {
    return await inTurn(it, entry, async () => {
      entry.known = await freshest(it, entry.known);
      await goOn(it, entry, { plan });
      return { known: entry.known, ...(refused !== undefined && { refused }) };
    });
  } catch (error) {
    failed(it, entry, error);
    throw error;
  }
}

async function adopt(it: Driving, runId: CoordinationId): Promise<void> {
  // A parent that was adopted may be trying to create it, and find that it is there.
  await it.driven.get(runId)?.beginning?.catch(() => undefined);
  if (it.driven.has(runId) || it.isStopping) return;
  const found = await newest(it, runId);
  if (!found || isEndedPhase(found.run.phase)) return;
  const entry = entryOf(it, found);
  const plan = (known: KnownRun): Planned => planOn(it, known, resuming(it, known));
  try {
    await inTurn(it, entry, () => goOn(it, entry, { plan }));
  } catch (error) {
    failed(it, entry, error);
  }
}

function adoptLater(it: Driving, runId: CoordinationId): void {
  it.clock.wakeAt(addMs(it.clock.now(), RETRY_MS), () => {
    adopt(it, runId).catch(() => {
      if (!it.isStopping) adoptLater(it, runId);
    });
  });
}

async function newest(it: Driving, runId: CoordinationId): Promise<KnownRun | undefined> {
  await it.driven.get(runId)?.beginning?.catch(() => undefined);
  const known = it.driven.get(runId)?.known ?? (await it.book.load(runId));
  return known && freshest(it, known);
}

/** Another process may have gone on with it, also with what this one drives. */
async function freshest(it: Driving, known: KnownRun): Promise<KnownRun> {
  return isEndedPhase(known.run.phase) ? known : it.book.catchUp(known);
}

function entryOf({ driven }: Driving, known: KnownRun): Driven {
  const { runId } = known.run;
  const had = driven.get(runId);
  if (had) return had;
  const entry: Driven = { known, turn: Promise.resolve(), turns: 0, acts: new Map() };
  driven.set(runId, entry);
  return entry;
}

function inTurn<T>(it: Driving, entry: Driven, work: () => Promise<T>): Promise<T> {
  entry.turns += 1;
  const mine = entry.turn.then(work, work).finally(() => {
    entry.turns -= 1;
    release(it, entry);
  });
  entry.turn = mine.then(
    () => undefined,
    () => undefined,
  );
  return mine;
}

/** What nothing is done with, and nobody has in hand, is not driven. */
function release({ driven }: Driving, entry: Driven): void {
  const { runId } = entry.known.run;
  const isIdle = entry.turns === 0 && entry.acts.size === 0 && !entry.cancelWake;
  if (isIdle && driven.get(runId) === entry) driven.delete(runId);
}

interface Going {
  readonly plan: (known: KnownRun) => Planned | Promise<Planned>;
  /** Absent: as many as a race may take. */
  readonly triesMax?: number;
}

/** Plans on the newest state, appends, and acts. What a fork still has to take comes first. */
async function goOn(it: Driving, entry: Driven, going: Going): Promise<void> {
  await takeAll(it, entry);
  await tryOn(it, entry, going);
}

/** @throws CoordinationError `LEDGER_CLOSED` when the host stops before all is taken */
async function takeAll(it: Driving, entry: Driven): Promise<void> {
  const { origin } = entry.known.run;
  if (!origin || !isMaterialising(entry.known.run)) return;
  const taking = createTaking(it, origin);
  const plan = async (known: KnownRun): Promise<Planned> =>
    isMaterialising(known.run) ? asPlanned(await taking.next(known, it.stopping.signal)) : planOn(it, known);
  while (isMaterialising(entry.known.run)) {
    if (it.isStopping) throw new CoordinationError("LEDGER_CLOSED", HOST_STOPS);
    await tryOn(it, entry, { plan });
  }
}

async function firstPage(it: Driving, known: KnownRun): Promise<Planned> {
  const { origin } = known.run;
  return asPlanned(
    origin ? await createTaking(it, origin).next(known, it.stopping.signal) : { run: known.run, events: [] },
  );
}

function asPlanned(taken: Taken): Planned {
  return { ...taken, memory: [], effects: [] };
}

async function tryOn(it: Driving, entry: Driven, { plan, triesMax = RACES_MAX }: Going): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const planned = await plan(entry.known);
    try {
      if (planned.events.length > 0) await appendPlanned(it, planned);
    } catch (error) {
      if (!isConflict(error) || tries >= triesMax) throw error;
      entry.known = await it.book.catchUp(entry.known);
      continue;
    }
    entry.known = { ...entry.known, run: planned.run };
    it.book.keep(entry.known);
    if (planned.events.length > 0) for (const listener of it.listeners) listener(entry.known, planned.events);
    act(it, entry, planned);
    return;
  }
}

function act(it: Driving, entry: Driven, { effects, wakeAtMs }: Planned): void {
  entry.cancelWake?.();
  delete entry.cancelWake;
  forgetOthers(entry, effects);
  if (it.isStopping) return;
  for (const effect of effects) if (!entry.acts.has(effect.id)) perform(it, entry, effect);
  if (wakeAtMs === undefined) return;
  entry.cancelWake = it.clock.wakeAt(wakeAtMs, () => {
    delete entry.cancelWake;
    wake(it, entry);
  });
}

/** What a paused run began is let end; what nobody waits for any more is not. */
function forgetOthers({ acts, known: { run } }: Driven, effects: readonly NodeEffect[]): void {
  if (run.phase.kind === "paused") return;
  const wanted = new Set(effects.map(({ id }) => id));
  for (const [id, controller] of acts) {
    if (wanted.has(id)) continue;
    acts.delete(id);
    if (isEndedPhase(run.phase)) controller.abort();
  }
}

function wake(it: Driving, entry: Driven, { isBlind = false } = {}): void {
  if (it.isStopping) return;
  const plan = (known: KnownRun): Planned => planOn(it, known);
  inTurn(it, entry, async () => {
    if (isBlind) entry.known = await freshest(it, entry.known);
    await goOn(it, entry, { plan });
  }).catch((error: unknown) => {
    failed(it, entry, error);
  });
}

function perform(it: Driving, entry: Driven, effect: NodeEffect): void {
  const controller = new AbortController();
  const { signal } = controller;
  entry.acts.set(effect.id, controller);
  // What comes of a call that was broken off is no outcome of it.
  const deliver = (outcomes: readonly EffectOutcome[]): Promise<void> =>
    inTurn(it, entry, async () => {
      if (signal.aborted) return;
      await goOn(it, entry, { plan: (known) => settleAll(it, known, { effect, outcomes }) });
    });
  const forget = (): void => {
    if (entry.acts.get(effect.id) === controller) entry.acts.delete(effect.id);
  };
  it.perform(entry.known, effect, signal, deliver).then(
    () => {
      forget();
      if (!signal.aborted) wake(it, entry);
    },
    (error: unknown) => {
      forget();
      if (signal.aborted) release(it, entry);
      else failed(it, entry, error);
    },
  );
}

/** The state may be older than the log: what failed may have been written. */
function failed(it: Driving, given: Driven, error: unknown): void {
  if (it.isStopping) return;
  const { runId } = given.known.run;
  const code = isCoordinationError(error) ? error.code : "UNKNOWN";
  it.logger.error({ runId, code }, "a workflow run could not go on; it is looked at again");
  const entry = it.driven.get(runId) ?? given;
  it.driven.set(runId, entry);
  entry.cancelWake?.();
  entry.cancelWake = it.clock.wakeAt(addMs(it.clock.now(), RETRY_MS), () => {
    delete entry.cancelWake;
    wake(it, entry, { isBlind: true });
  });
}

const RETRY_MS = 1_000;
