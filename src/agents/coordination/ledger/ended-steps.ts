/** Owns: which steps have not ended, and how many ended in which way. */
import { isEnded, type EndStatus, type KnownCoordination, type Step } from "./state.ts";

type Tally = Pick<KnownCoordination, "openSteps" | "endedSteps">;

/** Updates them where a step ends, or a retry takes it up again. */
export function updateEndedSteps(
  { openSteps, endedSteps }: Tally,
  { spec, phase: before }: Step,
  { phase: after }: Step,
): Tally {
  const { stepId } = spec;
  if (isEnded(after) && !isEnded(before)) {
    return { openSteps: openSteps.remove(stepId), endedSteps: countEnded(endedSteps, after.status, 1) };
  }
  if (isEnded(before) && !isEnded(after)) {
    return { openSteps: openSteps.add(stepId), endedSteps: countEnded(endedSteps, before.status, -1) };
  }
  return { openSteps, endedSteps };
}

function countEnded(counts: Tally["endedSteps"], status: EndStatus, by: number): Tally["endedSteps"] {
  return { ...counts, [status]: counts[status] + by };
}
