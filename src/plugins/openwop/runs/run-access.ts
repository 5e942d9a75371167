/** Owns: the parts that servers of other protocols have of the host of workflow runs, reading a run of it, and waiting for one. */
import { isLogDamage } from "../../../agents/coordination/contracts/errors.ts";
import { addMs } from "../../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { OutputContract } from "../../../agents/coordination/ports/output-contract.ts";
import type { WorkflowStore } from "../../../agents/coordination/ports/workflow-store.ts";
import {
  followRun,
  type FollowedUntil,
} from "../../../agents/coordination/runtime/workflow-host/agents/run-agent.ts";
import type {
  HostAnswer,
  Caller,
  RunSnapshot,
  WorkflowHost,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";

export interface RunAccess {
  readonly host: WorkflowHost;
  /** Finds the runs of a tenant; the host knows runs by their ids. */
  readonly runs: WorkflowStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly contract: () => Promise<OutputContract>;
  readonly version: string;
}

/**
 * Returns a run's snapshot, or the host's refusal to show it; `undefined` where its log is damaged, while other errors
 * are thrown on.
 */
export async function readSnapshotUnlessDamaged(
  host: Pick<WorkflowHost, "snapshot">,
  caller: Caller,
  runId: string,
): Promise<HostAnswer<RunSnapshot> | undefined> {
  try {
    return await host.snapshot(caller, runId);
  } catch (error) {
    if (isLogDamage(error)) return undefined;
    throw error;
  }
}

/**
 * For how long a request waits for its run. Clients of the official libraries give up after 60 s, and the run would go on
 * unseen.
 */
export const WAIT_MS = 50_000;

/** How long, and for what, a caller waits for a run. */
interface RunWait {
  readonly caller: Caller;
  readonly signal: AbortSignal;
  readonly waitMs: number;
  readonly until?: FollowedUntil;
  /** Hears of the run whenever it has news. */
  readonly onChange?: (snapshot: RunSnapshot) => void;
}

/**
 * Waits until the run has ended or is as far as `until` says, the time is over, or `signal` aborts; calls `onChange`
 * on the way, and returns the newest snapshot or the host's refusal.
 */
export async function waitForRun(
  { host, clock }: RunAccess,
  runId: string,
  { caller, signal, waitMs, until, onChange }: RunWait,
): Promise<HostAnswer<RunSnapshot>> {
  const over = new AbortController();
  const stop = clock.wakeAt(addMs(clock.now(), waitMs), () => {
    over.abort();
  });
  let last: HostAnswer<RunSnapshot> | undefined;
  try {
    const either = AbortSignal.any([signal, over.signal]);
    for await (const found of followRun(host, runId, { caller, signal: either, ...(until && { until }) })) {
      last = found;
      if (found.kind === "done") onChange?.(found.value);
    }
  } finally {
    stop();
  }
  // It yields once at least.
  return last as HostAnswer<RunSnapshot>;
}
