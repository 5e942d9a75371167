/** The queue asks what became of a commit for some time after it was not answered, however long that took. */
import { afterEach, expect, it, vi } from "vitest";
import { createWriteQueue } from "../../src/infra/postgres/database/commit-queue.ts";
import type { SendQuery } from "../../src/infra/postgres/database/connect.ts";
import { createManualClock } from "../support/temp-ledger.ts";

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
      snapshot: (read) => read(query),
      connectWriter: () => Promise.resolve({ query, release: () => undefined }),
      close: () => Promise.resolve(),
    },
    clock: createManualClock(),
    busyTimeoutMs: 100,
  });
  await queue.submit({ want: () => undefined, apply: () => undefined });
  expect(commits).toBe(2);
});
