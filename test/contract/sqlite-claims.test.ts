import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { prepareClaimReads, prepareClaimWrites } from "../../src/infra/sqlite/database/claim-statements.ts";
import { prepareLedgerReads } from "../../src/infra/sqlite/database/write-statements.ts";
import { openRun, spawnOf } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { createAcquired, createReleased } from "./ledger-store-claim-play.ts";

async function createLedgerIn(folder: TempFolder): Promise<string> {
  const path = folder.file("ledger.sqlite");
  const store = await openTestLedger(path);
  await store.append({
    ...openRun("a").request,
    claims: [createAcquired(1, "file:/a"), createAcquired(2, "file:/b")],
  });
  await store.close();
  return path;
}

/** How SQLite finds the rows of a statement. */
function planOf(database: Database.Database, { source }: { readonly source: string }): string[] {
  return database
    .prepare<[], { detail: string }>(`explain query plan ${source.replaceAll(/\?|@\w+/gu, "1")}`)
    .all()
    .map(({ detail }) => detail);
}

describe("claims in a ledger file", () => {
  it("are reached through an index by every statement, so that the others cost nothing", async () => {
    using folder = createTempFolder();
    const database = new Database(await createLedgerIn(folder));
    const { overlapping, all, ofRun } = prepareClaimReads(database);
    const { holder, renew, release } = prepareClaimWrites(database);
    const { holders } = prepareLedgerReads(database);
    for (const statement of [overlapping, all, ofRun, holder, renew, release, holders]) {
      const steps = planOf(database, statement);
      expect(steps.filter((step) => /^SCAN (?!json_each|\(subquery)/u.test(step))).toEqual([]);
      expect(steps.filter((step) => step.startsWith("SEARCH")).length).toBeGreaterThan(0);
    }
    database.close();
  });

  it("that overlap are found in the index alone, by name and by range, before a row is read", async () => {
    using folder = createTempFolder();
    const database = new Database(await createLedgerIn(folder));
    const steps = planOf(database, prepareClaimReads(database).overlapping);
    expect(steps).toContain(
      "SEARCH claim USING COVERING INDEX claim_by_resource (resource=? AND expires_at_ms>?)",
    );
    expect(steps).toContain(
      "SEARCH claim USING COVERING INDEX claim_by_resource (resource>? AND resource<?)",
    );
    expect(steps).toContain("SEARCH claim USING INTEGER PRIMARY KEY (rowid=?)");
    database.close();
  });

  it("of a coordination and after a token are listed in the order of an index, without sorting", async () => {
    using folder = createTempFolder();
    const database = new Database(await createLedgerIn(folder));
    const { all, ofRun } = prepareClaimReads(database);
    for (const statement of [all, ofRun, prepareLedgerReads(database).holders])
      expect(planOf(database, statement).filter((step) => step.includes("TEMP B-TREE"))).toEqual([]);
    expect(planOf(database, ofRun)).toContain(
      "SEARCH claim USING INDEX claim_by_run (run_key=? AND rowid>?)",
    );
    database.close();
  });

  it("cannot be acquired where the newest token is gone, and can be again when it is back", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const store = await openTestLedger(path);
    const other = new Database(path);
    const [{ sql } = { sql: "" }] = other
      .prepare<[], { sql: string }>("select sql from sqlite_schema where name = 'claim_token_no_delete'")
      .all();
    other.exec("begin; drop trigger claim_token_no_delete; delete from claim_token; commit");
    const { author, request } = openRun("b");
    const claims = [createAcquired(3, "file:/c")];
    const corrupt = { code: "LEDGER_CORRUPT" };
    await expect(store.append({ ...request, claims })).rejects.toMatchObject(corrupt);
    const query = { resource: "file:/a", atMs: 0 as EpochMs, limit: 9 };
    await expect(store.overlapping(query)).rejects.toMatchObject(corrupt);
    // An append without claims goes on, also beside one that cannot be made, but not one that was decided on that one.
    const basis = { isVoid: false };
    const [refused, appended] = await Promise.allSettled([
      store.append({ ...openRun("c").request, claims, basis }),
      store.append(request),
    ]);
    expect(refused).toMatchObject({ status: "rejected", reason: corrupt });
    expect(appended).toEqual({ status: "fulfilled", value: undefined });
    expect(basis.isVoid).toBe(true);
    // A claim can end all the same.
    await store.append({ ...openRun("a").author.append(spawnOf("y")), claims: [createReleased(1)] });
    other.exec("drop trigger claim_token_no_replace; insert into claim_token values (1, 2)");
    other.exec(sql);
    await store.append({ ...author.append(spawnOf("x")), claims });
    expect((await store.overlapping(query)).lastToken).toBe(3);
    other.close();
    await store.close();
  });
});
