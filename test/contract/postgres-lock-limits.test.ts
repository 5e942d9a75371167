/** Owns: that copies and inspections do not wait without a limit for tables that another process holds. */
import pg from "pg";
import { expect, it } from "vitest";
import { withPostgresCopyTarget } from "../../src/infra/postgres/copy/postgres-copy-target.ts";
import { connectToServer } from "../../src/infra/postgres/database/connect.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, withSetting } from "../support/postgres-server.ts";

const BUSY_TIMEOUT_MS = 200;

it("a copy gives up a table that another process holds for the whole busy timeout", async () => {
  await using schema = await createTestSchema();
  await (await openTestPostgres(schema.url)).close();
  const holder = new pg.Client({ connectionString: schema.url });
  await holder.connect();
  // It lets others read: the target is read before it is written to.
  await holder.query("begin; lock table run in share mode");
  const options = {
    url: schema.url,
    busyTimeoutMs: BUSY_TIMEOUT_MS,
    assertNoGateways: () => Promise.resolve(),
  };
  const copying = withPostgresCopyTarget(options, (target) =>
    target.begin({ source: "elsewhere", firstHash: null, events: 0 }),
  );
  try {
    await expect(copying).rejects.toMatchObject({
      code: "LEDGER_BUSY",
      message: expect.stringContaining(
        "another process held the ledger for the whole busy timeout",
      ) as string,
    });
  } finally {
    await holder.end();
  }
});

it.each([
  ["has none of its own", "lock_timeout=0", "60000"],
  ["has one of its own", "lock_timeout=100", "100"],
])("a reading of a whole moment waits for locks for a limited time where the server %s", async (...row) => {
  const [, setting, limit] = row;
  await using schema = await createTestSchema();
  const url = withSetting(schema.url, setting);
  const database = await connectToServer({ url, busyTimeoutMs: BUSY_TIMEOUT_MS });
  const readLimit = "select setting from pg_settings where name = 'lock_timeout'";
  expect(await database.snapshot((query) => query(readLimit))).toEqual([{ setting: limit }]);
  await database.close();
});
