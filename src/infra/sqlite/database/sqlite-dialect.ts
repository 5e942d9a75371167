/**
 * Owns: how queries for coordinations and for events are put to SQLite. Each names the index that it goes by, so that it cannot be
 * prepared where there is none. An older schema has no labels: they are taken from the log, which takes as long as reading it.
 */
import type { Database, Statement } from "better-sqlite3";
import { rememberNewest } from "../../../agents/coordination/std/remember-newest.ts";
import type { SqlQuery, QueryDialect, QuerySource } from "../../ledger/query-sql.ts";
import { EXPECTED_LABELS, LABELS_SINCE_VERSION } from "./run-labels.ts";
import { WORKFLOWS_SINCE_VERSION } from "./run-reads.ts";
import { createSchemaStatements } from "./schema-statements.ts";

/**
 * Returns the words in which the shared SQL queries of the ledger differ on SQLite, for a version of the schema: older
 * ones have no kinds of runs, or no stored labels.
 */
export function createSqliteDialect(version: number): QueryDialect {
  const hasKinds = version >= WORKFLOWS_SINCE_VERSION;
  const hasLabels = version >= LABELS_SINCE_VERSION;
  return {
    isCoordination: hasKinds ? "run.kind = 'coordination'" : "true",
    hasKinds,
    join: "cross join",
    formatIndex: (index) => (hasLabels ? `indexed by ${index}` : ""),
    notIndexed: "not indexed",
    withLabels: (sql) =>
      hasLabels ? sql : `with run_label as (select distinct * from (${EXPECTED_LABELS})) ${sql}`,
  };
}

/**
 * Creates what runs the shared SQL queries of the ledger on a ledger file, and keeps the newest of them prepared.
 * `guarded`: refuses work once the ledger is closed, and maps its errors.
 */
export function createSqliteQuerySource(
  database: Database,
  guarded: <T>(run: () => T) => Promise<T>,
): QuerySource {
  const prepared = new Map<string, Statement>();
  const dialect = createSchemaStatements(database, LABELS_SINCE_VERSION, createSqliteDialect);
  return {
    dialect: () => guarded(dialect),
    all: <Row>({ sql, values }: SqlQuery) =>
      guarded(() => prepareOnce(database, prepared, sql).all(values) as Row[]),
  };
}

/** Who follows a ledger asks the same few queries over and over. */
const STATEMENTS_MAX = 64;

/** Returns the statement of a text, which is prepared once while it is among the newest `STATEMENTS_MAX`. */
function prepareOnce(database: Database, prepared: Map<string, Statement>, sql: string): Statement {
  const statement = prepared.get(sql) ?? database.prepare(sql);
  rememberNewest(prepared, sql, statement, STATEMENTS_MAX);
  return statement;
}
