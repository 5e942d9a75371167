/** Owns: copying a ledger between files and servers: that all of it arrives, and that the copy goes on as its source would. */
import { chmodSync } from "node:fs";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import {
  COPIED_TABLES,
  LEFT_OUT_COLUMNS,
  LEFT_OUT_TABLES,
} from "../../src/infra/ledger/copy/copied-tables.ts";
import { isPostgresUrl } from "../../src/infra/ledger/ledger-place.ts";
import { copyLedgerBetween, type CopyProgress } from "../../src/plugins/copy-ledger-between.ts";
import { openAnyLedger } from "../support/any-ledger.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { readFileRows, readSchemaRows, fillLedger } from "./filled-ledger.ts";
import { addCoordination, listProblems, prune } from "./prunable-ledger.ts";
import { createWorkflowAuthor, createRunStarted } from "./workflow-store-tested.ts";

const ignoreProgress = (): void => undefined;

async function fill(place: string, name?: string): Promise<void> {
  const store = await openAnyLedger(place);
  await fillLedger(store, name);
  await store.close();
}

async function inspect(place: string): Promise<unknown> {
  const store = await openAnyLedger(place, { mode: "read" });
  const problems = await store.inspect();
  await store.close();
  return problems;
}

function copy(from: string, to: string, onProgress: (progress: CopyProgress) => void = ignoreProgress) {
  // Whose the coordinations of a file are has to be said where it goes to a server, or comes from one.
  const gateway = [from, to].some(isPostgresUrl) ? "home" : undefined;
  return copyLedgerBetween({ from, to, gateway }, onProgress);
}

describe("the tables of a ledger", () => {
  const listColumns = (tables: typeof COPIED_TABLES): string[] =>
    tables.flatMap(({ name, columns }) => Object.keys(columns).map((column) => `${name}.${column}`));
  const isCopiedOrNamed = ({ table, column }: { readonly table: string; readonly column: string }): boolean =>
    table in LEFT_OUT_TABLES ||
    `${table}.${column}` in LEFT_OUT_COLUMNS ||
    listColumns(COPIED_TABLES).includes(`${table}.${column}`);

  it("in a file are all copied, or left out for a reason", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    await fill(path);
    const database = new Database(path, { readonly: true });
    const columns = database
      .prepare<[], { table: string; column: string }>(
        `select sqlite_schema.name as "table", info.name as "column"
         from sqlite_schema
         join pragma_table_xinfo(sqlite_schema.name) as info
         where sqlite_schema.type = 'table'
         order by 1, 2`,
      )
      .all();
    expect(columns.filter((column) => !isCopiedOrNamed(column))).toEqual([]);
    const stored = columns.map(({ table, column }) => `${table}.${column}`);
    expect(listColumns(COPIED_TABLES).filter((column) => !stored.includes(column))).toEqual([]);
    // The tables that a test copies have rows.
    for (const { name } of COPIED_TABLES)
      expect([name, database.prepare(`select count(*) > 0 from ${name}`).pluck().get()]).toEqual([name, 1]);
    database.close();
  });

  it("on a server are all copied, or left out for a reason", async () => {
    await using schema = await createTestSchema();
    await fill(schema.url);
    const columns = await schema.query<{ table: string; column: string }>(
      `select table_name::text as "table", column_name::text as "column"
       from information_schema.columns
       where table_schema = current_schema()
       order by 1, 2`,
    );
    expect(columns.filter((column) => !isCopiedOrNamed(column))).toEqual([]);
    const stored = columns.map(({ table, column }) => `${table}.${column}`);
    expect(listColumns(COPIED_TABLES).filter((column) => !stored.includes(column))).toEqual([]);
  });
});

