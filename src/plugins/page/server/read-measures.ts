/** Owns: the measures of the last seven days on the page. */
import type { EpochMs } from "../../../agents/coordination/contracts/ids.ts";
import { measureCounts } from "../../../agents/coordination/stats/measures.ts";
import { createMeasureCounter, type MeasureCounter } from "../../reports/count-measures.ts";
import type { MeasuresReport } from "../contract/measures-report.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageDependencies } from "./page-dependencies.ts";

const DAYS_MS = 7 * 86_400_000;

/**
 * Creates the function that reads the measures of one server; whoever asks during a reading gets the result of that
 * one.
 */
export function createMeasuresReader(): (dependencies: PageDependencies) => Promise<MeasuresReport> {
  const counter = createMeasureCounter();
  let reading: Promise<MeasuresReport> | undefined;
  return (dependencies) => {
    reading ??= readMeasures(dependencies, counter).finally(() => (reading = undefined));
    return reading;
  };
}

async function readMeasures(
  { reader, clock, targets }: PageDependencies,
  counter: MeasureCounter,
): Promise<MeasuresReport> {
  const since = (clock.now() - DAYS_MS) as EpochMs;
  const { counts, unreadable, isCut } = await counter.count(await reader(), {
    since,
    limit: PAGE_BOUNDS.measuredMax,
  });
  return {
    sinceMs: since,
    coordinations: counts.coordinations,
    ...(isCut && { isCut }),
    ...(unreadable.length > 0 && { unreadable: unreadable.length }),
    measures: measureCounts(counts, targets),
  };
}
