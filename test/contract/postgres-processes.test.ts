/** Owns: several processes on one PostgreSQL ledger: migrating it, appending to it, reading on in it. */
import { describe, expect, it } from "vitest";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { connectToServer } from "../../src/infra/postgres/database/connect.ts";
import { assertSchemaFree, readAppliedMigrations } from "../../src/infra/postgres/database/migrate-schema.ts";
import { openRun } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import {
  describeWorkflowProcesses,
  describeWriterProcesses,
  runProgram,
  type SharedPlace,
} from "./ledger-processes.suite.ts";

async function createPlace(): Promise<SharedPlace> {
  const schema = await createTestSchema();
  return {
    place: schema.url,
    open: () => openTestPostgres(schema.url),
    [Symbol.asyncDispose]: () => schema[Symbol.asyncDispose](),
  };
}

describeWriterProcesses("PostgreSQL", createPlace);
describeWorkflowProcesses("PostgreSQL", createPlace);

describe("PostgreSQL: a ledger that is not there yet", () => {
  it("is made once when ten processes begin at once", async () => {
    await using shared = await createPlace();
    const names = Array.from({ length: 10 }, (_, index) => `opener-${index}`);
    await Promise.all(names.map((name) => runProgram("postgres-opener.ts", shared.place, name)));
    const store = await shared.open();
    expect((await store.counts()).coordinations).toBe(10);
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });
});

describe("PostgreSQL: a reader that finds no ledger", () => {
  it("does not take the tables that another process makes meanwhile for those of another program", async () => {
    await using shared = await createPlace();
    const database = await connectToServer({ url: shared.place, busyTimeoutMs: 1_000 });
    expect(await readAppliedMigrations(database.query)).toBeUndefined();
    await (await shared.open()).close();
    await expect(assertSchemaFree(database.name, database.query)).resolves.toBeUndefined();
    await database.close();
  });
});

describe("PostgreSQL: a reader that goes on behind the newest event it saw", () => {
  it("passes over no event, however many stores append at once", async () => {
    await using shared = await createPlace();
    const stores = await Promise.all([shared.open(), shared.open(), shared.open(), shared.open()]);
    const reader = await shared.open();
    const runs = Array.from({ length: 200 }, (_, index) => openRun(`run-${index}`));
    const appending = { isOver: false };
    const appended = Promise.all(
      stores.map(async (store, offset) => {
        for (let index = offset; index < runs.length; index += stores.length)
          await store.append(runs[index]!.request);
      }),
    ).finally(() => {
      appending.isOver = true;
    });
    const seen: RunEvent[] = [];
    let after = 0;
    for (;;) {
      const { isOver } = appending;
      const { items, reached } = await reader.readAppended({ filter: {}, after, limit: 1_000 });
      seen.push(...items);
      if (isOver && reached === after) break;
      after = reached;
    }
    await appended;
    const expected = runs.flatMap(({ request }) => request.events.map(({ eventId }) => eventId));
    expect(seen.map(({ eventId }) => eventId).toSorted()).toEqual(expected.toSorted());
    for (const store of [...stores, reader]) await store.close();
  });
});
