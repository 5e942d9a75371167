/**
 * A chain of 100 steps against raw better-sqlite3 writing the same rows in the same transactions: a durable commit a step is
 * the limit of any engine that loses no step.
 *
 * Ours: `submitPlan` until the end is on disk and the owner was told, with a runner that does nothing, in a process that
 * has run plans before. Raw: as in `raw-writes.ts`. Both: WAL, synchronous FULL, one plan in each round, in turn.
 */
import type { AppendRequest } from "../../src/agents/coordination/ports/ledger-store.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { alternate, findMedian, round, spreadOf, type BenchOptions, type BenchRow } from "./bench-row.ts";
import { runPlan } from "./measure-plans.ts";
import { openPlanHost, planOf } from "./plan-host.ts";
import { readRecording, runRaw, type WriteRecording } from "./raw-writes.ts";

const STEPS = 100;
/** As configured by default. */
const LANE_PLACES = 8;
const TARGET = 0.7;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = createTempFolder();
  const { recording, before } = await recordChain();
  await using host = await openPlanHost({ concurrency: LANE_PLACES });
  let plans = 0;
  const sides = [
    async () => (await runPlan(host, planOf(`co-chain-${(plans += 1)}`, "chain", STEPS))).ms,
    () => runRaw(folder.file(`${(plans += 1)}.sqlite`), recording, before),
  ];
  await alternate(quick ? 1 : 10, sides);
  const [ours = [], raw = []] = await alternate(quick ? 3 : 15, sides);
  const ratios = raw.map((ms, index) => ms / (ours[index] ?? Number.NaN));
  return [
    {
      name: `a chain of ${STEPS} steps / raw better-sqlite3 writing the same rows, a commit a step`,
      compares:
        "steps per second; raw: all rows of all tables in the same transactions, prepared, hashes ready, no triggers; both durable",
      value: round(findMedian(ratios)),
      unit: "ratio",
      target: { is: "at least", value: TARGET },
      detail: {
        ...spreadOf(ratios),
        oursMicrosPerStep: round((1_000 * findMedian(ours)) / STEPS),
        rawMicrosPerStep: round((1_000 * findMedian(raw)) / STEPS),
        commits: recording.transactions.length - before,
      },
    },
  ];
}

interface RecordedChain {
  readonly recording: WriteRecording;
  /** How many of its transactions are those of an earlier plan, with the texts that all plans share. */
  readonly before: number;
}

async function recordChain(): Promise<RecordedChain> {
  const groups: AppendRequest[][] = [];
  await using host = await openPlanHost({
    concurrency: LANE_PLACES,
    onAppended: (request, transaction) => (groups[transaction - 1] ??= []).push(request),
  });
  await runPlan(host, planOf("co-chain-before", "chain", STEPS));
  const before = host.transactions();
  await runPlan(host, planOf("co-chain", "chain", STEPS));
  await host.close();
  return { recording: readRecording(host.path, groups), before };
}
