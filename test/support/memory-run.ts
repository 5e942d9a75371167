/** Owns: the logs of runs of either kind in memory: text, hashes, the origin of a fork, and reading and listing them. */
import { CoordinationError, assertInvariant } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  findEventId,
  runOriginSchema,
  type RunOrigin,
} from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import {
  decodeWorkflowEvent,
  type WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { WorkflowSummary } from "../../src/agents/coordination/contracts/workflows/workflow-summary.ts";
import type {
  ListQuery,
  PrunedRuns,
  RunAppend,
  RunStore,
  StoredRun,
} from "../../src/agents/coordination/ports/run-store.ts";
import type { WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";
import type { OwnerRow } from "../../src/infra/ledger/owner-fence.ts";
import { findDamageIn, type ChainedLog } from "./hash-chain.ts";

export interface KeptRun<Summary> extends ChainedLog {
  readonly ordinal: number;
  /** JSON, of a fork. */
  origin?: string;
  summary: Summary;
}

export interface OwnedKeptRun<Summary> extends KeptRun<Summary> {
  owner: OwnerRow;
  /** True where somebody else than the owner appended or gave the run to the owner, until the owner has seen it. */
  hasArrived: boolean;
}

export interface MemoryRun extends OwnedKeptRun<WorkflowSummary> {
  /** The number of each event among all of the ledger. */
  readonly places: number[];
}

/** Answers like a driver on another thread: the work is done when asked for, the answer comes later. */
export type Answer = <T>(run: () => T) => Promise<T>;

interface KeptRuns<Event, Summary, Append> {
  readonly runs: ReadonlyMap<CoordinationId, KeptRun<Summary>>;
  readonly decode: (runId: CoordinationId, run: KeptRun<Summary>, text: string) => Event;
  readonly hasEnded: (summary: Summary) => boolean;
  /** S1: checks everything before it writes anything. */
  readonly append: (request: Append) => void;
  /** Absent: nothing was ever removed. */
  readonly pruned?: PrunedRuns;
}

function createNothingPruned(answer: Answer): PrunedRuns {
  return {
    counts: () => answer(() => ({ runs: 0, events: 0, claims: 0 })),
    find: () => answer(() => undefined),
    listBindings: () => answer(() => []),
  };
}

export function createMemoryRunStore<Event, Summary, Append extends RunAppend<Event, Summary>>(
  kept: KeptRuns<Event, Summary, Append>,
  answer: Answer,
): RunStore<Event, Summary, Append> {
  const { runs, decode, hasEnded, append, pruned = createNothingPruned(answer) } = kept;
  const listEntries = (): StoredRun<Summary>[] =>
    [...runs].map(([runId, { ordinal, events, summary, ...run }]) => ({
      runId,
      ordinal,
      summary,
      length: events.length,
      ...readKnownOrigin(run),
    }));
  const findEntry = (runId: CoordinationId) =>
    answer(() => listEntries().find((listed) => listed.runId === runId));
  const list = ({ limit, status, idPrefix = "", order = "newest", after }: ListQuery) =>
    answer(() =>
      (order === "oldest" ? listEntries() : listEntries().toReversed())
        .filter(({ runId }) => runId.startsWith(idPrefix))
        .filter(({ summary }) => !status || hasEnded(summary) === (status === "ended"))
        .filter(({ ordinal }) => !after || (order === "oldest") === ordinal > after.ordinal)
        .filter(({ ordinal }) => ordinal !== after?.ordinal)
        .slice(0, limit),
    );
  return {
    pruned,
    append: (request) =>
      answer(() => {
        appendOnBasis(request, append);
      }),
    read: (runId, { from, limit }) =>
      answer(() => {
        const run = runs.get(runId);
        return run ? run.events.slice(from, from + limit).map((text) => decode(runId, run, text)) : [];
      }),
    damage: (runId, { before }) =>
      answer(() => {
        const run = runs.get(runId);
        // Without its origin no event of a fork can be read, whatever its hash says.
        if (before > 0 && run?.origin !== undefined && !readKnownOrigin(run).origin)
          return { sequence: 0, problem: "event_unreadable" };
        return findDamageIn(run, before, (text) => run && decode(runId, run, text));
      }),
    entry: findEntry,
    list,
    listUnproven: list,
    findUnproven: findEntry,
  };
}

/** Event ids follow from the run id, the origin and the sequence, whatever is kept. */
export function readEvent(
  runId: CoordinationId,
  run: Pick<KeptRun<unknown>, "origin">,
  text: string,
): WorkflowEvent {
  const event = JSON.parse(text) as WorkflowEvent;
  return decodeWorkflowEvent({ ...event, eventId: findEventId(runId, originOf(run), event.sequence) });
}

/** @throws `EVENT_UNREADABLE` */
function originOf({ origin }: Pick<KeptRun<unknown>, "origin">): RunOrigin | undefined {
  if (origin === undefined) return undefined;
  const parsed = runOriginSchema.safeParse(JSON.parse(origin));
  if (!parsed.success) throw new CoordinationError("EVENT_UNREADABLE", "the origin is unreadable");
  return parsed.data;
}

/** An origin that cannot be read is not there. */
export function readKnownOrigin(run: Pick<KeptRun<unknown>, "origin">): { readonly origin?: RunOrigin } {
  try {
    const origin = originOf(run);
    return origin ? { origin } : {};
  } catch {
    return {};
  }
}

export function checkPlaces(
  { runId, events }: RunAppend<{ readonly sequence: number }, unknown>,
  length: number,
): void {
  if (events.some(({ sequence }, index) => sequence !== length + index))
    throw new CoordinationError("LEDGER_CONFLICT", `${runId} has ${length} events`);
}

export function checkIds({ runId, events }: WorkflowAppend, run: MemoryRun): void {
  const origin = originOf(run);
  for (const { eventId, sequence } of events) {
    const isIts = eventId === findEventId(runId, origin, sequence);
    assertInvariant(isIts, `the event at ${runId}:${sequence} is not ${eventId}`);
  }
}

/** S1. */
function appendOnBasis<Append extends Pick<RunAppend<unknown, unknown>, "runId" | "basis">>(
  request: Append,
  append: (request: Append) => void,
): void {
  const { runId, basis } = request;
  if (basis?.isVoid)
    throw new CoordinationError("LEDGER_CONFLICT", `${runId}: an append that this one was decided on failed`);
  try {
    append(request);
  } catch (error) {
    if (basis) basis.isVoid = true;
    throw error;
  }
}
