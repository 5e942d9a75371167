/** Owns: that plans of reads are kept by a session of the server, and by none that a pooler shares. */
import { describe, expect, it } from "vitest";
import { openRun } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { startPostgresProxy } from "../support/postgres-proxy.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { readAll } from "./ledger-store-tested.ts";

/** Appends a run and reads it twice. Returns how many statements the session was asked to keep. */
async function countKeptStatements({ isPooler }: { readonly isPooler: boolean }): Promise<number> {
  await using schema = await createTestSchema();
  await using proxy = await startPostgresProxy(schema.url, { isPooler });
  const store = await openTestPostgres(proxy.url);
  const { author, request } = openRun("a");
  await store.append(request);
  for (let index = 0; index < 2; index += 1)
    expect(await readAll(store, author.runId)).toEqual(request.events);
  await store.close();
  return proxy.keptStatements;
}

describe("statements that read", () => {
  it("are prepared once by a connection that leads to the server", async () => {
    expect(await countKeptStatements({ isPooler: false })).toBeGreaterThan(0);
  });

  it("are not kept by a connection that a pooler shares with others", async () => {
    expect(await countKeptStatements({ isPooler: true })).toBe(0);
  });
});
