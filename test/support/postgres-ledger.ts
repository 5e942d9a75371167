/** Owns: opening ledgers on the PostgreSQL server of the tests. */
import { openPostgresLedger, type PostgresLedger } from "../../src/infra/postgres/postgres-ledger-store.ts";
import { createManualClock, type OpenTestLedger } from "./temp-ledger.ts";

export function openTestPostgres(url: string, options: OpenTestLedger = {}): Promise<PostgresLedger> {
  const { mode = "write", busyTimeoutMs = 10_000, clock = createManualClock() } = options;
  return openPostgresLedger({ url, mode, busyTimeoutMs, clock });
}
