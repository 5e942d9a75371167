/** Owns: the migrations of a release as files, and whether those that were applied are the same. */
import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { CoordinationError, assertInvariant } from "../../agents/coordination/contracts/errors.ts";

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  readonly sha256: string;
}

/**
 * Reads the `.sql` files of a folder and returns them as migrations in the order of their numbers, each with its hash.
 * @throws InvariantViolation where the numbers have a gap
 */
export function readMigrations(folder: URL): Migration[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .toSorted()
    .map((file, index) => {
      const sql = readFileSync(new URL(file, folder), "utf8");
      const number = Number(file.slice(0, 6));
      assertInvariant(number === index + 1, `migrations must be numbered without a gap: ${file}`);
      return { number, name: file.slice(7, -4), sql, sha256: hash("sha256", sql) };
    });
}

/**
 * Throws where a ledger's schema is newer than the migrations of this release; else does nothing. @throws
 * CoordinationError `LEDGER_TOO_NEW`
 */
export function assertSchemaNotNewer(path: string, version: number, migrations: readonly Migration[]): void {
  if (version <= migrations.length) return;
  throw new CoordinationError(
    "LEDGER_TOO_NEW",
    `${path} has schema ${version}; this release knows up to ${migrations.length}`,
  );
}

/**
 * Checks that each of this release's migrations was applied to the ledger as it is in this release. @throws
 * CoordinationError `LEDGER_CORRUPT` for the first that was not
 */
export function assertMigrationHashes(
  path: string,
  applied: readonly { readonly sha256: string }[],
  migrations: readonly Migration[],
): void {
  const differs = migrations.find((migration, index) => applied[index]?.sha256 !== migration.sha256);
  if (!differs) return;
  throw new CoordinationError(
    "LEDGER_CORRUPT",
    `${path}: migration ${differs.number} differs from this release's`,
  );
}
