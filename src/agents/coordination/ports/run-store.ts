/** Owns: the port to the logs of runs of either kind: appending, reading, listing, and removing ended runs. */
import type { CoordinationId, EpochMs, SessionKey, StepId } from "../contracts/ids.ts";
import type { RunOrigin } from "../contracts/workflows/run-origin.ts";
import type { OwnerToken } from "./run-owners.ts";

/**
 * The logs of one kind of run: of coordinations (`LedgerStore`) or of workflow runs (`WorkflowStore`). Both kinds lie in
 * one ledger and share their ids: to the store of one kind a run of the other is not there.
 *
 * S1 `append` is compare-and-set on `(runId, sequence)` and all or nothing. An append that was decided on another one which is
 * still under way fails with that one: else as many events of another writer would make its sequence fit. S2 an append that resolved is on disk.
 * S3 no event is ever changed, and one is removed only with the whole of its run (L1, `LedgerPruning`). S4 each event carries a hash over its content and the hash before it.
 */
export interface RunStore<Event, Summary, Append extends RunAppend<Event, Summary>> {
  /**
   * Appends events whose first sequence is the length of the run's log. An append without events does nothing.
   *
   * @throws CoordinationError `LEDGER_CONFLICT`, `NOT_OWNER`, `LEDGER_BUSY`, `LEDGER_FULL`, `LEDGER_CORRUPT`, `LEDGER_UNAVAILABLE` or
   * `LEDGER_CLOSED`, and what the port of the kind names; nothing was written then.
   */
  append(request: Append): Promise<void>;
  /** Events of one run in order, from a sequence on, at most `limit`. @throws `EVENT_UNREADABLE` */
  read(runId: CoordinationId, range: { readonly from: number; readonly limit: number }): Promise<Event[]>;
  /**
   * The first of the events below `before` that is missing, changed or unreadable. Looks at every one of them, in slices
   * between which others have their turn.
   */
  damage(runId: CoordinationId, range: { readonly before: number }): Promise<EventDamage | undefined>;
  /** One run as a listing shows it. Cheap: whoever watches a run asks for it again and again. */
  entry(runId: CoordinationId): Promise<StoredRun<Summary> | undefined>;
  /** Runs in the order of their first events. */
  list(query: ListQuery): Promise<StoredRun<Summary>[]>;
  /** Runs as `list` returns them, and those whose summary cannot be read: for whoever proves a ledger. */
  listUnproven(query: ListQuery): Promise<UnprovenRun<Summary>[]>;
  /** One run as `entry` returns it, also where its summary cannot be read: for whoever proves a ledger. */
  findUnproven(runId: CoordinationId): Promise<UnprovenRun<Summary> | undefined>;
  /** Which runs were removed, of either kind. */
  readonly pruned: PrunedRuns;
}

/** Holds all that one append to a log writes, in one transaction with whatever else belongs to it. */
export interface RunAppend<Event, Summary> {
  readonly runId: CoordinationId;
  /** Their first sequence is the length of the run's log. */
  readonly events: readonly Event[];
  /** Describes the run with these events. */
  readonly summary: Summary;
  /**
   * The owner of the run, as whom it is appended (O2). Absent: the append is a request of somebody else, of which the owner
   * is told.
   */
  readonly owner?: OwnerToken;
  /** Shared with the appends that this one was decided on, in the order in which they are handed over. Absent: there are none. */
  readonly basis?: AppendBasis;
}

/** Appends of one process to one log, each decided on those before it. The store sets `isVoid` when one of them fails. */
export interface AppendBasis {
  isVoid: boolean;
}

/** Which runs a listing returns. */
export interface ListQuery {
  readonly limit: number;
  /** Absent: all. `running`: those whose logs may grow. */
  readonly status?: "running" | "ended";
  /** Only ids that begin with this. */
  readonly idPrefix?: string;
  /** Absent: `newest`, the newest run first. */
  readonly order?: "newest" | "oldest";
  /** Only entries after this one, in the order of the listing. */
  readonly after?: { readonly ordinal: number };
}

