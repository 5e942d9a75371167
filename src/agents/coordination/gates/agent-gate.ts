/** Owns: what an operator, or a policy, says of the results of one agent. */
import type { GatesConfig } from "../contracts/config/gates-config.ts";
import { findAgentEntry } from "../contracts/host-agent-id.ts";

export type AgentGate = GatesConfig["agents"][keyof GatesConfig["agents"]];

/**
 * Returns the operator's gate settings for an agent, whatever spelling of its name is used; an empty object where
 * there are none.
 */
export function findAgentGate(
  { agents = {} }: Partial<Pick<GatesConfig, "agents">>,
  agentId: string,
): AgentGate {
  return findAgentEntry(agents, agentId) ?? {};
}
