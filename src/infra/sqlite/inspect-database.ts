/**
 * Owns: finding damage in the stored bytes: the file, the schema with its triggers, the hash chains, the content.
 *
 * SQLite's own `integrity_check` sees none of the bits flipped inside a value; the chain does (S4).
 */
import { hash } from "node:crypto";
import type BetterSqlite3 from "better-sqlite3";
import type { StoredProblem } from "../../agents/coordination/ports/ledger-store.ts";
import { chainHash, GENESIS_HASH, type EventRow } from "./event-row.ts";
import { migrate } from "./migrate.ts";

/** Enough to see the extent of a damage; a report of a million lines helps nobody. */
const PROBLEMS_MAX = 200;

type Database = BetterSqlite3.Database;
type Report = (problem: StoredProblem) => void;

export function inspectDatabase(database: Database): StoredProblem[] {
  const problems: StoredProblem[] = [];
  const report: Report = (problem) => {
    if (problems.length < PROBLEMS_MAX) problems.push(problem);
  };
  const checks = [checkFile, checkSchema, checkChains, checkCount, checkContent];
  for (const check of checks) {
    try {
      check(database, report);
    } catch (error) {
      report({ kind: "file_damaged", message: error instanceof Error ? error.message : String(error) });
    }
  }
  return problems;
}

function checkFile(database: Database, report: Report): void {
  const rows = database.pragma("integrity_check(20)") as { integrity_check: string }[];
  for (const { integrity_check: message } of rows)
    if (message !== "ok") report({ kind: "file_damaged", message });
  for (const row of database.pragma("foreign_key_check") as { table: string; rowid: number }[]) {
    report({ kind: "index_differs", message: `row ${row.rowid} of ${row.table} belongs to no run` });
  }
}

/** A forger who drops a trigger first leaves this trace. */
function checkSchema(database: Database, report: Report): void {
  const Fresh = database.constructor as new (path: string) => Database;
  const fresh = new Fresh(":memory:");
  try {
    migrate(fresh, { path: ":memory:", applicationId: 0 });
    const expected = schemaOf(fresh);
    const actual = schemaOf(database);
    for (const [name, sql] of expected) {
      if (actual.get(name) !== sql)
        report({ kind: "schema_changed", message: `${name} was changed or dropped` });
    }
    for (const name of actual.keys()) {
      if (!expected.has(name)) report({ kind: "schema_changed", message: `${name} was added` });
    }
  } finally {
    fresh.close();
  }
}

function schemaOf(database: Database): Map<string, string> {
  const rows = database
    .prepare<[], { name: string; sql: string }>(
      "select type || ' ' || name as name, coalesce(sql, '') as sql from sqlite_schema where name not like 'sqlite_stat%' order by 1",
    )
    .all();
  return new Map(rows.map(({ name, sql }) => [name, sql]));
}

interface RunHead {
  readonly run_key: number;
  readonly run_id: string;
  readonly length: number;
  readonly head_hash: Buffer;
}

type StoredRow = EventRow & { readonly hash: Buffer };

function checkChains(database: Database, report: Report): void {
  const runs = database.prepare<[], RunHead>(
    "select run_key, run_id, length, head_hash from run order by run_key",
  );
  const events = database.prepare<[number], StoredRow>(
    `select sequence, type, timestamp_ms, node_id, causation_id, payload, hash
     from event
     where run_key = ?
     order by sequence`,
  );
  for (const run of runs.all()) checkChain(run, events.iterate(run.run_key), report);
}

function checkChain(run: RunHead, rows: Iterable<StoredRow>, report: Report): void {
  const { run_id: runId, length } = run;
  let previous: Buffer = GENESIS_HASH;
  let expected = 0;
  for (const row of rows) {
    const { sequence } = row;
    if (sequence > expected) report(missing(runId, expected, sequence));
    if (sequence >= length) {
      report({
        kind: "event_forged",
        message: `event ${sequence} lies behind the end of the log`,
        runId,
        sequence,
      });
    } else if (!chainHash(previous, runId, row).equals(row.hash)) {
      const message = `event ${sequence} (${row.type}) does not match its hash`;
      report({ kind: "event_changed", message, runId, sequence });
    }
    // From the stored hash on, so that one changed event is reported once.
    previous = row.hash;
    expected = sequence + 1;
  }
  if (expected < length) report(missing(runId, expected, length));
  else if (expected === length && !previous.equals(run.head_hash)) {
    const message = "the newest event is not the one that was appended last";
    report({ kind: "event_changed", message, runId, sequence: length - 1 });
  }
}

function missing(runId: string, from: number, before: number): StoredProblem {
  const message =
    before - from === 1 ? `event ${from} is missing` : `events ${from} to ${before - 1} are missing`;
  return { kind: "event_missing", message, runId, sequence: from };
}

/** Event keys count every event that was ever appended, so a run removed as a whole shows here. */
function checkCount(database: Database, report: Report): void {
  const stored = Number(database.prepare("select count(*) from event").pluck().get());
  const appended = Number(
    database.prepare("select seq from sqlite_sequence where name = 'event'").pluck().get() ?? 0,
  );
  const runs = Number(database.prepare("select coalesce(sum(length), 0) from run").pluck().get());
  if (stored !== appended) {
    const message = `the file holds ${stored} events, but ${appended} were appended`;
    report({ kind: stored < appended ? "event_missing" : "event_forged", message });
  }
  if (stored !== runs)
    report({ kind: "event_missing", message: `the runs count ${runs} events, the file holds ${stored}` });
}

function checkContent(database: Database, report: Report): void {
  const contents = database.prepare<[], { sha256: string; text: string }>(
    "select sha256, text from content order by sha256",
  );
  for (const { sha256, text } of contents.iterate()) {
    if (hash("sha256", text) !== sha256)
      report({ kind: "content_changed", message: `content ${sha256} does not match its hash` });
  }
}
