/**
 * Owns: which runs `ledger prune` removes, and in what portions.
 *
 * Runs that are part of one another, were forked from one another or share their memory are a family: it is removed whole, or
 * not at all. A run whose stored bytes are damaged is kept with its family, so that the damage can be looked into. A run that begins
 * meanwhile keeps the family that it joins.
 */
import type { CoordinationId, EpochMs } from "../contracts/ids.ts";
import type {
  LedgerPruning,
  PrunableRun,
  PruningBasis,
  RemovableRun,
  RemovedRuns,
} from "../ports/run-store.ts";
import type { LedgerStore } from "../ports/ledger-store.ts";
import type { WorkflowStore } from "../ports/workflow-store.ts";
import { createBoundChildLister, type ListBoundChildren } from "./bound-children.ts";
import { readUnlessDamaged } from "./log/read-state.ts";

/** Runs looked at in one go. */
const PAGE = 200;
/** Removed in one transaction at most, unless a single run has more: meanwhile nobody else writes. */
const PORTION_EVENTS_MAX = 100;

/** The parts of a ledger that pruning uses. */
export type PrunedLedger = Pick<LedgerStore, "damage" | "pruned" | "read" | "find"> & {
  readonly workflows: WorkflowStore;
  readonly pruning: LedgerPruning;
};

/** Asks for runs to be removed. */
export interface PruneRequest {
  /** Only families whose newest event is older are removed. */
  readonly beforeMs: EpochMs;
  /** True: nothing is removed. */
  readonly isDryRun: boolean;
  /** As `findSilentExporter` returns it: no run waits for its export. */
  readonly silentExporter?: string | undefined;
  readonly onProgress?: (progress: PruneProgress) => void;
  /** Ends it between two portions, by throwing its reason. */
  readonly signal?: AbortSignal;
}

/** How far pruning has come. */
export interface PruneProgress {
  readonly step: "looked at" | "removed";
  readonly runs: number;
}

/** Counts what was removed, or in a dry run would be, and the runs that were kept, by reason. */
export interface PruneReport extends RemovedRuns {
  readonly kept: Readonly<Record<KeptReason, number>>;
}

/** `related`: a run of the same family is kept. */
export type KeptReason = Exclude<PrunableRun["state"], "prunable"> | "related" | "damaged";

/**
 * Removes old runs, and returns how many were removed, and how many were kept for which reason; a dry run removes
 * nothing and counts the same. May be stopped at any place and called again. @throws CoordinationError as the ledger
 * does
 */
export async function pruneLedger(ledger: PrunedLedger, request: PruneRequest): Promise<PruneReport> {
  const families = await findFamilies(ledger, request);
  const listBoundChildren = createBoundChildLister(ledger);
  const kept: Record<KeptReason, number> = { open: 0, recent: 0, used: 0, related: 0, damaged: 0 };
  const removed = { runs: 0, events: 0 };
  const remove = request.isDryRun
    ? countAsRemoved
    : (runs: readonly RemovableRun[]) => ledger.pruning.remove(runs, families);
  for await (const page of readPrunablePages(ledger.pruning, request)) {
    await families.lookAgain();
    const removable: RemovableRun[] = [];
    for (const run of page) {
      const planned = await planRemoval(ledger, run, families, listBoundChildren);
      if (typeof planned === "string") kept[planned] += 1;
      else removable.push(planned);
    }
    for (const portion of splitIntoPortions(removable)) {
      request.signal?.throwIfAborted();
      const { runs, events } = await remove(portion);
      removed.runs += runs;
      removed.events += events;
      request.onProgress?.({ step: "removed", runs: removed.runs });
    }
  }
  return { ...removed, kept };
}

/**
 * Yields all runs in pages, the newest first. So what comes of a run is removed before it, and a prune that is
 * interrupted leaves nothing without its source.
 */
async function* readPrunablePages(
  pruning: LedgerPruning,
  { beforeMs, silentExporter, signal }: PruneRequest,
): AsyncGenerator<readonly PrunableRun[]> {
  for (let before = Number.MAX_SAFE_INTEGER; ;) {
    signal?.throwIfAborted();
    const page = await pruning.page({ before, limit: PAGE, beforeMs, silentExporter });
    yield page;
    before = page.at(-1)?.ordinal ?? before;
    if (page.length < PAGE) return;
  }
}

/** The families of more than one run. All others are not in memory: a ledger may have a million of them. */
interface RunFamilies extends PruningBasis {
  /** Looks at the runs that began since: a family that one of them belongs to is kept. */
  lookAgain(): Promise<void>;
  /** Whether a run of the family, and so all of it, is kept. */
  isKept(runId: string): boolean;
  /** The run of the family with damaged bytes, where there is one. */
  readonly damaged: ReadonlySet<string>;
}

