import { readFileSync } from "node:fs";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { ContentInput } from "../../src/agents/coordination/ports/content-store.ts";
import { prepareLedgerWrites } from "../../src/infra/sqlite/database/write-statements.ts";
import { contentOf, openRun } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { appendEnd } from "./ledger-store-tested.ts";

const AGED = (TEST_EPOCH_MS + 1) as EpochMs;
const keep = (text: string): ContentInput => ({ ...contentOf(text), keepWhileRunning: true });

/** A ledger where one running coordination keeps a text, and another text is kept by nobody. */
async function createLedgerIn(folder: TempFolder): Promise<string> {
  const path = folder.file("ledger.sqlite");
  const store = await openTestLedger(path);
  await store.append({ ...openRun("a").request, contents: [keep("kept"), contentOf("free")] });
  await store.close();
  return path;
}

describe("retention in a ledger file", () => {
  it("leaves no trace of keeping once the texts are gone", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const store = await openTestLedger(path);
    const runs = ["a", "b"].map(openRun);
    for (const { author, request } of runs) {
      await store.append({ ...request, contents: [keep("shared"), keep(`own ${author.runId}`)] });
      await store.append(appendEnd(author));
    }
    expect(await store.deleteBefore(AGED)).toBe(3);
    await store.close();
    const database = new Database(path, { readonly: true });
    for (const table of ["content", "content_use"])
      expect(database.prepare(`select count(*) from ${table}`).pluck().get()).toBe(0);
    database.close();
  });

  it("leaves no deleted text readable in the file, neither in a row's page nor in pages that are free", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const secrets = ["a short secret", `a long secret ${"of many pages ".repeat(2_000)}`];
    const isThere = (): boolean[] => {
      const bytes = readFileSync(path);
      return secrets.map((secret) => bytes.includes(secret.slice(0, 40)));
    };
    const store = await openTestLedger(path);
    await store.append({ ...openRun("a").request, contents: secrets.map(contentOf) });
    await store.close();
    expect(isThere()).toEqual([true, true]);
    const again = await openTestLedger(path);
    expect(await again.deleteBefore(AGED)).toBe(2);
    await again.close();
    expect(isThere()).toEqual([false, false]);
  });

  it("deletes by age alone, also where the clock went back between two texts", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const database = new Database(path);
    database.exec(
      `insert into content (sha256, stored_at_ms, text) values ('${"0".repeat(64)}', ${TEST_EPOCH_MS - 9}, 'x')`,
    );
    database.close();
    const store = await openTestLedger(path);
    expect(await store.deleteBefore(TEST_EPOCH_MS as EpochMs)).toBe(1);
    expect(await store.get(contentOf("free").ref.sha256)).toBe("free");
    await store.close();
  });

  it("does not ask for the write lock when there is nothing to delete or to release", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const store = await openTestLedger(path, { busyTimeoutMs: 20 });
    const other = new Database(path);
    other.exec("begin immediate");
    expect(await store.deleteBefore(TEST_EPOCH_MS as EpochMs)).toBe(0);
    await expect(store.deleteBefore(AGED)).rejects.toMatchObject({ code: "LEDGER_BUSY" });
    other.exec("rollback");
    expect(await store.deleteBefore(AGED)).toBe(1);
    other.close();
    await store.close();
  });

  it("reaches every text and every use through an index, so that kept texts cost a sweep nothing", async () => {
    using folder = createTempFolder();
    const database = new Database(await createLedgerIn(folder));
    const { hasExpired, deleteExpired, keepers, unmarkKept, deleteUses } = prepareLedgerWrites(database);
    for (const { source } of [hasExpired, deleteExpired, keepers, unmarkKept, deleteUses]) {
      const sql = source.replaceAll(/\?|@\w+/gu, "1");
      const steps = database
        .prepare<[], { detail: string }>(`explain query plan ${sql}`)
        .all()
        .map(({ detail }) => detail);
      expect(steps.filter((step) => /^SCAN (?!keeper)/u.test(step))).toEqual([]);
      expect(steps.filter((step) => step.startsWith("SEARCH")).length).toBeGreaterThan(0);
      // Covering: only the index of the texts that nobody keeps can answer without looking at the mark.
      if (sql.includes("stored_at_ms")) expect(steps.join("\n")).toContain("COVERING INDEX content_by_age");
    }
    database.close();
  });
});

describe("a mark of keeping that does not match", () => {
  it.each([
    ["a text marked for nobody", "update content set kept = 1", "is kept, but for no coordination"],
    [
      "a needed text without its mark",
      "update content set kept = 0",
      "is not kept, though a coordination keeps it",
    ],
    ["a use that was removed", "delete from content_use", "is kept, but for no coordination"],
    [
      "a use of no coordination",
      `pragma foreign_keys = off; insert into content_use values (77, '${"0".repeat(64)}')`,
      "content_use belongs to no run",
    ],
  ])("is reported: %s", async (_, sql, message) => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const database = new Database(path);
    database.exec(sql);
    database.close();
    const store = await openTestLedger(path, { mode: "read" });
    expect(await store.inspect()).toEqual([
      { kind: "index_differs", message: expect.stringContaining(message) as string },
    ]);
    await store.close();
  });

  it("is not found in a text that someone deleted by hand, and the use goes with its coordination", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const store = await openTestLedger(path);
    const { author, request } = openRun("a");
    await store.append({ ...request, contents: [keep("kept")] });
    const database = new Database(path);
    database.exec("delete from content");
    expect(await store.inspect()).toEqual([]);
    await store.append(appendEnd(author));
    expect(await store.deleteBefore(AGED)).toBe(0);
    expect(database.prepare("select count(*) from content_use").pluck().get()).toBe(0);
    database.close();
    await store.close();
  });
});
