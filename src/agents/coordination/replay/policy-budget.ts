/** Owns: whom the budget of a policy stops in the other history. */
import type { Command } from "../contracts/commands.ts";
import { OWNER_STEP_ID } from "../contracts/ids.ts";
import { describeBound, findReachedBudget } from "../dispatch/decide-budget.ts";
import { isEnded, type Coordination } from "../ledger/state.ts";
import type { Decided } from "./replay-log.ts";

/** True when a session that was stopped then is stopped in the other history, too. */
export function isStoppedAsWell(state: Coordination, command: Command): boolean {
  if (command.type !== "stopAtBudget" || state.kind === "unopened") return false;
  return findReachedBudget(state, command) !== undefined;
}

/** Explains which bound of the policy the calls of a child reached; `undefined` where they reached none that did not hold then. */
export function explainReachedBudget(
  state: Coordination,
  { after, facts: [fact] }: Decided,
): string | undefined {
  if (fact.type !== "usage.recorded" || state.kind === "unopened" || after.kind === "unopened")
    return undefined;
  const { stepId, calls } = fact.payload;
  const step = state.steps.get(stepId);
  // The turns of the owner are never stopped, and after the only call of a step that has ended there is none to stop.
  if (stepId === OWNER_STEP_ID || !step || (calls === 1 && isEnded(step.phase))) return undefined;
  const wish = { stepId, stopped: "call" } as const;
  const reached = findReachedBudget(state, wish);
  if (!reached || findReachedBudget(after, wish)) return undefined;
  return `${describeBound(reached)}; which of its calls came after that is not recorded`;
}
