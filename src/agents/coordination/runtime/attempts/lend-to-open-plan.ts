/** Owns: setting budget aside for plans inside that an earlier release opened, which lent nothing. */
import type { OpenCoordination, Step } from "../../ledger/state.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import { listNested, type NestedDependencies } from "./nested-plans.ts";

interface AgentAtWork {
  readonly state: OpenCoordination;
  readonly step: Step;
  readonly attempt: Attempt;
}

/** Lends budget to the plan that the agent of an attempt has open, unless some is lent to it. */
export async function lendToOpenPlan(
  dependencies: NestedDependencies,
  { state, step, attempt: { childSessionKey: session } }: AgentAtWork,
): Promise<void> {
  const { attempt } = step.phase;
  if (!state.created.plan?.budget || step.loan?.attempt === attempt) return;
  const { coordinationId: runId } = state;
  const { stepId } = step.spec;
  const nested = await listNested(dependencies, { runId, stepId, attempt, session });
  const open = nested.find(({ kind }) => kind === "open");
  if (!open) return;
  const { parent, plan } = open.created;
  await dependencies.runs.submit(runId, [
    {
      type: "lendBudget",
      stepId,
      attempt,
      to: open.coordinationId,
      budget: plan?.budget ?? {},
      ...(parent?.usedBefore && { usedBefore: parent.usedBefore }),
    },
  ]);
}
