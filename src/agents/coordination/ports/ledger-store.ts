/** Owns: the port to the stored coordinations: their logs, and the references, texts and claims appended with them. */
import type { ClaimChange } from "../contracts/claim-entry.ts";
import type { CoordinationId } from "../contracts/ids.ts";
import type { RunEvent } from "../contracts/run-event.ts";
import type { Reference, Summary } from "../contracts/coordination-summary.ts";
import type { ClaimIndex } from "./claim-index.ts";
import type { ContentInput } from "./content-store.ts";
import type { RunOwners } from "./run-owners.ts";
import type { RunAppend, RunStore, StoredRun } from "./run-store.ts";

/**
 * The append-only logs of coordinations, and what is kept beside them to find coordinations.
 *
 * S1 to S4 are those of `RunStore`. S5 a claim is acquired with the token after the newest one of the ledger, so that of
 * two writers who ruled on the same claims one is told to rule again (A2): `append` throws `CLAIM_CONFLICT` then.
 */
export interface LedgerStore extends RunStore<RunEvent, Summary, AppendRequest>, ClaimIndex {
  /** Which process drives which coordination. */
  readonly owners: RunOwners;
  /** The newest holder of a reference name. */
  find(name: string): Promise<Found | undefined>;
  /** The coordinations that hold a reference name, newest reference first, each once, at most `limit`. */
  holders(name: string, limit: number): Promise<readonly CoordinationId[]>;
  /** All references that a run's appends brought, in the order of appending. */
  references(runId: CoordinationId): Promise<Reference[]>;
  /**
   * Everything that is wrong with the stored bytes; folding the log is the caller's part of a verification. It is added to `problems` as
   * it is found, so that what was found before an error is there.
   */
  inspect(problems?: StoredProblem[]): Promise<StoredProblem[]>;
  /** Waits for appends under way, then closes. Later calls fail with `LEDGER_CLOSED`. */
  close(): Promise<void>;
}

/** Reads the logs of coordinations. */
export type LogReader = Pick<LedgerStore, "read">;

/** Reads the logs of coordinations, with what a listing shows of each. */
export type RunReader = Pick<LedgerStore, "read" | "entry">;

/** Finds coordinations by reference names. */
export type ReferenceFinder = Pick<LedgerStore, "find">;

/** Holds all that one append writes: the events of one run, with everything that belongs to them, in one transaction. */
export interface AppendRequest extends RunAppend<RunEvent, Summary> {
  readonly references: readonly Reference[];
  readonly contents: readonly ContentInput[];
  /** By sha256: texts that are there, which are kept until the coordination has ended, as with `keepWhileRunning`. Absent: none. */
  readonly keep?: readonly string[];
  /** Absent: none. */
  readonly claims?: readonly ClaimChange[];
}

/** A coordination as a listing shows it. */
export type RunEntry = StoredRun<Summary>;

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
