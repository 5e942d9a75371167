/** Owns: opening ledgers on the PostgreSQL server of the tests. */
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import { openPostgresLedger, type PostgresLedger } from "../../src/infra/postgres/postgres-ledger-store.ts";
import { createManualClock } from "./temp-ledger.ts";

export interface OpenTestLedger {
  readonly mode?: "read" | "write";
  readonly busyTimeoutMs?: number;
  readonly clock?: Clock;
}

export function openTestPostgres(url: string, options: OpenTestLedger = {}): Promise<PostgresLedger> {
  const { mode = "write", busyTimeoutMs = 10_000, clock = createManualClock() } = options;
  return openPostgresLedger({ url, mode, busyTimeoutMs, clock });
}
