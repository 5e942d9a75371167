/**
 * Owns: taking over runs that nobody drives any more, also those of a take whose answer was lost: the ledger may have made
 * them this process's own, and no other one would take them.
 */
import type { OwnedRun, RunOwner, RunOwners, TakeRuns } from "../../ports/run-owners.ts";
import type { OwnRuns } from "./own-runs.ts";

/** Takes over runs as long as there may be more. Each batch is handed on before the next one is asked for. */
export interface TakeOver {
  take(
    request: Pick<TakeRuns, "from" | "isOnlyFrom">,
    onBatch: (runs: readonly OwnedRun[]) => void | Promise<void>,
  ): Promise<void>;
  /** The newest take failed: what it did is to be found out by another one, whoever there is to take from. */
  readonly isUncertain: boolean;
  /** Nothing is taken any more. */
  stop(): void;
}

export interface TakeOverDependencies {
  readonly owners: RunOwners;
  readonly owner: RunOwner;
  readonly ownRuns: OwnRuns;
}

/** Runs taken over in one go; other processes have their turn in between. */
const TAKEN_MAX = 100;

/**
 * Creates the takeover of runs in batches, which are handed to `onBatch` one by one. Where the answer of an earlier
 * take was lost, the runs that it took come first.
 */
export function createTakeOver({ owners, owner, ownRuns }: TakeOverDependencies): TakeOver {
  const life = { isUncertain: false, isStopped: false };
  return {
    take: async (request, onBatch) => {
      let isMore = true;
      while (isMore && !life.isStopped) {
        const missed = life.isUncertain ? await ownRuns.listUnknown() : [];
        if (missed.length > 0) await onBatch(missed);
        life.isUncertain = true;
        const batch = await owners.take({ ...request, owner: owner.id, limit: TAKEN_MAX });
        life.isUncertain = false;
        if (batch.length > 0) await onBatch(batch);
        isMore = batch.length === TAKEN_MAX;
      }
    },
    get isUncertain() {
      return life.isUncertain;
    },
    stop: () => {
      life.isStopped = true;
    },
  };
}
