/** Owns: the next steps of a plan as they are admitted, with what a fork has of them from its source. */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { AdmitPlanSteps } from "../../contracts/commands.ts";
import type { ForkedFrom } from "../../contracts/fact-fields.ts";
import { plannedStepsOf } from "../../plan/admission-of.ts";
import type { CompiledStep, StepGraph } from "../../plan/step-graph.ts";
import { createGating } from "../held-results/gate-of.ts";
import { privilegeOf } from "../privileges/admitted-privilege.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

interface Admission {
  readonly graph: StepGraph;
  /** The place of the first of them in the graph. */
  readonly from: number;
  readonly forkedFrom?: ForkedFrom | undefined;
}

/** Drafts the admission of as many steps as one append takes. */
export async function draftAdmission(
  dependencies: RuntimeDependencies,
  { graph, from, forkedFrom }: Admission,
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
      privilegeOf(dependencies.privileges, { agentId, askedPrivilege }),
    ...(carried && { carried }),
  };
  const steps = plannedStepsOf(graph, admitting, { from, to: from + BOUNDS.stepsPerAppendMax });
  return { type: "admitPlanSteps", steps };
}
