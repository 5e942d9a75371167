/**
 * Append through the runtime against raw better-sqlite3.
 *
 * Runtime: `coordinator.admitSpawn`, `confirmSpawn` and `endChild` on a real ledger: find the coordination, decide,
 * fold, project to OpenWOP, hash-chain, run the triggers, keep summaries, references and texts. Concurrent calls in
 * waves that append 100 events each, one wave after the other.
 * Raw: the very same event rows, all columns, hash included, into a table with the same columns and indexes but without
 * triggers or anything beside it, in transactions of 100. Both durable: WAL, synchronous FULL.
 */
import Database from "better-sqlite3";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { Coordinator, SpawnClaim } from "../../src/agents/coordination/runtime/coordinator.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { childSession, spawnRequest, testCoordinator } from "../support/ledger-fixtures.ts";
import { openTestLedger, tempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { alternate, median, round, timed, type BenchOptions, type BenchRow } from "./bench-row.ts";

const BATCH = 100;
/** admitted, decided, dispatched, dispatch.began */
const EVENTS_PER_SPAWN = 4;
const SPAWNS_PER_WAVE = BATCH / EVENTS_PER_SPAWN;
/** Steps that one coordination gets before the next ones are opened. */
const STEPS_PER_COORDINATION = 8;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  return [
    await compare({ rounds: quick ? 3 : 15, waves: quick ? 8 : 24, batch: BATCH }),
    await compare({ rounds: quick ? 3 : 9, waves: quick ? 1 : 3, batch: 1 }),
  ];
}

interface Comparison {
  readonly rounds: number;
  readonly waves: number;
  /** Events per transaction: 100, or 1 for one call after the other. */
  readonly batch: number;
}

async function compare({ rounds, waves, batch }: Comparison): Promise<BenchRow> {
  using folder = tempFolder();
  let number = 0;
  let rows: Row[] = [];
  const runtime = async (): Promise<number> => {
    number += 1;
    const path = folder.file(`runtime-${number}.sqlite`);
    const ms = await runRuntime(path, { waves, concurrent: batch > 1 });
    rows = rowsOf(path);
    return ms / rows.length;
  };
  const raw = (): Promise<number> => {
    number += 1;
    return runRaw(folder, { name: `raw-${number}.sqlite`, rows, batch: batch > 1 ? BATCH : EVENTS_PER_CALL });
  };
  await runtime();
  await raw();
  const [runtimeMs = [], rawMs = []] = await alternate(rounds, [runtime, raw]);
  const ratio = median(rawMs) / median(runtimeMs);
  const how = batch > 1 ? `concurrent, ${BATCH} events a transaction` : "one call after the other";
  return {
    name: `append through the runtime / raw better-sqlite3, ${how}`,
    compares: "events per second, same rows, both durable (WAL, synchronous FULL)",
    value: round(ratio),
    unit: "ratio",
    ...(batch > 1 && { target: { is: "at least", value: 0.7 } }),
    detail: {
      runtimeMicrosPerEvent: round(1_000 * median(runtimeMs)),
      rawMicrosPerEvent: round(1_000 * median(rawMs)),
      // A slow commit weighs on both sides alike: from this cost of a commit on, the ratio is 0.7.
      ...(batch > 1 && { commitMsFromWhichMet: round(commitMsFor(0.7, median(runtimeMs), median(rawMs))) }),
      runtimeEventsPerSecond: Math.round(1_000 / median(runtimeMs)),
      rawEventsPerSecond: Math.round(1_000 / median(rawMs)),
      events: rows.length,
    },
  };
}

/** Of the calls made one by one: 4 for a spawn, 2 for a confirmation, 2 for an end. */
const EVENTS_PER_CALL = 8 / 3;

/** Solves `(raw + c) / (runtime + c) = ratio` for what a commit must cost beyond what it cost here. */
function commitMsFor(ratio: number, runtimeMs: number, rawMs: number): number {
  return (BATCH * (ratio * runtimeMs - rawMs)) / (1 - ratio);
}

interface Child {
  readonly claim: SpawnClaim;
  readonly session: SessionKey;
}

