/** Owns: copying a ledger from one place to another, wherever each is. The driver of a server is loaded only for one on a server. */
import { realpathSync } from "node:fs";
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import { copyLedger, type CopyProgress, type LedgerCopy } from "../infra/ledger/copy/copy-ledger.ts";
import { findMovedFrom } from "../infra/ledger/copy/find-moved-from.ts";
import type { CopySource, CopyTarget } from "../infra/ledger/copy/copy-sides.ts";
import { formatLedgerPlace, isPostgresUrl } from "../infra/ledger/ledger-place.ts";
import { readFromSqlite } from "../infra/sqlite/copy/sqlite-copy-source.ts";
import { writeToSqlite } from "../infra/sqlite/copy/sqlite-copy-target.ts";

/** A command line can wait. */
const BUSY_TIMEOUT_MS = 5_000;

export type { CopyProgress, LedgerCopy };

export interface CopyPlaces {
  /** The path of a file, or the URL of a server. */
  readonly from: string;
  readonly to: string;
  /** The gateway whose own ledger is copied. */
  readonly gateway?: string | undefined;
}

/** @throws CoordinationError as `copyLedger` and `findMovedFrom` of infra and as opening both does */
export function copyLedgerBetween(
  { from, to, gateway }: CopyPlaces,
  onProgress: (progress: CopyProgress) => void,
): Promise<LedgerCopy> {
  if (resolvePlace(from) === resolvePlace(to))
    return Promise.reject(
      new CoordinationError("INPUT_INVALID", `${formatLedgerPlace(to)}: a ledger is not copied to itself`),
    );
  // The source first: nothing is created where there is none.
  return withSource(from, async (source) => {
    const move = { to: formatLedgerPlace(to), isShared: isPostgresUrl(to), gateway };
    const movedFrom = await findMovedFrom(source, move);
    return withTarget(to, (target) => copyLedger({ source, target, movedFrom, onProgress }));
  });
}

function resolvePlace(place: string): string {
  if (isPostgresUrl(place)) return place;
  try {
    return realpathSync(place);
  } catch {
    return place;
  }
}

async function withSource<T>(place: string, copy: (source: CopySource) => Promise<T>): Promise<T> {
  if (!isPostgresUrl(place)) return readFromSqlite({ path: place, busyTimeoutMs: BUSY_TIMEOUT_MS }, copy);
  const { readFromPostgres } = await import("../infra/postgres/copy/postgres-copy-source.ts");
  return readFromPostgres({ url: place, busyTimeoutMs: BUSY_TIMEOUT_MS }, copy);
}

async function withTarget<T>(place: string, copy: (target: CopyTarget) => Promise<T>): Promise<T> {
  if (!isPostgresUrl(place)) return writeToSqlite({ path: place, busyTimeoutMs: BUSY_TIMEOUT_MS }, copy);
  const { writeToPostgres } = await import("../infra/postgres/copy/postgres-copy-target.ts");
  return writeToPostgres({ url: place, busyTimeoutMs: BUSY_TIMEOUT_MS }, copy);
}
