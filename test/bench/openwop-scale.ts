/**
 * The cost of a long history for the OpenWOP host: opening, running no-ops and reading old runs over HTTP with 10^4, 10^5 and 10^6
 * runs in the ledger. A host for each size; all are measured in turn in every round. Reads at the largest are held against a
 * bare Hono server.
 */
import { copyFileSync, statSync } from "node:fs";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { findMedian, round, type BenchOptions, type BenchRow } from "./bench-row.ts";
import { flushFile } from "./flush-file.ts";
import { compareWithHono } from "./openwop-bare.ts";
import type { LoadFigures } from "./openwop-load.ts";
import { putLoad, startHost } from "./openwop-servers.ts";
import { NOOP } from "./openwop-workflows.ts";
import { runForJson } from "./run-for-json.ts";

const SIZES = { full: [10_000, 100_000, 1_000_000], quick: [1_000, 10_000] } as const;
const FILL = new URL("openwop-fill.ts", import.meta.url);
/** A b-tree of a hundred times the rows is one or two levels deeper, and less of it is in the page cache. */
const FLAT_RATIO = 1.5;
/** The budget of a ledger of coordinations. */
const OPENING_MS = 1_000;

interface FilledLedger {
  readonly path: string;
  readonly runs: number;
}

interface Sample {
  readonly openMs: number;
  readonly noop: LoadFigures;
  readonly reads: LoadFigures;
}

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = createTempFolder();
  const ledgers = await fill(folder, quick ? SIZES.quick : SIZES.full);
  const samples = new Map<FilledLedger, Sample[]>(ledgers.map((ledger) => [ledger, []]));
  for (let index = 0; index < (quick ? 1 : 5); index += 1)
    for (const [ledger, found] of samples) found.push(await sample(ledger, folder, quick));
  const [smallest] = ledgers;
  const largest = ledgers.at(-1);
  if (!smallest || !largest) return [];
  const findMedianOf = (ledger: FilledLedger, figure: (sample: Sample) => number): number =>
    findMedian((samples.get(ledger) ?? []).map(figure));
  const sides = { ledgers, smallest, largest, of: findMedianOf };
  return [
    createOpeningRow(sides),
    createFlatRow(sides, "no-op runs at 16 clients", ({ noop }) => 1_000 / noop.perSecond),
    createFlatRow(sides, "p50 of a snapshot of an old run, 1 client", ({ reads }) => reads.p50Ms),
    createBytesRow(largest),
    ...(await compareWithHono(largest.path, folder, { runs: largest.runs, quick })),
  ];
}

async function fill(folder: TempFolder, sizes: readonly number[]): Promise<FilledLedger[]> {
  const growing = folder.file("growing.sqlite");
  const ledgers: FilledLedger[] = [];
  let filled = 0;
  for (const runs of sizes) {
    await runForJson(FILL, [growing, String(filled), String(runs)]);
    filled = runs;
    const path = folder.file(`${runs}.sqlite`);
    copyFileSync(growing, path);
    flushFile(path);
    ledgers.push({ path, runs });
  }
  return ledgers;
}

/** The host is started anew each time, so that none has the runs of another round in memory. */
async function sample({ path, runs }: FilledLedger, folder: TempFolder, quick: boolean): Promise<Sample> {
  const opened = await runForJson<{ openMs: number }>(FILL, [path, String(runs), String(runs)]);
  const host = await startHost(path, folder);
  try {
    const noop = await putLoad(host, {
      workflowId: NOOP.id,
      clients: 16,
      warmups: quick ? 50 : 2_000,
      runs: quick ? 200 : 6_000,
    });
    const reads = await putLoad(host, {
      workflowId: "",
      clients: 1,
      warmups: quick ? 20 : 200,
      runs: quick ? 100 : 1_500,
      readsOf: runs,
    });
    return { openMs: opened.openMs, noop, reads };
  } finally {
    await host.stop();
  }
}

interface Sides {
  readonly ledgers: readonly FilledLedger[];
  readonly smallest: FilledLedger;
  readonly largest: FilledLedger;
  readonly of: (ledger: FilledLedger, figure: (sample: Sample) => number) => number;
}

function createOpeningRow({ ledgers, largest, of }: Sides): BenchRow {
  const pickOpenMs = ({ openMs }: Sample): number => openMs;
  return {
    name: `OpenWOP: opening a ledger of ${largest.runs.toLocaleString("en")} runs, until its host has started`,
    compares: "open, check, prepare and look for runs that a process left behind, in a process of its own",
    value: round(of(largest, pickOpenMs)),
    unit: "ms",
    target: { is: "at most", value: OPENING_MS },
    detail: groupBySize(ledgers, (ledger) => of(ledger, pickOpenMs)),
  };
}

function createFlatRow(
  { ledgers, smallest, largest, of }: Sides,
  subject: string,
  figure: (sample: Sample) => number,
): BenchRow {
  const sizes = `${largest.runs.toLocaleString("en")} to ${smallest.runs.toLocaleString("en")}`;
  return {
    name: `OpenWOP: ${subject}, ${sizes} runs in the ledger`,
    compares: "milliseconds at the most by those at the fewest, hosts in turn; details in milliseconds",
    value: round(of(largest, figure) / of(smallest, figure)),
    unit: "times",
    target: { is: "at most", value: FLAT_RATIO },
    detail: groupBySize(ledgers, (ledger) => of(ledger, figure)),
  };
}

function groupBySize(
  ledgers: readonly FilledLedger[],
  value: (ledger: FilledLedger) => number,
): Record<string, number> {
  return Object.fromEntries(ledgers.map((ledger) => [`at${ledger.runs}`, round(value(ledger))]));
}

function createBytesRow({ path, runs }: FilledLedger): BenchRow {
  return {
    name: "OpenWOP: bytes of a no-op run in the ledger",
    compares: "size of the file by its runs, of 4 events each",
    value: Math.round(statSync(path).size / runs),
    unit: "bytes",
  };
}
