/** Owns: the name under which people see a step. */
import { DELIVERY_STEP_ID, type StepId } from "../../agents/coordination/contracts/ids.ts";

interface Named {
  readonly stepId: StepId;
  readonly name?: string;
}

/** True of the step of a plan that tells the owner the result. */
export function isDeliveryStep({ stepId }: Named): boolean {
  return stepId === DELIVERY_STEP_ID;
}

/**
 * Returns the name of a step for people, its id where it has none, and `delivery` for the step that tells the owner of
 * a plan the result.
 */
export function nameStep(step: Named): string {
  return isDeliveryStep(step) ? "delivery" : (step.name ?? step.stepId);
}
