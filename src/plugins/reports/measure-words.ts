/** Owns: how measures read, on a terminal and on the page. */
import type { Measure, MeasureName } from "../../agents/coordination/stats/measures.ts";
import { formatDuration } from "../../agents/coordination/std/quantities.ts";

/** The name of each measure, and what it is counted of. */
const WORDS: Readonly<Record<MeasureName, readonly [name: string, of: string]>> = {
  success: ["coordinations that succeeded", "that ended"],
  delivery: ["results that reached whom they are for", "told"],
  firstResult: ["time to the first result, p95", "with a result"],
  duplicates: ["results that counted twice", "steps that completed"],
  lostUpdates: ["changes lost to another step's", "conflicts"],
  held: ["results that were held", "results"],
  answers: ["time people take to answer, p95", "questions answered"],
};

/** A measure in words: its name, value, target, verdict, and of how many it is. */
export interface MeasureWords {
  readonly name: string;
  readonly value: string;
  readonly target: string;
  readonly verdict: string;
  readonly countedOf: string;
}

/**
 * Returns a record with the texts that show a measure: its name, value, target and verdict, and of how many it was
 * counted.
 */
export function createMeasureWords(measure: Measure): MeasureWords {
  const { value, target, count, verdict } = measure;
  const [name, countedOf] = WORDS[measure.name];
  return {
    name,
    value: value === undefined ? "-" : formatValue(measure, value),
    target: `${target.is} ${formatValue(measure, target.value)}`,
    verdict: verdict === "few" ? "too few to tell" : verdict,
    countedOf: `${count} ${countedOf}`,
  };
}

function formatValue({ unit }: Measure, value: number): string {
  if (unit === "share") return `${(value * 100).toFixed(1)} %`;
  return unit === "ms" ? formatDuration(value) : String(value);
}
