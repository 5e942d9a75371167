/**
 * A plan of two steps, end to end, against DBOS's workflow of two steps, one at a time.
 *
 * Ours: `submitPlan` until the end is on disk and the owner was told, with a runner that does nothing, on a ledger file. DBOS: a
 * call awaited to its end, on a PostgreSQL server of this machine. Both are durable before they say so, warm, and in
 * processes of their own; they take turns. DBOS's processor time is without that of its server.
 */
import { createTestSchema } from "../support/postgres-server.ts";
import { findMedian, round, spreadOf, type BenchOptions, type BenchRow } from "./bench-row.ts";
import { runDbos, type DbosFigures } from "./dbos-side.ts";
import type { PlanFigures, PlansToRun } from "./measure-plans.ts";
import { runForJson } from "./run-for-json.ts";

const PLAN_PROCESS = new URL("plan-process.ts", import.meta.url);
const TARGETS = { ms: 4, cpuMs: 3, toDbos: 0.5 } as const;
const WARMUPS = 50;
const STEPS = 2;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  await using schema = await createTestSchema();
  const runs = quick ? 30 : 300;
  const plans: PlansToRun = { shape: "chain", steps: STEPS, runs, warmups: WARMUPS, concurrency: 8 };
  const ours: PlanFigures[] = [];
  const dbos: DbosFigures[] = [];
  for (let index = 0; index < (quick ? 1 : 5); index += 1) {
    ours.push(await runForJson<PlanFigures>(PLAN_PROCESS, ["run", JSON.stringify(plans)]));
    const found = await runDbos(schema, { atOnce: 1, workflows: runs, warmups: WARMUPS });
    if (found) dbos.push(found);
  }
  return [...describeOurs(ours, runs), ...describeAgainstDbos(ours, dbos)];
}

function describeOurs(ours: readonly PlanFigures[], runs: number): BenchRow[] {
  const compares = `one after the other; from submitting ${runs} plans, one at a time, until each end is on disk and the owner was told`;
  const times = ours.map(({ planMs }) => planMs.p50);
  const cpu = ours.map(cpuMsOf);
  return [
    {
      name: "a plan of two steps, end to end",
      compares: `${compares}; median`,
      value: round(findMedian(times)),
      unit: "ms",
      target: { is: "at most", value: TARGETS.ms },
      detail: {
        ...spreadOf(times),
        p99: round(findMedian(ours.map(({ planMs }) => planMs.p99))),
        transactions: round(STEPS * findMedian(ours.map(({ transactionsPerStep }) => transactionsPerStep))),
      },
    },
    {
      name: "processor time of a plan of two steps",
      compares: `${compares}; of all threads, by the plans`,
      value: round(findMedian(cpu)),
      unit: "ms",
      target: { is: "at most", value: TARGETS.cpuMs },
      detail: spreadOf(cpu),
    },
  ];
}

function describeAgainstDbos(ours: readonly PlanFigures[], dbos: readonly DbosFigures[]): BenchRow[] {
  if (dbos.length === 0) return [];
  const ratios = dbos.map(({ p50Ms }, index) => (ours[index]?.planMs.p50 ?? Number.NaN) / p50Ms);
  return [
    {
      name: "a plan of two steps, end to end / a DBOS workflow of two steps on PostgreSQL",
      compares:
        "medians of each round, one at a time; ours on a file, DBOS on a server of the same machine; both durable",
      value: round(findMedian(ratios)),
      unit: "ratio",
      target: { is: "at most", value: TARGETS.toDbos },
      detail: {
        ...spreadOf(ratios),
        oursMs: round(findMedian(ours.map(({ planMs }) => planMs.p50))),
        dbosMs: round(findMedian(dbos.map(({ p50Ms }) => p50Ms))),
        oursCpuMs: round(findMedian(ours.map(cpuMsOf))),
        dbosCpuMs: round(findMedian(dbos.map(({ cpuMicros }) => cpuMicros / 1_000))),
      },
    },
  ];
}

function cpuMsOf({ cpuMicrosPerStep }: PlanFigures): number {
  return (STEPS * cpuMicrosPerStep) / 1_000;
}
