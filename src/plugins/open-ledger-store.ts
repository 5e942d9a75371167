/** Owns: opening a ledger wherever it is. The driver of a server is loaded only for a ledger that is on one. */
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import { systemClock } from "../infra/clock/system-clock.ts";
import { formatLedgerPlace, isPostgresUrl } from "../infra/ledger/ledger-place.ts";
import type { OpenedLedger } from "../infra/ledger/opened-ledger.ts";
import { openSqliteLedger } from "../infra/sqlite/sqlite-ledger-store.ts";

export { formatLedgerPlace, isPostgresUrl, systemClock };

export interface StoreOptions {
  /** The path of a file, or the URL of a server. */
  readonly place: string;
  readonly mode: "read" | "write";
  readonly busyTimeoutMs: number;
}

/**
 * Opens the ledger at a path or, where `place` is a PostgreSQL URL, on that server, whose code is loaded only then.
 * @throws CoordinationError as `openDatabase` of the kind does.
 */
export async function openLedgerStore({ place, ...options }: StoreOptions): Promise<OpenedLedger> {
  if (!isPostgresUrl(place)) return openSqliteLedger({ path: place, ...options, clock: systemClock });
  const { openPostgresLedger } = await import("../infra/postgres/postgres-ledger-store.ts");
  return openPostgresLedger({ url: place, ...options, clock: systemClock });
}

/**
 * Throws where the ledger's place is the URL of a server, which this program does not back up. @throws
 * CoordinationError `INPUT_INVALID` for a ledger that is no file
 */
export function assertIsFile(place: string): void {
  if (!isPostgresUrl(place)) return;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${formatLedgerPlace(place)} is on a server; back it up with the server's own tools, such as pg_dump`,
  );
}
