/**
 * Owns: what each tenant takes of this host, and what is refused because it would be too much.
 *
 * Counts are of this process: runs that it drives, and those of other processes that were left to it.
 */
import { createQuotaRefusal, type Quotas } from "../../../contracts/workflows/quotas.ts";
import type { WorkflowSummary } from "../../../contracts/workflows/workflow-summary.ts";
import { hasRunEnded } from "../../../contracts/workflows/workflow-summary.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { HostRefusal } from "./workflow-host.ts";

/** The request that a run comes of, and the how-manieth run of it this is. */
export type RunRoot = NonNullable<WorkflowSummary["root"]>;

export interface NewUsage {
  readonly tenant: string;
  /** The run whose child or fork this one is. */
  readonly from?: string;
  readonly isFork?: boolean;
  /** Asked for by a client, and not by a run of its tenant. */
  readonly isRequest: boolean;
}

export interface TenantUsage {
  /** Says why another run would be too much; else counts it until it ends. One that is counted already is not counted twice. */
  begin(runId: string, usage: NewUsage): HostRefusal | CountedRun;
  /** A run that has ended, or that others drive. */
  forget(runId: string): void;
  /** A run as it is on disk now. */
  note(runId: string, summary: WorkflowSummary): void;
  rootOf(runId: string): RunRoot | undefined;
  /** Counts work outside until the returned function is called. */
  work(tenant: string): () => void;
}

export interface CountedRun {
  readonly kind: "counted";
  /** The run could not be begun. It stays counted where it was before. */
  readonly forget: () => void;
}

/** The counts of one tenant: its runs, their characters, its work and its newest forks. */
interface TenantCounts {
  runs: number;
  chars: number;
  work: number;
  forks: number;
  forksSinceMs: number;
}

interface LiveRun {
  readonly tenant: string;
  readonly root: RunRoot;
  chars: number;
}

/** The quotas, and the counts of all tenants that are held against them. */
interface TenantUsageState {
  readonly quotas: Quotas;
  readonly clock: Clock;
  readonly tenants: Map<string, TenantCounts>;
  readonly live: Map<string, LiveRun>;
  readonly roots: Map<string, { made: number; live: number }>;
}

const MINUTE_MS = 60_000;

/**
 * Creates the counts of the runs and the work that each tenant has on this host. Its `begin` refuses a run that would
 * be over the quotas.
 */
export function createTenantUsage(quotas: Quotas, clock: Clock): TenantUsage {
  const usage: TenantUsageState = { quotas, clock, tenants: new Map(), live: new Map(), roots: new Map() };
  return {
    begin: (runId, newUsage) => admitRun(usage, runId, newUsage),
    forget: (runId) => {
      removeRun(usage, runId);
    },
    note: (runId, summary) => {
      noteRun(usage, runId, summary);
    },
    rootOf: (runId) => usage.live.get(runId)?.root,
    work: (name) => {
      const tenant = findOrAddTenant(usage, name);
      tenant.work += 1;
      return () => {
        tenant.work -= 1;
      };
    },
  };
}

function findOrAddTenant({ tenants }: TenantUsageState, name: string): TenantCounts {
  const had = tenants.get(name);
  if (had) return had;
  const created: TenantCounts = { runs: 0, chars: 0, work: 0, forks: 0, forksSinceMs: 0 };
  tenants.set(name, created);
  return created;
}

/** Counts a run that begins, or refuses it where a quota of its tenant is reached. */
function admitRun(usage: TenantUsageState, runId: string, newUsage: NewUsage): HostRefusal | CountedRun {
  // Asking for a run that is there is reading it.
  if (usage.live.has(runId)) return { kind: "counted", forget: () => undefined };
  const tenant = findOrAddTenant(usage, newUsage.tenant);
  const rootId = findRootId(usage, runId, newUsage);
  const refusal = findReachedQuota(usage, tenant, rootId) ?? refuseTooFast(usage, tenant, newUsage);
  if (refusal) return refusal;
  if (newUsage.isFork === true) tenant.forks += 1;
  // The root itself may have ended: it is the first of its runs nevertheless.
  const before = usage.roots.get(rootId)?.made ?? (rootId === runId ? 0 : 1);
  const root = { runId: rootId, number: before + 1 };
  addRun(usage, runId, { tenant: newUsage.tenant, root, chars: 0 });
  return { kind: "counted", forget: () => removeRun(usage, runId) };
}

/** Returns the run of the request that this one comes of. */
function findRootId({ live }: TenantUsageState, runId: string, { from }: NewUsage): string {
  return from === undefined ? runId : (live.get(from)?.root.runId ?? from);
}

function findReachedQuota(
  { quotas, roots }: TenantUsageState,
  { runs, chars }: TenantCounts,
  rootId: string,
): HostRefusal | undefined {
  if (runs >= quotas.liveRuns) return createQuotaRefusal(quotas, "liveRuns");
  if (chars >= quotas.liveChars) return createQuotaRefusal(quotas, "liveChars");
  return (roots.get(rootId)?.made ?? 0) >= quotas.runsPerRequest
    ? createQuotaRefusal(quotas, "runsPerRequest")
    : undefined;
}

/** Refuses a fork beyond a minute's number, and a request beside too much work at once. */
function refuseTooFast(
  { quotas, clock }: TenantUsageState,
  tenant: TenantCounts,
  { isFork = false, isRequest }: NewUsage,
): HostRefusal | undefined {
  const nowMs = clock.now();
  // A clock that went back tells nothing of how much of the minute is over.
  if (nowMs < tenant.forksSinceMs || nowMs - tenant.forksSinceMs >= MINUTE_MS) {
    tenant.forks = 0;
    tenant.forksSinceMs = nowMs;
  }
  if (isFork && tenant.forks >= quotas.forksPerMinute) {
    const waitMs = tenant.forksSinceMs + MINUTE_MS - nowMs;
    return createQuotaRefusal(quotas, "forksPerMinute", Math.ceil(waitMs / 1_000));
  }
  return isRequest && tenant.work >= quotas.workAtOnce ? createQuotaRefusal(quotas, "workAtOnce") : undefined;
}

function addRun(usage: TenantUsageState, runId: string, live: LiveRun): void {
  const { runId: rootId, number } = live.root;
  const root = usage.roots.get(rootId) ?? { made: 0, live: 0 };
  root.made = Math.max(root.made, number);
  root.live += 1;
  usage.roots.set(rootId, root);
  usage.live.set(runId, live);
  findOrAddTenant(usage, live.tenant).runs += 1;
}

/** Counts the run by its summary on disk; one that has ended is not counted any more. */
function noteRun(usage: TenantUsageState, runId: string, summary: WorkflowSummary): void {
  if (hasRunEnded(summary.status)) {
    removeRun(usage, runId);
    return;
  }
  const { tenant, root = { runId, number: 1 }, chars = 0 } = summary;
  if (!usage.live.has(runId)) addRun(usage, runId, { tenant, root, chars: 0 });
  const live = usage.live.get(runId);
  if (!live) return;
  findOrAddTenant(usage, live.tenant).chars += chars - live.chars;
  live.chars = chars;
}

function removeRun(usage: TenantUsageState, runId: string): void {
  const live = usage.live.get(runId);
  if (!live) return;
  usage.live.delete(runId);
  const tenant = findOrAddTenant(usage, live.tenant);
  tenant.runs -= 1;
  tenant.chars -= live.chars;
  const root = usage.roots.get(live.root.runId);
  if (!root) return;
  root.live -= 1;
  if (root.live === 0) usage.roots.delete(live.root.runId);
}
