/** Owns: which coordinations this gateway acts for, and ending its agents for one that another gateway drives now. */
import type { CoordinationId } from "../../contracts/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { LedgerStore } from "../../ports/ledger-store.ts";
import type { AttemptStarts } from "../attempts/prepare-attempt.ts";
import { askWithin } from "../environment/bounded-answer.ts";
import { listRuns } from "../log/read-pages.ts";
import type { OwnRuns } from "../ownership/own-runs.ts";

/** A start that has not answered by then is not waited for before its agent is stopped. */
const START_MS_MAX = 10_000;

export interface DrivenDependencies {
  readonly store: LedgerStore;
  /** Absent: every coordination of the ledger is this gateway's. */
  readonly ownRuns?: OwnRuns;
}

/**
 * Returns true where this gateway may act for a coordination: always in a ledger of its own, else where it holds the
 * coordination's token. After a pause it first asks the ledger which coordinations are still its own.
 */
export async function isDrivenHere({ ownRuns }: DrivenDependencies, runId: CoordinationId): Promise<boolean> {
  if (!ownRuns) return true;
  await ownRuns.confirm();
  return ownRuns.tokenOf(runId) !== undefined;
}

/**
 * Yields the ids of the coordinations that this gateway acts for: those that it owns in a shared ledger, else all that
 * are running.
 */
export async function* listDrivenHere({
  ownRuns,
  store,
}: DrivenDependencies): AsyncGenerator<CoordinationId> {
  if (ownRuns) yield* ownRuns.ids();
  else for await (const { runId } of listRuns(store, { status: "running" })) yield runId;
}

interface WaitDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Waits until the start of an attempt that is under way has ended. It resolves as well where the start fails, takes
 * too long or `signal` aborts, and at once where none is under way.
 */
export async function awaitStart(
  { clock, logger }: WaitDependencies,
  { starting }: AttemptStarts,
  signal: AbortSignal,
): Promise<void> {
  const waiting = { clock, logger, waitMs: START_MS_MAX, signal };
  if (starting) await askWithin<unknown>(waiting, () => starting, undefined);
}

/**
 * Waits for the start of an attempt, then has the runner cancel its agent, if one is at work. Resolves also where the
 * host does not answer in time; how it answered is dropped.
 */
export async function stopAttempt(
  { clock, logger }: WaitDependencies,
  attempt: AttemptStarts,
  signal: AbortSignal,
): Promise<void> {
  await awaitStart({ clock, logger }, attempt, signal);
  const { atWork } = attempt;
  const waiting = { clock, logger, waitMs: START_MS_MAX, signal };
  if (atWork) await askWithin(waiting, () => atWork.runner.cancel(atWork.attempt), "unreachable");
}
