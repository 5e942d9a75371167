/** Owns: what an operator, or a policy, says of the results of one agent. */
import type { GatesConfig } from "../contracts/config/gates-config.ts";
import { hostAgentId } from "../contracts/host-agent-id.ts";

export type AgentGate = GatesConfig["agents"][keyof GatesConfig["agents"]];

/** The host takes several spellings for one agent, and a model may use any of them. */
export function agentGate({ agents = {} }: Partial<Pick<GatesConfig, "agents">>, agentId: string): AgentGate {
  const known = Object.entries(agents).find(([id]) => hostAgentId(id) === hostAgentId(agentId));
  return known?.[1] ?? {};
}
