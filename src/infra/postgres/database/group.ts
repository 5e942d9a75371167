/**
 * Owns: what the writes of one group share: what they must know of the ledger before they decide, and the rows that they
 * bring. All of it is read behind the lock of the ledger and written at once, so a group costs two round trips.
 */
import type { ClaimChange } from "../../../agents/coordination/contracts/claim-entry.ts";
import type { WorkspaceScope } from "../../../agents/coordination/contracts/workflows/workspace.ts";
import type { MemoryWrite } from "../../../agents/coordination/ports/workflow-store.ts";
import { countCharsLeft } from "../../../platform/write-json.ts";
import type { ClaimHolder } from "../../ledger/claim-rows.ts";
import type { EventRow } from "../../ledger/event-row.ts";
import type { OwnerRow } from "../../ledger/owner-fence.ts";
import type { HeadRow as FileHead, NewVersion, WorkspacePlace } from "../../ledger/workspace-versions.ts";

/** The end of a run's log. */
export interface LogHead extends OwnerRow {
  readonly run_key: number;
  readonly length: number;
  readonly head_hash: Buffer;
  /** `PRUNED_KIND` for a run that was removed. */
  readonly kind: string;
  /** JSON, of a fork. */
  readonly origin: string | null;
}

export interface EventName {
  readonly runId: string;
  readonly sequence: number;
}

/** Holds what writes must know. */
export interface NeededRows {
  readonly runIds: Set<string>;
  /** Events whose stored hashes are asked for. */
  readonly events: Map<string, EventName>;
  readonly claimTokens: Set<number>;
  readonly files: Map<string, WorkspacePlace>;
}

export interface WorkspaceHead extends FileHead {
  /** The newest version's hash. */
  readonly sha256: string;
}

/** The ledger as the writes of a group leave it so far. */
export interface GroupState {
  /** Taken once the ledger is locked: something may run out while the lock is waited for. */
  readonly now: number;
  readonly heads: Map<string, LogHead>;
  /** By `formatEventKey`. */
  readonly hashes: ReadonlyMap<string, Buffer>;
  readonly claims: Map<number, ClaimHolder>;
  /** By `formatFileKey`. */
  readonly files: Map<string, WorkspaceHead>;
  /** By `formatScopeKey`: how many files are there. */
  readonly fileCounts: Map<string, number>;
  /** The newest numbers. */
  readonly newest: { event: number; run: number; claim: number };
  readonly rows: GroupRows;
}

/** Rows to be written, in the order in which they come. */
export interface GroupRows {
  /** By run key, as they are after the group. */
  readonly runs: Map<number, RunChange>;
  readonly events: NewEvent[];
  readonly references: { readonly name: string; readonly runKey: number; readonly stepId: string | null }[];
  readonly labels: NewLabel[];
  readonly uses: { readonly runKey: number; readonly sha256: string }[];
  readonly contents: Map<string, string>;
  readonly kept: Set<string>;
  readonly claims: { readonly runKey: number; readonly claim: ClaimChange }[];
  readonly memory: { readonly eventKey: number; readonly write: MemoryWrite }[];
  readonly versions: WorkspaceRow[];
}

export interface RunChange extends OwnerRow {
  readonly runId: string;
  readonly kind: string;
  readonly isNew: boolean;
  readonly length: number;
  readonly head: Buffer;
  readonly ended: 0 | 1;
  readonly summary: string;
  readonly origin: string | null;
  /** 1 where somebody else than the owner appended. */
  readonly arrived: 0 | 1;
}

export interface NewEvent extends EventRow {
  readonly eventKey: number;
  readonly runKey: number;
  readonly hash: Buffer;
}

export interface NewLabel {
  readonly kind: string;
  readonly value: string;
  readonly startedAtMs: number;
  readonly runKey: number;
  readonly stepId: string;
}

export interface WorkspaceRow {
  readonly place: WorkspacePlace;
  readonly version: NewVersion;
  readonly position: number;
  readonly eventKey: number | null;
}

/** A write of a group. It may be made again, where the group that it was in was not committed. */
export interface GroupedWrite {
  /** Counts about how many characters its rows have. */
  readonly chars: number;
  /** Names what it must know. */
  readonly want: (wanted: NeededRows) => void;
  /** Adds its rows, or returns why there are none. */
  readonly apply: (group: GroupState) => Error | undefined;
  /** Hears that it is not known whether its group was committed. */
  readonly lose?: () => void;
  /** Hears that what became of its group is known. */
  readonly settle?: () => void;
}

/** Creates the empty collection of what must be read from the ledger before the writes of a group are decided. */
export function createWanted(): NeededRows {
  return { runIds: new Set(), events: new Map(), claimTokens: new Set(), files: new Map() };
}

/** Returns about how many characters a value takes once written as JSON. */
export function countChars(value: unknown): number {
  return Number.MAX_SAFE_INTEGER - countCharsLeft(value, Number.MAX_SAFE_INTEGER);
}

/** Creates the empty lists of the rows that a group of writes will insert and update. */
export function createGroupRows(): GroupRows {
  return {
    runs: new Map(),
    events: [],
    references: [],
    labels: [],
    uses: [],
    contents: new Map(),
    kept: new Set(),
    claims: [],
    memory: [],
    versions: [],
  };
}

/** Returns the text by which an event (sequence and run) is found in a group's maps. */
export function formatEventKey({ runId, sequence }: EventName): string {
  return `${sequence} ${runId}`;
}

/** Returns the text by which a workspace file is found in a group's maps. */
export function formatFileKey({ tenant, scope, path }: WorkspacePlace): string {
  return JSON.stringify([tenant, scope, path]);
}

/** Returns the text by which the scope of a workspace is found in a group's maps. */
export function formatScopeKey({ tenant, scope }: WorkspaceScope): string {
  return JSON.stringify([tenant, scope]);
}
