/** Owns: what a copy needs of the ledger that it reads and of the one that it writes. */
import type { CopyMark } from "../half-copy.ts";
import type { CopiedTable } from "./copied-tables.ts";

export type CopiedValue = string | number | Buffer | null;

/** The values of a row, in the order of the table's columns. */
export type CopiedRow = readonly CopiedValue[];

/** Rows of one batch, or one longer row. */
export const BATCH_MAX = { rows: 5_000, bytes: 4_000_000 } as const;

export interface CopySide {
  /** Where the ledger is, as it may be shown. */
  readonly place: string;
  /** Reads rows in the order of the table's key, behind this key. None: there are no more. */
  readRows(table: CopiedTable, after: CopiedRow | undefined): Promise<CopiedRow[]>;
}

/** The numbers that a ledger gave, whatever was removed since. */
export interface CopiedCounts {
  readonly events: number;
  readonly runs: number;
  readonly claimToken: number;
}

/** All that is read of it is of one moment. */
export interface CopySource extends CopySide {
  counts(): Promise<CopiedCounts>;
  /** Returns the gateway whose own ledger this one was copied from, where it is known. */
  readMovedFrom(): Promise<string | undefined>;
  /** True where something was written to the ledger since that moment. */
  hasChanged(): Promise<boolean>;
}

/** Each write is one transaction. */
export interface CopyTarget extends CopySide {
  /** Returns `undefined` for a ledger that is no half copy. */
  readMark(): Promise<CopyMark | undefined>;
  /** Marks an empty ledger as a half copy. @throws CoordinationError `INPUT_INVALID` where it is not empty */
  begin(mark: CopyMark): Promise<void>;
  /** Removes all rows but the events, and replaces the mark. */
  beginAgain(mark: CopyMark): Promise<void>;
  /** Returns the key of the last row; `undefined` of an empty table. */
  lastKey(table: CopiedTable): Promise<CopiedRow | undefined>;
  writeRows(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void>;
  /** Sets the counts and whose ledger it was, completes what follows from the rows, and removes the mark. */
  finish(counts: CopiedCounts, movedFrom: string | undefined): Promise<void>;
}

/** A place that gateways of other machines may have open. */
export interface SharedPlace {
  /** As it may be shown. */
  readonly place: string;
  /** Lists the gateways that have told of themselves, by their ids. */
  listGateways(): Promise<readonly GatewayProcess[]>;
}

export interface GatewayProcess {
  /** Another one with each start of the gateway. */
  readonly id: string;
  readonly gateway: string;
  /** Absent where others of its machine cannot find out whether it is there. */
  readonly process: string | null;
  /** Grows while it is there. */
  readonly beats: number;
}

/**
 * Returns the values of a copied row that are its key in the table, in the order of the key's columns; null for a
 * column that the row has not.
 */
export function pickKey(table: CopiedTable, row: CopiedRow): CopiedRow {
  const names = Object.keys(table.columns);
  return table.key.map((name) => row[names.indexOf(name)] ?? null);
}

/** Returns about how many bytes a copied row adds to the batch in which it is sent. */
export function measureRowBytes(row: CopiedRow): number {
  return row.reduce<number>((sum, value) => sum + measureValue(value), 0);
}

function measureValue(value: CopiedValue): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  return value instanceof Buffer ? value.length : 8;
}
