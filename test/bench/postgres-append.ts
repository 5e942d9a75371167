/**
 * Append to PostgreSQL against raw `pg`, by one caller, by 16 and by 64 at once.
 *
 * Store: `append` of a real ledger: wait for the group, lock the ledger, read the heads, check owner and place, hash-chain,
 * write, run the triggers. Each caller appends to a coordination of its own, one append after the other: the spawn of a step, its
 * acknowledgement, its end. The appends are made beforehand.
 * Runtime: the same through `coordinator.admitSpawn`, `confirmSpawn` and `endChild`: decide, fold, project to OpenWOP.
 * Raw: the statements that this very round sent to write, with their values, in the same transactions and order, on one
 * connection. The tables, keys, checks and indexes are those of the ledger, without its triggers. `in turn` awaits each
 * statement, as programs do; `at once` sends a whole transaction before the first answer, as the store does.
 * All durable, on one server.
 */
import pg from "pg";
import type { CoordinationId, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { AppendRequest } from "../../src/agents/coordination/ports/ledger-store.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import type { PostgresLedger } from "../../src/infra/postgres/postgres-ledger-store.ts";
import {
  contentOf,
  createAuthor,
  nameChildSession,
  openingOf,
  spawnOf,
  spawnRequest,
  testCoordinator,
} from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { findMedian, round, spreadOf, timeWork, type BenchOptions, type BenchRow } from "./bench-row.ts";

const TARGET = 0.6;
const ROUNDS = 3;
const STEPS = 30;
const QUICK_STEPS = 5;

interface Load {
  readonly callers: number;
  /** Coordinations that each caller works on, one after the other. */
  readonly coordinations: number;
}

const LOADS: readonly Load[] = [
  { callers: 1, coordinations: 6 },
  { callers: 16, coordinations: 1 },
  { callers: 64, coordinations: 1 },
];

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const load of LOADS)
    for (const way of ["store", "runtime"] as const)
      rows.push(...(await compare({ ...load, way, steps: quick ? QUICK_STEPS : STEPS })));
  return rows;
}

interface Comparison extends Load {
  readonly way: keyof typeof WAYS;
  readonly steps: number;
}

async function compare(comparison: Comparison): Promise<BenchRow[]> {
  const { callers, way } = comparison;
  await runRound(comparison);
  const rounds: Round[] = [];
  for (let number = 0; number < ROUNDS; number += 1) rounds.push(await runRound(comparison));
  const appends = countAppends(comparison);
  const describeRatio = (name: string, rawOf: (round: Round) => number): BenchRow => {
    const ratios = rounds.map((each) => rawOf(each) / each.ours);
    const countPerSecond = (times: readonly number[]): number =>
      Math.round((1_000 * appends) / findMedian(times));
    return {
      name: `PostgreSQL, ${callers} at once: append through the ${way} / raw pg writing the same rows, ${name}`,
      compares: `appends per second${COMPARED[way]}; raw: the same statements in the same transactions, no triggers; durable`,
      value: round(findMedian(ratios)),
      unit: "ratio",
      detail: {
        ...spreadOf(ratios),
        appendsPerSecond: countPerSecond(rounds.map(({ ours }) => ours)),
        rawAppendsPerSecond: countPerSecond(rounds.map(rawOf)),
        appendsATransaction: round(appends / findMedian(rounds.map(({ transactions }) => transactions))),
        appends,
      },
    };
  };
  const isJudged = way === "store";
  return [
    {
      ...describeRatio("each statement in turn", ({ inTurn }) => inTurn),
      ...(isJudged && { target: { is: "at least", value: TARGET } as const }),
    },
    describeRatio("each transaction at once", ({ atOnce }) => atOnce),
  ];
}

/** A spawn, its acknowledgement and its end. */
const APPENDS_PER_STEP = 3;

function countAppends({ callers, coordinations, steps }: Comparison): number {
  return callers * coordinations * steps * APPENDS_PER_STEP;
}

/** The milliseconds that each side took. */
interface Round {
  readonly ours: number;
  readonly inTurn: number;
  readonly atOnce: number;
  readonly transactions: number;
}

/** Each side has its turn every few steps, so that all see the same machine. */
async function runRound(comparison: Comparison): Promise<Round> {
  await using schema = await createTestSchema();
  await using rawInTurn = await openRaw({ isPipelined: false });
  await using rawAtOnce = await openRaw({ isPipelined: true });
  const store = await openTestPostgres(schema.url, { clock: systemClock });
  const { slices, stop } = WAYS[comparison.way](store, comparison);
  const sum = { ours: 0, inTurn: 0, atOnce: 0, transactions: 0 };
  for (const slice of slices) {
    const recorder = recordStatements();
    sum.ours += await timeWork(slice);
    recorder.stop();
    sum.inTurn += await rawInTurn.replay(recorder.transactions);
    sum.atOnce += await rawAtOnce.replay(recorder.transactions);
    sum.transactions += recorder.transactions.length;
  }
  await stop();
  await store.close();
  return sum;
}

interface Work {
  /** Steps of all callers, a few each. */
  readonly slices: readonly (() => Promise<void>)[];
  readonly stop: () => Promise<void>;
}

const WAYS = { store: prepareStore, runtime: prepareRuntime } as const;
const STEPS_PER_SLICE = 5;

/** Names a step of a caller, by numbers from 0. */
interface StepPlace {
  readonly caller: number;
  readonly coordination: number;
  readonly step: number;
}

