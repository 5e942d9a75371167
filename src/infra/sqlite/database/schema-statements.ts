/** Owns: keeping prepared statements in step with the schema of a SQLite ledger, which a writer may upgrade. */
import type { Database } from "better-sqlite3";
import { readSchemaVersion } from "./migrate.ts";

/**
 * Returns a function that gives statements prepared for the ledger's present schema. A ledger that is only read may
 * have an older schema until a writer brings it to the newest: below version `settledAt` the version is read at each
 * use, and the statements are prepared again when it has changed.
 */
export function createSchemaStatements<T>(
  database: Database,
  settledAt: number,
  prepare: (version: number) => T,
): () => T {
  let prepared: { readonly version: number; readonly statements: T } | undefined;
  return () => {
    if (prepared && prepared.version >= settledAt) return prepared.statements;
    const version = readSchemaVersion(database);
    if (prepared?.version !== version) prepared = { version, statements: prepare(version) };
    return prepared.statements;
  };
}
