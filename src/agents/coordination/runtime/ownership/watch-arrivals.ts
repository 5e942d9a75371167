/**
 * Owns: finding what other processes appended to the runs that this one drives: answers, cancellations and other requests that
 * reached them. One look costs as much as there are such runs.
 */
import { addMs, type CoordinationId } from "../../contracts/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { RunOwner, RunOwners } from "../../ports/run-owners.ts";
import type { OwnRuns } from "./own-runs.ts";

export interface ArrivalWatch {
  start(): void;
  stop(): void;
}

interface ArrivalDependencies {
  readonly owners: RunOwners;
  readonly owner: RunOwner;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Goes on with a run behind what others appended. */
  readonly wake: (runId: CoordinationId) => void | Promise<void>;
  readonly ownRuns: Pick<OwnRuns, "ids" | "listUnknown">;
}

const LOOK_MS = 250;
/** After a look that failed. */
const RETRY_MS = 1_000;
const ARRIVALS_MAX = 1_000;

/**
 * Creates the watch that calls `wake` for each of this process's runs to which other processes appended. A failed look
 * is warned of, and the next one wakes all runs that this process drives.
 */
export function createArrivalWatch(dependencies: ArrivalDependencies): ArrivalWatch {
  const { owners, clock, owner, logger, wake } = dependencies;
  let cancel: (() => void) | undefined;
  let isStopped = false;
  // The ledger forgets arrivals when it is asked for them, and its answer may have been lost.
  let hasMissedSome = false;

  const look = async (): Promise<number> => {
    try {
      const missed = hasMissedSome ? await listDrivenRuns(dependencies) : [];
      hasMissedSome = true;
      const arrived = await owners.collectArrivals(owner.id, ARRIVALS_MAX);
      for (const runId of new Set([...missed, ...arrived.map((arrival) => arrival.runId)])) await wake(runId);
      hasMissedSome = false;
      return LOOK_MS;
    } catch (error) {
      const name = error instanceof Error ? error.name : "unknown";
      if (!isStopped) logger.warn({ error: name }, "requests that reached other processes could not be read");
      return RETRY_MS;
    }
  };

  const lookIn = (waitMs: number): void => {
    if (isStopped) return;
    cancel = clock.wakeAt(addMs(clock.now(), waitMs), () => {
      void look().then(lookIn);
    });
  };

  return {
    start: () => {
      lookIn(LOOK_MS);
    },
    stop: () => {
      isStopped = true;
      cancel?.();
    },
  };
}

/** Lists all runs that this process drives, as it knows itself and as the ledger says. */
async function listDrivenRuns({ ownRuns }: ArrivalDependencies): Promise<readonly CoordinationId[]> {
  return [...ownRuns.ids(), ...(await ownRuns.listUnknown()).map(({ runId }) => runId)];
}
