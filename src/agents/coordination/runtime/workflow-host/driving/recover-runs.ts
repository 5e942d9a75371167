/**
 * Owns: going on with the runs of processes that are gone, always, because a process may die at any time; and what is done
 * beside it from time to time: forgetting old requests, deleting memory that expired.
 */
import { isLogDamage, readErrorCode } from "../../../contracts/errors.ts";
import { addMs } from "../../../contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import { isParentOnThisHost } from "../../../contracts/workflows/workflow-events.ts";
import type { OwnedRun } from "../../../ports/run-owners.ts";
import type { WorkflowEntry } from "../../../ports/workflow-store.ts";
import { LOG_IS_DAMAGED } from "./driven-runs.ts";
import type { RunDriver } from "./drive-runs.ts";
import type { OwnRuns } from "../../ownership/own-runs.ts";
import { createArrivalWatch } from "../../ownership/watch-arrivals.ts";
import { createOwnerWatch, type OwnerWatchDependencies } from "./watch-owners.ts";
import type { TenantUsage } from "../records/tenant-usage.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

/** The recovery of runs that their owners left. */
export interface RunRecovery {
  /** Resolves when the runs that are left have been looked at once. */
  start(): Promise<void>;
  /** Nothing is taken over any more. */
  stop(): void;
  /** Leaves the runs of this process to the others at once. */
  leave(): Promise<void>;
}

const SWEEP_MS = 2_000;
/** Requests with a key that are forgotten in one go. */
const FORGOTTEN_MAX = 1_000;
/** Entries of memory that are deleted in one go. */
const DELETED_MAX = 250;

interface RecoveryDependencies
  extends
    Pick<WorkflowHostDependencies, "retentionMs">,
    Omit<OwnerWatchDependencies, "ownRuns" | "adopt" | "onOwnerGone"> {
  readonly usage: TenantUsage;
  readonly ownRuns: OwnRuns;
  readonly driver: RunDriver;
  /** Ends a run whose parent was cancelled while nobody was there to tell it. */
  readonly orphaned: (entry: WorkflowEntry) => Promise<boolean>;
}

/** The collaborators and the memory of the recovery of runs. */
interface RunRecoveryState extends RecoveryDependencies {
  /** Runs that were taken over and could not be gone on with. They are tried again. */
  failed: readonly OwnedRun[];
}

/**
 * Creates the takeover of runs whose process is gone, and the sweep that deletes old requests and expired memory and
 * tries failed runs again. `leave` takes this process off the list of owners.
 */
export function createRecovery(dependencies: RecoveryDependencies): RunRecovery {
  const { store, clock, owner, logger, driver } = dependencies;
  const recovering: RunRecoveryState = { ...dependencies, failed: [] };
  let cancel: (() => void) | undefined;
  let isStopped = false;
  const owners = createOwnerWatch({
    ...dependencies,
    adopt: (run) => adoptTakenRun(recovering, run),
    onOwnerGone: () => endOrphanedChildren(recovering),
  });
  const arrivals = createArrivalWatch({
    owners: store.owners,
    ownRuns: dependencies.ownRuns,
    clock,
    owner,
    logger,
    wake: (runId) => driver.wake(runId),
  });

  const scheduleNextSweep = (): void => {
    if (isStopped) return;
    cancel = clock.wakeAt(addMs(clock.now(), SWEEP_MS), () => {
      sweepOnce(recovering)
        .catch((error: unknown) => {
          logger.warn({ code: readErrorCode(error) }, "runs left behind could not be looked at");
        })
        .finally(scheduleNextSweep);
    });
  };

  return {
    start: async () => {
      await owners.start();
      arrivals.start();
      await sweepOnce(recovering);
      scheduleNextSweep();
    },
    stop: () => {
      isStopped = true;
      cancel?.();
      owners.stop();
      arrivals.stop();
    },
    leave: () => store.owners.remove(owner.id).catch(() => undefined),
  };
}

/** Deletes old requests and expired memory, and tries again the runs that could not be gone on with. */
async function sweepOnce(recovering: RunRecoveryState): Promise<void> {
  const { store, clock, retentionMs } = recovering;
  const now = clock.now();
  await store.requests.deleteBefore(addMs(now, -WORKFLOW_BOUNDS.idempotencyKeptMs), FORGOTTEN_MAX);
  await store.memory.deleteExpired(addMs(now, -retentionMs), DELETED_MAX);
  await retryFailedRuns(recovering);
}

/**
 * Tries again to go on with the runs where that failed, if they are still this process's. Another process may have
 * taken them over meanwhile, and this one may have taken them back by a later token.
 */
async function retryFailedRuns(recovering: RunRecoveryState): Promise<void> {
  const { failed, ownRuns } = recovering;
  if (failed.length === 0) return;
  const unknown = new Map((await ownRuns.listUnknown()).map((run) => [run.runId, run]));
  // Others may have failed while the ledger was asked.
  recovering.failed = recovering.failed.filter((run) => !failed.includes(run));
  for (const run of failed) {
    const { runId, token } = run;
    const current = ownRuns.tokenOf(runId) === token ? run : unknown.get(runId);
    if (current) await adoptTakenRun(recovering, current);
  }
}

/**
 * Goes on with a run that was taken over, ends it as an orphan or sleeps until its time. A failure is logged and,
 * unless a log is damaged, kept for a later try, so that it does not hold up other runs.
 */
async function adoptTakenRun(recovering: RunRecoveryState, run: OwnedRun): Promise<void> {
  const { store, clock, logger, orphaned, driver, usage } = recovering;
  const { runId } = run;
  try {
    const entry = await store.entry(runId);
    if (!entry) return;
    const { summary } = entry;
    driver.noteOwned(run, { isChild: isParentOnThisHost(summary.parent) });
    // Counted by its summary, so that a run which only waits is not read.
    usage.note(runId, summary);
    // Its parent may have ended since, which its own log does not tell.
    if (await orphaned(entry)) return;
    const { wakesAtMs } = summary;
    if (wakesAtMs === undefined || wakesAtMs <= clock.now()) await driver.adopt(runId);
    else await driver.sleep(runId, wakesAtMs);
  } catch (error) {
    const code = readErrorCode(error);
    if (isLogDamage(error)) {
      logger.error({ runId, code }, LOG_IS_DAMAGED);
      usage.forget(runId);
      return;
    }
    logger.error({ runId, code }, "a run left behind could not be looked at");
    recovering.failed = [...recovering.failed, run];
  }
}

/**
 * Ends those of this process's child runs whose parent ended while it waited for them. A process may have ended a run
 * and gone before it told the children of that run, which other processes drive.
 */
async function endOrphanedChildren({ store, ownRuns, orphaned, logger }: RunRecoveryState): Promise<void> {
  for (const runId of ownRuns.children())
    try {
      const entry = await store.entry(runId);
      if (entry) await orphaned(entry);
    } catch (error) {
      logger.warn({ runId, code: readErrorCode(error) }, "a child run could not be looked at");
    }
}
