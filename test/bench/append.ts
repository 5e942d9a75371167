/**
 * Append through the runtime against raw better-sqlite3.
 *
 * Runtime: `coordinator.admitSpawn`, `confirmSpawn` and `endChild` on a real ledger: find the coordination, decide,
 * fold, project to OpenWOP, hash-chain, compare and set, run the triggers. Concurrent calls in waves that append 100
 * events each, one wave after the other.
 * Raw, the same rows: everything that one such run wrote, in the same transactions and order: event, reference and
 * content rows inserted, run rows inserted and updated. The tables, checks and indexes are those of the ledger, without
 * its triggers and with foreign keys off. Prepared statements, one per row; all values, hashes included, are computed
 * beforehand.
 * Raw, event rows only: of that, only the events; what an append-only table and nothing beside it would cost.
 * All durable: WAL, synchronous FULL.
 */
import type { CoordinationId, EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { ContentStore } from "../../src/agents/coordination/ports/content-store.ts";
import type { AppendRequest, LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { SpawnClaim } from "../../src/agents/coordination/runtime/spawns/spawn-claim.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { nameChildSession, spawnRequest, testCoordinator } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import {
  alternate,
  findMedian,
  round,
  spreadOf,
  timeWork,
  type BenchOptions,
  type BenchRow,
} from "./bench-row.ts";
import { keepEventsOnly, readRecording, runRaw, type WriteRecording } from "./raw-writes.ts";

const BATCH = 100;
/** admitted, decided, dispatched, dispatch.began */
const EVENTS_PER_SPAWN = 4;
const SPAWNS_PER_WAVE = BATCH / EVENTS_PER_SPAWN;
/** Steps that one coordination gets before the next ones are opened. */
const STEPS_PER_COORDINATION = 8;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  return [
    ...(await compare({ rounds: quick ? 3 : 15, waves: quick ? 8 : 24, concurrent: true })),
    ...(await compare({ rounds: quick ? 3 : 9, waves: quick ? 1 : 3, concurrent: false })),
  ];
}

interface Comparison {
  readonly rounds: number;
  readonly waves: number;
  /** 100 events a transaction, or one call after the other. */
  readonly concurrent: boolean;
}

async function compare({ rounds, waves, concurrent }: Comparison): Promise<BenchRow[]> {
  using folder = createTempFolder();
  let number = 0;
  const nameFreshFile = (): string => folder.file(`${(number += 1)}.sqlite`);
  const recording = await record(nameFreshFile(), { waves, concurrent });
  const { events } = recording;
  const sides = [
    async () => (await runRuntime(nameFreshFile(), { waves, concurrent })) / events,
    async () => (await runRaw(nameFreshFile(), recording)) / events,
    async () => (await runRaw(nameFreshFile(), keepEventsOnly(recording))) / events,
  ];
  await alternate(1, sides);
  const [runtime = [], raw = [], rawEvents = []] = await alternate(rounds, sides);
  const how = concurrent ? `concurrent, ${BATCH} events a transaction` : "one call after the other";
  const detail = {
    runtimeMicrosPerEvent: round(1_000 * findMedian(runtime)),
    runtimeEventsPerSecond: Math.round(1_000 / findMedian(runtime)),
    events,
  };
  return [
    {
      name: `append through the runtime / raw better-sqlite3 writing the same rows, ${how}`,
      compares:
        "events per second; raw: all rows of all tables in the same transactions, prepared, hashes ready, no triggers; both durable",
      value: round(findMedian(raw) / findMedian(runtime)),
      unit: "ratio",
      target: { is: "at least", value: concurrent ? 0.7 : 0.9 },
      detail: {
        ...spreadOfRatios(raw, runtime),
        ...detail,
        rawMicrosPerEvent: round(1_000 * findMedian(raw)),
        // A slow commit weighs on both sides alike: from this cost of a commit on, the ratio is 0.7.
        ...(concurrent && {
          commitMsFromWhichMet: round(commitMsFor(0.7, findMedian(runtime), findMedian(raw))),
        }),
        transactions: recording.transactions.length,
      },
    },
    {
      name: `append through the runtime / raw better-sqlite3 writing the event rows only, ${how}`,
      compares:
        "events per second; raw: the events in the same transactions, but no run, reference or content rows; both durable",
      value: round(findMedian(rawEvents) / findMedian(runtime)),
      unit: "ratio",
      detail: {
        ...spreadOfRatios(rawEvents, runtime),
        ...detail,
        rawMicrosPerEvent: round(1_000 * findMedian(rawEvents)),
      },
    },
  ];
}

/** Takes the ratios that the rounds gave by themselves. */
function spreadOfRatios(above: readonly number[], below: readonly number[]): ReturnType<typeof spreadOf> {
  return spreadOf(above.map((value, index) => value / (below[index] ?? Number.NaN)));
}

/** Solves `(raw + c) / (runtime + c) = ratio` for what a commit must cost beyond what it cost here. */
function commitMsFor(ratio: number, runtimeMs: number, rawMs: number): number {
  return Math.max(0, (BATCH * (ratio * runtimeMs - rawMs)) / (1 - ratio));
}

interface Child {
  readonly claim: SpawnClaim;
  readonly session: SessionKey;
}

interface Run {
  readonly waves: number;
  readonly concurrent: boolean;
}

async function runRuntime(path: string, run: Run): Promise<number> {
  const store = await openTestLedger(path, { clock: systemClock });
  const ms = await drive(store, run);
  await store.close();
  return ms;
}

async function drive(store: LedgerStore & ContentStore, { waves, concurrent }: Run): Promise<number> {
  let id = 0;
  const createCoordinationId = (): CoordinationId => `co-00000000-0000-4000-8000-${++id}` as CoordinationId;
  const coordinator = testCoordinator({ store, clock: systemClock, newCoordinationId: createCoordinationId });
  const each = concurrent ? callTogether : callOneByOne;
  // Hashing the texts is the host's work.
  const spawns = Array.from({ length: waves * 2 }, (_, wave) => spawnsOf(coordinator, wave));
  const ms = await timeWork(async () => {
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
  return ms;
}

function callTogether<T>(calls: readonly (() => Promise<T>)[]): Promise<T[]> {
  return Promise.all(calls.map((call) => call()));
}

async function callOneByOne<T>(calls: readonly (() => Promise<T>)[]): Promise<T[]> {
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
    const session = nameChildSession(`00000000-0000-4000-8000-${wave}-${index}`);
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

/** Runs the runtime once, not measured, and notes what it wrote in which transaction. */
async function record(path: string, run: Run): Promise<WriteRecording> {
  let commits = 0;
  // The store asks for the time once per transaction.
  const countCommitAndTellTime = (): EpochMs => {
    commits += 1;
    return systemClock.now();
  };
  const store = await openTestLedger(path, { clock: { ...systemClock, now: countCommitAndTellTime } });
  const groups: AppendRequest[][] = [];
  const append = async (request: AppendRequest): Promise<void> => {
    await store.append(request);
    (groups[commits - 1] ??= []).push(request);
  };
  await drive({ ...store, append }, run);
  await store.close();
  return readRecording(path, groups);
}
