/** Owns: that one process at a time exports, and goes on where another one stopped, on both kinds of ledgers. */
import { describe, expect, it } from "vitest";
import type { ExportHolder } from "../../src/agents/coordination/ports/export-cursors.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";

interface DisposableStore extends AsyncDisposable {
  readonly store: OpenedLedger;
}

async function openFile(): Promise<DisposableStore> {
  const folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  const dispose = async (): Promise<void> => {
    await store.close();
    folder[Symbol.dispose]();
  };
  return { store, [Symbol.asyncDispose]: dispose };
}

async function openServer(): Promise<DisposableStore> {
  const schema = await createTestSchema();
  const store = await openTestPostgres(schema.url);
  const dispose = async (): Promise<void> => {
    await store.close();
    await schema[Symbol.asyncDispose]();
  };
  return { store, [Symbol.asyncDispose]: dispose };
}

describe.each([
  ["SQLite", openFile],
  ["PostgreSQL", openServer],
] as const)("exports of a ledger on %s", (_, open) => {
  const name = "otlp";
  const take = ({ exports }: OpenedLedger, holder: string, silent?: ExportHolder) =>
    exports.take({ name, holder, from: 7, ...(silent && { silent }) });

  it("begin where they are told, and are one process's", async () => {
    await using tested = await open();
    const { store } = tested;
    expect(await store.exports.holder(name)).toBeUndefined();
    expect(await take(store, "a")).toBe(7);
    expect(await take(store, "b")).toBeUndefined();
    expect(await take(store, "a")).toBe(7);
    expect(await store.exports.holder(name)).toMatchObject({ holder: "a" });
  });

  it("are taken from who has told nothing since, and from nobody else", async () => {
    await using tested = await open();
    const { store } = tested;
    await take(store, "a");
    const seen = await store.exports.holder(name);
    await store.exports.advance({ name, holder: "a", position: 7 });
    expect(await take(store, "b", seen)).toBeUndefined();
    const newest = await store.exports.holder(name);
    expect(await take(store, "b", newest)).toBe(7);
    expect(await take(store, "c", newest)).toBeUndefined();
    expect(await take(store, "a")).toBeUndefined();
  });

  it("go on for the process that has them, forwards, and for no other", async () => {
    await using tested = await open();
    const { store } = tested;
    const advance = (holder: string, position: number) => store.exports.advance({ name, holder, position });
    await take(store, "a");
    expect(await advance("a", 20)).toBe(true);
    expect(await advance("b", 30)).toBe(false);
    expect(await advance("a", 19)).toBe(false);
    await store.exports.release({ name, holder: "b" });
    expect(await take(store, "b")).toBeUndefined();
    await store.exports.release({ name, holder: "a" });
    expect(await store.exports.holder(name)).toBeUndefined();
    expect(await take(store, "b")).toBe(20);
    expect(await advance("a", 40)).toBe(false);
  });

  it("of other names have places of their own", async () => {
    await using tested = await open();
    const { exports } = tested.store;
    await take(tested.store, "a");
    expect(await exports.take({ name: "other", holder: "b", from: 3 })).toBe(3);
  });
});
