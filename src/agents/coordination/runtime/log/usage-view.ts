/** Owns: what the model calls of a step, or of the owner, used, in the form in which it is shown. */
import type { StepId } from "../../contracts/ids.ts";
import type { UsageTotals } from "../../contracts/usage.ts";
import { NO_USAGE, computeStepUsage, type Bill, type UsageSum } from "../../ledger/bill.ts";

/** Usage of the model calls of one session. Where only its runner says it, the kinds of tokens are not known. */
export interface UsageView extends UsageTotals {
  /** Tokens of all kinds. */
  readonly tokens: number;
  /** `provider/model` of the newest run, in the order in which they were first called. */
  readonly models: readonly string[];
  /** Usage of its calls alone, where its runner says more: the totals above include a plan that its agent ran. */
  readonly ofCalls?: UsageSum;
}

interface UserOfModels {
  readonly stepId: StepId;
  readonly spent?: UsageSum | undefined;
}

/**
 * Returns a record whose one field, `name`, is the view of what a step and its model calls used; an empty record where
 * nothing was used.
 */
export function viewUsage<N extends string>(
  name: N,
  bill: Bill,
  { stepId, spent }: UserOfModels,
): Partial<Record<N, UsageView>> {
  const { tokens, costMicroUsd } = computeStepUsage(bill, stepId, spent);
  if (tokens + costMicroUsd === 0) return {};
  const { totals, models } = bill.steps.get(stepId) ?? { totals: NO_USAGE, models: [] };
  const ofCalls = computeStepUsage(bill, stepId, undefined);
  const isMore = tokens > ofCalls.tokens || costMicroUsd > ofCalls.costMicroUsd;
  const view: UsageView = { ...totals, tokens, costMicroUsd, models, ...(isMore && { ofCalls }) };
  return { [name]: view } as Record<N, UsageView>;
}
