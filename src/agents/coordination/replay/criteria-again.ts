/** Owns: how far a plan reached what it is for, as far as the outputs that this is read off are kept (RFC 0090, section C). */
import type { CriterionMet } from "../contracts/verification.ts";
import { isPlanned } from "../dispatch/plan-rules.ts";
import { computeVerdict } from "../dispatch/settle-plan.ts";
import { outputOf } from "../ledger/readable-results.ts";
import type { OpenCoordination } from "../ledger/state.ts";
import { lookUpValue } from "../plan/fill-input.ts";
import { createProblemList } from "../plan/plan-problem.ts";
import { readBinding } from "../plan/read-bindings.ts";
import type { Json } from "../plan/step-graph.ts";

/** Outputs of steps, by the sha256 that the ledger names them by. */
export type Outputs = ReadonlyMap<string, Json>;

/** Checks the success criteria again. A result that is no longer kept counts as it was found then. */
export function checkCriteriaAgain(
  state: OpenCoordination,
  recorded: readonly CriterionMet[],
  outputs: Outputs,
): CriterionMet[] {
  if (!isPlanned(state)) return [...recorded];
  const { steps } = computeVerdict(state);
  const isWhole = steps.completed === steps.total;
  return (state.created.plan?.successCriteria ?? []).map(({ key, when }, index): CriterionMet => {
    if (when === undefined) return { key, met: isWhole };
    const binding = readBinding(when, [], createProblemList());
    if (binding?.kind !== "reference") return { key, met: false };
    const sha256 = outputOf(state.steps.get(binding.stepId)?.phase)?.sha256;
    if (sha256 === undefined) return { key, met: false };
    const output = outputs.get(sha256);
    if (output === undefined) return recorded[index] ?? { key, met: false };
    return { key, met: lookUpValue(binding, () => output) === true };
  });
}

/** The texts that the criteria of a plan are read off. */
export function listOutputsOfCriteria(state: OpenCoordination): string[] {
  return (state.created.plan?.successCriteria ?? []).flatMap(({ when }) => {
    const binding = when === undefined ? undefined : readBinding(when, [], createProblemList());
    const sha256 =
      binding?.kind === "reference" ? outputOf(state.steps.get(binding.stepId)?.phase)?.sha256 : undefined;
    return sha256 === undefined ? [] : [sha256];
  });
}
