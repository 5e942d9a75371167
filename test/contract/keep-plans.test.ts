import { expect, test } from "vitest";
import { hideBoundValues } from "../../src/infra/sqlite/database/keep-plans.ts";
import { openDatabase } from "../../src/infra/sqlite/database/open-database.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

const SQL =
  "select 'is it ? or @it' as text, +@given as given where 'a@b' <> ? and @given in (1, 2) order by 1 limit ?";

test("hides every variable from the planner and leaves quoted text as it is", () => {
  expect(hideBoundValues(SQL)).toBe(
    "select 'is it ? or @it' as text, ++@given as given where 'a@b' <> +? and +@given in (1, 2) order by 1 limit +?",
  );
});

test("every statement of an opened ledger has its variables hidden, and answers the same", async () => {
  using folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  const database = await openDatabase({ path, mode: "write", busyTimeoutMs: 1_000 });
  try {
    const statement = database.prepare(SQL);
    expect(statement.source).toBe(hideBoundValues(SQL));
    expect(statement.get("b", 1, { given: 2 })).toEqual({ text: "is it ? or @it", given: 2 });
    const blob = Buffer.from([0, 255]);
    const types = database
      .prepare("select typeof(?) a, typeof(?) b, typeof(?) c, ? d")
      .get(blob, "1", null, blob);
    expect(types).toEqual({ a: "blob", b: "text", c: "null", d: blob });
  } finally {
    database.close();
  }
});
