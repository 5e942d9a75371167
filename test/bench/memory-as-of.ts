/**
 * The cost of a long memory: listing and getting entries as they were before an event, and writing one, with 10^3, 10^5 and 10^7
 * entries in the ledger. In a scope of each kind a quarter of them: all there; all but the oldest expired; all but the oldest
 * written again under one id. The last quarter is another tenant's.
 *
 * The entries are put there by SQL, as the store would have written them; the three sizes are measured in turn in every round.
 */
import { copyFileSync, rmSync, statSync } from "node:fs";
import Database from "better-sqlite3";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { MemoryEntry, WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import {
  createMemoryEntry,
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
} from "../contract/workflow-store-tested.ts";
import { openTestLedger, createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { alternate, findMedian, round, timeWork, type BenchOptions, type BenchRow } from "./bench-row.ts";
import { flushFile } from "./flush-file.ts";
import { fillMemory, LISTED, TENANT } from "./memory-fill.ts";

const SIZES = { full: [1_000, 100_000, 10_000_000], quick: [1_000, 10_000] } as const;
const CALLS_PER_ROUND = 100;
/** A b-tree of ten thousand times the rows is two levels deeper, and less of it is in the page cache. */
const FLAT_RATIO = 2;
const RUN = nameWorkflowRun("filled");
const NOW = TEST_EPOCH_MS as EpochMs;

interface FilledLedger {
  readonly entries: number;
  readonly path: string;
}

interface OpenFilledLedger extends FilledLedger {
  readonly ledger: SqliteLedger;
  readonly store: WorkflowStore;
}

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = createTempFolder();
  const ledgers = await fill(folder, quick ? SIZES.quick : SIZES.full);
  const opened = await Promise.all(
    ledgers.map(async (sized): Promise<OpenFilledLedger> => {
      const ledger = await openTestLedger(sized.path, { clock: systemClock });
      return { ...sized, ledger, store: ledger.workflows };
    }),
  );
  const rows: BenchRow[] = [];
  for (const [subject, call] of Object.entries(CALLS))
    rows.push(await measureFlatness(opened, { subject: subject, call, quick }));
  for (const { ledger } of opened) await ledger.close();
  return [...rows, createBytesRow(ledgers)];
}

async function fill(folder: TempFolder, sizes: readonly number[]): Promise<FilledLedger[]> {
  const growing = folder.file("growing.sqlite");
  const store = await openTestLedger(growing);
  await store.workflows.append(createWorkflowAuthor("filled").append([createRunStarted()]));
  await store.close();
  const ledgers: FilledLedger[] = [];
  let entries = 0;
  for (const size of sizes) {
    fillMemory(growing, { from: entries, to: size });
    entries = size;
    const path = folder.file(`${size}.sqlite`);
    copyFileSync(growing, path);
    flushFile(path);
    ledgers.push({ path, entries });
  }
  rmSync(growing);
  return ledgers;
}

type Call = (ledger: OpenFilledLedger, number: number) => Promise<void>;

/** Another place of the newer half each time. */
function placeIn({ entries }: OpenFilledLedger, number: number): number {
  const half = Math.floor(entries / 2);
  return half + ((number * 7_919) % half);
}

function createListingCall(scope: string, expected: number, more: { readonly tag?: string } = {}): Call {
  return async (ledger, number) => {
    const asOf = { runId: RUN, sequence: placeIn(ledger, number) };
    const query = { now: NOW, limit: expected, asOf, ...more };
    check(await ledger.store.memory.list({ tenant: TENANT, scope }, query), expected);
  };
}

function check(found: readonly MemoryEntry[], expected: number): void {
  if (found.length !== expected) throw new Error(`${found.length} entries instead of ${expected}`);
}

let written = 0;

const CALLS: Readonly<Record<string, Call>> = {
  [`listing ${LISTED} as of an event, many before and behind it`]: createListingCall("kept", LISTED),
  [`listing ${LISTED / 4} of one tag as of an event`]: createListingCall("kept", LISTED / 4, { tag: "rare" }),
  [`listing ${LISTED} as of an event, all newer ones before it expired`]: createListingCall(
    "expired",
    LISTED,
  ),
  [`listing ${LISTED} as of an event, all newer ones before it replaced`]: createListingCall(
    "replaced",
    LISTED,
  ),
  "getting one by its id as of an event": async (ledger, number) => {
    const asOf = { runId: RUN, sequence: placeIn(ledger, number) };
    const id = `m-${(placeIn(ledger, number) >> 3) << 2}`;
    const found = await ledger.store.memory.get({ tenant: TENANT, scope: "kept" }, id, { now: NOW, asOf });
    check(found ? [found] : [], 1);
  },
  "writing one, durably and alone": async ({ store }) => {
    written += 1;
    const author = createWorkflowAuthor(`written-${written}`);
    const entries = [createMemoryEntry(`m-${written}`, { tags: ["rare"] })];
    const scope = { tenant: TENANT, scope: "kept" };
    await store.append(author.append([createRunStarted()], { entries, scope }));
  },
};

async function measureFlatness(
  opened: readonly OpenFilledLedger[],
  { subject, call, quick }: { readonly subject: string; readonly call: Call; readonly quick: boolean },
): Promise<BenchRow> {
  let number = 0;
  const sides = opened.map(
    (ledger) => (): Promise<number> =>
      timeWork(async () => {
        for (let index = 0; index < CALLS_PER_ROUND; index += 1) await call(ledger, (number += 1));
      }),
  );
  await alternate(1, sides);
  const times = await alternate(quick ? 3 : 9, sides);
  const micros = times.map((each) => (findMedian(each) / CALLS_PER_ROUND) * 1_000);
  return {
    name: `memory, ${subject}: cost with the most entries / with the fewest`,
    compares: "median time of one call, the ledgers measured in turn",
    value: round((micros.at(-1) ?? Number.NaN) / (micros[0] ?? Number.NaN)),
    unit: "ratio",
    target: { is: "at most", value: FLAT_RATIO },
    detail: Object.fromEntries(
      opened.map(({ entries }, index) => [
        `us at ${entries.toLocaleString("en")}`,
        round(micros[index] ?? 0),
      ]),
    ),
  };
}

function createBytesRow(ledgers: readonly FilledLedger[]): BenchRow {
  const { path, entries } = ledgers.at(-1) ?? { path: "", entries: 0 };
  const database = new Database(path);
  database.pragma("wal_checkpoint(truncate)");
  const blocks = Number(database.prepare("select count(*) from memory_block").pluck().get());
  database.close();
  return {
    name: "memory: bytes of an entry in the ledger",
    compares: "size of the file by its entries, each of 40 characters with the event that tells of it",
    value: Math.round(statSync(path).size / entries),
    unit: "bytes",
    detail: {
      blocksByThousandEntries: round((blocks / entries) * 1_000),
      megabytes: round(statSync(path).size / 1e6),
    },
  };
}
