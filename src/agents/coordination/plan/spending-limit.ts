/** Owns: a plan's budget as it is enforced. */
import type { SpendingLimit } from "../contracts/fact-fields.ts";
import type { Budget } from "../contracts/plan.ts";
import { convertToMicroUsd } from "../contracts/usage.ts";

/** Returns the limit that a budget sets; `undefined` when it limits nothing. */
export function spendingLimitOf(budget: Budget | undefined): SpendingLimit | undefined {
  if (!budget) return undefined;
  const { spawns, tokens, costUsd, wallMs } = budget;
  const limit: SpendingLimit = {
    ...(spawns !== undefined && { spawns }),
    ...(tokens !== undefined && { tokens }),
    ...(costUsd !== undefined && { costMicroUsd: convertToMicroUsd(costUsd) }),
    ...(wallMs !== undefined && { wallMs }),
  };
  return Object.keys(limit).length > 0 ? limit : undefined;
}
