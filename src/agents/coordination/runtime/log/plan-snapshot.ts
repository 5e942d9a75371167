/** Owns: how far a plan is, as those who show it in the host are told. */
import type { ContentRef } from "../../contracts/fact-fields.ts";
import { DELIVERY_STEP_ID, type CoordinationId, type SessionKey, type StepId } from "../../contracts/ids.ts";
import type { CoordinationStatus } from "../../contracts/coordination-summary.ts";
import type { Coordination } from "../../ledger/state.ts";

/** Steps at work that a snapshot names. */
const NAMED_MAX = 20;

/** How far a plan is, for those who show it. */
export interface PlanSnapshot {
  readonly coordinationId: CoordinationId;
  readonly ownerSession: SessionKey;
  readonly objective: ContentRef;
  readonly status: CoordinationStatus;
  readonly stepsTotal: number;
  readonly stepsEnded: number;
  /** The first of the steps that are at work. */
  readonly running: readonly StepId[];
}

/**
 * Creates the snapshot of how far a coordination's plan is; `undefined` for a coordination without a plan or without
 * events.
 */
export function createPlanSnapshot(state: Coordination): PlanSnapshot | undefined {
  if (state.kind === "unopened" || !state.plan) return undefined;
  const { coordinationId, created, plan, openSteps, steps } = state;
  const ended = steps.size - openSteps.size;
  const isTold = steps.has(DELIVERY_STEP_ID) && !openSteps.has(DELIVERY_STEP_ID);
  return {
    coordinationId,
    ownerSession: created.ownerSession,
    objective: created.objective,
    status: state.kind === "ended" ? state.status : "running",
    stepsTotal: created.plan?.steps ?? 0,
    stepsEnded: isTold ? ended - 1 : ended,
    running: plan.running.take(NAMED_MAX).toArray(),
  };
}
