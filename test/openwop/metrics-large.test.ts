/** Owns: that a scrape of a ledger with many events is short, and leaves others their turns while many are counted. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Author } from "../support/ledger-fixtures.ts";
import { measureTurns } from "../attacks/longest-turn.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { createAuthor, openingOf, spawnOf } from "../support/ledger-fixtures.ts";
import { createManualClock, createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { parsePrometheusText, readCounted } from "../support/prometheus-text.ts";
import type { TempFolder } from "../support/temp-ledger.ts";
import { openMetrics } from "./metrics-scene.ts";

const EVENTS = chooseCampaignSize("SCRAPED_EVENTS", { short: 40_000, long: 1_000_000 });
const SPAWNS = 100;
/** An opening and a spawn have two facts each with their counterparts. */
const EVENTS_PER_SPAWN = 4;
const RUNS = Math.ceil(EVENTS / SPAWNS / EVENTS_PER_SPAWN);
const BATCH = 20;
const SCRAPE_MS_MAX = 20;
const TURN_MS_MAX = 100;
const TRIES = 3;
const SCRAPES = 30;
const ROUNDS = 5;
const LATER_SPAWNS = 10;

let folder: TempFolder;
let path: string;
let lastAuthor: Author;

beforeAll(async () => {
  folder = createTempFolder();
  path = folder.file("ledger.sqlite");
  const store = await openTestLedger(path, { clock: createManualClock() });
  const spawns = Array.from({ length: SPAWNS }, (_, index) => spawnOf(`call-${index}`));
  for (let first = 0; first < RUNS; first += BATCH) {
    const authors = Array.from({ length: BATCH }, (_, index) => createAuthor(first + index));
    await Promise.all(
      authors.map((author) => store.append(author.append(openingOf(`trace-${author.runId}`), ...spawns))),
    );
    lastAuthor = authors.at(-1) ?? lastAuthor;
  }
  await store.close();
}, 900_000);

afterAll(() => {
  folder[Symbol.dispose]();
});

/** Returns the sum over all series of a metric. */
function sumOf(counted: Readonly<Record<string, number>>, name: string): number {
  return Object.entries(counted).reduce(
    (sum, [series, count]) => (series.startsWith(`${name}{`) || series === name ? sum + count : sum),
    0,
  );
}

describe(`a ledger of ${EVENTS} events`, () => {
  it("is scraped in 20 ms, with what was appended since the scrape before", async () => {
    const store = await openTestLedger(path, { clock: createManualClock() });
    await using scene = await openMetrics(path, { after: "newest" });
    const attemptsBefore = sumOf(await scene.count(), "coordination_attempts_total");
    const tookMs: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const spawns = Array.from({ length: LATER_SPAWNS }, (_, index) => spawnOf(`later-${round}-${index}`));
      await store.append(lastAuthor.append(...spawns));
      const beganAtMs = performance.now();
      const text = await scene.metrics.scrape();
      tookMs.push(performance.now() - beganAtMs);
      const attempts = sumOf(readCounted(parsePrometheusText(text)), "coordination_attempts_total");
      expect(attempts - attemptsBefore).toBe((round + 1) * LATER_SPAWNS);
    }
    await store.close();
    expect(Math.min(...tookMs)).toBeLessThan(SCRAPE_MS_MAX);
  });

  it("is counted in short turns, and scrapes are answered meanwhile", async () => {
    let longestMs = Infinity;
    for (let made = 0; made < TRIES; made += 1) {
      await using scene = await openMetrics(path);
      await scene.metrics.scrape();
      const turns = await measureTurns(async () => {
        for (let scraped = 0; scraped < SCRAPES; scraped += 1) await scene.metrics.scrape();
      });
      longestMs = Math.min(longestMs, turns.longestMs);
      expect(sumOf(await scene.count(), "coordination_opened_total")).toBe(Math.ceil(RUNS / BATCH) * BATCH);
    }
    expect(longestMs).toBeLessThan(TURN_MS_MAX);
  });
});
