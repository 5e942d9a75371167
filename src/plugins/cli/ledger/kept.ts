/** Owns: how people are told that a coordination is a fork of another one, and what it has from there. */
import type {
  CoordinationView,
  StepOutline,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";

/**
 * Returns a part of a heading that names the source of a fork, as a list of one text; empty where the coordination is
 * no fork.
 */
export function describeForkSource(forkedFrom: CoordinationView["forkedFrom"]): string[] {
  return forkedFrom ? [`fork of ${forkedFrom.coordinationId} from ${forkedFrom.sequence}`] : [];
}

/**
 * Returns a part of a heading that counts the steps whose results a fork keeps of its source, as a list of one text;
 * empty where it keeps none.
 */
export function describeKeptResults(steps: readonly StepOutline[]): string[] {
  const kept = steps.filter(({ carriedFrom }) => carriedFrom !== undefined).length;
  return kept > 0 ? [`${kept} kept`] : [];
}