/** A run as it lies in a ledger that may be damaged. */
export interface UnprovenRun<Summary> {
  readonly runId: CoordinationId;
  /** The position of the run's first event among all runs. */
  readonly ordinal: number;
  /** How many events its log has. */
  readonly length: number;
  /** Absent where it cannot be read. */
  readonly summary?: Summary;
  /** Names the source of a fork of a workflow run. Absent also where it cannot be read; then no event of the run can be read either. */
  readonly origin?: RunOrigin;
}

/** A run of the ledger as a listing shows it. */
export interface StoredRun<Summary> extends UnprovenRun<Summary> {
  readonly summary: Summary;
}

/** An event that is missing, changed or cannot be read. */
export interface EventDamage {
  readonly sequence: number;
  readonly problem: "event_missing" | "event_changed" | "event_unreadable";
}

/** Which runs were removed from a ledger, of either kind. Their ids are never given to other runs. */
export interface PrunedRuns {
  /** How much was ever removed. */
  counts(): Promise<PrunedCounts>;
  /** `undefined` for a run that was not removed. */
  find(runId: string): Promise<PrunedRun | undefined>;
  /** Returns how a child session of a removed run was bound: nothing for any other session. */
  listBindings(session: SessionKey): Promise<readonly ChildBinding[]>;
}

/** `privilege`: its calls were held to privileges. `gate`: its words were withheld. Both may hold one session. */
export type ChildBinding = "privilege" | "gate";

/** A child session that is still bound when its run is removed. The ledger keeps it, because the session may live on. */
export interface BoundChild {
  readonly session: SessionKey;
  readonly stepId: StepId;
  readonly binding: ChildBinding;
}

/** How much was removed from a ledger. */
export interface PrunedCounts {
  readonly runs: number;
  readonly events: number;
  /** The claims that the removed events acquired (S5). */
  readonly claims: number;
}

/** The trace that a removed run leaves. */
export interface PrunedRun {
  readonly runId: string;
  readonly kind: "coordination" | "workflow";
  /** How many events it had. */
  readonly events: number;
  readonly prunedAtMs: EpochMs;
}

/**
 * Removes whole runs that have ended (docs/adr/0030).
 *
 * N1 A run is removed with all its events or not at all, and leaves its length and its newest hash, so that what is left still
 * proves that nothing else is missing. N2 No run is removed that is open, that changed since it was looked at, whose events
 * something else in the ledger names, or of whose family a run has begun since (`PruningBasis`).
 */
export interface LedgerPruning {
  /** Runs of either kind, newest first, with what has to be known before one is removed. */
  page(place: PruningPlace): Promise<PrunableRun[]>;
  /**
   * Removes runs in one transaction. One that is not as the page said is left, and so is one that a run which began since is related
   * to, with its family.
   */
  remove(runs: readonly RemovableRun[], basis: PruningBasis): Promise<RemovedRuns>;
}

/** On what it was decided that runs may be removed. */
export interface PruningBasis {
  /** The ordinal of the newest run that was looked at. */
  readonly newest: number;
  /** Names the family of a run; a run without relatives is one by itself. */
  readonly familyOf: (runId: string) => string;
}

/** Which page of runs is looked at. */
export interface PruningPlace {
  /** The ordinal before which the page begins. */
  readonly before: number;
  readonly limit: number;
  /** Only runs whose newest event is older are held against what names their events. */
  readonly beforeMs: EpochMs;
  /** A process that has an export and has ended: no run waits for it. Absent: there is none. */
  readonly silentExporter?: string | undefined;
}

/** A run as pruning looks at it. */
export interface PrunableRun {
  readonly ordinal: number;
  readonly runId: string;
  readonly kind: "coordination" | "workflow";
  /** How many events its log has. */
  readonly length: number;
  /**
   * `open`: its log may grow. `recent`: its newest event is not old enough. `used`: memory, files or claims name its events, or an
   * export has not reached them.
   */
  readonly state: "open" | "recent" | "used" | "prunable";
  /** The runs that it is part of, was forked from, or shares its memory with. */
  readonly relatives: readonly string[];
}

/** A run to be removed, with the children that stay bound without it. */
export interface RemovableRun extends PrunableRun {
  /** Absent: it has none. */
  readonly boundChildren?: readonly BoundChild[];
}

/** How much one transaction removed. */
export interface RemovedRuns {
  readonly runs: number;
  readonly events: number;
}
