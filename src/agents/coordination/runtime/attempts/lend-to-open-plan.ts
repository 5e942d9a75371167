/** Owns: what a plan inside asks to have set aside, also for one that an earlier release opened, which lent less or nothing. */
import type { LendBudget } from "../../contracts/commands.ts";
import type { SpendingLimit, Usage } from "../../contracts/fact-fields.ts";
import type { OpenCoordination, Step } from "../../ledger/state.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import type { OpenStep } from "../log/step-of-child.ts";
import { listNestedPlans, type NestedDependencies } from "./nested-plans.ts";

interface AgentAtWork extends OpenStep {
  readonly attempt: Attempt;
}

/** A plan inside, and the attempt whose agent submitted it. */
interface Borrower extends Pick<LendBudget, "stepId" | "attempt" | "to"> {
  readonly budget: SpendingLimit | undefined;
  readonly stepBudget: SpendingLimit | undefined;
  readonly usedBefore: Usage | undefined;
}

/**
 * Returns the command that lends budget of a step to a plan that its agent submitted. A kind of budget that only the
 * step has is lent too, up to what the step has of it.
 */
export function draftLoan({ budget, stepBudget, usedBefore, stepId, attempt, to }: Borrower): LendBudget {
  const limits = { ...stepBudget, ...budget };
  return { type: "lendBudget", stepId, attempt, to, budget: limits, ...(usedBefore && { usedBefore }) };
}

/**
 * Records a loan of budget to the plan that the agent of an attempt has open; does nothing where it has none, or where
 * each kind of budget that the plan around or the step limits is lent already.
 */
export async function lendToOpenPlan(
  dependencies: NestedDependencies,
  { state, step, attempt: { childSessionKey: session } }: AgentAtWork,
): Promise<void> {
  const { attempt } = step.phase;
  if (isAllLent(state, step)) return;
  const { coordinationId: runId } = state;
  const { stepId, planned } = step.spec;
  const nested = await listNestedPlans(dependencies, { runId, stepId, attempt, session });
  const openPlan = nested.find(({ kind }) => kind === "open");
  if (!openPlan) return;
  const { parent, plan } = openPlan.created;
  const borrower = {
    stepId,
    attempt,
    to: openPlan.coordinationId,
    budget: plan?.budget,
    stepBudget: planned?.budget,
    usedBefore: parent?.usedBefore,
  };
  await dependencies.runs.submit(runId, [draftLoan(borrower)]);
}

/** True where the attempt has a loan of each kind that the plan or the step limits. */
function isAllLent({ created }: OpenCoordination, { spec, phase, loan }: Step): boolean {
  const lent = loan?.attempt === phase.attempt ? loan.budget : {};
  const { wallMs: _, ...limits } = { ...spec.planned?.budget, ...created.plan?.budget };
  return Object.keys(limits).every((kind) => kind in lent);
}
