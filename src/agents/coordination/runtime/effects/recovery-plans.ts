/** Owns: what is planned when nothing happened that says so: at a sweep, and when somebody asks about one step. */
import { createIdempotencyKey, type EpochMs } from "../../contracts/ids.ts";
import type { Capacity } from "../../dispatch/effects/capacity.ts";
import { planRecovery, type Effect } from "../../dispatch/effects/plan-dispatch.ts";
import type { Coordination, OpenCoordination } from "../../ledger/state.ts";
import type { SpawnGate } from "../spawns/spawn-gate.ts";

export type Plan = (state: Coordination, now: EpochMs, capacity: Capacity) => Effect[];

interface RecoveryDependencies {
  readonly gate: SpawnGate;
  readonly onOpen: (state: OpenCoordination) => void;
}

/** Plans nothing but the question to the host about one step. */
export function createQuestionPlan(stepId: string): Plan {
  return (state, now, capacity) =>
    planRecovery(state, now, capacity).filter(
      (effect) => effect.kind === "askHost" && effect.stepId === stepId,
    );
}

/** Spawns that another process admitted count here, too. */
export function createRecoveryPlan({ gate, onOpen }: RecoveryDependencies): Plan {
  return (state, now, capacity) => {
    if (state.kind === "open") onOpen(state);
    const effects = planRecovery(state, now, capacity);
    for (const effect of effects) {
      const step =
        effect.kind === "askHost" && state.kind === "open" ? state.steps.get(effect.stepId) : undefined;
      if (!step) continue;
      const { stepId, sourceSession } = step.spec;
      gate.occupy(createIdempotencyKey(state.coordinationId, stepId, step.phase.attempt), sourceSession);
    }
    return effects;
  };
}
