/**
 * Owns: how queries for coordinations and for events are put to SQLite. Each names the index that it goes by, so that it cannot be
 * prepared where there is none. An older schema has no labels: they are taken from the log, which takes as long as reading it.
 */
import type { Database } from "better-sqlite3";
import type { Query, QueryDialect, QuerySource } from "../../ledger/query-sql.ts";
import { readSchemaVersion } from "./migrate.ts";
import { EXPECTED_LABELS, LABELS_SINCE_VERSION } from "./run-labels.ts";
import { WORKFLOWS_SINCE_VERSION } from "./run-statements.ts";

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

export function createSqliteSource(
  database: Database,
  guarded: <T>(run: () => T) => Promise<T>,
): QuerySource {
  return {
    dialect: () => guarded(() => createSqliteDialect(readSchemaVersion(database))),
    all: <Row>({ sql, values }: Query) =>
      guarded(() => database.prepare<[Query["values"]], Row>(sql).all(values)),
  };
}
