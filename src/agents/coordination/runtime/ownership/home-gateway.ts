/**
 * Owns: what of a coordination only its home gateway can do. That is the one that opened it: the session that waits for it is there,
 * and so are the children that its model spawned. Another gateway that drives it waits for the home gateway to come back, and goes
 * on without it after `orphanMs`.
 */
import { nameGatewayAway } from "../../contracts/coordination-summary.ts";
import type { CoordinationId } from "../../contracts/ids.ts";
import type { Effect } from "../../dispatch/effects/next-effects.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import { listOpenSteps, type Coordination, type OpenCoordination } from "../../ledger/state.ts";
import type { SteadyClock } from "../../ports/clock.ts";

export interface HomeGateways {
  /** Returns the name of the home gateway where it is another one. */
  nameAway(state: Coordination): string | undefined;
  /** Leaves out the effects that wait for the home gateway. */
  select(state: Coordination, effects: readonly Effect[]): readonly Effect[];
  /** True for an effect that only the home gateway could have, and that is not waited for any more. */
  isOutOfReach(state: OpenCoordination, effect: Effect): boolean;
  /** The coordinations that can be given back, with the names of their home gateways. */
  listWaiting(): readonly WaitingCoordination[];
  forget(runId: CoordinationId): void;
}

/** A coordination that waits for its home gateway, and the name of that gateway. */
export interface WaitingCoordination {
  readonly runId: CoordinationId;
  readonly home: string;
}

export interface HomeGatewayDependencies {
  /** The name of this gateway. */
  readonly gateway: string;
  /** The gateway whose own ledger this one was: it opened what names no gateway. */
  readonly movedFrom?: string;
  readonly steady: SteadyClock;
  readonly orphanMs: number;
}

/** How a coordination waits for its home gateway. */
interface HomeGatewayWait extends WaitingCoordination {
  /** By the steady clock. */
  readonly sinceMs: number;
  /** Steps of a plan that run in this gateway are not left alone. */
  readonly canBeGivenBack: boolean;
}

/**
 * Creates the watch over coordinations that another gateway, their home, opened. It holds back the effects that only
 * the home can perform until `orphanMs` have passed or people have cancelled the coordination.
 */
export function createHomeGateways(dependencies: HomeGatewayDependencies): HomeGateways {
  const { steady, orphanMs } = dependencies;
  const waits = new Map<CoordinationId, HomeGatewayWait>();
  const findAway = (state: Coordination): string | undefined =>
    state.kind === "unopened" ? undefined : nameGatewayAway(state.created, dependencies);
  const isWaitOver = (state: OpenCoordination): boolean => {
    const wait = waits.get(state.coordinationId);
    // Nobody waits for what people have cancelled.
    return (
      state.cancelledBy !== undefined || (wait !== undefined && steady.elapsedMs() - wait.sinceMs >= orphanMs)
    );
  };
  return {
    nameAway: findAway,
    select: (state, effects) => {
      const home = findAway(state);
      const { coordinationId: runId } = state;
      if (state.kind === "ended") waits.delete(runId);
      if (state.kind !== "open" || home === undefined) return effects;
      if (waits.has(runId) || effects.some((effect) => isHomeEffect(state, effect))) {
        const { sinceMs } = waits.get(runId) ?? { sinceMs: steady.elapsedMs() };
        waits.set(runId, { runId, home, sinceMs, canBeGivenBack: canBeGivenBack(state) });
      }
      return isWaitOver(state) ? effects : effects.filter((effect) => !isHomeEffect(state, effect));
    },
    isOutOfReach: (state, effect) =>
      findAway(state) !== undefined && TELLING_EFFECTS.has(effect.kind) && isHomeEffect(state, effect),
    listWaiting: () => [...waits.values()].filter((wait) => wait.canBeGivenBack),
    forget: (runId) => {
      waits.delete(runId);
    },
  };
}

/** Effects on what lives in the home gateway of a coordination that is no plan. */
const SPAWN_EFFECTS: ReadonlySet<Effect["kind"]> = new Set([
  "askHost",
  "stopObserved",
  "runStep",
  "tellSession",
]);

/** Effects that say something to a session. */
const TELLING_EFFECTS: ReadonlySet<Effect["kind"]> = new Set(["runStep", "tellSession"]);

/**
 * True for an effect that only the home gateway can have. The steps of a plan can run anywhere; only its owner is at
 * home.
 */
function isHomeEffect(state: OpenCoordination, effect: Effect): boolean {
  if (!state.plan) return SPAWN_EFFECTS.has(effect.kind);
  if (effect.kind === "tellSession")
    return state.tellings.get(effect.tellingId)?.session === state.created.ownerSession;
  const step = effect.kind === "runStep" ? state.steps.get(effect.stepId) : undefined;
  return step !== undefined && isDelivery(step);
}

/** True for a spawn's coordination, and for a plan without open steps that run in this gateway. */
function canBeGivenBack(state: OpenCoordination): boolean {
  return !state.plan || listOpenSteps(state).every(isDelivery);
}
