/** Owns: the room that is left for the effects of one coordination, as its planners are told. */
import { addMs, type CoordinationId } from "../../contracts/ids.ts";
import type { Capacity } from "../../dispatch/effects/capacity.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LaneRunner } from "../../ports/lane-runner.ts";
import { computeAllowance, type Caps } from "./caps-left.ts";
import type { DispatcherMemory } from "./dispatcher-memory.ts";

interface CapacityDependencies {
  readonly clock: Clock;
  readonly lanes: LaneRunner;
  readonly settings: Caps & { readonly agingMs: number; readonly sweepMs: number };
}

/** Returns what the planners may use now, and remembers a coordination that may find no place, for when there is one again. */
export function computeCapacity(
  { clock, lanes, settings }: CapacityDependencies,
  memory: DispatcherMemory,
  runId: CoordinationId,
): Capacity {
  const room = {
    control: lanes.room("control"),
    data: lanes.room("data"),
    escalation: lanes.room("escalation"),
  };
  if (Object.values(room).includes(0)) memory.starved.add(runId);
  const allowance = computeAllowance(settings, memory.driven.values());
  // The end of any attempt may leave a place under a cap.
  if (allowance) memory.starved.add(runId);
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
