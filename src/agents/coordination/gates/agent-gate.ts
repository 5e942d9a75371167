/** Owns: what an operator, or a policy, says of the results of one agent. */
import type { GatesConfig } from "../contracts/config/gates-config.ts";
import { findAgentEntry } from "../contracts/host-agent-id.ts";

export type AgentGate = GatesConfig["agents"][keyof GatesConfig["agents"]];

/** The host takes several spellings for one agent, and a model may use any of them. */
export function findAgentGate(
  { agents = {} }: Partial<Pick<GatesConfig, "agents">>,
  agentId: string,
): AgentGate {
  return findAgentEntry(agents, agentId) ?? {};
}
