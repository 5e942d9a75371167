/**
 * The cost of a long history: opening, appending and reading at 10^4, 10^5 and 10^6 events, bytes per transition.
 *
 * The ledgers are real ones, made by the core and `store.append`: coordinations of two steps, 22 events each, all ended
 * but one in a thousand. The three sizes are measured in turn in every round.
 */
import { copyFileSync, statSync } from "node:fs";
import Database from "better-sqlite3";
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { AppendRequest } from "../../src/agents/coordination/ports/ledger-store.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import {
  createAuthor,
  nameChildSession,
  openingOf,
  runIdOf,
  spawnOf,
  spawnRequest,
  testCoordinator,
} from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { alternate, findMedian, round, timeWork, type BenchOptions, type BenchRow } from "./bench-row.ts";
import { flushFile } from "./flush-file.ts";

const SIZES = { full: [10_000, 100_000, 1_000_000], quick: [1_000, 10_000] } as const;
const APPENDS_UNDER_WAY = 200;
const OPEN_ONE_IN = 1_000;
const CALLS_PER_ROUND = 60;
/** A b-tree of a hundred times the rows is one or two levels deeper. */
const FLAT_RATIO = 1.5;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = createTempFolder();
  const rounds = quick ? 3 : 7;
  const ledgers = await buildLedgers(folder, quick ? SIZES.quick : SIZES.full);
  const largest = ledgers.at(-1);
  if (!largest) return [];
  return [
    await measureOpening(largest, rounds),
    ...(await measureFlatness(ledgers, rounds)),
    ...measureBytes(largest),
  ];
}

interface Ledger {
  readonly path: string;
  readonly events: number;
  readonly coordinations: number;
}

async function buildLedgers(folder: TempFolder, sizes: readonly number[]): Promise<Ledger[]> {
  const growing = folder.file("growing.sqlite");
  const ledgers: Ledger[] = [];
  let events = 0;
  let coordinations = 0;
  for (const size of sizes) {
    const store = await openTestLedger(growing);
    while (events < size) {
      const requests = Array.from({ length: APPENDS_UNDER_WAY }, () => coordinationOf((coordinations += 1)));
      await Promise.all(requests.map((request) => store.append(request)));
      events += requests.reduce((sum, request) => sum + request.events.length, 0);
    }
    await store.close();
    const path = folder.file(`${size}.sqlite`);
    copyFileSync(growing, path);
    flushFile(path);
    ledgers.push({ path, events, coordinations });
  }
  return ledgers;
}

