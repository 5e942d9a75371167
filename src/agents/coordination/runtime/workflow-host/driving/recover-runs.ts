/**
 * Owns: going on with the runs of processes that are gone. It looks at start, and then always: a process may die at any
 * time. A run has a driver in its summary; whoever appends to it is that from then on, so of two that take one over at the
 * same time one is the first and the other plans again on what that one wrote (L2).
 */
import { addMs } from "../../../contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import type { WorkflowEntry } from "../../../ports/workflow-store.ts";
import { listRuns } from "../../log/read-pages.ts";
import type { RunDriver } from "./drive-runs.ts";
import type { TenantUsage } from "../records/tenant-usage.ts";
import type { WorkflowHostParts } from "../records/workflow-parts.ts";

export interface Recovery {
  /** Resolves when the runs that are left have been looked at once. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const BEAT_MS = 2_000;
/** A process that was not heard of for so long is gone, whatever its number says. */
const SILENT_MS = 15_000;
/** Requests with a key that are forgotten in one go. */
const FORGOTTEN_MAX = 1_000;
/** Entries of memory that are deleted in one go. */
const DELETED_MAX = 250;

interface RecoveryParts extends Pick<
  WorkflowHostParts,
  "store" | "clock" | "logger" | "driver" | "isAlive" | "retentionMs"
> {
  readonly usage: Pick<TenantUsage, "note">;
  readonly runs: Pick<RunDriver, "adopt" | "sleep">;
  /** Ends a run whose parent was cancelled while nobody was there to tell it. */
  readonly orphaned: (entry: WorkflowEntry) => Promise<boolean>;
}

export function createRecovery(parts: RecoveryParts): Recovery {
  const { store, clock, driver, logger } = parts;
  let looked: ReadonlyMap<string, number> = new Map();
  let cancel: (() => void) | undefined;
  let stopped = false;

  const sweepOnce = async (): Promise<void> => {
    const now = clock.now();
    await store.drivers.beat(driver, now);
    await store.requests.deleteBefore(addMs(now, -WORKFLOW_BOUNDS.idempotencyKeptMs), FORGOTTEN_MAX);
    await store.memory.deleteExpired(addMs(now, -parts.retentionMs), DELETED_MAX);
    looked = await adoptAll(parts, looked);
  };

  const scheduleNextSweep = (): void => {
    if (stopped) return;
    cancel = clock.wakeAt(addMs(clock.now(), BEAT_MS), () => {
      sweepOnce()
        .catch((error: unknown) => {
          logger.warn(
            { error: error instanceof Error ? error.name : "unknown" },
            "runs left behind could not be looked at",
          );
        })
        .finally(scheduleNextSweep);
    });
  };

  return {
    start: async () => {
      await sweepOnce();
      scheduleNextSweep();
    },
    stop: async () => {
      stopped = true;
      cancel?.();
      await store.drivers.remove(driver.id).catch(() => undefined);
    },
  };
}

/**
 * `looked`: the lengths of the logs that the look before this one left as they were, because the runs wait for somebody.
 * Returns those of this look.
 */
async function adoptAll(
  parts: RecoveryParts,
  looked: ReadonlyMap<string, number>,
): Promise<ReadonlyMap<string, number>> {
  const isGone = await listGoneDrivers(parts);
  const left = new Map<string, number>();
  let adopted = 0;
  for await (const entry of listRuns(parts.store, { status: "running", order: "oldest" })) {
    const { runId, length, summary } = entry;
    if (!isGone(summary.driver)) continue;
    countOnce(parts, looked, entry);
    const isKnown = looked.get(runId) === length;
    if (!(await adoptOne(parts, entry, isKnown))) continue;
    left.set(runId, length);
    if (!isKnown) adopted += 1;
  }
  if (adopted > 0) parts.logger.info({ runs: adopted }, "goes on with the runs of a process that is gone");
  return left;
}

/** Its tenant is told of by the summary, so that a run which only waits is counted without being read. */
function countOnce(
  { usage }: RecoveryParts,
  looked: ReadonlyMap<string, number>,
  { runId, summary }: WorkflowEntry,
): void {
  if (!looked.has(runId)) usage.note(runId, summary);
}

/** One run that cannot be gone on with does not hold up the others. */
async function adoptOne(
  { orphaned, runs, logger, clock }: RecoveryParts,
  entry: WorkflowEntry,
  isKnown: boolean,
): Promise<boolean> {
  try {
    // Its parent may have ended since, which its own log does not tell.
    if ((await orphaned(entry)) || isKnown) return true;
    const { wakesAtMs } = entry.summary;
    if (wakesAtMs === undefined || wakesAtMs <= clock.now()) await runs.adopt(entry.runId);
    else await runs.sleep(entry.runId, wakesAtMs);
    return true;
  } catch (error) {
    const fields = { runId: entry.runId, error: error instanceof Error ? error.name : "unknown" };
    logger.error(fields, "a run left behind could not be looked at");
    return false;
  }
}

async function listGoneDrivers({
  store,
  clock,
  driver,
  isAlive,
}: RecoveryParts): Promise<(id: string) => boolean> {
  const now = clock.now();
  const alive = new Set([driver.id]);
  for (const { id, pid, beatAtMs } of await store.drivers.lastBeats()) {
    if (id === driver.id) continue;
    if (isAlive(pid) && now - beatAtMs <= SILENT_MS) alive.add(id);
    else await store.drivers.remove(id);
  }
  return (id) => !alive.has(id);
}
