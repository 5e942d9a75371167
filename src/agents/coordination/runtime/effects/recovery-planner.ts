/** Owns: what is planned when nothing happened that says so: at a sweep, and when somebody asks about one step. */
import { createIdempotencyKey, type EpochMs } from "../../contracts/ids.ts";
import type { Capacity } from "../../dispatch/effects/capacity.ts";
import { planRecovery, type Effect } from "../../dispatch/effects/next-effects.ts";
import type { Coordination, OpenCoordination } from "../../ledger/state.ts";
import type { HomeGateways } from "../ownership/home-gateway.ts";
import type { SpawnGate } from "../spawns/spawn-gate.ts";

/** A function that plans the effects of a coordination from its state, the time and the room for them. */
export type EffectPlanner = (state: Coordination, now: EpochMs, capacity: Capacity) => Effect[];

/**
 * The effects whose ends a look waits for: those that are over at once, also those that wait for the host, or all, where
 * somebody goes by what they record.
 */
export type AwaitedEffects = "short" | "host" | "all";

export interface LookRequest {
  readonly plan: EffectPlanner;
  readonly awaited: AwaitedEffects;
}

interface RecoveryDependencies {
  readonly gate: SpawnGate;
  readonly homes?: Pick<HomeGateways, "nameAway">;
  readonly onOpen: (state: OpenCoordination) => void;
}

/** Returns a planner that plans only the question to the host about one step, where recovery would ask it. */
export function createAskHostPlanner(stepId: string): EffectPlanner {
  return (state, now, capacity) =>
    planRecovery(state, now, capacity).filter(
      (effect) => effect.kind === "askHost" && effect.stepId === stepId,
    );
}

/**
 * Returns the planner of sweeps, which plans the recovery of a coordination. For an open one it calls `onOpen`, and
 * occupies a place of the spawn gate for each spawn to ask about whose session is in this gateway.
 */
export function createRecoveryPlanner({ gate, homes, onOpen }: RecoveryDependencies): EffectPlanner {
  return (state, now, capacity) => {
    const effects = planRecovery(state, now, capacity);
    if (state.kind !== "open") return effects;
    onOpen(state);
    // Children of a session run in its gateway, and count there; those of a plan's agents run where these do.
    if (!state.plan && homes?.nameAway(state) !== undefined) return effects;
    for (const effect of effects) {
      const step = effect.kind === "askHost" ? state.steps.get(effect.stepId) : undefined;
      if (!step) continue;
      const { coordinationId: runId } = state;
      const { stepId, sourceSession: session } = step.spec;
      gate.occupy(createIdempotencyKey(runId, stepId, step.phase.attempt), { runId, session });
    }
    return effects;
  };
}
