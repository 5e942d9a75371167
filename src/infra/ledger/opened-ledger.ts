/** Owns: what an open ledger offers, whatever it is kept in. */
import type { RunHead } from "../../agents/coordination/contracts/ledger-anchor.ts";
import type { ContentStore } from "../../agents/coordination/ports/content-store.ts";
import type { ExportCursors } from "../../agents/coordination/ports/export-cursors.ts";
import type { LedgerPruning } from "../../agents/coordination/ports/run-store.ts";
import type { LedgerQueries } from "../../agents/coordination/ports/ledger-queries.ts";
import type { LedgerStore } from "../../agents/coordination/ports/ledger-store.ts";
import type { WorkflowStore } from "../../agents/coordination/ports/workflow-store.ts";
import type { RunCounts } from "./stored-run.ts";

export type OpenedLedger = LedgerStore &
  LedgerQueries &
  ContentStore & {
    /** Where the ledger is, for people to read. */
    readonly path: string;
    /** The runs of workflows in the same ledger. It closes with it. */
    readonly workflows: WorkflowStore;
    /** How far exports of its events came. */
    readonly exports: ExportCursors;
    /** How many runs there are of each kind. */
    counts(): Promise<RunCounts>;
    /** Returns the bytes that it takes on disk, with its indexes and what is not yet in its place. */
    measureBytes(): Promise<number>;
    /** Returns the gateway whose own ledger this one was copied from; none where it was nobody's or that is not known. */
    readMovedFrom(): Promise<string | undefined>;
    readonly heads: LedgerHeads;
    readonly pruning: LedgerPruning;
  };

/** Reads what anchors are made of and held against, of runs of either kind. */
export interface LedgerHeads {
  /** The number of the newest event; 0 for a ledger without events. */
  newestNumber(): Promise<number>;
  /** A page of runs as they were when the ledger had so many events, oldest run first. */
  page(place: HeadPlace): Promise<PlacedHead[]>;
  /** `undefined` for a run that is not there. */
  hashAt(place: HashPlace): Promise<HashAt | undefined>;
}

export interface HeadPlace {
  /** As of this number of events. */
  readonly events: number;
  /** The ordinal after which the page begins. */
  readonly after: number;
  readonly limit: number;
}

export interface PlacedHead extends RunHead {
  readonly ordinal: number;
  /** Set for a removed run. `as-then`: it had its last event then. `grown`: it grew later, and only its end is left. */
  readonly pruned?: "as-then" | "grown";
}

export interface HashPlace {
  readonly runId: string;
  readonly sequence: number;
}

export interface HashAt {
  readonly length: number;
  /** Absent where the run has no such event, or it was removed with others. */
  readonly hash?: string;
  /** True for a removed run. */
  readonly isPruned?: boolean;
}
