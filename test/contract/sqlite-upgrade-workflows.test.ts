/** Owns: what becomes of workflow runs and their memory when a ledger of schema 4 is brought to the newest. */
import { describe, expect, it } from "vitest";
import { formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import { loadMigrations } from "../../src/infra/sqlite/database/migrate.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { openTestLedger, createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { createOlderLedger, versionOf, type OlderLedger } from "./older-ledger.ts";
import { appendAsOlder } from "./older-workflows.ts";
import {
  timeAt,
  branchOf,
  COMPLETED,
  createMemoryEntry,
  createNodeStarted,
  NOW,
  readAll,
  SCOPE,
  createRunStarted,
  createWorkflowAuthor,
} from "./workflow-store-tested.ts";

const NEWEST = loadMigrations().length;

describe("a ledger of schema 4 with what workflows kept in memory", () => {
  const brief = { expiresAt: formatTimestamp(timeAt(10)) };
  const tags = ["t", "t", "u"];
  const authors = [createWorkflowAuthor("one"), createWorkflowAuthor("two")] as const;
  const [one, two] = authors;
  const begun = [one, two].map((author) => author.append([createRunStarted()]));
  const requests = [
    ...begun,
    one.append([], {
      entries: [createMemoryEntry("m", { tags }), createMemoryEntry("brief", { ...brief, tags })],
    }),
    two.append([], { entries: [createMemoryEntry("m", { content: "again", tags: ["u"] })] }),
    two.append([], {
      entries: [createMemoryEntry("m", { content: "theirs", tags })],
      scope: { ...SCOPE, tenant: "evil" },
    }),
    one.append([], {
      entries: [createMemoryEntry("m", { content: "last", tags, ...brief }), createMemoryEntry("n")],
    }),
    one.append([COMPLETED], { status: "completed" }),
  ];

  const writeOlder = (folder: TempFolder): OlderLedger => {
    const old = createOlderLedger(folder, 4);
    for (const request of requests) appendAsOlder(old.database, request);
    return old;
  };
  const listAnswers = async ({ workflows }: SqliteLedger): Promise<unknown[]> => {
    const found: unknown[] = [await workflows.list({ order: "oldest", limit: 9 })];
    for (const { runId } of authors)
      for (const sequence of [undefined, 0, 1, 2, 3, 4, 9])
        for (const ms of [0, 20]) {
          const query = { now: timeAt(ms), ...(sequence !== undefined && { asOf: { runId, sequence } }) };
          for (const tag of [undefined, "t", "u"])
            found.push(await workflows.memory.list(SCOPE, { ...query, limit: 9, ...(tag && { tag }) }));
          found.push((await workflows.memory.get(SCOPE, "m", query)) ?? null);
        }
    for (const { runId } of authors) {
      const events = await readAll(workflows, runId);
      expect(events.map(({ eventId }) => eventId)).toEqual(events.map((_, index) => `${runId}:${index}`));
      expect(await workflows.damage(runId, { before: events.length })).toBeUndefined();
      found.push(events, await workflows.entry(runId));
    }
    return found;
  };

  it("is read as it is, and says the same when it was brought to the newest schema", async () => {
    using folder = createTempFolder();
    const old = writeOlder(folder);
    old.database.close();
    const reader = await openTestLedger(old.path, { mode: "read" });
    expect(versionOf(old.path)).toBe(4);
    const before = await listAnswers(reader);
    expect(await reader.inspect()).toEqual([]);
    const store = await openTestLedger(old.path);
    expect(versionOf(old.path)).toBe(NEWEST);
    for (const each of [store, reader]) {
      expect(await listAnswers(each)).toEqual(before);
      expect(await each.inspect()).toEqual([]);
    }
    const origin = branchOf(one.runId, "fork", 1);
    const fork = createWorkflowAuthor("fork", origin);
    await store.workflows.append(fork.append([createRunStarted(), createNodeStarted("own")]));
    for (const { workflows } of [store, reader]) {
      const events = await readAll(workflows, fork.runId);
      expect(events.map(({ eventId }) => eventId)).toEqual(["run-one:0", "run-fork:1"]);
      expect((await workflows.entry(fork.runId))?.origin).toEqual(origin);
    }
    expect(await store.workflows.memory.deleteExpired(timeAt(20), 9)).toBe(2);
    expect(await store.workflows.memory.get(SCOPE, "m", { now: NOW })).toBeUndefined();
    expect(await store.inspect()).toEqual([]);
    await reader.close();
    await store.close();
  });
});
