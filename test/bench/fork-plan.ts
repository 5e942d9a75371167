/**
 * The cost of finding out what a fork of a plan keeps at a place of its source's log, in a SQLite ledger, against reading and
 * folding the same part of that log.
 */
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { readState } from "../../src/agents/coordination/runtime/log/read-state.ts";
import { AGENT } from "../support/ledger-fixtures.ts";
import { alternate, findMedian, round, timeWork, type BenchOptions, type BenchRow } from "./bench-row.ts";
import { openPlanHost, planOf, type PlanHost } from "./plan-host.ts";

const STEPS = { full: 10_000, quick: 500 } as const;
const SOURCE = "co-source" as CoordinationId;
/** The hashes of the log are walked beside folding it, the texts of the results and of the plan are read, and that is checked. */
const TIMES_MAX = 5;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  const steps = quick ? STEPS.quick : STEPS.full;
  await using host = await openPlanHost({ concurrency: 64 });
  const notes = host.take();
  await host.coordinator.submitPlan({ plan: planOf(SOURCE, "chain", steps), ownerAgent: AGENT });
  await notes.ended.promise;
  const whole = await readState(host.store, SOURCE);
  const rounds = quick ? 3 : 7;
  const near = await measureRatioAt(host, Math.round(whole.nextSequence / 10), rounds);
  const far = await measureRatioAt(host, Math.round(whole.nextSequence * 0.9), rounds);
  return [
    {
      name: "fork of a plan, up to where it is submitted",
      compares: `a chain of ${steps.toLocaleString("en")} steps, forked at nine tenths of its log, over reading and folding that; medians`,
      value: round(far.forkMs / far.readMs),
      unit: "times reading",
      target: { is: "at most", value: TIMES_MAX },
      detail: {
        "events of the source": whole.nextSequence,
        "at nine tenths, ms": round(far.forkMs),
        "reading that, ms": round(far.readMs),
        "at one tenth, ms": round(near.forkMs),
        "reading that, ms ": round(near.readMs),
      },
    },
  ];
}

async function measureRatioAt(
  { coordinator, store }: PlanHost,
  from: number,
  rounds: number,
): Promise<{ readonly forkMs: number; readonly readMs: number }> {
  const [forkMs = [], readMs = []] = await alternate(rounds, [
    () =>
      timeWork(async () => {
        const forked = await coordinator.forkPlan({ source: SOURCE, from, isPreview: true });
        if (forked.kind !== "preview") throw new Error(`the fork was ${forked.kind}`);
      }),
    () =>
      timeWork(async () => {
        await readState(store, SOURCE, from);
      }),
  ]);
  return { forkMs: findMedian(forkMs), readMs: findMedian(readMs) };
}
