/** Owns: whom the budget of a policy stops in the other history. */
import type { Command } from "../contracts/commands.ts";
import { OWNER_STEP_ID } from "../contracts/ids.ts";
import type { RunUsage } from "../contracts/usage.ts";
import { describeReachedBound, findReachedBudget } from "../dispatch/decide-budget.ts";
import { isEnded, type Coordination, type KnownCoordination } from "../ledger/state.ts";
import type { ReplayedDecision } from "./replay-log.ts";

/**
 * True when a recorded command that stopped a session at the budget finds a bound reached in the state of another
 * history, too.
 */
export function isAlsoStopped(state: Coordination, command: Command): boolean {
  if (command.type !== "stopAtBudget" || state.kind === "unopened") return false;
  return findReachedBudget(state, command) !== undefined;
}

/** The other history around what was decided. */
interface OtherHistory {
  readonly before: Coordination;
  readonly state: Coordination;
}

/**
 * Returns the reason why it is not known which model calls of a child would have been made: recorded usage reaches a
 * bound of the policy that did not hold then. `undefined` where it reaches none, or comes from the only call.
 */
export function explainReachedBudget(
  { before, state }: OtherHistory,
  { after, facts: [fact] }: ReplayedDecision,
): string | undefined {
  if (fact.type !== "usage.recorded" || state.kind === "unopened" || after.kind === "unopened")
    return undefined;
  const { stepId } = fact.payload;
  // The turns of the owner are never stopped.
  if (stepId === OWNER_STEP_ID) return undefined;
  const wish = { stepId, stopped: "call" } as const;
  const reached = findReachedBudget(state, wish);
  if (!reached || findReachedBudget(after, wish) || isOnlyModelCall(before, state, fact.payload))
    return undefined;
  return `${describeReachedBound(reached)}; which of its calls came after that is not recorded`;
}

/**
 * True for the only model call of a step that has ended, where the bound was not reached before. There is no call to
 * stop.
 */
function isOnlyModelCall(
  before: Coordination,
  { steps, bill }: KnownCoordination,
  { stepId, calls }: RunUsage,
): boolean {
  const step = steps.get(stepId);
  if (calls !== 1 || !step || !isEnded(step.phase)) return false;
  const runs = [...bill.runs.values()].filter((run) => run.stepId === stepId);
  const wasReached =
    before.kind !== "unopened" && findReachedBudget(before, { stepId, stopped: "call" }) !== undefined;
  return runs.length === 1 && !wasReached;
}
