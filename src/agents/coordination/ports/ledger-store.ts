import type { ClaimChange } from "../contracts/claim-entry.ts";
import type { CoordinationId } from "../contracts/ids.ts";
import type { RunEvent } from "../contracts/run-event.ts";
import type { Reference, Summary } from "../contracts/coordination-summary.ts";
import type { ClaimIndex } from "./claim-index.ts";
import type { ContentInput } from "./content-store.ts";

/**
 * The append-only log of events, and what is kept beside it to find coordinations.
 *
 * S1 `append` is compare-and-set on `(runId, sequence)` and all or nothing. S2 an append that resolved is on disk.
 * S3 no event is ever changed or removed (L1). S4 each event carries a hash over its content and the hash before it.
 * S5 a claim is acquired with the token after the newest one of the ledger, so that of two writers who ruled on the same
 * claims one is told to rule again (A2).
 */
export interface LedgerStore extends ClaimIndex {
  /**
   * Appends events whose first sequence is the length of the run's log.
   *
   * @throws CoordinationError `LEDGER_CONFLICT`, `CLAIM_CONFLICT` (S5), `LEDGER_BUSY`, `LEDGER_FULL`, `LEDGER_CORRUPT`,
   * `LEDGER_UNAVAILABLE` or `LEDGER_CLOSED`; nothing was appended then.
   */
  append(request: AppendRequest): Promise<void>;
  /** Events of one run in order, from a sequence on, at most `limit`. @throws `EVENT_UNREADABLE` */
  read(runId: CoordinationId, range: { readonly from: number; readonly limit: number }): Promise<RunEvent[]>;
  /**
   * The first of the events below `before` that is missing, changed or unreadable. Looks at every one of them, in slices
   * between which others have their turn.
   */
  damage(runId: CoordinationId, range: { readonly before: number }): Promise<EventDamage | undefined>;
  /** Coordinations, newest first. */
  list(query: ListQuery): Promise<RunEntry[]>;
  /** The newest holder of a reference name. */
  find(name: string): Promise<Found | undefined>;
  /** The coordinations that hold a reference name, newest reference first, each once, at most `limit`. */
  holders(name: string, limit: number): Promise<readonly CoordinationId[]>;
  /** All references that a run's appends brought, in the order of appending. */
  references(runId: CoordinationId): Promise<Reference[]>;
  /** Everything that is wrong with the stored bytes; folding the log is the caller's part of a verification. */
  inspect(): Promise<StoredProblem[]>;
  /** Waits for appends under way, then closes. Later calls fail with `LEDGER_CLOSED`. */
  close(): Promise<void>;
}

/** What one append writes: the events of one run, with everything that belongs to them, in one transaction. */
export interface AppendRequest {
  readonly runId: CoordinationId;
  readonly events: readonly RunEvent[];
  readonly summary: Summary;
  readonly references: readonly Reference[];
  readonly contents: readonly ContentInput[];
  /** By sha256: texts that are there, which are kept until the coordination has ended, as with `keepWhileRunning`. Absent: none. */
  readonly keep?: readonly string[];
  /** Absent: none. */
  readonly claims?: readonly ClaimChange[];
}

/** Which runs a listing returns. */
export interface ListQuery {
  readonly limit: number;
  readonly status?: "running" | "ended";
  /** Only ids that begin with this. */
  readonly idPrefix?: string;
  /** Only entries after this one, in the order of the listing. */
  readonly after?: RunEntry;
}

/** A run of the ledger as a listing shows it. */
export interface RunEntry {
  readonly runId: CoordinationId;
  /** The position of the run's first event among all runs. */
  readonly ordinal: number;
  /** How many events its log has. */
  readonly length: number;
  readonly summary: Summary;
}

/** The run and step that a reference names. */
export interface Found {
  readonly runId: CoordinationId;
  readonly stepId?: Reference["stepId"];
}

/** A damaged place: in a run at a sequence where that is known, else in the file. */
export interface StoredProblem {
  readonly kind:
    | "file_damaged"
    | "schema_changed"
    | "event_changed"
    | "event_missing"
    | "event_forged"
    | "event_unreadable"
    | "index_differs"
    | "content_changed"
    | "projection_differs"
    | "ruling_differs"
    | "fold_failed";
  readonly message: string;
  readonly runId?: string;
  readonly sequence?: number;
}

/** An event that is missing, changed or cannot be read. */
export interface EventDamage {
  readonly sequence: number;
  readonly problem: Extract<StoredProblem["kind"], "event_missing" | "event_changed" | "event_unreadable">;
}
