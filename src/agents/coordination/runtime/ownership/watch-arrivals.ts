/**
 * Owns: finding what other processes appended to the runs that this one drives: answers, cancellations and other requests that
 * reached them. One look costs as much as there are such runs.
 */
import { addMs, type CoordinationId } from "../../contracts/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { RunOwner, RunOwners } from "../../ports/run-owners.ts";

export interface ArrivalWatch {
  start(): void;
  stop(): void;
}

interface ArrivalParts {
  readonly owners: RunOwners;
  readonly owner: RunOwner;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Goes on with a run behind what others appended. */
  readonly wake: (runId: CoordinationId) => void | Promise<void>;
}

const LOOK_MS = 250;
/** After a look that failed. */
const RETRY_MS = 1_000;
const ARRIVALS_MAX = 1_000;

export function createArrivalWatch({ owners, clock, owner, logger, wake }: ArrivalParts): ArrivalWatch {
  let cancel: (() => void) | undefined;
  let isStopped = false;

  const look = async (): Promise<number> => {
    try {
      for (const { runId } of await owners.collectArrivals(owner.id, ARRIVALS_MAX)) await wake(runId);
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
