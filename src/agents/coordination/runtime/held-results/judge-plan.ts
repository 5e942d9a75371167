/** Owns: finding out how far a plan reached what it is for, from the outputs of its steps (RFC 0090, section C). */
import type { CoordinationId, StepId } from "../../contracts/ids.ts";
import type { CriterionMet } from "../../contracts/verification.ts";
import { isPlanned, isWorkedOff, type PlannedCoordination } from "../../dispatch/plan-rules.ts";
import { computePlanVerdict } from "../../dispatch/settle-plan.ts";
import { findCompletedOutput } from "../../ledger/readable-results.ts";
import { lookUpValue } from "../../plan/fill-input.ts";
import { createProblemList } from "../../plan/plan-problem.ts";
import { readBinding } from "../../plan/read-bindings.ts";
import type { Json } from "../../plan/step-graph.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

type JudgeDependencies = Pick<RuntimeDependencies, "runs" | "content">;

/**
 * Returns which success criteria a plan met; `undefined` unless it is open and its work is done. A criterion without a
 * condition is met where all steps completed; one whose output cannot be read is not met.
 */
export async function judgePlan(
  { runs, content }: JudgeDependencies,
  coordinationId: CoordinationId,
): Promise<CriterionMet[] | undefined> {
  const state = await runs.findOnDisk(coordinationId, (current) =>
    current.kind === "open" && isPlanned(current) && isWorkedOff(current) ? current : undefined,
  );
  if (!state) return undefined;
  const { steps } = computePlanVerdict(state);
  const isWhole = steps.completed === steps.total;
  const criteria = state.created.plan?.successCriteria ?? [];
  return Promise.all(
    criteria.map(async ({ key, when }): Promise<CriterionMet> => {
      if (when === undefined) return { key, met: isWhole };
      const binding = readBinding(when, [], createProblemList());
      if (binding?.kind !== "reference") return { key, met: false };
      const outputs = await readOutputsOfStep({ content }, state, binding.stepId);
      return { key, met: lookUpValue(binding, () => outputs) === true };
    }),
  );
}

async function readOutputsOfStep(
  { content }: Pick<JudgeDependencies, "content">,
  { steps }: PlannedCoordination,
  stepId: StepId,
): Promise<Json | undefined> {
  const output = findCompletedOutput(steps.get(stepId)?.phase);
  const text = output && (await content.get(output.sha256));
  return text === undefined ? undefined : (JSON.parse(text) as Json);
}
