/** Owns: the operator's budget as it is enforced and recorded. */
import { parseHostAgentId } from "../host-agent-id.ts";
import { convertToMicroUsd, type TreeBudget, type TreeLimits } from "../usage.ts";
import type { BudgetConfig } from "./config.ts";

/**
 * Returns the operator's limits for a whole coordination and for its agents, these by the ids that the host has for
 * them; `undefined` when nothing is limited.
 */
export function createTreeBudget({ agents, ...limits }: BudgetConfig): TreeBudget | undefined {
  const ofAll = createTreeLimits(limits);
  // The first of two spellings of one agent counts, as elsewhere, also where it limits nothing.
  const ofAgents = new Map(
    Object.entries(agents)
      .toReversed()
      .map(([id, agent]) => [parseHostAgentId(id), createTreeLimits(agent)] as const),
  );
  const limited = [...ofAgents].filter(([, agent]) => Object.keys(agent).length > 0);
  if (Object.keys(ofAll).length === 0 && limited.length === 0) return undefined;
  return { ...ofAll, ...(limited.length > 0 && { agents: Object.fromEntries(limited) }) };
}

function createTreeLimits({ tokens, costUsd, spawns, depth }: Omit<BudgetConfig, "agents">): TreeLimits {
  return {
    ...(tokens !== undefined && { tokens }),
    ...(costUsd !== undefined && { costMicroUsd: convertToMicroUsd(costUsd) }),
    ...(spawns !== undefined && { spawns }),
    ...(depth !== undefined && { depth }),
  };
}
