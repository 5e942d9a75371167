/** Owns: how people are told that a coordination is a fork of another one, and what it has from there. */
import type {
  CoordinationView,
  StepOutline,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";

/** Describes the source of a fork; empty when it is no fork. */
export function forkText(forkedFrom: CoordinationView["forkedFrom"]): string[] {
  return forkedFrom ? [`fork of ${forkedFrom.coordinationId} from ${forkedFrom.sequence}`] : [];
}

/** Describes how many results are from the source; empty when none is. */
export function describeKept(steps: readonly StepOutline[]): string[] {
  const kept = steps.filter(({ carriedFrom }) => carriedFrom !== undefined).length;
  return kept > 0 ? [`${kept} kept`] : [];
}
