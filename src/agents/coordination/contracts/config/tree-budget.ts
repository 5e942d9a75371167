/** Owns: the operator's budget as it is enforced and recorded. */
import { parseHostAgentId } from "../host-agent-id.ts";
import { convertToMicroUsd, type TreeBudget, type TreeLimits } from "../usage.ts";
import type { BudgetConfig } from "./config.ts";

/** Returns what the operator's budget limits, by agents as the host names them; `undefined` when it limits nothing. */
export function treeBudgetOf({ agents, ...limits }: BudgetConfig): TreeBudget | undefined {
  const ofAll = treeLimitsOf(limits);
  const ofAgents = Object.entries(agents).map(
    ([id, agent]) => [parseHostAgentId(id), treeLimitsOf(agent)] as const,
  );
  const limited = ofAgents.filter(([, agent]) => Object.keys(agent).length > 0);
  if (Object.keys(ofAll).length === 0 && limited.length === 0) return undefined;
  // The first of two spellings of one agent counts, as elsewhere.
  return { ...ofAll, ...(limited.length > 0 && { agents: Object.fromEntries(limited.toReversed()) }) };
}

function treeLimitsOf({ tokens, costUsd, spawns, depth }: Omit<BudgetConfig, "agents">): TreeLimits {
  return {
    ...(tokens !== undefined && { tokens }),
    ...(costUsd !== undefined && { costMicroUsd: convertToMicroUsd(costUsd) }),
    ...(spawns !== undefined && { spawns }),
    ...(depth !== undefined && { depth }),
  };
}
