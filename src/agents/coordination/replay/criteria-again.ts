/** Owns: how far a plan reached what it is for, as far as the outputs that this is read off are kept (RFC 0090, section C). */
import type { CriterionMet } from "../contracts/verification.ts";
import { isPlanned } from "../dispatch/plan-rules.ts";
import { computePlanVerdict } from "../dispatch/settle-plan.ts";
import { findCompletedOutput } from "../ledger/readable-results.ts";
import type { OpenCoordination } from "../ledger/state.ts";
import { lookUpValue } from "../plan/fill-input.ts";
import { createProblemList } from "../plan/plan-problem.ts";
import { readBinding } from "../plan/read-bindings.ts";
import type { Json } from "../plan/step-graph.ts";

/** Outputs of steps, by the sha256 that the ledger names them by. */
export type OutputsByHash = ReadonlyMap<string, Json>;

/**
 * Returns, for each success criterion of the plan, whether it is met in the state that is decided again, read off the
 * kept outputs. Where an output is no longer kept, the recorded answer counts.
 */
export function checkCriteriaAgain(
  state: OpenCoordination,
  recorded: readonly CriterionMet[],
  outputs: OutputsByHash,
): CriterionMet[] {
  if (!isPlanned(state)) return [...recorded];
  const { steps } = computePlanVerdict(state);
  const isWhole = steps.completed === steps.total;
  return (state.created.plan?.successCriteria ?? []).map(({ key, when }, index): CriterionMet => {
    if (when === undefined) return { key, met: isWhole };
    const binding = readBinding(when, [], createProblemList());
    if (binding?.kind !== "reference") return { key, met: false };
    const sha256 = findCompletedOutput(state.steps.get(binding.stepId)?.phase)?.sha256;
    if (sha256 === undefined) return { key, met: false };
    const output = outputs.get(sha256);
    if (output === undefined) return recorded[index] ?? { key, met: false };
    return { key, met: lookUpValue(binding, () => output) === true };
  });
}

/** Lists the sha256 of each completed step's outputs that a success criterion of the plan is read off. */
export function listCriteriaOutputHashes(state: OpenCoordination): string[] {
  return (state.created.plan?.successCriteria ?? []).flatMap(({ when }) => {
    const binding = when === undefined ? undefined : readBinding(when, [], createProblemList());
    const sha256 =
      binding?.kind === "reference"
        ? findCompletedOutput(state.steps.get(binding.stepId)?.phase)?.sha256
        : undefined;
    return sha256 === undefined ? [] : [sha256];
  });
}
