/** Owns: which writes are committed together, and what becomes of them where a statement or its answer is lost. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { createWriteQueue } from "../../src/infra/postgres/database/commit-queue.ts";
import type { SendQuery } from "../../src/infra/postgres/database/connect.ts";
import { contentOf, openRun } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { createManualClock } from "../support/temp-ledger.ts";
import { listProblems, listRunIds } from "./prunable-ledger.ts";

afterEach(() => {
  vi.useRealTimers();
});

it("finds out what became of a commit that was not answered for a minute", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  let commits = 0;
  const query = ((sql: string) => {
    if (sql.includes("from ledger_count")) return Promise.resolve([{ events: 0, runs: 0, claim_token: 0 }]);
    if (sql !== "commit") return Promise.resolve([]);
    commits += 1;
    if (commits > 1) return Promise.resolve([]);
    vi.advanceTimersByTime(65_000);
    return Promise.reject(new Error("Query read timeout"));
  }) as SendQuery;
  const queue = createWriteQueue({
    database: {
      name: "postgres://x",
      conceal: (text: string) => text,
      query,
      write: query,
      snapshot: (read) => read(query),
      connectWriter: () => Promise.resolve({ query, release: () => undefined }),
      close: () => Promise.resolve(),
    },
    clock: createManualClock(),
    busyTimeoutMs: 100,
  });
  await queue.submit({ chars: 0, want: () => undefined, apply: () => undefined });
  expect(commits).toBe(2);
});

/** Stands for a text that is too long to be written into a statement. */
const UNSENDABLE = {
  toPostgres: () => {
    throw new RangeError("Invalid string length");
  },
} as unknown as string;

describe("an append that the driver cannot send", () => {
  it.each([0, 3])("with %d others is not written at all, and the others are", async (others) => {
    await using schema = await createTestSchema();
    const store = await openTestPostgres(schema.url);
    const { request } = openRun("unsendable");
    const bad = store.append({ ...request, references: [{ name: UNSENDABLE }] });
    const good = Array.from({ length: others }, (_, index) => openRun(`good-${index}`).request);
    const appends = good.map((each) => store.append(each));
    await expect(bad).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await Promise.all(appends);
    expect(await listRunIds(store)).toEqual(good.map(({ runId }) => runId));
    expect(await listProblems(store)).toEqual([]);
    await store.append(request);
    await store.close();
  });
});

describe("appends that wait together", () => {
  const countCommits = async (schema: TestSchema): Promise<number | undefined> => {
    const [row] = await schema.query<{ commits: number }>(
      "select count(distinct xmin::text)::integer as commits from run",
    );
    return row?.commits;
  };

  it.each([
    ["are one commit where they are small", 100, 1],
    ["are several commits where they are large, so that none is too large to be sent", 3_000_000, 3],
  ])("%s", async (_, chars, commits) => {
    await using schema = await createTestSchema();
    const store = await openTestPostgres(schema.url);
    const requests = Array.from({ length: 12 }, (__, index) => {
      const { request } = openRun(`run-${index}`);
      return { ...request, contents: [contentOf(`${index}`.padEnd(chars))] };
    });
    await Promise.all(requests.map((request) => store.append(request)));
    expect(await countCommits(schema)).toBe(commits);
    await store.close();
  });
});
