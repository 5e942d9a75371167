/**
 * Owns: telling the other processes that this one is there, finding out which of them are gone, and taking over their runs.
 *
 * O4 An owner is gone when its count of beats did not change for the lease, by this process's own steady clock, or when its
 * process is known to have ended. No clocks are compared. Silence is counted only while this process itself looks: after a pause
 * of its own, or of the ledger, it gives everybody the whole lease again.
 */
import { addMs, type CoordinationId } from "../../../contracts/ids.ts";
import type { OwnedRun, OwnerBeat } from "../../../ports/run-owners.ts";
import { parseGatewayOwnerId } from "../../ownership/gateway-owner.ts";
import type { OwnRuns } from "./own-runs.ts";
import type { WorkflowHostParts } from "../records/workflow-parts.ts";

export interface OwnerWatch {
  /** Resolves when the runs of those that are known to be gone have been taken over. */
  start(): Promise<void>;
  stop(): void;
}

export interface OwnerWatchParts extends Pick<
  WorkflowHostParts,
  "store" | "clock" | "steady" | "owner" | "isProcessGone" | "leaseMs" | "logger"
> {
  readonly ownRuns: Pick<OwnRuns, "beat">;
  /** Goes on with a run that was taken over. It does not throw. */
  readonly adopt: (run: OwnedRun & { readonly runId: CoordinationId }) => Promise<void>;
  /** Hears that at least one owner went since the look before. */
  readonly onOwnerGone: () => Promise<void>;
}

/** Beats and looks in the time of a lease: a few may come late. */
const BEATS_PER_LEASE = 5;
const LOOKS_PER_LEASE = 10;
/** Runs taken over in one go; other processes have their turn in between. */
const TAKEN_MAX = 100;

interface Seen {
  readonly count: number;
  /** By the steady clock. */
  readonly atMs: number;
}

interface Watching extends OwnerWatchParts {
  /** By the ids of owners. */
  seen: ReadonlyMap<string, Seen>;
  lookedAtMs?: number;
  isStopped: boolean;
  readonly cancels: Set<() => void>;
}

export function createOwnerWatch(parts: OwnerWatchParts): OwnerWatch {
  const watching: Watching = { ...parts, seen: new Map(), isStopped: false, cancels: new Set() };
  const { leaseMs } = parts;
  return {
    start: async () => {
      await parts.ownRuns.beat();
      repeatEvery(watching, leaseMs / BEATS_PER_LEASE, () => parts.ownRuns.beat());
      await lookOnce(watching);
      repeatEvery(watching, leaseMs / LOOKS_PER_LEASE, () => lookOnce(watching));
    },
    stop: () => {
      watching.isStopped = true;
      for (const cancel of watching.cancels) cancel();
    },
  };
}

function repeatEvery(watching: Watching, everyMs: number, work: () => Promise<void>): void {
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

async function lookOnce(watching: Watching): Promise<void> {
  const { store, owner } = watching;
  // A gateway drives no runs of workflows as a gateway, and its row stays when it has left.
  const others = (await store.owners.beats()).filter(
    ({ id }) => id !== owner.id && parseGatewayOwnerId(id) === undefined,
  );
  const before = watching.seen;
  const goneIds = noteBeats(watching, others);
  await takeRuns(watching, goneIds);
  for (const id of goneIds) await store.owners.remove(id);
  const ids = new Set(others.map(({ id }) => id));
  if (goneIds.length > 0 || [...before.keys()].some((id) => !ids.has(id))) await watching.onOwnerGone();
}

/** Returns the ids of those that are gone. */
function noteBeats(watching: Watching, others: readonly OwnerBeat[]): string[] {
  const { steady, leaseMs, isProcessGone, lookedAtMs, seen } = watching;
  const nowMs = steady.elapsedMs();
  const hasPaused = lookedAtMs === undefined || nowMs - lookedAtMs > leaseMs / 2;
  watching.lookedAtMs = nowMs;
  watching.seen = new Map(
    others.map(({ id, count }) => {
      const last = seen.get(id);
      return [id, last?.count === count && !hasPaused ? last : { count, atMs: nowMs }];
    }),
  );
  return others
    .filter(({ id, process }) => {
      if (process !== undefined && isProcessGone(process)) return true;
      return nowMs - (watching.seen.get(id)?.atMs ?? nowMs) >= leaseMs;
    })
    .map(({ id }) => id);
}

/** Takes over what nobody drives, also what an owner left that was removed before. */
async function takeRuns(watching: Watching, from: readonly string[]): Promise<void> {
  const { store, owner, adopt, logger } = watching;
  let runs = 0;
  let batch: readonly OwnedRun[];
  do {
    if (watching.isStopped) return;
    batch = await store.owners.take({ owner: owner.id, from, limit: TAKEN_MAX });
    for (const run of batch) await adopt(run);
    runs += batch.length;
  } while (batch.length === TAKEN_MAX);
  if (runs > 0) logger.info({ runs }, "goes on with the runs of a process that is gone");
}
