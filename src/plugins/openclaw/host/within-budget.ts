/** Owns: how long a hook of the host waits for the ledger at most, and failing when that is over. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";

/** How long a hook may keep the host waiting; the host's own limit is twice that and fails closed. */
export const HOOK_BUDGET_MS = 5_000;

/** Creates the error of a hook whose time is over. Its budget may be the rest of a longer one, which is no number to tell. */
export function createLateError(): CoordinationError {
  return new CoordinationError("LEDGER_BUSY", "the ledger did not answer in time");
}

/** @throws CoordinationError `LEDGER_BUSY` when `work` takes longer; `work` itself goes on. */
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
