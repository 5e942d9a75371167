/** Owns: which effects nothing waits for. */
import { planDispatch, type Effect } from "../../dispatch/effects/plan-dispatch.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import type { Plan } from "./recovery-plans.ts";

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

/** True where the look that planned the effect does not wait for it. At a sweep, or where somebody has the host asked, it does. */
export function isBeside({ plan }: OpenCoordination, { kind }: Effect, plannedBy: Plan): boolean {
  if (OWN_TIME.has(kind)) return true;
  return plan ? TAKES_TIME.has(kind) : kind === "askHost" && plannedBy === planDispatch;
}
