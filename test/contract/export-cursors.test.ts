/** Owns: that one process at a time exports, and goes on where another one stopped, on both kinds of ledgers. */
import { describe, expect, it } from "vitest";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";

interface Tested extends AsyncDisposable {
  readonly store: OpenedLedger;
}

async function openFile(): Promise<Tested> {
  const folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  const dispose = async (): Promise<void> => {
    await store.close();
    folder[Symbol.dispose]();
  };
  return { store, [Symbol.asyncDispose]: dispose };
}

async function openServer(): Promise<Tested> {
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
  const take = ({ exports }: OpenedLedger, holder: string, nowMs: number, from = 7) =>
    exports.take({ name: "otlp", holder, from, nowMs, untilMs: nowMs + 100 });

  it("begin where they are told, and are one process's until it is silent for too long", async () => {
    await using tested = await open();
    const { store } = tested;
    expect(await take(store, "a", 1_000)).toBe(7);
    expect(await take(store, "b", 1_099)).toBeUndefined();
    expect(await take(store, "a", 1_099, 50)).toBe(7);
    expect(await take(store, "b", 1_199)).toBe(7);
    expect(await take(store, "a", 1_200)).toBeUndefined();
  });

  it("go on for the process that has them, forwards, and for no other", async () => {
    await using tested = await open();
    const { store } = tested;
    const advance = (holder: string, position: number) =>
      store.exports.advance({ name: "otlp", holder, position, untilMs: 2_000 });
    await take(store, "a", 1_000);
    expect(await advance("a", 20)).toBe(true);
    expect(await advance("b", 30)).toBe(false);
    expect(await advance("a", 19)).toBe(false);
    expect(await take(store, "b", 2_000)).toBe(20);
    expect(await advance("a", 40)).toBe(false);
  });

  it("of other names have places of their own", async () => {
    await using tested = await open();
    const { exports } = tested.store;
    await take(tested.store, "a", 1_000);
    expect(await exports.take({ name: "other", holder: "b", from: 3, nowMs: 0, untilMs: 9 })).toBe(3);
  });
});
