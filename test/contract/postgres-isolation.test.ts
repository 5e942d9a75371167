/** A ledger on a server whose defaults are not those that appends count on. */
import pg from "pg";
import { expect, it } from "vitest";
import { openRun } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, withSetting } from "../support/postgres-server.ts";
import { waitFor } from "../support/wait-for.ts";
import { readAll } from "./ledger-store-tested.ts";

it("a ledger that another process holds is waited for whatever isolation the server has as its default", async () => {
  await using schema = await createTestSchema();
  const url = withSetting(schema.url, "default_transaction_isolation=serializable");
  const stores = await Promise.all([openTestPostgres(url), openTestPostgres(url), openTestPostgres(url)]);
  const [store] = stores;
  const holder = new pg.Client({ connectionString: schema.url });
  await holder.connect();
  await holder.query("begin");
  await holder.query("update ledger_count set claim_token = claim_token");
  const { author, request } = openRun("a");
  const appended = store.append(request);
  const isWaiting = async (): Promise<boolean> =>
    (await schema.query("select 1 from pg_locks where not granted limit 1")).length > 0;
  await waitFor(isWaiting, { what: "the append to wait for the ledger" });
  await holder.query("commit");
  await holder.end();
  await appended;
  expect(await readAll(store, author.runId)).toEqual(request.events);
  for (const each of stores) await each.close();
});
