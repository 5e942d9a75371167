/**
 * Owns: copying a ledger row by row, and going on with a copy that was interrupted. Does not own: how rows are read and written
 * (`copy` of each kind of ledger).
 *
 * Y1 The target is marked as a half copy before its first row, and no longer after its last one. Y2 Where a copy was interrupted
 * is found in the target itself: rows are copied in the order of their keys. Y3 A copy is complete when all rows of both are equal
 * and nothing was written to the source meanwhile. Y4 Rows are copied as they are, damage with them.
 */
import { CoordinationError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { CopyMark } from "../half-copy.ts";
import { compareTables, hashHeads, readTablePages, type TableComparison } from "./compare-tables.ts";
import { COPIED_TABLES, EVENT_TABLE, type CopiedTable } from "./copied-tables.ts";
import type { CopiedRow, CopySource, CopyTarget } from "./copy-sides.ts";
import { hasPrunedEvents } from "./find-pruned.ts";

export interface CopyProgress {
  readonly step: "copied" | "compared";
  readonly table: string;
  /** Counts those of this table, so far. */
  readonly rows: number;
}

export interface CopyOptions {
  readonly source: CopySource;
  readonly target: CopyTarget;
  /** As `findMovedFrom` returns it. */
  readonly movedFrom: string | undefined;
  readonly onProgress: (progress: CopyProgress) => void;
}

export interface LedgerCopy {
  /** True where an interrupted copy was gone on with. */
  readonly isResumed: boolean;
  /** How many events the source had more than when the copy began. */
  readonly grownBy: number;
  readonly tables: Readonly<Record<string, number>>;
  readonly rows: number;
  /** Measures all values. */
  readonly bytes: number;
  /** The hash over the heads of all runs, which is the same on both sides. */
  readonly headsSha256: string;
}

/**
 * Copies all tables of a ledger from the source to the target, or goes on with a copy that was interrupted, marks the
 * target as complete, and returns how many rows and bytes were copied. @throws CoordinationError `INPUT_INVALID` for a
 * target that is not for this copy, `LEDGER_BUSY` where the source was written to meanwhile
 */
export async function copyLedger(options: CopyOptions): Promise<LedgerCopy> {
  const { source, target, movedFrom } = options;
  const { mark, before: earlierMark } = await beginCopy(options);
  const comparison = await copyUntilEqual(options, mark);
  const headsSha256 = await hashHeads(source);
  if ((await hashHeads(target)) !== headsSha256) throw createTargetDiffersError(options, ["run"]);
  if (await source.hasChanged()) throw createSourceChangedError(options);
  await target.finish(await source.counts(), movedFrom);
  const digests = [...comparison.digests];
  return {
    isResumed: earlierMark !== undefined,
    grownBy: earlierMark ? mark.events - earlierMark.events : 0,
    tables: Object.fromEntries(digests.map(([table, { rows }]) => [table, rows])),
    rows: digests.reduce((sum, [, { rows }]) => sum + rows, 0),
    bytes: digests.reduce((sum, [, { bytes }]) => sum + bytes, 0),
    headsSha256,
  };
}

/**
 * Marks the target as a half copy of the source. Returns its mark, and the earlier one of a copy that was interrupted;
 * throws CoordinationError where that was of another source.
 */
async function beginCopy(
  options: CopyOptions,
): Promise<{ readonly mark: CopyMark; readonly before: CopyMark | undefined }> {
  const { source, target } = options;
  const [first] = await source.readRows(EVENT_TABLE, undefined);
  const { events } = await source.counts();
  const mark = { source: source.place, firstHash: first ? readEventRowHash(first) : null, events };
  const before = await target.readMark();
  if (!before) await target.begin(mark);
  else {
    await assertSameSource(options, before, mark);
    if (before.events !== events) await target.beginAgain(mark);
  }
  return { mark, before };
}

const HASH_PLACE = Object.keys(EVENT_TABLE.columns).indexOf("hash");

function readEventRowHash(event: readonly unknown[]): Buffer {
  return event[HASH_PLACE] as Buffer;
}

/** @throws CoordinationError `INPUT_INVALID` where the source does not begin with what the target has, or no longer does */
async function assertSameSource({ source, target }: CopyOptions, before: CopyMark, now: CopyMark) {
  const isOther = before.firstHash !== null && !(now.firstHash?.equals(before.firstHash) ?? false);
  const lastKey = await target.lastKey(EVENT_TABLE);
  if (!isOther && (!lastKey || (await hasSameEvent(source, target, Number(lastKey[0]))))) return;
  if (await hasPrunedEvents(source, target)) throw createSourcePrunedError(source, target);
  throw new CoordinationError(
    "INPUT_INVALID",
    `${target.place} is a copy of ${before.source} that has not been completed, and ${source.place} does not begin with the same events; name that ledger, or another target`,
  );
}

/** Returns whether both sides have the event with a key, by its hash. */
async function hasSameEvent(source: CopySource, target: CopyTarget, key: number): Promise<boolean> {
  const [expected] = await source.readRows(EVENT_TABLE, [key - 1]);
  const [actual] = await target.readRows(EVENT_TABLE, [key - 1]);
  return (
    expected !== undefined &&
    actual !== undefined &&
    readEventRowHash(expected).equals(readEventRowHash(actual))
  );
}

/**
 * Copies all rows and compares both sides, and once more where a change of the source made rows differ. Events that
 * differ are an error at once.
 */
async function copyUntilEqual(options: CopyOptions, mark: CopyMark): Promise<TableComparison> {
  await copyRows(options);
  const first = await compareSides(options);
  if (first.differing.length === 0) return first;
  if (first.differing.includes(EVENT_TABLE.name)) {
    const { source, target } = options;
    if (await hasPrunedEvents(source, target)) throw createSourcePrunedError(source, target);
    throw createTargetDiffersError(options, first.differing);
  }
  await options.target.beginAgain(mark);
  await copyRows(options);
  const second = await compareSides(options);
  if (second.differing.length > 0) throw createTargetDiffersError(options, second.differing);
  return second;
}

/** Copies the rows behind the last one that the target has, table by table. */
async function copyRows(options: CopyOptions): Promise<void> {
  const { source, target, onProgress } = options;
  for (const table of COPIED_TABLES) {
    let rows = 0;
    for await (const page of readTablePages(source, table, await target.lastKey(table))) {
      await writePage(options, table, page);
      rows += page.length;
      onProgress({ step: "copied", table: table.name, rows });
    }
  }
}

/** @throws CoordinationError `LEDGER_CORRUPT` for rows that the target's schema does not take, as only damaged ones are */
async function writePage(
  { source, target }: CopyOptions,
  table: CopiedTable,
  page: readonly CopiedRow[],
): Promise<void> {
  try {
    await target.writeRows(table, page);
  } catch (error) {
    if (!isCoordinationError(error) || !REFUSED_ROWS.includes(error.code)) throw error;
    throw new CoordinationError(
      "LEDGER_CORRUPT",
      `${target.place} does not take rows of the table ${table.name} of ${source.place} (${error.message}); run \`verify\` on that ledger`,
      { cause: error },
    );
  }
}

/** A rule of the schema is broken, or a name is too long for it. */
const REFUSED_ROWS: readonly string[] = ["LEDGER_CONFLICT", "INPUT_INVALID"];

function compareSides({ source, target, onProgress }: CopyOptions): Promise<TableComparison> {
  return compareTables(source, target, (table, rows) => {
    onProgress({ step: "compared", table, rows });
  });
}

/** Returns the error for a source that was pruned: events that were copied stay, and its own are no longer there. */
function createSourcePrunedError(source: CopySource, target: CopyTarget): CoordinationError {
  return new CoordinationError(
    "INPUT_INVALID",
    `${source.place} was pruned since its copy into ${target.place} began, which has events that are no longer there; remove ${target.place} and copy into an empty place`,
  );
}

function createTargetDiffersError(
  { source, target }: CopyOptions,
  differing: readonly string[],
): CoordinationError {
  return new CoordinationError(
    "INPUT_INVALID",
    `the rows of ${target.place} are not those of ${source.place} (${differing.join(", ")}): something else wrote to it; remove it and copy into an empty place`,
  );
}

function createSourceChangedError({ source, target }: CopyOptions): CoordinationError {
  return new CoordinationError(
    "LEDGER_BUSY",
    `something wrote to ${source.place} while it was copied; stop it and run the same command again, which goes on with ${target.place}`,
  );
}
