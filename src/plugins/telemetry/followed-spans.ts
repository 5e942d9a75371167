/** Owns: projecting what was appended to the ledger into spans, run by run, with what is remembered of runs that are met again. */
import { isLogDamage } from "../../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../agents/coordination/contracts/run-event.ts";
import type { RunOrigin } from "../../agents/coordination/contracts/workflows/run-origin.ts";
import type { WorkflowEvent } from "../../agents/coordination/contracts/workflows/workflow-events.ts";
import type { EventArrival, LedgerQueries } from "../../agents/coordination/ports/ledger-queries.ts";
import type { LedgerStore } from "../../agents/coordination/ports/ledger-store.ts";
import type { WorkflowStore } from "../../agents/coordination/ports/workflow-store.ts";
import { rememberNewest } from "../../agents/coordination/std/remember-newest.ts";
import { createCoordinationSpans } from "../../agents/coordination/telemetry/project-coordination.ts";
import { createWorkflowSpans } from "../../agents/coordination/telemetry/project-workflow.ts";
import type { FindRoot, SpanProjection } from "../../agents/coordination/telemetry/projection.ts";
import type { HashText, Span, SpanPlace } from "../../agents/coordination/telemetry/span.ts";
import { giveWay } from "../../platform/give-way.ts";

/** A ledger whose events are exported. */
export type ExportedLedger = Pick<LedgerStore, "read" | "findUnproven"> &
  Pick<LedgerQueries, "readArrivals" | "newestPosition"> & {
    readonly workflows: WorkflowStore;
  };

/** A run whose log is followed. */
interface FollowedRun {
  readonly read: (range: { readonly from: number; readonly limit: number }) => Promise<readonly AnyEvent[]>;
  readonly projection: SpanProjection<AnyEvent>;
  next: number;
}

type AnyEvent = RunEvent | WorkflowEvent;

const EVENTS_PER_READ = 500;
const RUNS_MAX = 1_000;
/** Runs whose logs are damaged and that are remembered as such: each is told once, and not read again. */
const DAMAGED_MAX = 1_000;
/** Runs around a run, whose traces it may be on. */
const DEPTH_MAX = 32;

/** Events that end no span: a run that is not remembered is not read for their sake. */
const QUIET: ReadonlySet<string> = new Set(["usage.recorded", "session.told", "step.outcome_refused"]);

export interface FollowedSpans {
  /**
   * Returns the spans that end with these events, in the order of their runs. Events of a run that cannot be read are left out.
   *
   * @throws CoordinationError of the ledger
   */
  project(ledger: ExportedLedger, arrivals: readonly EventArrival[]): Promise<Span[]>;
}

/**
 * Creates the projection that makes spans of newly arrived events and remembers the runs that it follows; `onDamage`
 * is called once for each run whose log is damaged, which is then left out.
 */
export function createFollowedSpans(
  hash: HashText,
  onDamage: (runId: CoordinationId) => void,
): FollowedSpans {
  /** The one that was met last is the last. */
  const runs = new Map<CoordinationId, FollowedRun>();
  const keep = (runId: CoordinationId, run: FollowedRun): void => {
    rememberNewest(runs, runId, run, RUNS_MAX);
  };
  const damaged = new Set<CoordinationId>();
  const noteDamage = (runId: CoordinationId): void => {
    const [first] = damaged;
    if (damaged.size >= DAMAGED_MAX && first !== undefined) damaged.delete(first);
    damaged.add(runId);
    onDamage(runId);
  };
  const projectRun = async (ledger: ExportedLedger, { runId, from, to }: EventStretch): Promise<Span[]> => {
    const remembered = runs.get(runId);
    // A page that is projected again, because it was not exported, begins before the place that the run has reached.
    const isBehind = remembered !== undefined && remembered.next <= from;
    const run = isBehind ? remembered : await startFollowingRun(ledger, runId, hash);
    if (!run) return [];
    const spans = await projectUpTo(run, from, to);
    const root = run.projection.root();
    if (spans.some(({ spanId }) => spanId === root?.spanId)) runs.delete(runId);
    else keep(runId, run);
    return spans;
  };
  return {
    project: async (ledger, arrivals) => {
      const spans: Span[] = [];
      for (const stretch of listStretches(arrivals, (runId) => runs.has(runId))) {
        const { runId } = stretch;
        try {
          if (!damaged.has(runId)) spans.push(...(await projectRun(ledger, stretch)));
        } catch (error) {
          if (!isLogDamage(error)) throw error;
          runs.delete(runId);
          noteDamage(runId);
        }
        await giveWay();
      }
      return spans;
    },
  };
}

/** New events of one run, by their sequence numbers. */
interface EventStretch {
  readonly runId: CoordinationId;
  readonly from: number;
  readonly to: number;
}

/**
 * Lists the stretch of new events of each run, except of runs that are not remembered and have only events that end no
 * span.
 */
