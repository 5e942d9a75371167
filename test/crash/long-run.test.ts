/**
 * A year of a gateway in one process, with restarts and a prune each day: its memory, its file and its latency stay flat.
 * `LONG_RUN_DAYS` and `LONG_RUN_SPAWNS` (each day) set the size.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import type { DayReport, LongRunReport } from "./long-run-process.ts";

const DAYS = chooseCampaignSize("LONG_RUN_DAYS", { short: 60, long: 365 });
const SPAWNS_PER_DAY = chooseCampaignSize("LONG_RUN_SPAWNS", { short: 6, long: 274 });
/** By then the first prune has removed something, and the process has all its code. */
const STEADY_FROM_DAY = 35;
const HEAP_GROWTH_MAX = 8_000_000;

async function playYear(path: string): Promise<LongRunReport> {
  const program = join(import.meta.dirname, "long-run-process.ts");
  const args = ["--expose-gc", program, path, String(DAYS), String(SPAWNS_PER_DAY)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 10_000_000 });
  return JSON.parse(stdout) as LongRunReport;
}

function findMedian(days: readonly DayReport[], read: (day: DayReport) => number): number {
  const values = days.map(read).toSorted((one, other) => one - other);
  return values[Math.floor(values.length / 2)] ?? Number.NaN;
}

describe("a gateway", () => {
  it(`stays as it is for ${DAYS} days of ${SPAWNS_PER_DAY} spawns`, async () => {
    using folder = createTempFolder();
    const { days, spawns, problems, coordinations, pruned } = await playYear(folder.file("ledger.sqlite"));
    expect(problems).toEqual([]);
    expect(pruned).toBeGreaterThan(spawns * (1 - 35 / DAYS));
    expect(coordinations).toBeLessThan(SPAWNS_PER_DAY * 35);
    const steady = days.slice(STEADY_FROM_DAY);
    const early = steady.slice(0, Math.ceil(steady.length / 3));
    const late = steady.slice(-early.length);
    const largestOf = (some: readonly DayReport[]): number => Math.max(...some.map(({ bytes }) => bytes));
    expect(largestOf(late)).toBeLessThan(largestOf(early) * 1.25);
    const heapOf = (some: readonly DayReport[]): number => findMedian(some, ({ heapBytes }) => heapBytes);
    expect(heapOf(late)).toBeLessThan(heapOf(early) + HEAP_GROWTH_MAX);
    // The disk of a test machine is another one from one minute to the next.
    const admitMsOf = (some: readonly DayReport[]): number => findMedian(some, ({ admitMs }) => admitMs);
    expect(admitMsOf(late)).toBeLessThan(Math.max(admitMsOf(early) * 3, 20));
  });
});
