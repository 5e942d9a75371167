/** Owns: finding coordinations and events by what they are about, on the SQLite ledger. */
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { AgentId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { contentOf, openRun, runIdOf } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder, TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { describeLedgerQueries } from "./ledger-queries.suite.ts";
import { createOlderLedger } from "./older-ledger.ts";
import { LEDGER } from "./queried-ledger.ts";
import { createRunStarted, createWorkflowAuthor, nameWorkflowRun } from "./workflow-store-tested.ts";

describeLedgerQueries("SQLite", async () => {
  const folder = createTempFolder();
  const store = await openTestLedger(folder.file(LEDGER));
  return {
    store,
    [Symbol.asyncDispose]: async () => {
      await store.close();
      folder[Symbol.dispose]();
    },
  };
});

const timeAfter = (ms: number): EpochMs => (TEST_EPOCH_MS + ms) as EpochMs;

describe("events", () => {
  it("arrive one after the other, those of workflow runs among them, and none is decoded", async () => {
    using mixed = createTempFolder();
    const ledger = await openTestLedger(mixed.file(LEDGER));
    await ledger.append(openRun("a").request);
    await ledger.workflows.append(createWorkflowAuthor("w").append([createRunStarted()]));
    forge(mixed.file(LEDGER), "update event set payload = '{' where sequence = 0");
    const listArrivals = async (limit: number): Promise<string[]> => {
      const arrivals: string[] = [];
      for (let after = 0; ;) {
        const { items, reached } = await ledger.readArrivals({ after, limit });
        if (items.length === 0) return arrivals;
        arrivals.push(...items.map(({ runId, sequence, type }) => `${runId}:${sequence} ${type}`));
        after = reached;
      }
    };
    const { runId, events } = openRun("a").request;
    const expected = [
      ...events.map(({ sequence, type }) => `${runId}:${sequence} ${type}`),
      `${nameWorkflowRun("w")}:0 run.started`,
    ];
    for (const limit of [1, 2, 9]) expect(await listArrivals(limit)).toEqual(expected);
    await ledger.close();
  });

  it("that cannot be decoded are an error", async () => {
    using damaged = createTempFolder();
    const path = damaged.file(LEDGER);
    const writer = await openTestLedger(path);
    await writer.append(openRun("a").request);
    await writer.close();
    const database = new Database(path);
    database.exec("drop trigger event_no_update; update event set payload = '{' where sequence = 1");
    database.close();
    const reader = await openTestLedger(path, { mode: "read" });
    await expect(reader.findEvents({ filter: { traceId: "trace-a" }, limit: 9 })).rejects.toMatchObject({
      code: "EVENT_UNREADABLE",
    });
    await reader.close();
  });
});

describe("labels", () => {
  it.each([
    [
      "is missing",
      "drop trigger run_label_no_delete; delete from run_label where kind = 'trace' and run_key = 1",
      "the label trace",
    ],
    [
      "was added",
      "insert into run_label select 'session', 'forged', started_at_ms, run_key, step_id from run_label limit 1",
      "the label session forged follows from no event",
    ],
  ])("are reported when one %s", async (_, sql, message) => {
    using forged = createTempFolder();
    const path = forged.file(LEDGER);
    const writer = await openTestLedger(path);
    await writer.append(openRun("a").request);
    await writer.close();
    const database = new Database(path);
    database.exec(sql);
    database.close();
    const reader = await openTestLedger(path, { mode: "read" });
    expect(await reader.inspect()).toContainEqual({
      kind: "index_differs",
      runId: runIdOf("a"),
      message: expect.stringContaining(message) as string,
    });
    await reader.close();
  });

  it.each(["update run_label set value = 'x'", "delete from run_label"])("refuse %j", async (sql) => {
    using folder = createTempFolder();
    const writer = await openTestLedger(folder.file(LEDGER));
    await writer.append(openRun("a").request);
    await writer.close();
    const database = new Database(folder.file(LEDGER));
    expect(() => database.exec(sql)).toThrow(/a label of the ledger cannot be/u);
    database.close();
  });
});

describe.each([1, 2, 3, 4])("a ledger of schema %i", (schema) => {
  const trace = { traceId: "trace-over" };

  async function answersOf(ledger: SqliteLedger): Promise<unknown[]> {
    const agent = "main" as AgentId;
    return [
      await ledger.findRuns({ filter: trace, limit: 9 }),
      await ledger.findRuns({ filter: { agent }, status: "running", limit: 9 }),
      await ledger.findEvents({ filter: { agent }, limit: 7 }),
      await ledger.findEvents({ filter: { since: timeAfter(0) }, limit: 100 }),
      await ledger.findEvents({ filter: trace, limit: 100 }),
    ];
  }

  it("is queried the same before and after it is brought to the newest schema", async () => {
    using old = createTempFolder();
    const { path, database } = createOlderLedger(old, schema);
    database.close();
    const reader = await openTestLedger(path, { mode: "read" });
    const before = await answersOf(reader);
    await reader.close();
    expect(before[0]).toMatchObject({ items: [{ runId: runIdOf("over") }] });
    const writer = await openTestLedger(path);
    expect(await answersOf(writer)).toEqual(before);
    expect(await writer.inspect()).toEqual([]);
    await writer.append({ ...openRun("later").request, contents: [contentOf("x")] });
    expect(await writer.findRuns({ filter: { traceId: "trace-later" }, limit: 9 })).toMatchObject({
      items: [{ runId: runIdOf("later") }],
    });
    await writer.close();
  });
});
