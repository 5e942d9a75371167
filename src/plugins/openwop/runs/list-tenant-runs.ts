/** Owns: finding the runs of one tenant, the newest first, in a listing of all. Looks at a bounded number of runs. */
import type { WorkflowEntry } from "../../../agents/coordination/ports/workflow-store.ts";
import { isAskingSomebody } from "../../../agents/coordination/runtime/workflow-host/agents/run-agent.ts";
import type {
  Caller,
  RunSnapshot,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { readSnapshotUnlessDamaged, type RunAccess } from "./run-access.ts";

export interface RunsWanted {
  readonly limit: number;
  /** Only those that ask somebody something. */
  readonly isAsking?: boolean;
  /** Only entries after this one. */
  readonly after?: { readonly ordinal: number };
}

export interface TenantRuns {
  readonly runs: readonly WorkflowEntry[];
  /**
   * Where to go on: the last of the runs where the limit cut them, else the last entry that was looked at. Absent: there
   * are no more.
   */
  readonly next?: { readonly ordinal: number };
}

const PAGE = 500;
const LOOKED_AT_MAX = 10_000;

/**
 * Returns one page of the runs of the caller's tenant, or of those that ask somebody something, with `next` where
 * there may be more; a page may be short, because it looks at a bounded number of runs.
 */
export async function listTenantRuns(
  { runs: store }: RunAccess,
  { tenant }: Caller,
  { limit, isAsking = false, after }: RunsWanted,
): Promise<TenantRuns> {
  const runs: WorkflowEntry[] = [];
  const isWanted = (entry: WorkflowEntry): boolean =>
    entry.summary.tenant === tenant && (!isAsking || isAskingSomebody(entry.summary));
  let last = after;
  for (let lookedAt = 0; lookedAt < LOOKED_AT_MAX; lookedAt += PAGE) {
    const page = await store.list({
      limit: PAGE,
      ...(isAsking && { status: "running" }),
      ...(last && { after: last }),
    });
    for (const entry of page.filter((each) => isWanted(each))) {
      if (runs.length === limit) return createCutListing(runs, runs.at(-1));
      runs.push(entry);
    }
    if (page.length < PAGE) return { runs };
    last = page.at(-1);
  }
  return createCutListing(runs, last);
}

/**
 * Returns the snapshot of a run that a listing names; `undefined` where the caller cannot see it, or where its log is
 * damaged, which is logged.
 */
export async function readListedRun(
  { host, logger }: RunAccess,
  caller: Caller,
  runId: string,
): Promise<RunSnapshot | undefined> {
  const found = await readSnapshotUnlessDamaged(host, caller, runId);
  if (!found) logger.error({ runId }, "a run whose log is damaged is left out of a listing");
  return found?.kind === "done" ? found.value : undefined;
}

function createCutListing(runs: readonly WorkflowEntry[], next: RunsWanted["after"]): TenantRuns {
  return { runs, ...(next && { next: { ordinal: next.ordinal } }) };
}
