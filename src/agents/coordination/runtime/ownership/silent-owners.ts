/**
 * Owns: finding out which owners of runs are gone.
 *
 * O4 An owner is gone when its count of beats did not change for the lease, by this process's own steady clock, or when its
 * process is known to have ended. No clocks are compared. Silence is counted only while this process itself looks: after a pause
 * of its own, or of the ledger, it gives everybody the whole lease again.
 */
import type { SteadyClock } from "../../ports/clock.ts";
import type { OwnerBeat } from "../../ports/run-owners.ts";

export interface SilenceWatch {
  /** Looks at owners as they are in the ledger now, and returns the ids of those that are gone. */
  note(owners: readonly OwnerBeat[]): string[];
}

export interface SilenceDependencies {
  readonly steady: SteadyClock;
  readonly leaseMs: number;
  /** True when a process is known to have ended; false where it is there, or where nothing is known of it. */
  readonly isProcessGone: (process: string) => boolean;
}

/** The count of beats that an owner last had, and since when it has it. */
interface SeenBeat {
  readonly count: number;
  /** By the steady clock. */
  readonly atMs: number;
}

/**
 * Creates the watch whose `note` takes the owners with their counts, and returns the ids of those that were silent for
 * a lease or have a process that ended. After a pause of this process the silence is measured anew.
 */
export function createSilenceWatch({ steady, leaseMs, isProcessGone }: SilenceDependencies): SilenceWatch {
  let seen: ReadonlyMap<string, SeenBeat> = new Map();
  let lookedAtMs: number | undefined;
  return {
    note: (owners) => {
      const nowMs = steady.elapsedMs();
      const hasPaused = lookedAtMs === undefined || nowMs - lookedAtMs > leaseMs / 2;
      lookedAtMs = nowMs;
      seen = new Map(
        owners.map(({ id, count }) => {
          const last = seen.get(id);
          return [id, last?.count === count && !hasPaused ? last : { count, atMs: nowMs }];
        }),
      );
      return owners
        .filter(({ id, process }) => {
          if (process !== undefined && isProcessGone(process)) return true;
          return nowMs - (seen.get(id)?.atMs ?? nowMs) >= leaseMs;
        })
        .map(({ id }) => id);
    },
  };
}
