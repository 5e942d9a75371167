/** Owns: which effects nothing waits for. */
import type { Effect } from "../../dispatch/effects/plan-dispatch.ts";

/**
 * Effects on a plan that take time: its other steps go on meanwhile. `endCoordination` takes that of a commit, and the
 * delivery that it admits is dispatched in the same one.
 */
export const TAKES_TIME: ReadonlySet<Effect["kind"]> = new Set([
  "endCoordination",
  "askHost",
  "stopObserved",
  "stopStep",
  "stopStray",
]);

/** Checks, people, sessions and repositories take as long as they take: nothing waits for them. */
export const OWN_TIME: ReadonlySet<Effect["kind"]> = new Set([
  ...(["verifyResult", "notifyPeople", "tellSession"] as const),
  ...(["mergeWorktree", "removeWorktree"] as const),
]);
