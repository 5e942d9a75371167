/** Owns: checking liveness: what is due is done at once where nothing goes wrong, and nothing outlasts its deadline. */
import { planDispatch, type Effect } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { evolve } from "../../src/agents/coordination/ledger/evolve.ts";
import {
  createUnopenedCoordination,
  listOpenSteps,
  type Coordination,
} from "../../src/agents/coordination/ledger/state.ts";
import { SETTINGS } from "../support/fake-clock-host.ts";
import type { World } from "./world.ts";

/** Effects that wait for nobody: no agent, no check, no people, no place in a lane, and no quiet owner. */
const IMMEDIATE: ReadonlySet<Effect["kind"]> = new Set([
  ...(["closeReview", "expireQuestion"] as const),
  ...(["admitSteps", "skipSteps", "tripBreaker"] as const),
]);
/** Another gateway may have to take over first, and a host may not know the child for some sweeps. */
const OVERDUE_MS_MAX = 10 * SETTINGS.sweepMs;

/** Returns the problems of now, where all that needs no time has happened. */
export function createDueCheck(world: World): () => string[] {
  const { ledger, clock, journal } = world;
  const states = new Map<string, Coordination>();
  const stopsSinceMs = new Map<string, number>();
  let calmFromMs = Infinity;
  return () => {
    if (world.isCalm) calmFromMs = Math.min(calmFromMs, clock.now());
    // Effects that failed by then are tried again at the next sweep.
    const isMended = clock.now() >= calmFromMs + SETTINGS.sweepMs;
    if (!isMended && !isUndisturbed(world)) return [];
    journal.readNew();
    const problems: string[] = [];
    for (const [runId, { summary }] of ledger.runs) {
      if (summary.status !== "running") continue;
      const before = states.get(runId) ?? createUnopenedCoordination(runId);
      const state = journal.eventsOf(runId).slice(before.nextSequence).reduce(evolve, before);
      states.set(runId, state);
      // Which of several gateways may act takes leases to find out.
      if (world.gateways.length === 1) problems.push(...listUndone(state, clock.now(), stopsSinceMs));
      if (clock.now() >= calmFromMs + OVERDUE_MS_MAX)
        problems.push(...listOverdue(state, clock.now() - OVERDUE_MS_MAX));
    }
    return problems;
  };
}

/** True while nothing has gone wrong. A clock that was set has woken nobody yet. */
function isUndisturbed({ gateways, jumpsAtMs, clock, areClocksApart }: World): boolean {
  if (areClocksApart) return false;
  return jumpsAtMs.at(-1) !== clock.now() && gateways.every(({ life }) => !life.isDisturbed);
}

/** A host that does not know how a child ended, which it is told to stop, is asked again at the next sweep. */
function listUndone(state: Coordination, nowMs: EpochMs, stopsSinceMs: Map<string, number>): string[] {
  const isLate = ({ kind, effectId }: Effect): boolean => {
    if (kind !== "stopObserved") return IMMEDIATE.has(kind);
    const sinceMs = stopsSinceMs.get(effectId) ?? nowMs;
    stopsSinceMs.set(effectId, sinceMs);
    return nowMs >= sinceMs + OVERDUE_MS_MAX;
  };
  return planDispatch(state, nowMs)
    .filter(isLate)
    .map(({ effectId }) => `D1: ${effectId} is due and was not done`);
}

function listOverdue(state: Coordination, byMs: number): string[] {
  if (state.kind !== "open") return [];
  const { coordinationId, openQuestions } = state;
  const steps = listOpenSteps(state).filter(
    ({ phase }) => (phase.status === "dispatched" || phase.status === "running") && phase.deadlineAtMs < byMs,
  );
  const questions = openQuestions.filter((deadlineAtMs) => deadlineAtMs < byMs).keySeq();
  return [...steps.map(({ spec }) => spec.stepId), ...questions].map(
    (name) => `D5: ${coordinationId}/${name} is open long after its deadline`,
  );
}
