/** Owns: that a search of the page from a time on does not read the older runs of workflows, and misses none. */
import { expect, it } from "vitest";
import type { RunOrigin } from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type { RunsPage } from "../../src/plugins/page/contract/runs.ts";
import { listRunsPage } from "../../src/plugins/page/server/list-runs.ts";
import type { PageRequest } from "../../src/plugins/page/server/page-dependencies.ts";
import {
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
  timeAt,
} from "../contract/workflow-store-tested.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";

const HOUR_MS = 3_600_000;
const SOURCE = nameWorkflowRun("0");
const REPLAY: RunOrigin = {
  mode: "replay",
  sourceRunId: SOURCE,
  fromSeq: 0,
  until: 1,
  identity: SOURCE,
  ids: [{ before: 1, runId: SOURCE }],
};

interface SearchedPage extends RunsPage {
  /** How often a part of the listing of workflow runs was read. */
  readonly reads: number;
}

interface SearchOptions {
  readonly limit?: number;
  /** So many of the last are replays of the first run, with its time. */
  readonly forks?: number;
}

/** Lists a ledger of workflow runs that were opened at these times, in milliseconds of the test. */
async function searchRuns(
  openedAt: readonly number[],
  sinceMs: number,
  { limit, forks = 0 }: SearchOptions = {},
): Promise<SearchedPage> {
  using folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  const { workflows } = store;
  const appends = openedAt.map((atMs, index) => {
    const origin = index < openedAt.length - forks ? undefined : REPLAY;
    const append = createWorkflowAuthor(String(index), origin).append([createRunStarted()]);
    return { ...append, summary: { ...append.summary, createdAtMs: timeAt(atMs) } };
  });
  await Promise.all(appends.map((append) => workflows.append(append)));
  let reads = 0;
  const counted: typeof workflows = {
    ...workflows,
    list: (query) => {
      reads += 1;
      return workflows.list(query);
    },
  };
  const query = new Map([["since", new Date(timeAt(sinceMs)).toISOString()]]);
  if (limit !== undefined) query.set("limit", String(limit));
  const request = { query: (name: string) => query.get(name) } as PageRequest;
  const page = await listRunsPage({ ...store, workflows: counted }, request);
  await store.close();
  return { ...page, reads };
}

function repeat(atMs: number, count: number): number[] {
  return Array.from({ length: count }, () => atMs);
}

it("is over where the older runs begin", async () => {
  const found = await searchRuns([...repeat(0, 2_100), 25 * HOUR_MS, 26 * HOUR_MS], 24 * HOUR_MS);
  expect(found).toMatchObject({ runs: [{ id: "run-2101" }, { id: "run-2100" }], reads: 2 });
  expect(found).not.toHaveProperty("lookedAt");
  expect(found).not.toHaveProperty("nextCursor");
});

it("finds a run behind others of a process whose clock is half an hour behind", async () => {
  const found = await searchRuns([24 * HOUR_MS, ...repeat(23.5 * HOUR_MS, 250)], 24 * HOUR_MS);
  expect(found.runs).toMatchObject([{ id: "run-0" }]);
});

it("finds what lies behind a run that was recorded long after it was opened", async () => {
  const openedAt = [25 * HOUR_MS, 0, ...repeat(26 * HOUR_MS, 99)];
  const { runs } = await searchRuns(openedAt, 24 * HOUR_MS, { limit: 200 });
  expect(runs).toHaveLength(100);
});

it("finds what lies behind a hundred replays of an old run, which have its time", async () => {
  const openedAt = [0, 25 * HOUR_MS, ...repeat(0, 100)];
  const { runs } = await searchRuns(openedAt, 24 * HOUR_MS, { forks: 100 });
  expect(runs).toMatchObject([{ id: "run-1" }]);
});
