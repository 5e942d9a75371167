/**
 * Owns: bringing what model calls used into the ledger, and asking whether the operator's budget stops a session.
 *
 * U3 a run is recorded at its end, and while it lasts the more rarely the longer it lasts: of a run of 500 calls there
 * are some ten records. Each holds the totals up to now, so that one that is lost or repeated changes nothing.
 */
import {
  addMs,
  OWNER_STEP_ID,
  type AgentId,
  type CoordinationId,
  type SessionKey,
} from "../../contracts/ids.ts";
import type { BudgetReached, UsageTotals } from "../../contracts/usage.ts";
import { explainBudgetStop, findReachedBudget } from "../../dispatch/decide-budget.ts";
import { addTotals, NO_USAGE, subtractTotals } from "../../ledger/bill.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import { nameTraceReference } from "../../ledger/summary.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ReferenceFinder } from "../../ports/ledger-store.ts";
import type { Logger } from "../../ports/logger.ts";
import { createTurnsByName, type TurnsByName } from "../../std/turns-by-name.ts";
import type { RunLog } from "../log/run-log.ts";
import { findStepOfChild } from "../log/step-of-child.ts";
import {
  subtractRecorded,
  computeRunTotals,
  type RunCount,
  type UsageBook,
  type UsagePlace,
} from "./usage-book.ts";

/** From a call to its record, and how much longer with each record of the same run. */
const RECORD_MS = 5_000;
const RECORD_MS_MAX = 60_000;

export interface UsageRecorderDependencies {
  readonly book: UsageBook;
  readonly store: ReferenceFinder;
  readonly runs: Pick<RunLog, "state" | "submit">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: { readonly gateway?: string };
}

interface RecordingDependencies extends UsageRecorderDependencies {
  /** A session's runs are placed and recorded one after another: what is recorded stays where it is when a run moves on. */
  readonly turns: TurnsByName;
}

export interface BudgetStop {
  readonly reached: BudgetReached;
  readonly coordinationId: CoordinationId;
  /** For a model: which bound, how much was used, and what to do. */
  readonly sentence: string;
}

export interface UsageRecorder {
  /** A run has used something: it is recorded in a while. */
  noted(run: RunCount): void;
  /** Records what is not recorded yet, of one session or of all. Never throws. */
  flush(session?: SessionKey): Promise<void>;
  /** Records what the run of a session used that has ended. Never throws. */
  runEnded(session: SessionKey): Promise<void>;
  /** Finds and records what of the budget stops a child; the owner's own session is never stopped, only its spawns. */
  stopChild(session: SessionKey, stopped: "call" | "run"): Promise<BudgetStop | undefined>;
  /** Records what there is and stops looking. */
  stop(): Promise<void>;
}

/**
 * Creates the recorder of usage, which writes the counts of runs to the ledger from time to time, at the end of a run
 * and when it stops. Its `stopChild` asks whether a budget stops a child.
 */
export function createUsageRecorder(base: UsageRecorderDependencies): UsageRecorder {
  const dependencies = { ...base, turns: createTurnsByName() };
  const { book, clock } = dependencies;
  let wake: { readonly atMs: number; readonly cancel: () => void } | undefined;
  let isStopped = false;
  const wakeForNext = (): void => {
    // The recorder after a reload goes on with what is left in the book.
    if (isStopped) return;
    const due = book.listUnrecorded().flatMap(({ dueAtMs }) => dueAtMs ?? []);
    if (due.length === 0) return;
    const atMs = due.reduce((first, time) => (time < first ? time : first));
    if (wake && wake.atMs <= atMs) return;
    wake?.cancel();
    const cancel = clock.wakeAt(atMs, () => {
      wake = undefined;
      const now = clock.now();
      const runs = book.listUnrecorded().filter(({ dueAtMs }) => dueAtMs !== undefined && dueAtMs <= now);
      void recordUsageOfRuns(dependencies, runs).then(wakeForNext);
    });
    wake = { atMs, cancel };
  };
  wakeForNext();
  return {
    noted: (run) => {
      run.dueAtMs ??= addMs(clock.now(), Math.min(RECORD_MS * (run.records + 1), RECORD_MS_MAX));
      wakeForNext();
    },
    flush: (session) => recordUsageOfRuns(dependencies, listUnrecordedRuns(book, session)),
    runEnded: async (session) => {
      const runs = listUnrecordedRuns(book, session);
      await recordUsageOfRuns(dependencies, runs);
      // A child may end before its spawn is confirmed: what belongs to no coordination is looked at once more.
      for (const run of runs) if (!run.place) scheduleLastRecord(run, clock);
      wakeForNext();
    },
    stopChild: (session, stopped) => stopChildAtBudget(dependencies, session, stopped),
    stop: async () => {
      isStopped = true;
      wake?.cancel();
      wake = undefined;
      await recordUsageOfRuns(dependencies, book.listUnrecorded());
    },
  };
}

/** Lists the runs with usage that is not recorded, of one session or of all. */
function listUnrecordedRuns(book: UsageBook, session: SessionKey | undefined): readonly RunCount[] {
  const runs = book.listUnrecorded();
  return session === undefined ? runs : runs.filter((run) => run.session === session);
}

/** Marks the run as ended, and has its usage recorded in `RECORD_MS` or dropped. */
function scheduleLastRecord(run: RunCount, clock: Clock): void {
  run.isOver = true;
  run.dueAtMs = addMs(clock.now(), RECORD_MS);
}

