/** Owns: a plan's budget as it is enforced. */
import type { SpendingLimit } from "../contracts/fact-fields.ts";
import type { Budget } from "../contracts/plan.ts";

const MICRO_PER_USD = 1_000_000;

/** Returns the limit that a budget sets; `undefined` when it limits nothing. */
export function spendingLimitOf(budget: Budget | undefined): SpendingLimit | undefined {
  if (!budget) return undefined;
  const { spawns, tokens, costUsd, wallMs } = budget;
  const limit: SpendingLimit = {
    ...(spawns !== undefined && { spawns }),
    ...(tokens !== undefined && { tokens }),
    ...(costUsd !== undefined && { costMicroUsd: microUsdOf(costUsd) }),
    ...(wallMs !== undefined && { wallMs }),
  };
  return Object.keys(limit).length > 0 ? limit : undefined;
}

/** Rounded up, at least 1; what binary fractions add far behind the point is not a millionth more. */
function microUsdOf(costUsd: number): number {
  return Math.max(1, Math.ceil(Number((costUsd * MICRO_PER_USD).toFixed(3))));
}
