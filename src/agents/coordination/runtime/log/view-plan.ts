/** Owns: the part of a coordination's view that only a plan has. */
import type { ContentRef } from "../../contracts/fact-fields.ts";
import type { FactPayloads } from "../../contracts/facts.ts";
import type { EpochMs } from "../../contracts/ids.ts";
import { isPlanned, listLoans } from "../../dispatch/plan-rules.ts";
import type { KnownCoordination } from "../../ledger/state.ts";

export interface PlanView {
  readonly content: ContentRef;
  /** Admitted or not, without the delivery of its result. */
  readonly steps: number;
  readonly deadlineAtMs?: EpochMs;
  /** Budget that is set aside for plans inside: steps may wait for it. Absent where there is none. */
  readonly loans?: readonly FactPayloads["budget.lent"][];
}

/**
 * Returns the `plan` field of a coordination's view, with the loans of its plan while it is open; an empty record
 * where it has no plan.
 */
export function viewPlan(state: KnownCoordination): { readonly plan?: PlanView } {
  if (!state.created.plan) return {};
  const { content, steps, deadlineAtMs } = state.created.plan;
  const loans = state.kind === "open" && isPlanned(state) ? listLoans(state) : [];
  return {
    plan: {
      content,
      steps,
      ...(deadlineAtMs !== undefined && { deadlineAtMs }),
      ...(loans.length > 0 && { loans }),
    },
  };
}
