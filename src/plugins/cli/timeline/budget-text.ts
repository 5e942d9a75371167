/** Owns: what is used and what may be used, in words for people. */
import type { FactPayloads } from "../../../agents/coordination/contracts/facts.ts";
import type { BudgetReached, TreeBudget, TreeLimits } from "../../../agents/coordination/contracts/usage.ts";
import { OWNER_STEP_ID } from "../../../agents/coordination/contracts/ids.ts";
import type { CoordinationView } from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { formatCount, formatTokens, formatUsd } from "../../../agents/coordination/std/quantities.ts";

/** Returns in words the tokens and the cost that a coordination has used; an empty text where no usage is known. */
export function describeUsage(usage: CoordinationView["usage"]): string {
  return usage ? `${formatTokens(usage.tokens)} tokens, ${formatUsd(usage.costMicroUsd)}` : "";
}

/** Returns in words the limits of a tree's budget, then those of single agents; an empty text without any. */
export function describeBudget({ agents = {}, ...limits }: TreeBudget): string {
  const ofAgents = Object.entries(agents).map(([id, agent]) => `${id}: ${describeLimits(agent)}`);
  return [describeLimits(limits), ...ofAgents].filter(Boolean).join("; ");
}

function describeLimits({ tokens, costMicroUsd, spawns, depth }: TreeLimits): string {
  return [
    ...(tokens === undefined ? [] : [`${formatTokens(tokens)} tokens`]),
    ...(costMicroUsd === undefined ? [] : [formatUsd(costMicroUsd)]),
    ...(spawns === undefined ? [] : [formatCount(spawns, "spawn")]),
    ...(depth === undefined ? [] : [formatCount(depth, "level")]),
  ].join(", ");
}

const WHAT = { spawn: "a spawn", call: "a further call", run: "a run" } as const;

/** Returns in words which limit of a budget was reached, and what of which session was stopped because of it. */
export function describeBudgetStop({
  stepId,
  limit,
  agentId,
  allowed,
  used,
  stopped,
}: BudgetReached): string {
  const session = stepId === OWNER_STEP_ID ? "the owner" : stepId;
  const whose = agentId ? ` of agent ${agentId}` : "";
  return `budget${whose} reached: ${describeLimitUse(limit, used, allowed)}; ${WHAT[stopped]} of ${session} was stopped`;
}

/** Returns in words the budget that is set aside for a plan that the agent of a step submitted. */
export function describeBudgetLoan({ stepId, to, budget }: FactPayloads["budget.lent"]): string {
  return `${describeLimits(budget)} to ${to} (${stepId})`;
}

function describeLimitUse(limit: BudgetReached["limit"], used: number, allowed: number): string {
  switch (limit) {
    case "tokens":
      return `${formatTokens(used)} of ${formatTokens(allowed)} tokens`;
    case "costMicroUsd":
      return `${formatUsd(used)} of ${formatUsd(allowed)}`;
    case "spawns":
      return `${used} of ${formatCount(allowed, "spawn")}`;
    case "depth":
      return `level ${used} of ${allowed}`;
  }
}
