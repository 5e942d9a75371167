/** Owns: processes that make one ledger together: SQLite answers at once that it is busy, and does not wait. */
import Database from "better-sqlite3";
import { describe, expect, it, vi } from "vitest";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";

describe("opening a new ledger while another process is at its migrations", () => {
  const makeDatabase = async (path: string): Promise<Database.Database> => {
    await (await openTestLedger(path)).close();
    const other = new Database(path);
    other.pragma("journal_mode = delete");
    other.exec("begin immediate");
    return other;
  };
  const matchSwitching = () => expect.stringContaining("journal_mode = wal") as string;

  it("waits until that one is done", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const other = await makeDatabase(path);
    using spy = vi.spyOn(Database.prototype, "pragma");
    const opening = openTestLedger(path);
    await vi.waitFor(() => {
      expect(spy).toHaveBeenCalledWith(matchSwitching());
    });
    other.exec("commit");
    other.close();
    const store = await opening;
    expect(await store.list({ limit: 1 })).toEqual([]);
    await store.close();
  });

  it("gives up when it has waited for as long as it may", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const other = await makeDatabase(path);
    const opening = openTestLedger(path, { busyTimeoutMs: 30 });
    await expect(opening).rejects.toMatchObject({ code: "LEDGER_BUSY" });
    other.close();
  });
});
