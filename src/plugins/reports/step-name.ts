/** Owns: the name under which people see a step. */
import { DELIVERY_STEP_ID, type StepId } from "../../agents/coordination/contracts/ids.ts";

interface Named {
  readonly stepId: StepId;
  readonly name?: string;
}

/** Telling the owner of a plan its result. */
export function isDelivery({ stepId }: Named): boolean {
  return stepId === DELIVERY_STEP_ID;
}

export function stepName(step: Named): string {
  return isDelivery(step) ? "delivery" : (step.name ?? step.stepId);
}
