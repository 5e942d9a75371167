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

/** True where this gateway may act. After a pause the ledger is asked first which coordinations are still its own. */
export async function isDrivenHere({ ownRuns }: DrivenDependencies, runId: CoordinationId): Promise<boolean> {
  if (!ownRuns) return true;
  await ownRuns.confirm();
  return ownRuns.tokenOf(runId) !== undefined;
}

/** Yields the open coordinations that this gateway acts for. */
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

/** Resolves when no start of the attempt is under way, as far as the host answers. */
export async function awaitStart(
  { clock, logger }: WaitDependencies,
  { starting }: AttemptStarts,
  signal: AbortSignal,
): Promise<void> {
  const waiting = { clock, logger, waitMs: START_MS_MAX, signal };
  if (starting) await askWithin<unknown>(waiting, () => starting, undefined);
}

/** Stops the agent of an attempt, as far as the host answers. */
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
