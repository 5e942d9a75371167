/** Owns: which failures of a check are damage of a ledger file, and which are none. */
import { readFileSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { toSqliteLedgerError } from "../../src/infra/sqlite/database/sqlite-errors.ts";
import { inspectSqliteLedger } from "../../src/infra/sqlite/inspect/inspect-database.ts";
import { openRun } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";

/** Inspects a ledger in which one check fails with the code. */
async function inspectFailing(code: string): Promise<readonly unknown[]> {
  using folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  const store = await openTestLedger(path);
  await store.append(openRun("a").request);
  await store.close();
  const database = new Database(path, { readonly: true });
  database.function("json_valid", (_json) => {
    throw new Database.SqliteError("the check fails", code);
  });
  try {
    return inspectSqliteLedger(database);
  } catch (error) {
    throw toSqliteLedgerError(error, path);
  } finally {
    database.close();
  }
}

describe("a check of a ledger file", () => {
  it.each([
    ["SQLITE_FULL", "LEDGER_FULL"],
    ["SQLITE_NOMEM", "LEDGER_BUSY"],
    ["SQLITE_BUSY_RECOVERY", "LEDGER_BUSY"],
    ["SQLITE_CANTOPEN", "LEDGER_UNAVAILABLE"],
    ["SQLITE_PROTOCOL", "LEDGER_BUSY"],
    ["SQLITE_IOERR_WRITE", "LEDGER_UNAVAILABLE"],
  ])("that fails with %s finds no damage: that is %s", async (code, expected) => {
    await expect(inspectFailing(code)).rejects.toMatchObject({ code: expected });
  });

  it.each(["SQLITE_CORRUPT", "SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ"])(
    "that fails with %s finds damage",
    async (code) => {
      expect(await inspectFailing(code)).toContainEqual({ kind: "file_damaged", message: "the check fails" });
    },
  );
});

it.each(["SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_CORRUPTFS"])(
  "a statement that fails with %s says that the ledger cannot be used: a later one may succeed",
  (code) => {
    const error = new Database.SqliteError("disk I/O error", code);
    expect(toSqliteLedgerError(error, "ledger.sqlite")).toMatchObject({ code: "LEDGER_UNAVAILABLE" });
  },
);

it("a hash that one flipped bit made a text is damage, and the other checks go on", async () => {
  using folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  const store = await openTestLedger(path);
  await store.append(openRun("a").request);
  await store.close();
  const bytes = readFileSync(path);
  // The header of a row stands before its values. Its last byte says that the hash has 32 bytes: 0x4c, and 0x4d of a text.
  const header = bytes.indexOf(Buffer.from("\u004ccoordination.created"));
  bytes[header] = 0x4d;
  writeFileSync(path, bytes);
  const database = new Database(path, { readonly: true });
  const problems = inspectSqliteLedger(database);
  database.close();
  expect(problems.map(({ kind }) => kind)).toContain("file_damaged");
  expect(problems.map(({ message }) => message)).toContainEqual(expect.stringMatching(/must be .*Buffer/u));
});