async function runRuntime(
  path: string,
  { waves, concurrent }: { readonly waves: number; readonly concurrent: boolean },
): Promise<number> {
  const store = await openTestLedger(path, { clock: systemClock });
  let id = 0;
  const newCoordinationId = (): CoordinationId => `co-00000000-0000-4000-8000-${++id}` as CoordinationId;
  const coordinator = testCoordinator({ store, clock: systemClock, newCoordinationId });
  const each = concurrent ? together : oneByOne;
  // Hashing the texts is the host's work.
  const spawns = Array.from({ length: waves * 2 }, (_, wave) => spawnsOf(coordinator, wave));
  const ms = await timed(async () => {
    for (let wave = 0; wave < waves; wave += 1) {
      const children = [...(await each(spawns[wave * 2] ?? [])), ...(await each(spawns[wave * 2 + 1] ?? []))];
      await each(
        children.map(
          ({ claim, session }) =>
            () =>
              confirm(coordinator, claim, session),
        ),
      );
      await each(
        children.map(
          ({ session }) =>
            () =>
              coordinator.endChild(session, { outcome: "completed" }),
        ),
      );
    }
  });
  await coordinator.stop();
  await store.close();
  return ms;
}

function together<T>(calls: readonly (() => Promise<T>)[]): Promise<T[]> {
  return Promise.all(calls.map((call) => call()));
}

async function oneByOne<T>(calls: readonly (() => Promise<T>)[]): Promise<T[]> {
  const results: T[] = [];
  for (const call of calls) results.push(await call());
  return results;
}

function spawnsOf(coordinator: Coordinator, wave: number): (() => Promise<Child>)[] {
  const generation = Math.floor(wave / STEPS_PER_COORDINATION);
  return Array.from({ length: SPAWNS_PER_WAVE }, (_, index) => {
    const call = `call_${wave}_${index}`;
    const source = `agent:main:telegram:direct:${index}` as SessionKey;
    const request = spawnRequest({ call, trace: `4bf92f3577b34da6-${generation}-${index}`, source });
    const session = childSession(`00000000-0000-4000-8000-${wave}-${index}`);
    return async () => {
      const admission = await coordinator.admitSpawn(request);
      if (admission.kind === "refused") throw new Error(admission.reason);
      const { coordinationId, stepId } = admission.envelope;
      const claim = { coordinationId, stepId, sourceSession: source, toolCallId: call };
      return { claim, session };
    };
  });
}

async function confirm(coordinator: Coordinator, claim: SpawnClaim, session: SessionKey): Promise<void> {
  const envelope = await coordinator.confirmSpawn(claim, {
    childSessionKey: session,
    childRunId: `00000000-0000-4000-8000-${claim.stepId}`,
  });
  if (!envelope) throw new Error("the spawn was not confirmed");
}

type Row = readonly (number | string | Buffer | null)[];

const COLUMNS = "run_key, sequence, type, timestamp_ms, node_id, causation_id, payload, hash";

function rowsOf(path: string): Row[] {
  const database = new Database(path, { readonly: true });
  const rows = database.prepare(`select ${COLUMNS} from event order by event_key`).raw().all() as Row[];
  database.close();
  return rows;
}

async function runRaw(
  folder: TempFolder,
  { name, rows, batch }: { readonly name: string; readonly rows: readonly Row[]; readonly batch: number },
): Promise<number> {
  const database = new Database(folder.file(name));
  database.pragma("journal_mode = wal");
  database.pragma("synchronous = full");
  database.exec(`create table event (
    event_key integer primary key autoincrement, run_key integer not null, sequence integer not null,
    type text not null, timestamp_ms integer not null, node_id text, causation_id text, payload text not null,
    hash blob not null, unique (run_key, sequence)) strict`);
  const insert = database.prepare(`insert into event (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?)`);
  const write = database.transaction((part: readonly Row[]) => {
    for (const row of part) insert.run(...row);
  });
  const ms = await timed(() => {
    for (let from = 0; from < rows.length; from += batch)
      write.immediate(rows.slice(Math.round(from), Math.round(from + batch)));
  });
  database.close();
  return ms / rows.length;
}
