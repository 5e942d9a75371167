/** Owns: reading the plans that children of a step submitted. */
import type { CoordinationId, StepId } from "../../contracts/ids.ts";
import { nameNestedPlanReference } from "../../ledger/summary.ts";
import type { LedgerStore } from "../../ports/ledger-store.ts";
import { readCoordinationView, type CoordinationView } from "./coordination-view.ts";

const NESTED_PLANS_MAX = 100;

/** Reads the newest plans below a step, the oldest of them first. @throws CoordinationError as `readStoredState` */
export async function readNestedPlans(
  store: Pick<LedgerStore, "holders" | "read">,
  coordinationId: CoordinationId,
  stepId: StepId,
): Promise<readonly CoordinationView[]> {
  const runIds = await store.holders(nameNestedPlanReference(coordinationId, stepId), NESTED_PLANS_MAX);
  const plans: CoordinationView[] = [];
  for (const runId of runIds.toReversed()) {
    const view = await readCoordinationView(store, runId);
    if (view) plans.push(view);
  }
  return plans;
}