function createSlices(
  { callers, coordinations, steps }: Comparison,
  runStep: (place: StepPlace) => Promise<void>,
): (() => Promise<void>)[] {
  const slices: (() => Promise<void>)[] = [];
  for (let coordination = 0; coordination < coordinations; coordination += 1)
    for (let first = 0; first < steps; first += STEPS_PER_SLICE) {
      const runCaller = async (caller: number): Promise<void> => {
        for (let step = first; step < first + STEPS_PER_SLICE; step += 1)
          await runStep({ caller, coordination, step });
      };
      slices.push(async () => {
        await Promise.all(Array.from({ length: callers }, (_, caller) => runCaller(caller)));
      });
    }
  return slices;
}

const COMPARED = { store: "", runtime: ", with finding and reading the coordination before each" } as const;

const OWNER = { id: "gateway:bench/1", token: 1 };

function prepareStore(store: PostgresLedger, comparison: Comparison): Work {
  const { callers, coordinations, steps } = comparison;
  const requests = Array.from({ length: callers }, (_caller, caller) =>
    Array.from({ length: coordinations }, (_, coordination) =>
      writeCoordination(`${caller}-${coordination}`, steps),
    ),
  );
  return {
    slices: createSlices(comparison, async ({ caller, coordination, step }) => {
      for (const request of requests[caller]?.[coordination]?.[step] ?? [])
        await store.append({ ...request, owner: OWNER });
    }),
    stop: () => Promise.resolve(),
  };
}

/** Returns the appends of each step. */
function writeCoordination(name: string, steps: number): AppendRequest[][] {
  const author = createAuthor(name);
  return Array.from({ length: steps }, (_, index) => {
    const call = `${name}-${index}`;
    const step = { stepId: `step-${index + 1}` as StepId, attempt: 1, via: "hook" } as const;
    const spawn = spawnOf(call);
    const begun = index === 0 ? author.append(openingOf(name), spawn) : author.append(spawn);
    return [
      { ...begun, contents: [contentOf(`task of ${call}`)] },
      author.append({
        type: "acknowledgeStep",
        ...step,
        childSessionKey: nameChildSession(call),
        childRunId: `run-${call}`,
      }),
      author.append({ type: "completeStep", ...step }),
    ];
  });
}

function prepareRuntime(store: PostgresLedger, comparison: Comparison): Work {
  let number = 0;
  const coordinator = testCoordinator({
    store,
    clock: systemClock,
    newCoordinationId: () => `co-${(number += 1)}` as CoordinationId,
  });
  const runStep = async (trace: string, call: string): Promise<void> => {
    const source = `agent:main:telegram:direct:${trace}` as SessionKey;
    const admission = await coordinator.admitSpawn(spawnRequest({ call, trace, source }));
    if (admission.kind === "refused") throw new Error(admission.reason);
    const { coordinationId, stepId } = admission.envelope;
    const claim = { coordinationId, stepId, sourceSession: source, toolCallId: call };
    const childSessionKey = nameChildSession(call);
    await coordinator.confirmSpawn(claim, { childSessionKey, childRunId: `run-${call}` });
    await coordinator.endChild(childSessionKey, { outcome: "completed" });
  };
  return {
    slices: createSlices(comparison, ({ caller, coordination, step }) =>
      runStep(`trace-${caller}-${coordination}`, `${caller}-${coordination}-${step}`),
    ),
    stop: () => coordinator.stop(),
  };
}

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Statements of one transaction, without its reads. */
type Transaction = readonly Statement[];

interface Recorder {
  readonly transactions: readonly Transaction[];
  readonly stop: () => void;
}

/** Notes what every connection sends in transactions that write, until it is stopped. */
function recordStatements(): Recorder {
  const transactions: Statement[][] = [];
  const { prototype } = pg.Client;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, "query");
  if (!descriptor) throw new Error("the driver has no method query any more");
  const send = descriptor.value as (...values: unknown[]) => unknown;
  const noteAndSend = function (this: pg.Client, ...sent: unknown[]): unknown {
    const [statement] = sent;
    const { text, values = [] } =
      typeof statement === "string"
        ? { text: statement }
        : (statement as { text: string; values?: unknown[] });
    if (text === "begin") transactions.push([]);
    else if (/^\s*(?:insert|update|delete)\b/u.test(text)) transactions.at(-1)?.push({ text, values });
    return Reflect.apply(send, this, sent);
  };
  Object.defineProperty(prototype, "query", { ...descriptor, value: noteAndSend });
  return {
    transactions,
    stop: () => {
      Object.defineProperty(prototype, "query", descriptor);
    },
  };
}

interface RawReplayer extends AsyncDisposable {
  /** Returns how many milliseconds it took. */
  readonly replay: (transactions: readonly Transaction[]) => Promise<number>;
}

async function openRaw({ isPipelined }: { readonly isPipelined: boolean }): Promise<RawReplayer> {
  const schema = await createTestSchema();
  await (await openTestPostgres(schema.url)).close();
  await disableTriggers(schema);
  const client = new pg.Client({ connectionString: schema.url, pipeline: isPipelined });
  await client.connect();
  const send = (statement: Statement): Promise<unknown> =>
    client.query(statement.text, [...statement.values]);
  const replayOne = async (statements: Transaction): Promise<void> => {
    const all = [BEGIN, ...statements, COMMIT];
    if (isPipelined) await Promise.all(all.map(send));
    else for (const statement of all) await send(statement);
  };
  return {
    replay: (transactions) =>
      timeWork(async () => {
        for (const statements of transactions) await replayOne(statements);
      }),
    [Symbol.asyncDispose]: async () => {
      await client.end();
      await schema[Symbol.asyncDispose]();
    },
  };
}

const BEGIN: Statement = { text: "begin", values: [] };
const COMMIT: Statement = { text: "commit", values: [] };

async function disableTriggers(schema: TestSchema): Promise<void> {
  const tables = await schema.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = current_schema() order by tablename",
  );
  for (const { name } of tables) await schema.query(`alter table ${name} disable trigger user`);
}
