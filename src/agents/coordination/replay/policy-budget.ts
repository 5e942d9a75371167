/** Owns: whom the budget of a policy stops in the other history. */
import type { Command } from "../contracts/commands.ts";
import { OWNER_STEP_ID } from "../contracts/ids.ts";
import type { RunUsage } from "../contracts/usage.ts";
import { describeBound, findReachedBudget } from "../dispatch/decide-budget.ts";
import { isEnded, type Coordination, type KnownCoordination } from "../ledger/state.ts";
import type { Decided } from "./replay-log.ts";

/** True when a session that was stopped then is stopped in the other history, too. */
export function isStoppedAsWell(state: Coordination, command: Command): boolean {
  if (command.type !== "stopAtBudget" || state.kind === "unopened") return false;
  return findReachedBudget(state, command) !== undefined;
}

/** The other history around what was decided. */
interface OtherHistory {
  readonly before: Coordination;
  readonly state: Coordination;
}

/** Explains which bound of the policy the calls of a child reached; `undefined` where they reached none that did not hold then. */
export function explainReachedBudget(
  { before, state }: OtherHistory,
  { after, facts: [fact] }: Decided,
): string | undefined {
  if (fact.type !== "usage.recorded" || state.kind === "unopened" || after.kind === "unopened")
    return undefined;
  const { stepId } = fact.payload;
  // The turns of the owner are never stopped.
  if (stepId === OWNER_STEP_ID) return undefined;
  const wish = { stepId, stopped: "call" } as const;
  const reached = findReachedBudget(state, wish);
  if (!reached || findReachedBudget(after, wish) || isLastCall(before, state, fact.payload)) return undefined;
  return `${describeBound(reached)}; which of its calls came after that is not recorded`;
}

/** True for the only call of a step that has ended, where the bound was not reached before: there is no call to stop. */
function isLastCall(
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