function listStretches(
  arrivals: readonly EventArrival[],
  isKnown: (runId: CoordinationId) => boolean,
): EventStretch[] {
  const byRun = Map.groupBy(arrivals, ({ runId }) => runId);
  return [...byRun].flatMap(([runId, ofRun]) => {
    if (!isKnown(runId) && ofRun.every(({ type }) => QUIET.has(type))) return [];
    const sequences = ofRun.map(({ sequence }) => sequence);
    return [{ runId, from: Math.min(...sequences), to: Math.max(...sequences) }];
  });
}

/** Projects a run's events up to `to`, and returns the spans that end from `from` on. */
async function projectUpTo(run: FollowedRun, from: number, to: number): Promise<Span[]> {
  const spans: Span[] = [];
  while (run.next <= to) {
    const limit = Math.min(EVENTS_PER_READ, to - run.next + 1);
    const events = await run.read({ from: run.next, limit });
    if (events.length === 0) break;
    for (const event of events) {
      const ended = run.projection.take(event);
      if (event.sequence >= from) spans.push(...ended);
      run.next = event.sequence + 1;
    }
    await giveWay();
  }
  return spans;
}

/** A run of the ledger with its first event. */
interface FoundRun {
  readonly read: FollowedRun["read"];
  readonly isCoordination: boolean;
  readonly first: AnyEvent;
  /** Names the source of a fork of a workflow run. */
  readonly origin: RunOrigin | undefined;
}

/** Finds a run, whichever kind it is and whatever a listing says of it; `undefined` where the ledger does not have it. */
async function findRun(ledger: ExportedLedger, runId: string): Promise<FoundRun | undefined> {
  const id = runId as CoordinationId;
  const isCoordination = (await ledger.findUnproven(id)) !== undefined;
  const store = isCoordination ? ledger : ledger.workflows;
  const read: FollowedRun["read"] = (range) => store.read(id, range);
  const [first] = await read({ from: 0, limit: 1 });
  const origin = isCoordination ? undefined : (await ledger.workflows.findUnproven(id))?.origin;
  return first && { isCoordination, read, first, origin };
}

/** Begins the projection of a run, with the roots of the runs that it names. */
function startProjection(
  { isCoordination, read, first, origin }: FoundRun,
  hash: HashText,
  findRoot: FindRoot,
): FollowedRun {
  const projection = isCoordination
    ? createCoordinationSpans(hash, findRoot)
    : createWorkflowSpans(hash, findRoot, origin);
  projection.take(first as never);
  return { read, projection: projection, next: 1 };
}

/** Returns a run with its projection, from its first event on; `undefined` where the ledger does not have it. */
async function startFollowingRun(
  ledger: ExportedLedger,
  runId: CoordinationId,
  hash: HashText,
): Promise<FollowedRun | undefined> {
  const found = await findRun(ledger, runId);
  return (
    found && startProjection(found, hash, await readRootSpans(ledger, listOrigins(found), { hash, depth: 0 }))
  );
}

/** How deep a run is within the run that is followed, and how ids are hashed. */
interface RunDepth {
  readonly hash: HashText;
  /** How many runs deep it is within the run that is followed. */
  readonly depth: number;
}

/** Returns a function that finds the root span of each of these runs. */
async function readRootSpans(
  ledger: ExportedLedger,
  runIds: readonly string[],
  { hash, depth }: RunDepth,
): Promise<FindRoot> {
  const roots = new Map<string, SpanPlace | undefined>();
  for (const runId of runIds) {
    const found = await findSoundRun(ledger, runId);
    // The trace of a coordination stands in its own log, that of a run perhaps in the run around it.
    const around = found && depth < DEPTH_MAX ? listStartingRuns(found.first) : [];
    const findRoot = await readRootSpans(ledger, around, { hash, depth: depth + 1 });
    roots.set(runId, found && startProjection(found, hash, findRoot).projection.root());
  }
  return (runId) => roots.get(runId);
}

/** Finds a run; `undefined` also where its log is damaged: a run that came from it is exported without it. */
async function findSoundRun(ledger: ExportedLedger, runId: string): Promise<FoundRun | undefined> {
  try {
    return await findRun(ledger, runId);
  } catch (error) {
    if (isLogDamage(error)) return undefined;
    throw error;
  }
}

/** Lists the runs that a run came from: they are linked, or it is below them. */
function listOrigins({ first, origin: fork }: FoundRun): string[] {
  if (first.type !== "coordination.created")
    return [...listStartingRuns(first), ...(fork ? [fork.sourceRunId] : [])];
  const { forkedFrom, parent, trace } = first.payload;
  const origins = [forkedFrom?.coordinationId, parent?.coordinationId, trace.causalRef];
  return origins.filter((origin) => origin !== undefined);
}

/** Lists the run of this host that started a workflow run; none of a run that nobody here started. */
function listStartingRuns(first: AnyEvent): string[] {
  if (first.type !== "run.started" || !("parent" in first.payload)) return [];
  const { parent } = first.payload;
  return parent && parent.wellKnownUrl === undefined ? [parent.runId] : [];
}
