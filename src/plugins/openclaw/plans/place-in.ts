/** Owns: what a session may see of a coordination. H3: its part in it is what the ledger says. */
import { isOwnedBy } from "../../../agents/coordination/contracts/coordination-summary.ts";
import type {
  CoordinationView,
  StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import type { ToolCallScope } from "../runtime-access/tool-call.ts";

/** The place of a session in a coordination: its owner, or the worker of a step. */
export type SessionPlace =
  { readonly kind: "owner" } | { readonly kind: "worker"; readonly step: StepView | undefined };

/**
 * Returns the place of a session in a coordination: its owner, or the worker of a step, which is `undefined` where the
 * view lacks it; `undefined` where it is neither (H3).
 */
export async function findSessionPlace(
  { plans, session }: ToolCallScope,
  view: CoordinationView,
): Promise<SessionPlace | undefined> {
  if (isOwnedBy(view, session, plans.reads)) return { kind: "owner" };
  const envelope = await plans.envelopeForChild(session);
  if (envelope?.coordinationId !== view.coordinationId) return undefined;
  return { kind: "worker", step: view.steps.find(({ stepId }) => stepId === envelope.stepId) };
}

/**
 * True where a session with this place may see the step. An owner sees all. A worker sees its own step, those that it
 * spawned, and what its step was given: the steps that it depends on.
 */
export function maySeeStep(place: SessionPlace, { stepId, parentStepId }: StepView): boolean {
  if (place.kind === "owner") return true;
  const { step } = place;
  if (!step) return false;
  return step.stepId === stepId || step.stepId === parentStepId || (step.dependsOn ?? []).includes(stepId);
}
