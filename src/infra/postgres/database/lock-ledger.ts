/** Owns: beginning a transaction behind the lock of the ledger, and how long others may be held up by it. */
import { BEGIN_WRITING, type SendQuery } from "./connect.ts";
import { assertSchemaNotNewer } from "../../ledger/migrations.ts";
import { loadMigrations } from "./migrate-schema.ts";

/** Numbers the newest event, run and claim that were ever made. */
export interface LedgerCount {
  readonly events: number;
  readonly runs: number;
  readonly claim_token: number;
}

export interface LockOptions {
  readonly busyTimeoutMs: number;
  /** Absent: as the server has it, for what takes as long as a run is large. */
  readonly statementTimeout?: "30s";
}

/**
 * Begins a transaction and locks the ledger for writing until its end, and returns the promises of the three
 * statements' answers, the last with the ledger's counts. All is sent at once, and before whatever is sent next; the
 * lock is a statement of its own, so that what is read behind it sees what was committed before. The count is refused
 * with `LEDGER_TOO_NEW` where a newer release has migrated the ledger since it was opened.
 */
export function lockLedger(
  query: SendQuery,
  { busyTimeoutMs, statementTimeout }: LockOptions,
): readonly [Promise<unknown>, Promise<unknown>, Promise<LedgerCount[]>] {
  return [
    query(BEGIN_WRITING),
    query(SETTINGS, {
      busyTimeoutMs: String(busyTimeoutMs),
      statementTimeout: statementTimeout ?? null,
    }),
    lockLedgerCount(query),
  ];
}

/** Locks the row of the newest numbers and returns it. Throws where a newer release has migrated the ledger. */
async function lockLedgerCount(query: SendQuery): Promise<LedgerCount[]> {
  const counts = await query<LedgerCount & { readonly newest_migration: number }>(
    "select events, runs, claim_token, newest_migration from ledger_count where only_row = 1 for update",
  );
  assertSchemaNotNewer("the ledger", counts[0]?.newest_migration ?? 0, loadMigrations());
  return counts;
}

/** For this transaction only. */
const SETTINGS = `
  select
    set_config('lock_timeout', @busyTimeoutMs, true),
    set_config(
      'statement_timeout',
      coalesce(@statementTimeout::text, current_setting('statement_timeout')),
      true
    )`;