describe("a copy", () => {
  it("from a file to a server and back has the same rows, and nothing is wrong with either", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const [from, back] = [folder.file("from.sqlite"), folder.file("back.sqlite")];
    await fill(from);
    const there = await copy(from, schema.url);
    const returned = await copy(schema.url, back);
    expect(readFileRows(back)).toEqual(readFileRows(from));
    expect(returned).toEqual(there);
    expect(there).toMatchObject({ isResumed: false, grownBy: 0 });
    for (const place of [from, schema.url, back]) expect(await inspect(place)).toEqual([]);
  });

  it("from a server to a file and back has the same rows, and nothing is wrong with either", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    await using back = await createTestSchema();
    const file = folder.file("there.sqlite");
    await fill(schema.url);
    await copy(schema.url, file);
    await copy(file, back.url);
    expect(await readSchemaRows(back)).toEqual(await readSchemaRows(schema));
    for (const place of [schema.url, file, back.url]) expect(await inspect(place)).toEqual([]);
  });

  it("goes from file to file and from server to server as well", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    await using other = await createTestSchema();
    const [from, to] = [folder.file("from.sqlite"), folder.file("to.sqlite")];
    await fill(from);
    await copy(from, to);
    expect(readFileRows(to)).toEqual(readFileRows(from));
    await fill(schema.url);
    await copy(schema.url, other.url);
    expect(await readSchemaRows(other)).toEqual(await readSchemaRows(schema));
  });

  it("of an empty ledger is an empty ledger", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const [from, back] = [folder.file("from.sqlite"), folder.file("back.sqlite")];
    await (await openAnyLedger(from)).close();
    expect((await copy(from, schema.url)).rows).toBe(0);
    await copy(schema.url, back);
    for (const place of [schema.url, back]) {
      await fill(place);
      expect(await inspect(place)).toEqual([]);
    }
  });

  it("is appended to as its source would be, in every table and in both directions", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const [from, back] = [folder.file("from.sqlite"), folder.file("back.sqlite")];
    await fill(from, "one");
    await copy(from, schema.url);
    await fill(schema.url, "two");
    expect(await inspect(schema.url)).toEqual([]);
    await copy(schema.url, back);
    await fill(back, "three");
    expect(await inspect(back)).toEqual([]);
    // As if one ledger had been written all the time.
    for (const name of ["two", "three"]) await fill(from, name);
    const { counts, event, run, claim } = readFileRows(back);
    expect({ counts, event, run, claim }).toEqual({
      counts: readFileRows(from)["counts"],
      event: readFileRows(from)["event"],
      run: readFileRows(from)["run"],
      claim: readFileRows(from)["claim"],
    });
  });

  it("holds texts that fill more than one batch", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const [from, back] = [folder.file("from.sqlite"), folder.file("back.sqlite")];
    const store = await openAnyLedger(from);
    const author = createWorkflowAuthor("long");
    await store.workflows.append(author.append([createRunStarted()]));
    const at = { tenant: "acme", scope: "files" };
    for (const size of [10, 1_500_000, 1_500_000, 1_500_000, 5, 5_000_000, 7])
      await store.workflows.workspace.write({
        at,
        path: `${size}.txt`,
        updatedAt: "2026-01-01T00:00:00.000Z",
        content: { contentType: "text/plain", text: "ü".repeat(size / 2) },
      });
    await store.close();
    const batches: string[] = [];
    await copy(from, schema.url, ({ step, table }) => {
      if (step === "copied") batches.push(table);
    });
    expect(batches.filter((table) => table === "workspace_version").length).toBeGreaterThan(1);
    await copy(schema.url, back);
    expect(readFileRows(back)).toEqual(readFileRows(from));
  });

  it("reads a file that nobody may write, and leaves it alone", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const from = folder.file("from.sqlite");
    await fill(from);
    const before = readFileRows(from);
    chmodSync(from, 0o400);
    await copy(from, schema.url);
    expect(readFileRows(from)).toEqual(before);
    expect(await inspect(schema.url)).toEqual([]);
  });
});

