/** Owns: how queries for coordinations and for events are put to PostgreSQL, which chooses the index itself. */
import type { SqlQuery, QueryDialect, QuerySource } from "../../ledger/query-sql.ts";
import type { SendQuery } from "./connect.ts";

const DIALECT: QueryDialect = {
  isCoordination: "run.kind = 'coordination'",
  hasKinds: true,
  join: "join",
  formatIndex: () => "",
  notIndexed: "",
  withLabels: (sql) => sql,
};

/**
 * Creates what runs the shared SQL queries of the ledger on PostgreSQL, and says in which words they differ there.
 * `guarded`: refuses work once the ledger is closed.
 */
export function createPostgresQuerySource(
  query: SendQuery,
  guarded: <T>(run: () => Promise<T>) => Promise<T>,
): QuerySource {
  return {
    dialect: () => guarded(() => Promise.resolve(DIALECT)),
    all: <Row>({ sql, values }: SqlQuery) => guarded(() => query<Row>(sql, values)),
  };
}
