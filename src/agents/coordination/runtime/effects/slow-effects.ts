/** Owns: which effects nothing waits for. */
import { planDispatch, type Effect } from "../../dispatch/effects/next-effects.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import type { EffectPlanner } from "./recovery-planner.ts";

/**
 * Effects on a plan that take time: its other steps go on meanwhile. `endCoordination` takes that of a commit, and the
 * delivery that it admits is dispatched in the same one.
 */
const TAKES_TIME: ReadonlySet<Effect["kind"]> = new Set([
  "endCoordination",
  "askHost",
  "stopObserved",
  "stopStep",
  "stopStray",
]);

/** Checks, people, sessions and repositories take as long as they take: nothing waits for them. */
const OWN_TIME: ReadonlySet<Effect["kind"]> = new Set([
  ...(["verifyResult", "notifyPeople", "tellSession"] as const),
  ...(["mergeWorktree", "removeWorktree"] as const),
]);

/** Without a plan these take time, too, but a sweep goes on to the next coordination only after them. */
const WAITS_FOR_HOST: ReadonlySet<Effect["kind"]> = new Set(["askHost", "stopObserved"]);

/**
 * True where the look that planned the effect does not wait for its end. Its kind decides; outside of a plan, one that
 * waits for the host is awaited unless dispatch planned it.
 */
export function isNotAwaited(
  { plan }: OpenCoordination,
  { kind }: Effect,
  plannedBy: EffectPlanner,
): boolean {
  if (OWN_TIME.has(kind)) return true;
  return plan ? TAKES_TIME.has(kind) : WAITS_FOR_HOST.has(kind) && plannedBy === planDispatch;
}
