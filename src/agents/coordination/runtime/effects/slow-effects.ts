/** Owns: which effects a look waits for. */
import type { Effect } from "../../dispatch/effects/next-effects.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import type { AwaitedEffects } from "./recovery-planner.ts";

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

/** True where the look that planned the effect waits for its end. */
export function isEffectAwaited(
  { plan }: OpenCoordination,
  { kind }: Effect,
  awaited: AwaitedEffects,
): boolean {
  if (awaited === "all") return true;
  if (OWN_TIME.has(kind)) return false;
  return plan ? !TAKES_TIME.has(kind) : awaited === "host" || !WAITS_FOR_HOST.has(kind);
}
