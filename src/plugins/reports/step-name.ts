/** Owns: the name under which people see a step, and a party to a conflict. */
import {
  DELIVERY_STEP_ID,
  OUTSIDE_STEP_ID,
  OWNER_STEP_ID,
  type StepId,
} from "../../agents/coordination/contracts/ids.ts";
import type { StepNames, ConflictParty } from "./conflict-outcome.ts";

/** A step as far as its name is made of it. */
interface NameableStep {
  readonly stepId: StepId;
  readonly name?: string;
}

/** True of the step of a plan that tells the owner the result. */
export function isDeliveryStep({ stepId }: NameableStep): boolean {
  return stepId === DELIVERY_STEP_ID;
}

/**
 * Returns the name of a step for people, its id where it has none, and `delivery` for the step that tells the owner of
 * a plan the result.
 */
export function nameStep(step: NameableStep): string {
  return isDeliveryStep(step) ? "delivery" : (step.name ?? step.stepId);
}

/** Returns the names of steps by their ids; steps without a name are left out. */
export function mapStepNames(steps: readonly NameableStep[]): StepNames {
  return new Map(steps.flatMap(({ stepId, name }) => (name === undefined ? [] : [[stepId, name] as const])));
}

/** So much of an id is enough in a line with others: `co-` and eight digits. */
const SHORT_ID_CHARS = 11;

/**
 * Returns the name of a party to a conflict: a step as people know it, `the owner`, or `somebody else`; with the
 * coordination's id where it is of another one.
 */
export function nameParty(names: StepNames, { stepId, coordinationId }: ConflictParty): string {
  if (stepId === OUTSIDE_STEP_ID) return "somebody else";
  const ofIt = coordinationId === undefined ? "" : ` of ${coordinationId.slice(0, SHORT_ID_CHARS)}`;
  if (stepId === OWNER_STEP_ID) return `the owner${ofIt}`;
  const name = coordinationId === undefined ? names.get(stepId) : undefined;
  return `${nameStep({ stepId, ...(name !== undefined && { name }) })}${ofIt}`;
}
