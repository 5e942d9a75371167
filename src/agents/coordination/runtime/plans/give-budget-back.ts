/** Owns: giving back what a plan inside did not use of the budget that the plan around it had set aside. */
import type { Usage } from "../../contracts/fact-fields.ts";
import type { FactPayloads } from "../../contracts/facts.ts";
import type { CoordinationId } from "../../contracts/ids.ts";
import { addSpent, spentFromUsage } from "../../ledger/plan-progress.ts";
import type { KnownCoordination } from "../../ledger/state.ts";
import { describeError } from "../../std/describe-error.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

type GivingDependencies = Pick<RuntimeDependencies, "runs" | "logger">;
/** A step whose agent submits a plan, named by its coordination, id and attempt. */
type ParentStep = NonNullable<FactPayloads["coordination.created"]["parent"]>;

/**
 * Records with the plan around what a nested plan used of its loan, which gives the rest back; does nothing for a plan
 * with none around it, or one that ends with the attempt of its agent. The agent may still be told how it ended. Where
 * giving back fails, or a crash comes before it, the loan ends with the attempt.
 */
export async function giveBudgetBack(
  dependencies: GivingDependencies,
  inside: KnownCoordination,
): Promise<void> {
  const { coordinationId: to, created, plan, cancelledBy } = inside;
  // A plan that ends with the attempt of its agent has nothing to give back before that.
  if (!plan || !created.parent || cancelledBy === "parent") return;
  const used = addSpent(spentFromUsage(created.parent.usedBefore), plan.spent);
  await submitBudgetReturn(dependencies, { parent: created.parent, to }, () => used);
}

/**
 * Gives the parent back the budget lent to a plan, unless the plan's log shows that it was opened. A failure is only
 * logged.
 */
export async function giveBudgetBackIfUnopened(
  dependencies: GivingDependencies,
  parent: ParentStep,
  to: CoordinationId,
): Promise<void> {
  await submitBudgetReturn(dependencies, { parent, to }, async () => {
    const state = await dependencies.runs.state(to);
    const opened = state.kind === "unopened" ? undefined : state.created.parent;
    const isOpened =
      opened?.coordinationId === parent.coordinationId &&
      opened.stepId === parent.stepId &&
      opened.attempt === parent.attempt;
    return isOpened ? undefined : (parent.usedBefore ?? {});
  });
}

/** A part of a step's budget that was lent to a plan inside it. */
interface BudgetLoan {
  readonly parent: ParentStep;
  readonly to: CoordinationId;
}

/** Submits what was used of a loan, so that the rest of it is free again. A failure is only logged. */
async function submitBudgetReturn(
  { runs, logger }: GivingDependencies,
  { parent: { coordinationId: runId, stepId, attempt }, to }: BudgetLoan,
  findUsed: () => Usage | undefined | Promise<Usage | undefined>,
): Promise<void> {
  if (attempt === undefined) return;
  try {
    const used = await findUsed();
    if (used) await runs.submit(runId, [{ type: "returnBudget", stepId, attempt, to, budget: used }]);
  } catch (error) {
    logger.warn({ runId, stepId }, `could not give back the budget of ${to}: ${describeError(error)}`);
  }
}
