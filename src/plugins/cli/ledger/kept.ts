/** Owns: how people are told that a coordination is a fork of another one, and what it has from there. */
import type {
  CoordinationView,
  StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";

/** Nothing where it is no fork. */
export function forkText({ forkedFrom }: Pick<CoordinationView, "forkedFrom">): string[] {
  return forkedFrom ? [`fork of ${forkedFrom.coordinationId} from ${forkedFrom.sequence}`] : [];
}

/** Nothing where no result is from the source. */
export function describeKept(steps: readonly Pick<StepView, "carriedFrom">[]): string[] {
  const kept = steps.filter(({ carriedFrom }) => carriedFrom !== undefined).length;
  return kept > 0 ? [`${kept} kept`] : [];
}
