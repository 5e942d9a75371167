/** Owns: telling the other processes that this one is there, and taking over the runs of those that are gone. */
import { addMs, type CoordinationId } from "../../../contracts/ids.ts";
import type { OwnedRun } from "../../../ports/run-owners.ts";
import { parseGatewayOwnerId } from "../../ownership/gateway-owner.ts";
import type { OwnRuns } from "../../ownership/own-runs.ts";
import { createTakeOver, type TakeOver } from "../../ownership/take-over.ts";
import { createSilenceWatch, type SilenceWatch } from "../../ownership/silent-owners.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

export interface OwnerWatch {
  /** Resolves when the runs of those that are known to be gone have been taken over. */
  start(): Promise<void>;
  stop(): void;
}

export interface OwnerWatchDependencies extends Pick<
  WorkflowHostDependencies,
  "store" | "clock" | "steady" | "owner" | "isProcessGone" | "leaseMs" | "logger"
> {
  readonly ownRuns: OwnRuns;
  /** Goes on with a run that was taken over. It does not throw. */
  readonly adopt: (run: OwnedRun & { readonly runId: CoordinationId }) => Promise<void>;
  /** Hears that at least one owner went since the look before. */
  readonly onOwnerGone: () => Promise<void>;
}

/** Beats and looks in the time of a lease: a few may come late. */
const BEATS_PER_LEASE = 5;
const LOOKS_PER_LEASE = 10;

/** The collaborators and the memory of the watch over owners of runs. */
interface OwnerWatchState extends OwnerWatchDependencies {
  readonly silence: SilenceWatch;
  readonly takeOver: TakeOver;
  /** The ids of those that the look before saw. */
  seenIds: ReadonlySet<string>;
  isStopped: boolean;
  readonly cancels: Set<() => void>;
}

/**
 * Creates the watch over the processes that own runs: from its start it sends this process's heartbeat, and takes over
 * the runs of processes that are gone.
 */
export function createOwnerWatch(dependencies: OwnerWatchDependencies): OwnerWatch {
  const watching: OwnerWatchState = {
    ...dependencies,
    silence: createSilenceWatch(dependencies),
    takeOver: createTakeOver({ ...dependencies, owners: dependencies.store.owners }),
    seenIds: new Set(),
    isStopped: false,
    cancels: new Set(),
  };
  const { leaseMs } = dependencies;
  return {
    start: async () => {
      await dependencies.ownRuns.beat();
      repeatEvery(watching, leaseMs / BEATS_PER_LEASE, () => dependencies.ownRuns.beat());
      await takeOverFromGoneOwners(watching);
      repeatEvery(watching, leaseMs / LOOKS_PER_LEASE, () => takeOverFromGoneOwners(watching));
    },
    stop: () => {
      watching.isStopped = true;
      watching.takeOver.stop();
      for (const cancel of watching.cancels) cancel();
    },
  };
}

/** Does the work again and again, each time `everyMs` after it has ended; a failure is only logged. */
function repeatEvery(watching: OwnerWatchState, everyMs: number, work: () => Promise<void>): void {
  if (watching.isStopped) return;
  const { clock, cancels, logger } = watching;
  const cancel = clock.wakeAt(addMs(clock.now(), everyMs), () => {
    cancels.delete(cancel);
    work()
      .catch((error: unknown) => {
        const name = error instanceof Error ? error.name : "unknown";
        if (!watching.isStopped)
          logger.warn({ error: name }, "the processes on this ledger could not be looked at");
      })
      .finally(() => {
        repeatEvery(watching, everyMs, work);
      });
  });
  cancels.add(cancel);
}

/** Looks once for processes that are gone, takes over their runs and removes their rows. */
async function takeOverFromGoneOwners(watching: OwnerWatchState): Promise<void> {
  const { store, owner } = watching;
  // A gateway drives no runs of workflows as a gateway, and its row stays when it has left.
  const others = (await store.owners.beats()).filter(
    ({ id }) => id !== owner.id && parseGatewayOwnerId(id) === undefined,
  );
  const before = watching.seenIds;
  const goneIds = watching.silence.note(others);
  watching.seenIds = new Set(others.map(({ id }) => id));
  await takeOverRuns(watching, goneIds);
  for (const id of goneIds) await store.owners.remove(id);
  const hasLeft = [...before].some((id) => !watching.seenIds.has(id));
  if (goneIds.length > 0 || hasLeft) await watching.onOwnerGone();
}

/** Takes over and goes on with what nobody drives, also what an owner left that was removed before. */
async function takeOverRuns(watching: OwnerWatchState, from: readonly string[]): Promise<void> {
  const { takeOver, adopt, logger } = watching;
  let runs = 0;
  await takeOver.take({ from }, async (batch) => {
    for (const run of batch) await adopt(run);
    runs += batch.length;
  });
  if (runs > 0) logger.info({ runs }, "goes on with the runs of a process that is gone");
}
