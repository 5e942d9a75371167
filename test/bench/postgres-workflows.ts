/**
 * No-op runs through `serve` on PostgreSQL: against DBOS's workflows of two steps on the same server, and two `serve` on one
 * database against one.
 *
 * All sides take turns in every round, each load by a process of its own; client, hosts and server share the machine's processors.
 * Processor seconds of the hosts and of the server say what limits them.
 */
import { availableParallelism } from "node:os";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { findMedian, round, spreadOf, type BenchOptions, type BenchRow } from "./bench-row.ts";
import { runDbos, type DbosFigures } from "./dbos-side.ts";
import type { LoadFigures } from "./openwop-load.ts";
import { putLoad, startHost, type ServerProcess } from "./openwop-servers.ts";
import { NOOP } from "./openwop-workflows.ts";
import { readProcessorSeconds } from "./processor-seconds.ts";

const ROUNDS = 5;
const AT_ONCE = 16;
const RUNS = 3_000;
const DBOS_WORKFLOWS = 1_000;
const QUICK = 10;
const WARMUPS = 4 * AT_ONCE;

const DBOS_TARGET = 3;
const TWO_HOSTS_TARGET = 1.5;
/** With fewer, one host, the server and the client leave nothing for a second host: no verdict. */
const TWO_HOSTS_PROCESSORS = 6;

interface Round {
  readonly one: LoadFigures;
  /** Runs per second of both hosts together, with as many clients each. */
  readonly both: number;
  readonly oneUsed: BusyProcessors;
  readonly bothUsed: BusyProcessors;
  readonly dbos?: DbosFigures;
}

/** Processors that were busy on the average. */
interface BusyProcessors {
  readonly hosts: number;
  readonly server: number;
}

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = createTempFolder();
  await using schema = await createTestSchema();
  const first = await startHost(schema.url, folder);
  const second = await startHost(schema.url, folder);
  try {
    const share = quick ? QUICK : 1;
    const rounds: Round[] = [];
    // The first round is for the compilers of all sides.
    for (let index = 0; index <= (quick ? 1 : ROUNDS); index += 1)
      rounds.push(await measureRound([first, second], schema, index === 0 ? share * 4 : share));
    return describeRounds(rounds.slice(1));
  } finally {
    await first.stop();
    await second.stop();
  }
}

async function measureRound(
  [first, second]: readonly [ServerProcess, ServerProcess],
  schema: TestSchema,
  share: number,
): Promise<Round> {
  const runs = Math.ceil(RUNS / share);
  const load = { workflowId: NOOP.id, clients: AT_ONCE, warmups: WARMUPS, runs };
  const one = await watchProcessors([first], () => putLoad(first, load));
  const both = await watchProcessors([first, second], () =>
    Promise.all([first, second].map((host) => putLoad(host, load))),
  );
  const dbos = await runDbos(schema, {
    atOnce: AT_ONCE,
    workflows: Math.ceil(DBOS_WORKFLOWS / share),
    warmups: WARMUPS,
  });
  return {
    one: one.result,
    both: both.result.reduce((sum, { perSecond }) => sum + perSecond, 0),
    oneUsed: one.used,
    bothUsed: both.used,
    ...(dbos && { dbos }),
  };
}

async function watchProcessors<T>(
  hosts: readonly ServerProcess[],
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly used: BusyProcessors }> {
  const pids = hosts.map(({ pid }) => pid);
  const before = readProcessorSeconds(pids);
  const start = performance.now();
  const result = await work();
  const seconds = (performance.now() - start) / 1_000;
  const after = readProcessorSeconds(pids);
  return {
    result,
    used: {
      hosts: (after.listed - before.listed) / seconds,
      server: (after.postgres - before.postgres) / seconds,
    },
  };
}

function describeRounds(rounds: readonly Round[]): BenchRow[] {
  return [...describeAgainstDbos(rounds), describeTwoHosts(rounds)];
}

function describeAgainstDbos(rounds: readonly Round[]): BenchRow[] {
  const compared = rounds.flatMap(({ one, dbos }) => (dbos ? [{ one, dbos }] : []));
  if (compared.length === 0) return [];
  const ratios = compared.map(({ one, dbos }) => one.perSecond / dbos.perSecond);
  const medianOf = (figure: (round: (typeof compared)[number]) => number): number =>
    round(findMedian(compared.map(figure)));
  return [
    {
      name: `PostgreSQL, ${AT_ONCE} at once: no-op runs through serve / DBOS workflows of two steps`,
      compares:
        "runs per second over HTTP, followed to their end, hash-chained and fenced; DBOS: called in its own process, " +
        "pool of 20, logs off; one server, all durable",
      value: round(findMedian(ratios)),
      unit: "ratio",
      target: { is: "at least", value: DBOS_TARGET },
      detail: {
        ...spreadOf(ratios),
        runsPerSecond: medianOf(({ one }) => one.perSecond),
        dbosPerSecond: medianOf(({ dbos }) => dbos.perSecond),
        p50Ms: medianOf(({ one }) => one.p50Ms),
        dbosP50Ms: medianOf(({ dbos }) => dbos.p50Ms),
        dbosCpuMicros: medianOf(({ dbos }) => dbos.cpuMicros),
      },
    },
  ];
}

function describeTwoHosts(rounds: readonly Round[]): BenchRow {
  const ratios = rounds.map(({ one, both }) => both / one.perSecond);
  const medianOf = (figure: (round: Round) => number): number => round(findMedian(rounds.map(figure)));
  return {
    name: "PostgreSQL: no-op runs through two serve on one database / through one",
    compares: `runs per second, ${AT_ONCE} clients for each host, on ${availableParallelism()} processors`,
    value: round(findMedian(ratios)),
    unit: "ratio",
    ...(availableParallelism() >= TWO_HOSTS_PROCESSORS && {
      target: { is: "at least", value: TWO_HOSTS_TARGET },
    }),
    detail: {
      ...spreadOf(ratios),
      processors: availableParallelism(),
      busyByOneHost: medianOf(({ oneUsed }) => oneUsed.hosts),
      busyByServerThen: medianOf(({ oneUsed }) => oneUsed.server),
      busyByTwoHosts: medianOf(({ bothUsed }) => bothUsed.hosts),
      busyByServerWithTwo: medianOf(({ bothUsed }) => bothUsed.server),
    },
  };
}
