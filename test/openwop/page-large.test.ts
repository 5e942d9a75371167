/** Owns: that the page's server answers from ledgers as large as they get, and leaves others their turns meanwhile. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunsPage } from "../../src/plugins/page/contract/runs.ts";
import { shortestOf } from "../attacks/longest-turn.ts";
import { createAskedByOwner, recordCommands } from "../cli/recorded-questions.ts";
import { fillLarge, LARGE } from "../page/filled-ledger.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { openRun, runIdOf } from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  createTempFolder,
  openTestLedger,
  type TempFolder,
} from "../support/temp-ledger.ts";
import { createPageClient, servePage, signIn, type PageClient, type ServedPage } from "./page-scene.ts";

const COORDINATIONS = chooseCampaignSize("LISTED_COORDINATIONS", { short: 5_000, long: 100_000 });
const BATCH = 500;
const QUESTIONS = 500;
const ANSWER_MS_MAX = 2_000;
const TURN_MS_MAX = 100;
const TRIES = 3;

let folder: TempFolder;
let served: ServedPage;
let client: PageClient;

beforeAll(async () => {
  folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  await fillLarge(path);
  const store = await openTestLedger(path, { clock: createManualClock() });
  const questions = Array.from({ length: QUESTIONS }, (_, index) =>
    createAskedByOwner(index, { text: `Question ${index}? ${"word ".repeat(780)}`, answerMs: 600_000 }),
  );
  await recordCommands(store, LARGE as CoordinationId, questions);
  for (let first = 0; first < COORDINATIONS; first += BATCH)
    await Promise.all(
      Array.from({ length: BATCH }, (_, index) => store.append(openRun(first + index).request)),
    );
  await store.close();
  served = await servePage(path);
  client = createPageClient(served.baseUrl, await signIn(served.baseUrl, served.link));
}, 600_000);

afterAll(async () => {
  await served[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

describe(`a ledger of ${COORDINATIONS} coordinations`, () => {
  it.each([
    "runs",
    "runs?limit=200",
    "runs?state=running",
    "runs?kind=plan",
    "runs?text=none",
    "questions",
    "health",
  ])("answers %s in two seconds at most", async (path) => {
    const beganAtMs = performance.now();
    await client.get(path);
    expect(performance.now() - beganAtMs).toBeLessThan(ANSWER_MS_MAX);
  });

  it("is searched to its end, some thousands at a time", async () => {
    const found: string[] = [];
    let requests = 0;
    for (let cursor: string | undefined = ""; cursor !== undefined; requests += 1) {
      const page: RunsPage = await client.get<RunsPage>(`runs?text=${runIdOf(0)}&cursor=${cursor}`);
      found.push(...page.runs.map(({ id }) => id));
      cursor = page.nextCursor;
    }
    expect(found.filter((id) => id === runIdOf(0))).toHaveLength(1);
    expect(requests).toBeGreaterThan(COORDINATIONS / 5_000);
  });
});

describe(`a coordination of 10,000 steps with ${QUESTIONS} open questions`, () => {
  it.each([
    ["is told", `runs/${LARGE}`, 5_000_000],
    ["has its questions listed", "questions", 2_000_000],
  ])("%s in turns of the thread that are short", async (_, path, bytesMin) => {
    const headers = { authorization: `Bearer ${client.signedIn.token}` };
    const read = async (): Promise<void> => {
      const response = await fetch(`${served.baseUrl}/api/${path}`, { headers });
      expect(response.status).toBe(200);
      expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(bytesMin);
    };
    expect(await shortestOf(TRIES, read)).toBeLessThan(TURN_MS_MAX);
  });
});