it("a copy from a server needs no second connection to read with", async () => {
  using folder = createTempFolder();
  await using schema = await createTestSchema();
  await fill(schema.url);
  const url = new URL(schema.url);
  url.searchParams.set("pool_max", "1");
  const to = folder.file("to.sqlite");
  expect(await copy(url.href, to)).toMatchObject({ isResumed: false });
  expect(await inspect(to)).toEqual([]);
});

describe("a damaged source", () => {
  const DAMAGES: readonly [string, string][] = [
    ["a changed event", "update event set payload = '{\"x\":1}' where event_key = 2"],
    ["an event that is gone", "delete from event where event_key = 3"],
    ["a run whose head is another", "update run set head_hash = zeroblob(32) where run_key = 1"],
    ["a text that is no longer its hash's", "update content set text = 'other'"],
    ["a label that is gone", "delete from run_label where kind = 'start'"],
    ["bytes that are no text", "update event set payload = cast(x'7b22ff227d' as text) where event_key = 2"],
  ];

  function spoil(path: string, sql: string): void {
    const database = new Database(path);
    const triggers = database
      .prepare<[], { name: string; sql: string }>(
        "select name, sql from sqlite_schema where type = 'trigger'",
      )
      .all();
    for (const { name } of triggers) database.exec(`drop trigger ${name}`);
    database.exec(sql);
    for (const trigger of triggers) database.exec(trigger.sql);
    database.close();
  }

  it.each(DAMAGES)("with %s is copied as it is, and the same is wrong with the copy", async (_, sql) => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const [from, back] = [folder.file("from.sqlite"), folder.file("back.sqlite")];
    await fill(from);
    spoil(from, sql);
    await copy(from, schema.url);
    await copy(schema.url, back);
    const readKinds = async (place: string): Promise<unknown[]> =>
      ((await inspect(place)) as { kind: string; runId?: string; sequence?: number }[])
        .map(({ kind, runId, sequence }) => `${kind} ${runId} ${sequence}`)
        .toSorted();
    const expected = await readKinds(from);
    expect(expected.length).toBeGreaterThan(0);
    expect(await readKinds(schema.url)).toEqual(expected);
    expect(await readKinds(back)).toEqual(expected);
  });

  it("with rows that no server takes is refused with the table, and stays a half copy", async () => {
    using folder = createTempFolder();
    await using schema: TestSchema = await createTestSchema();
    const from = folder.file("from.sqlite");
    await fill(from);
    spoil(from, "pragma foreign_keys = off; update reference set run_key = 99 where reference_key = 1");
    await expect(copy(from, schema.url)).rejects.toMatchObject({
      code: "LEDGER_CORRUPT",
      message: expect.stringContaining("rows of the table reference") as string,
    });
    await expect(openAnyLedger(schema.url)).rejects.toMatchObject({ code: "LEDGER_INCOMPLETE" });
  });
});

describe("a copy of a pruned ledger", () => {
  it("from a server to a file gives no run the number of one that was removed", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const file = folder.file("there.sqlite");
    const from = await openAnyLedger(schema.url);
    for (const name of ["one", "two"]) await addCoordination(from, name);
    expect(await prune(from)).toMatchObject({ runs: 2 });
    await from.close();
    await copy(schema.url, file);
    const store = await openAnyLedger(file);
    await addCoordination(store, "three");
    expect(await listProblems(store)).toEqual([]);
    for (const name of ["four", "five"]) await addCoordination(store, name);
    expect(await prune(store)).toMatchObject({ runs: 2 });
    expect(await listProblems(store)).toEqual([]);
    await store.close();
  });

  it("from a server by a file to another server goes on counting, too", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    await using there = await createTestSchema();
    const file = folder.file("between.sqlite");
    const from = await openAnyLedger(schema.url);
    for (const name of ["one", "two"]) await addCoordination(from, name);
    await prune(from);
    await from.close();
    await copy(schema.url, file);
    await copy(file, there.url);
    const store = await openAnyLedger(there.url);
    await addCoordination(store, "three");
    expect(await listProblems(store)).toEqual([]);
    await store.close();
  });
});