/** Records what the runs used, one after the other. A failure is logged and tried again later. */
async function recordUsageOfRuns(
  dependencies: RecordingDependencies,
  runs: readonly RunCount[],
): Promise<void> {
  for (const run of runs) {
    try {
      await dependencies.turns.run(run.session, () => recordRunUsage(dependencies, run));
    } catch (error) {
      dependencies.logger.warn(
        { session: run.session },
        `what a run used is recorded later: ${String(error)}`,
      );
      run.dueAtMs = addMs(dependencies.clock.now(), RECORD_MS_MAX);
    }
  }
}

/** Records the totals of a run where it belongs. Drops one that has ended without a place or is refused. */
async function recordRunUsage(dependencies: UsageRecorderDependencies, run: RunCount): Promise<void> {
  // Another request came first.
  if (run.recorded?.calls === run.calls) return;
  const place = await findRunPlace(dependencies, run);
  delete run.dueAtMs;
  if (!place) {
    // Its coordination may be opened, or its spawn confirmed, later.
    if (run.isOver) dependencies.book.drop(run);
    return;
  }
  const totals = computeRunTotals(run);
  const { coordinationId, stepId } = place;
  const { runId, models } = run;
  const submitted = await dependencies.runs.submit(coordinationId, [
    { type: "recordUsage", stepId, runId, meter: dependencies.book.meter, models: [...models], ...totals },
  ]);
  if (submitted.kind === "refused") {
    dependencies.logger.warn(
      { runId: coordinationId, refusal: submitted.code },
      `refused: ${submitted.reason}`,
    );
    dependencies.book.drop(run);
    return;
  }
  run.recorded = totals;
  run.records += 1;
}

/**
 * Finds where a run's usage belongs and keeps that, whatever the session does later; only a child whose coordination
 * has ended may open another one. `undefined` while the run belongs to no coordination.
 */
async function findRunPlace(
  dependencies: UsageRecorderDependencies,
  run: RunCount,
): Promise<UsagePlace | undefined> {
  const { place: before } = run;
  if (before && !before.isLate) return before;
  const place = await findUsagePlace(dependencies, run);
  if (!place) return undefined;
  if (before && before.coordinationId !== place.coordinationId) subtractRecorded(run);
  run.place = place;
  return place;
}

/**
 * Finds the step of the child that the session is. Where its coordination has ended or it is no child, finds the
 * coordination that it owns, else the ended step; `undefined` where there is neither.
 */
async function findUsagePlace(
  dependencies: UsageRecorderDependencies,
  run: RunCount,
): Promise<UsagePlace | undefined> {
  const child = await findStepOfChild(dependencies, run.session);
  const isAtWork = child?.state.kind === "open";
  const ofOwner = isAtWork ? undefined : await findOwnerPlace(dependencies, run);
  if (ofOwner || !child) return ofOwner;
  const { stepId, agentId } = child.step.spec;
  const place: UsagePlace = { coordinationId: child.state.coordinationId, stepId, agentId };
  return isAtWork ? place : { ...place, isLate: true };
}

async function findOwnerPlace(
  { store, runs, settings: { gateway } }: UsageRecorderDependencies,
  { session, traceId, runId }: RunCount,
): Promise<UsagePlace | undefined> {
  const found = await store.find(nameTraceReference({ session, gateway }, traceId ?? runId));
  const state = found && (await runs.state(found.runId));
  if (!state || state.kind === "unopened") return undefined;
  const { coordinationId, created } = state;
  return { coordinationId, stepId: OWNER_STEP_ID, agentId: created.ownerAgent };
}

/** Records what was used and the stop, where a budget stops the child; `undefined` where it goes on. */
async function stopChildAtBudget(
  dependencies: RecordingDependencies,
  session: SessionKey,
  stopped: "call" | "run",
): Promise<BudgetStop | undefined> {
  const child = await findStepOfChild(dependencies, session);
  if (child?.state.kind !== "open" || !child.state.created.budget) return undefined;
  const { coordinationId } = child.state;
  const { stepId } = child.step.spec;
  const unrecorded = await listUnrecordedOfCoordination(dependencies, child.state);
  // Records that were under way have come into the log meanwhile.
  const state = await dependencies.runs.state(coordinationId);
  if (state.kind !== "open") return undefined;
  if (!findReachedBudget(state, { stepId, stopped }, sumUnrecordedByAgent(unrecorded))) return undefined;
  await recordUsageOfRuns(dependencies, unrecorded);
  const submitted = await dependencies.runs.submit(coordinationId, [
    { type: "stopAtBudget", stepId, stopped },
  ]);
  if (submitted.state.kind !== "open") return undefined;
  const reached = findReachedBudget(submitted.state, { stepId, stopped });
  return reached && { reached, coordinationId, sentence: explainBudgetStop(reached) };
}

async function listUnrecordedOfCoordination(
  dependencies: RecordingDependencies,
  { coordinationId }: OpenCoordination,
): Promise<readonly RunCount[]> {
  const runs: RunCount[] = [];
  for (const run of dependencies.book.listUnrecorded()) {
    // A run that stays in its place waits for no record that is under way: the host waits for this answer.
    const isPlaced = run.place !== undefined && !run.place.isLate;
    const place = isPlaced
      ? run.place
      : await dependencies.turns.run(run.session, () => findRunPlace(dependencies, run));
    if (place?.coordinationId === coordinationId) runs.push(run);
  }
  return runs;
}

/** Sums what each agent used and the ledger does not have yet. */
function sumUnrecordedByAgent(runs: readonly RunCount[]): ReadonlyMap<AgentId, UsageTotals> {
  const sums = new Map<AgentId, UsageTotals>();
  for (const run of runs) {
    if (!run.place) continue;
    const { agentId } = run.place;
    const more = subtractTotals(computeRunTotals(run), run.recorded ?? NO_USAGE);
    sums.set(agentId, addTotals(sums.get(agentId) ?? NO_USAGE, more));
  }
  return sums;
}
