/** Owns: the next steps of a plan as they are admitted, with what a fork has of them from its source. */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { AdmitPlanSteps } from "../../contracts/commands.ts";
import type { ForkedFrom } from "../../contracts/fact-fields.ts";
import { createPlannedSteps } from "../../plan/create-planned-steps.ts";
import type { CompiledStep, StepGraph } from "../../plan/step-graph.ts";
import { createGating } from "../held-results/gate-of.ts";
import { createAdmittedPrivilege } from "../privileges/admitted-privilege.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

/** The next steps of a plan that are to be admitted, from one index of its graph on. */
interface StepsToAdmit {
  readonly graph: StepGraph;
  /** The place of the first of them in the graph. */
  readonly from: number;
  readonly forkedFrom?: ForkedFrom | undefined;
}

/**
 * Drafts the command that admits the next steps of a plan, from one index on and as many as one append takes. Reads
 * the results that a fork carries from its source.
 */
export async function draftAdmission(
  dependencies: RuntimeDependencies,
  { graph, from, forkedFrom }: StepsToAdmit,
): Promise<AdmitPlanSteps> {
  const { runnerOf, refOf, forks } = dependencies;
  const carried = forkedFrom && (await forks.readCarriedResults(forkedFrom));
  const { ownerSession } = graph;
  const admitting = {
    ownerSession,
    runnerOf,
    refOf,
    gateStep: createGating(dependencies),
    privilegeOf: ({ agent: agentId, privilege: askedPrivilege }: CompiledStep) =>
      createAdmittedPrivilege(dependencies.privileges, { agentId, askedPrivilege }),
    ...(carried && { carried }),
  };
  const steps = createPlannedSteps(graph, admitting, { from, to: from + BOUNDS.stepsPerAppendMax });
  return { type: "admitPlanSteps", steps };
}
