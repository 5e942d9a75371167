/**
 * Owns: the memory of forks, and of what they start (docs/adr/0013). A fork shares no memory with its source: what it writes is
 * kept beside the scope, under a name that nobody else has. It reads that first, and then the scope as it was at the place where
 * the fork began (RFC 0039, MAE-3), which for a fork of a fork is again one of these.
 */
import type { CoordinationId } from "../../../contracts/ids.ts";
import type { MemoryAsOf, MemoryEntry, MemoryQuery, MemoryScope } from "../../../ports/workflow-store.ts";
import type { ChildEffect } from "../../../workflow/node-contract/node-type.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import type { HashedStore } from "./workflow-dependencies.ts";

type ReadingRun = Pick<WorkflowRun, "runId" | "origin" | "started">;

/**
 * Returns the id of the fork whose memory a run has: the run itself where it is a fork, else the one that it was
 * started in; `undefined` outside of forks.
 */
export function findMemoryHome({ runId, origin, started }: ReadingRun): CoordinationId | undefined {
  return origin ? runId : started.memoryHome;
}

interface ChildMemory {
  readonly memoryScope: string;
  readonly hasIsolatedMemory?: true;
  readonly memoryHome?: CoordinationId;
}

/**
 * Returns the memory fields that a child run is started with: the scope that its node gave it, and the fork, if any,
 * that its parent is in.
 */
export function createChildMemory(
  run: ReadingRun,
  { memoryScope, hasIsolatedMemory }: ChildEffect,
): ChildMemory {
  const memoryHome = findMemoryHome(run);
  return {
    memoryScope,
    ...(hasIsolatedMemory && { hasIsolatedMemory }),
    ...(memoryHome !== undefined && { memoryHome }),
  };
}

/**
 * Returns the scope that a run's memory writes go to: the named one, or for a run in a fork the fork's own beside it.
 */
export function findWriteScope(
  { sha256 }: Pick<HashedStore, "sha256">,
  run: ReadingRun,
  scope: string,
): string {
  const home = findMemoryHome(run);
  return home === undefined ? scope : formatForkScope(sha256, home, scope);
}

function formatForkScope(sha256: HashedStore["sha256"], home: CoordinationId, scope: string): string {
  return `fork-${sha256(`${home}\n${scope}`)}`;
}

/**
 * Lists the memory entries that a run finds in a scope, now or before one of its own events, the newest first; in a
 * fork also those of its source from before.
 */
export function listRunMemory(
  dependencies: HashedStore,
  run: ReadingRun,
  scope: string,
  query: MemoryQuery,
): Promise<MemoryEntry[]> {
  const { tenant } = run.started.owner;
  return listMemoryThroughForks(dependencies, { at: { tenant, scope }, home: findMemoryHome(run), query });
}

/** A query of a memory scope, and the fork whose memory it is read through. */
interface ForkMemoryQuery {
  readonly at: MemoryScope;
  readonly home: CoordinationId | undefined;
  readonly query: MemoryQuery;
}

/** Lists a fork's own entries, then those that its source had where the fork began, and so on. */
async function listMemoryThroughForks(
  dependencies: HashedStore,
  { at, home, query }: ForkMemoryQuery,
): Promise<MemoryEntry[]> {
  const { memory } = dependencies.store;
  if (home === undefined) return memory.list(at, query);
  const { until, below, sourceRunId } = await readForkLineage(dependencies, home);
  const { asOf, limit } = query;
  const isInside = asOf?.runId === home && asOf.sequence <= until;
  const beside = { ...at, scope: formatForkScope(dependencies.sha256, home, at.scope) };
  const ownEntries = isInside ? [] : await memory.list(beside, query);
  if (ownEntries.length >= limit) return ownEntries;
  const ownIds = new Set(ownEntries.map(({ id }) => id));
  const before: MemoryAsOf = { runId: sourceRunId, sequence: isInside ? asOf.sequence : until };
  const sourceEntries = await listMemoryThroughForks(dependencies, {
    at,
    home: below,
    query: { ...query, asOf: before },
  });
  return [...ownEntries, ...sourceEntries.filter(({ id }) => !ownIds.has(id))].slice(0, limit);
}

/** The run that a fork comes from, where it left that run and whose memory that run had. */
export interface ForkLineage {
  readonly sourceRunId: CoordinationId;
  readonly until: number;
  /** Whose memory the source had. */
  readonly below: CoordinationId | undefined;
}

/**
 * Reads where a fork left its source, and as `below` the fork whose memory the source had, if any. A run that is no
 * fork is its own source, from its beginning.
 */
export async function readForkLineage(
  { store }: Pick<HashedStore, "store">,
  home: CoordinationId,
): Promise<ForkLineage> {
  const origin = (await store.entry(home))?.origin;
  if (!origin) return { sourceRunId: home, until: 0, below: undefined };
  const { sourceRunId, until } = origin;
  if ((await store.entry(sourceRunId))?.origin) return { sourceRunId, until, below: sourceRunId };
  const [first] = await store.read(sourceRunId, { from: 0, limit: 1 });
  const below = first?.type === "run.started" ? first.payload.memoryHome : undefined;
  return { sourceRunId, until, below };
}
