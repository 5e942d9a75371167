/**
 * Owns: deciding what of the host's word about a child is news, and where it differs from what was asked.
 *
 * A child that makes 500 calls of one model is one fact: only changes are recorded, each difference of an attempt once, and both
 * up to a bound.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import type { ObserveChild } from "../contracts/commands.ts";
import {
  createStepError,
  type ChildDifference,
  type ChildRun,
  type StepError,
} from "../contracts/fact-fields.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { describeRefusedDifference, findChildDifferences } from "../gates/child-differences.ts";
import type { ObservedRun, OpenCoordination, Step } from "../ledger/state.ts";
import { accept, refuse, type Decision } from "./decision.ts";

/**
 * Decides on the host's word about a child at work: accepted with what is new and where it differs from what was
 * asked; a replay of nothing new; refused where the attempt is over or changed too often.
 */
export function observeChild(state: OpenCoordination, command: ObserveChild): Decision {
  const { stepId, attempt } = command;
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  return refuseUnlessAtWork(step, attempt) ?? recordObservedChanges(step, command);
}

function recordObservedChanges(step: Step, { stepId, attempt, ran, refused }: ObserveChild): Decision {
  const before: ObservedRun = step.observed ?? { ran: {}, changes: 0 };
  const changed = selectChangedFields(before.ran, ran);
  const isNewlyRefused = refused === true && !before.refused;
  if (Object.keys(changed).length === 0 && !isNewlyRefused) return { kind: "replay", stepId };
  if (before.changes >= BOUNDS.observationsPerAttemptMax && !isNewlyRefused)
    return refuse("TOO_MANY_CHANGES", `enough changes of what runs step ${stepId} are recorded`);
  const fact: FactDraft = {
    type: "child.observed",
    payload: { stepId, attempt, ran: changed, ...(isNewlyRefused && { refused: true }) },
  };
  const { agentId, requested } = step.spec;
  const differences = findChildDifferences({ ...requested, agentId }, { ...before.ran, ...changed });
  return accept([fact, ...draftNewDifferences(step, differences)], stepId);
}

/** Returns the refusal where the attempt is not the current one or not under way; else `undefined`. */
function refuseUnlessAtWork({ spec: { stepId }, phase }: Step, attempt: number): Decision | undefined {
  if (attempt !== phase.attempt)
    return refuse(
      "STALE_ATTEMPT",
      `attempt ${attempt} of step ${stepId} is not the current attempt, which is ${phase.attempt}`,
    );
  return phase.status === "running" || phase.status === "dispatched"
    ? undefined
    : refuse("STEP_ENDED", `step ${stepId} is ${phase.status}`);
}

/** Returns the fields with a value that the log does not have yet. */
function selectChangedFields(before: ChildRun, ran: ChildRun): ChildRun {
  const fields = Object.entries(ran) as [keyof ChildRun, ChildRun[keyof ChildRun]][];
  const changed = fields.filter(
    ([field, value]) => value !== undefined && !isSameRunValue(before[field], value),
  );
  return Object.fromEntries(changed);
}

function isSameRunValue(a: ChildRun[keyof ChildRun], b: ChildRun[keyof ChildRun]): boolean {
  return typeof a === "object" && typeof b === "object" ? a.sha256 === b.sha256 : a === b;
}

/**
 * Drafts a fact for each found difference between a child and what was asked that the log does not have of this
 * attempt, up to a bound.
 */
export function draftNewDifferences(
  { spec: { stepId }, phase: { attempt }, differences: recorded = [] }: Step,
  found: readonly ChildDifference[],
): FactDraft[] {
  return found
    .filter((difference) => !recorded.some((earlier) => isSameDifference(earlier, difference)))
    .slice(0, Math.max(0, BOUNDS.differencesPerAttemptMax - recorded.length))
    .map((difference) => ({ type: "child.differed", payload: { stepId, attempt, ...difference } }));
}

/**
 * True for differences that are recorded once. A child that writes into many files outside of its folder differs once.
 */
function isSameDifference(a: ChildDifference, b: ChildDifference): boolean {
  return a.field === b.field && a.asked === b.asked && (a.field === "writes" || a.ran === b.ran);
}

/**
 * Returns the error of a step whose child was not started because it differed from what was asked, with the reasons;
 * `undefined` where its run was not refused.
 */
export function createRefusedRunError({ observed, differences = [] }: Step): StepError | undefined {
  if (!observed?.refused) return undefined;
  return createStepError("not_as_asked", differences.map(describeRefusedDifference).join("; "));
}
