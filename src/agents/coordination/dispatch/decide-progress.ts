/**
 * Owns: whether the agent of a step may say again how far it is. Progress is the agent's claim: no state of the step follows from it,
 * and it may be less than before.
 *
 * An attempt tells at most one progress in `PROGRESS_EVERY_MS`, and the older it is, the rarer: the next one waits for a hundredth
 * of its age. So the log grows with the logarithm of an attempt's time, to less than 1,000 facts in the longest one.
 */
import type { RecordProgress } from "../contracts/commands.ts";
import { addMs, formatTimestamp, type EpochMs } from "../contracts/ids.ts";
import type { OpenCoordination, Step } from "../ledger/state.ts";
import { accept, refuse, type Decision } from "./decision.ts";

export const PROGRESS_EVERY_MS = 5_000;
const SHARE_OF_AGE = 100;

/**
 * Returns the earliest time at which the agent of a step may tell its progress again; `undefined` where it has told
 * none yet.
 */
export function findNextProgressTime({ phase, progress }: Step): EpochMs | undefined {
  if (!progress) return undefined;
  const ageMs = "dispatchedAtMs" in phase ? progress.atMs - phase.dispatchedAtMs : 0;
  return addMs(progress.atMs, Math.max(PROGRESS_EVERY_MS, Math.ceil(ageMs / SHARE_OF_AGE)));
}

/**
 * Decides on what the agent of a step tells of its progress: accepted as a fact, or refused where it tells that too
 * often or its attempt is over.
 */
export function recordProgress(
  state: OpenCoordination,
  { type: _, ...payload }: RecordProgress,
  now: EpochMs,
): Decision {
  const { stepId, attempt } = payload;
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  const { phase } = step;
  if (attempt !== phase.attempt)
    return refuse("STALE_ATTEMPT", `attempt ${attempt} of step ${stepId} was given up; end your turn`);
  if (phase.status !== "running" && phase.status !== "dispatched")
    return refuse("STEP_ENDED", `step ${stepId} is ${phase.status}; end your turn`);
  const nextAtMs = findNextProgressTime(step);
  if (nextAtMs !== undefined && now < nextAtMs)
    return refuse("TOO_SOON", `the next progress may be told at ${formatTimestamp(nextAtMs)}`);
  return accept([{ type: "step.progressed", payload }], stepId);
}