/** Groups related runs into families, and finds which of these are kept because one of their runs is. */
async function findFamilies(ledger: PrunedLedger, request: PruneRequest): Promise<RunFamilies> {
  const roots = createUnionFind();
  let newest = 0;
  let lookedAt = 0;
  for await (const page of readPrunablePages(ledger.pruning, request)) {
    joinRelatives(roots, page);
    newest = Math.max(newest, page[0]?.ordinal ?? 0);
    lookedAt += page.length;
    request.onProgress?.({ step: "looked at", runs: lookedAt });
  }
  const kept = new Set<string>();
  const damaged = new Set<string>();
  for await (const page of readPrunablePages(ledger.pruning, request)) {
    const members = page.filter(({ runId }) => roots.has(runId) && !kept.has(roots.find(runId)));
    for (const run of members) {
      if (run.state !== "prunable") kept.add(roots.find(run.runId));
      else if (await hasDamage(ledger, run)) damaged.add(run.runId);
    }
  }
  for (const runId of damaged) kept.add(roots.find(runId));
  return {
    get newest() {
      return newest;
    },
    familyOf: (runId) => roots.find(runId),
    isKept: (runId) => roots.has(runId) && kept.has(roots.find(runId)),
    damaged,
    lookAgain: async () => {
      const newer = await listRunsBegunAfter(ledger.pruning, request, newest);
      joinRelatives(roots, newer);
      for (const { runId } of newer) if (roots.has(runId)) kept.add(roots.find(runId));
      newest = newer[0]?.ordinal ?? newest;
    },
  };
}

/** Lists the runs that began after the ordinal `newest`, the newest first. */
async function listRunsBegunAfter(
  pruning: LedgerPruning,
  request: PruneRequest,
  newest: number,
): Promise<readonly PrunableRun[]> {
  const newer: PrunableRun[] = [];
  for await (const page of readPrunablePages(pruning, request)) {
    const begun = page.filter(({ ordinal }) => ordinal > newest);
    newer.push(...begun);
    if (begun.length < page.length) break;
  }
  return newer;
}

function joinRelatives(roots: UnionFind, page: readonly PrunableRun[]): void {
  for (const { runId, relatives } of page) for (const relative of relatives) roots.join(runId, relative);
}

/** Returns the run as it is to be removed, or why it is kept. */
async function planRemoval(
  ledger: PrunedLedger,
  run: PrunableRun,
  families: RunFamilies,
  listBoundChildren: ListBoundChildren,
): Promise<RemovableRun | KeptReason> {
  const reason = await findReasonToKeep(ledger, run, families);
  if (reason) return reason;
  if (run.kind === "workflow") return run;
  const boundChildren = await readUnlessDamaged(() => listBoundChildren(run.runId as CoordinationId));
  return boundChildren ? { ...run, boundChildren } : "damaged";
}

async function findReasonToKeep(
  ledger: PrunedLedger,
  run: PrunableRun,
  families: RunFamilies,
): Promise<KeptReason | undefined> {
  if (run.state !== "prunable") return run.state;
  if (families.damaged.has(run.runId)) return "damaged";
  if (families.isKept(run.runId)) return "related";
  return (await hasDamage(ledger, run)) ? "damaged" : undefined;
}

/**
 * True where stored bytes of the run are damaged. A run that another prune removed meanwhile is not damaged: no event
 * of it is there any more.
 */
async function hasDamage(ledger: PrunedLedger, { runId, kind, length }: PrunableRun): Promise<boolean> {
  const store = kind === "workflow" ? ledger.workflows : ledger;
  const damage = await store.damage(runId as CoordinationId, { before: length });
  return damage !== undefined && (await store.pruned.find(runId)) === undefined;
}

/** Groups of runs, in which each group is a family that one of its runs stands for. */
interface UnionFind {
  /** Puts two runs into one family. */
  join(one: string, other: string): void;
  /** Returns the run that stands for the family of a run. */
  find(runId: string): string;
  /** Whether the run was put into a family. */
  has(runId: string): boolean;
}

/** Creates a union-find of runs, in which each family is represented by one of its runs. */
function createUnionFind(): UnionFind {
  const parents = new Map<string, string>();
  const members = new Set<string>();
  const find = (runId: string): string => {
    let root = runId;
    for (let next = parents.get(root); next !== undefined; next = parents.get(root)) root = next;
    // Shortens the way for the next who asks.
    for (let at = runId; at !== root;) {
      const next = parents.get(at) ?? root;
      parents.set(at, root);
      at = next;
    }
    return root;
  };
  return {
    find,
    has: (runId) => members.has(runId),
    join: (one, other) => {
      members.add(one).add(other);
      const root = find(one);
      const otherRoot = find(other);
      if (root !== otherRoot) parents.set(root, otherRoot);
    },
  };
}

/** Yields the runs in portions, each of which ends as soon as it has `PORTION_EVENTS_MAX` events. */
function* splitIntoPortions(runs: readonly RemovableRun[]): Generator<readonly RemovableRun[]> {
  let portion: RemovableRun[] = [];
  let events = 0;
  for (const run of runs) {
    portion.push(run);
    events += run.length;
    if (events < PORTION_EVENTS_MAX) continue;
    yield portion;
    portion = [];
    events = 0;
  }
  if (portion.length > 0) yield portion;
}

/** Counts what a removal of the runs would remove, for a dry run. */
function countAsRemoved(runs: readonly PrunableRun[]): Promise<RemovedRuns> {
  return Promise.resolve({ runs: runs.length, events: runs.reduce((sum, { length }) => sum + length, 0) });
}
