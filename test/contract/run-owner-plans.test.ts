/** Owns: by which index the owners of runs and what they own are found, in either database. */
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import {
  formatCollectStatement,
  formatForgetMissedStatement,
  formatHoldersQuery,
  formatOwnedRunsQuery,
  formatTakeStatement,
} from "../../src/infra/postgres/database/owner-table.ts";
import { keepPlans } from "../../src/infra/sqlite/database/keep-plans.ts";
import { loadMigrations } from "../../src/infra/sqlite/database/migrate.ts";
import { prepareOwnerReads, prepareOwnerWrites } from "../../src/infra/sqlite/database/owner-rows.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";

const KINDS = ["workflow", "coordination"] as const;

describe.each(KINDS)("SQLite finds the owners of %s runs", (kind) => {
  it("by the index of owners, whatever it asks", () => {
    const database = new Database(":memory:");
    keepPlans(database);
    for (const { sql } of loadMigrations()) database.exec(sql);
    const { holders, free, missed, owned, arrivals, ownersOf } = prepareOwnerReads(database, kind);
    const { take, give, forgetMissed } = prepareOwnerWrites(database, kind);
    const planOf = ({ source }: { readonly source: string }): string[] =>
      database
        .prepare<[], { detail: string }>(`explain query plan ${source.replaceAll(/\?|@\w+/gu, "1")}`)
        .all()
        .map(({ detail }) => detail);
    const byOwner = /^SEARCH run USING (?:COVERING )?INDEX run_by_owner \(kind=\? AND owner_id[=>]\?/u;
    for (const statement of [free.fromAlone, free.fromAll, owned, take.fromAlone, take.fromAll])
      expect(planOf(statement).filter((step) => byOwner.test(step)).length).toBeGreaterThan(0);
    const ofHolders = planOf(holders).filter((step) => step.includes("run_by_owner"));
    expect(ofHolders).toEqual([
      "SEARCH run USING COVERING INDEX run_by_owner (kind=?)",
      "SEARCH run USING COVERING INDEX run_by_owner (kind=? AND owner_id>?)",
    ]);
    expect(planOf(arrivals)).toEqual(["SEARCH run USING INDEX run_arrived (kind=? AND owner_id=?)"]);
    for (const statement of [missed, forgetMissed])
      expect(planOf(statement)).toContainEqual(
        expect.stringMatching(/^SEARCH run USING (?:COVERING )?INDEX run_arrived \(kind=\?\)/u),
      );
    const all = [holders, ...Object.values(free), missed, owned, ...Object.values(take), arrivals];
    for (const statement of [...all, ownersOf, give, forgetMissed])
      expect(planOf(statement).filter((step) => /^SCAN run\b/u.test(step))).toEqual([]);
    database.close();
  });
});

/** Many runs of few owners, of which most have ended and few were appended to by others. */
async function fillRuns(schema: TestSchema): Promise<void> {
  await schema.query(
    `insert into run (run_key, run_id, kind, length, head_hash, ended, summary, owner_id, owner_token, arrived)
     select
       number,
       'r' || number,
       case when number / 20 % 2 = 0 then 'workflow' else 'coordination' end,
       1,
       decode(repeat('00', 32), 'hex'),
       case when number % 20 = 0 then 0 else 1 end,
       '{}',
       'owner-' || number / 40 % 5,
       1,
       case when number % 777 = 0 then 1 else 0 end
     from generate_series(1, 20000) as number`,
  );
  await schema.query("vacuum analyze run");
}

/** Returns by which index each part of a query goes to runs, in the order of the plan; `undefined`: through all of them. */
async function listIndexes(schema: TestSchema, sql: string): Promise<(string | undefined)[]> {
  const values = { owner: "'owner-9'", gone: "'{owner-1}'", id: "'owner-2'", limit: "9", after: "0" };
  const filled = sql.replaceAll(/@(\w+)/gu, (_, name: string) => values[name as keyof typeof values]);
  const rows = await schema.query<{ "QUERY PLAN": string }>(`explain (analyze, timing off) ${filled}`);
  return rows
    .map((row) => row["QUERY PLAN"])
    .filter((line) => /Scan\b.* on run(?: |$)/u.test(line))
    .map((line) => /using (\w+)/u.exec(line)?.[1]);
}

describe.each(KINDS)("PostgreSQL finds the owners of %s runs", (kind) => {
  it("by the index of owners, however many runs there are", async () => {
    await using schema = await createTestSchema();
    const ledger = await openTestPostgres(schema.url);
    await ledger.close();
    await fillRuns(schema);
    expect(await listIndexes(schema, formatHoldersQuery(kind))).toEqual(["run_by_owner", "run_by_owner"]);
    expect(await listIndexes(schema, formatOwnedRunsQuery(kind))).toEqual(["run_by_owner"]);
    expect(await listIndexes(schema, formatCollectStatement(kind))).toEqual(["run_arrived", "run_pkey"]);
    expect(await listIndexes(schema, formatForgetMissedStatement(kind))).toEqual(["run_arrived", "run_pkey"]);
    expect(await listIndexes(schema, formatTakeStatement(kind, true))).toEqual(["run_by_owner", "run_pkey"]);
    const byAll = ["run_by_owner", "run_by_owner", "run_by_owner", "run_pkey"];
    expect(await listIndexes(schema, formatTakeStatement(kind, false))).toEqual(byAll);
  });
});