function coordinationOf(number: number): AppendRequest {
  const name = `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
  const writer = createAuthor(name);
  const steps = ["step-1", "step-2"] as StepId[];
  const acknowledged = steps.map((stepId) => {
    const childSessionKey = nameChildSession(`${name}-${stepId}`);
    return {
      type: "acknowledgeStep",
      stepId,
      attempt: 1,
      childSessionKey,
      childRunId: name,
      via: "hook",
    } as const;
  });
  const completed = steps.map(
    (stepId) => ({ type: "completeStep", stepId, attempt: 1, via: "hook" }) as const,
  );
  const begin = [openingOf(`trace-${name}`), spawnOf("call-1"), spawnOf("call-2"), ...acknowledged];
  return number % OPEN_ONE_IN === 0
    ? writer.append(...begin)
    : writer.append(...begin, ...completed, { type: "settleCoordination" });
}

async function measureOpening({ path, events }: Ledger, rounds: number): Promise<BenchRow> {
  const opening: number[] = [];
  const admitting: number[] = [];
  for (let index = 0; index < rounds; index += 1) {
    const start = performance.now();
    const store = await openTestLedger(path, { clock: systemClock });
    opening.push(performance.now() - start);
    const coordinator = coordinatorOf(store, `opening-${index}`);
    const starting = coordinator.start();
    await coordinator.admitSpawn(spawnRequest({ call: `opening-${index}`, trace: `opening-${index}` }));
    admitting.push(performance.now() - start);
    await starting;
    await coordinator.stop();
    await store.close();
  }
  return {
    name: `opening a ledger of ${events.toLocaleString("en")} events, until the first spawn is admitted`,
    compares: "open, check, prepare, begin to recover and record one spawn durably; file in the page cache",
    value: round(findMedian(admitting)),
    unit: "ms",
    target: { is: "at most", value: 1_000 },
    detail: { openMs: round(findMedian(opening)), worstMs: round(Math.max(...admitting)) },
  };
}

function coordinatorOf(store: SqliteLedger, name: string): ReturnType<typeof testCoordinator> {
  let number = 0;
  const createCoordinationId = (): CoordinationId => runIdOf(`${name}-${(number += 1)}`);
  return testCoordinator({ store, clock: systemClock, newCoordinationId: createCoordinationId });
}

async function measureFlatness(ledgers: readonly Ledger[], rounds: number): Promise<BenchRow[]> {
  const stores = await Promise.all(ledgers.map(({ path }) => openTestLedger(path, { clock: systemClock })));
  const calls = { append: 0, read: 0 };
  const appending = stores.map((store, index) => {
    const coordinator = coordinatorOf(store, `flat-${index}`);
    return (): Promise<number> =>
      timeWork(async () => {
        for (let call = 0; call < CALLS_PER_ROUND; call += 1) {
          calls.append += 1;
          const trace = `flat-${Math.floor(calls.append / 20)}`;
          await coordinator.admitSpawn(spawnRequest({ call: `flat-${calls.append}`, trace }));
        }
      });
  });
  const reading = stores.map((store, index) => (): Promise<number> => {
    const { coordinations = 1 } = ledgers[index] ?? {};
    return timeWork(async () => {
      for (let call = 0; call < CALLS_PER_ROUND; call += 1) {
        calls.read += 1;
        // Another coordination each time, all over the file.
        const number = 1 + ((calls.read * 7_919) % coordinations);
        const { runId } = nameCoordination(number);
        const events = await store.read(runId, { from: 0, limit: 100 });
        if (events.length === 0) throw new Error(`${runId} is not there`);
      }
    });
  });
  await alternate(1, [...appending, ...reading]);
  const rows = [
    flatnessOf(
      "one spawn recorded durably, alone (4 to 6 events)",
      ledgers,
      await alternate(rounds, appending),
    ),
    flatnessOf("reading one coordination of 22 events", ledgers, await alternate(rounds, reading)),
  ];
  for (const store of stores) await store.close();
  return rows;
}

function nameCoordination(number: number): { runId: CoordinationId } {
  return { runId: runIdOf(`00000000-0000-4000-8000-${String(number).padStart(12, "0")}`) };
}

function flatnessOf(subject: string, ledgers: readonly Ledger[], times: readonly number[][]): BenchRow {
  const micros = times.map((each) => (findMedian(each) / CALLS_PER_ROUND) * 1_000);
  const first = micros[0] ?? Number.NaN;
  const last = micros.at(-1) ?? Number.NaN;
  const sizes = ledgers.map(({ events }, index) => [
    `us at ${events.toLocaleString("en")}`,
    round(micros[index] ?? 0),
  ]);
  return {
    name: `${subject}: cost at the largest ledger / at the smallest`,
    compares: "median time of one call, the ledgers measured in turn",
    value: round(last / first),
    unit: "ratio",
    target: { is: "at most", value: FLAT_RATIO },
    detail: Object.fromEntries(sizes) as Record<string, number>,
  };
}

function measureBytes({ path }: Ledger): BenchRow[] {
  const database = new Database(path);
  database.pragma("wal_checkpoint(truncate)");
  const events = Number(database.prepare("select count(*) from event").pluck().get());
  const facts = Number(
    database
      .prepare("select count(*) from event where type like 'step.%' or type like 'coordination.%'")
      .pluck()
      .get(),
  );
  database.close();
  const bytes = statSync(path).size;
  return [
    {
      name: "bytes per transition",
      compares:
        "file size by facts, each with its OpenWOP counterpart, hash, index entries, references and summary; without texts",
      value: Math.round(bytes / facts),
      unit: "bytes",
      target: { is: "at most", value: 1_024 },
      detail: { bytesPerEvent: Math.round(bytes / events), events, megabytes: round(bytes / 1e6) },
    },
  ];
}
