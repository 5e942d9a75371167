/** Owns: how long a hook of the host waits for the ledger at most, and failing when that is over. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";

/** How long a hook may keep the host waiting; the host's own limit is twice that and fails closed. */
export const HOOK_BUDGET_MS = 5_000;

/**
 * Returns the `LEDGER_BUSY` error of a hook whose time is over. Its budget may be the rest of a longer one, which is
 * no number to tell.
 */
export function createLateError(): CoordinationError {
  return new CoordinationError("LEDGER_BUSY", "the ledger did not answer in time");
}

/**
 * Returns what `work` resolves to where that is within the budget, and throws otherwise; work that is late goes on,
 * and nothing waits for it. @throws CoordinationError `LEDGER_BUSY` when `work` takes longer
 */
export async function runWithinBudget<T>(work: Promise<T>, budgetMs: number = HOOK_BUDGET_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(createLateError());
    }, budgetMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
