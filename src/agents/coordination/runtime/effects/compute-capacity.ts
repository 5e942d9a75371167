/** Owns: the room that is left for the effects of one coordination, as its planners are told. */
import { laneSchema } from "../../contracts/envelope.ts";
import { addMs, type AgentId, type CoordinationId, type StepId } from "../../contracts/ids.ts";
import type { Capacity } from "../../dispatch/effects/capacity.ts";
import type { Allowance } from "../../lanes/pick-best.ts";
import type { Coordination } from "../../ledger/state.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LaneRunner } from "../../ports/lane-runner.ts";
import type { DispatcherMemory, HeldPlace } from "./dispatcher-memory.ts";

/** How many steps of one owner session, and of one agent, may run at once. */
interface ConcurrencyCaps {
  readonly perSessionMax?: number;
  readonly perAgentMax?: number;
}

interface CapacityDependencies {
  readonly clock: Clock;
  readonly lanes: LaneRunner;
  readonly settings: ConcurrencyCaps & { readonly agingMs: number; readonly sweepMs: number };
}

/**
 * Returns what lanes, limits and providers leave to the effects of a coordination now. A coordination that may find no
 * place is noted in the dispatcher's memory, to be looked at again when there is one.
 */
export function computeCapacity(
  { clock, lanes, settings }: CapacityDependencies,
  memory: DispatcherMemory,
  { runId, state }: { readonly runId: CoordinationId; readonly state: Coordination },
): Capacity {
  const room = {
    control: lanes.room("control"),
    data: lanes.room("data"),
    escalation: lanes.room("escalation"),
  };
  if (Object.values(room).includes(0)) memory.starved.add(runId);
  const heldBackAgents = lanes.heldBackAgents();
  const allowance = computeAllowance(settings, memory.driven.values(), heldBackAgents);
  // The end of any attempt may leave a place under a cap, and a provider may open.
  const hasCaps = settings.perSessionMax !== undefined || settings.perAgentMax !== undefined;
  if (hasCaps || hasReadyStepOfAgents(state, heldBackAgents)) memory.starved.add(runId);
  return {
    room,
    agingMs: settings.agingMs,
    ...(allowance && { allowance }),
    isUnderway: (effectId) => memory.driven.has(effectId),
    hasHadTurn: (effectId) => memory.pastTurn.has(effectId),
    isAskedSince: (effectId, dueAtMs) => {
      const askedAtMs = memory.lastAsks.get(effectId);
      if (askedAtMs === undefined || askedAtMs < dueAtMs) return false;
      return clock.now() < addMs(askedAtMs, settings.sweepMs);
    },
  };
}

/**
 * Computes what the caps per session and per agent leave: nothing to an agent that its provider holds back. Returns `undefined`
 * where there is neither a cap nor such an agent.
 */
function computeAllowance(
  { perSessionMax, perAgentMax }: ConcurrencyCaps,
  handedIn: Iterable<HeldPlace>,
  heldBackAgents: ReadonlySet<AgentId>,
): Allowance | undefined {
  const isAgentLimited = perAgentMax !== undefined || heldBackAgents.size > 0;
  if (perSessionMax === undefined && !isAgentLimited) return undefined;
  const heldPlaces = [...handedIn].filter(({ isReleased }) => !isReleased);
  const ofSession = Map.groupBy(heldPlaces, ({ session }) => session);
  const ofAgent = Map.groupBy(heldPlaces, ({ agentId }) => agentId);
  return {
    ...(perSessionMax !== undefined && {
      ofSession: (session) => perSessionMax - (ofSession.get(session)?.length ?? 0),
    }),
    ...(isAgentLimited && {
      ofAgent: (agentId) =>
        heldBackAgents.has(agentId) ? 0 : (perAgentMax ?? Infinity) - (ofAgent.get(agentId)?.length ?? 0),
    }),
  };
}

/** Returns true where a step of one of the agents could begin, or as soon as the pause after its failure is over. */
function hasReadyStepOfAgents(state: Coordination, agents: ReadonlySet<AgentId>): boolean {
  if (agents.size === 0 || state.kind !== "open" || !state.plan) return false;
  const { ready, timed } = state.plan;
  const isOfThem = (stepId: StepId): boolean => {
    const step = state.steps.get(stepId);
    return step !== undefined && agents.has(step.spec.agentId);
  };
  return timed.some(isOfThem) || laneSchema.options.some((lane) => ready[lane].keySeq().some(isOfThem));
}
