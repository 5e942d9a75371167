/**
 * Owns: which agents the plan of an agent may use. It is the host's own rule for spawns, `subagents.allowAgents`: itself, and those
 * that the operator lists. A plan must not be a way around it (H3).
 */
import type { AgentId } from "../../agents/coordination/contracts/ids.ts";
import type { OpenClawPluginApi } from "./sdk.ts";

type HostConfig = ReturnType<OpenClawPluginApi["runtime"]["config"]["current"]>;

export type MayRun = (requester: AgentId, agent: AgentId) => boolean;

export function allowedAgents(api: OpenClawPluginApi): MayRun {
  return (requester, agent) => mayRun(api.runtime.config.current(), requester, agent);
}

export function mayRun(
  { agents }: { readonly agents?: HostConfig["agents"] | undefined },
  requester: AgentId,
  agent: AgentId,
): boolean {
  if (normal(agent) === normal(requester)) return true;
  const listed = listOf(agents, requester).map(normal);
  return listed.includes("*") || listed.includes(normal(agent));
}

/** Its own list, or else the one for all. */
function listOf(agents: HostConfig["agents"], requester: AgentId): readonly string[] {
  const { entries = {}, defaults } = agents ?? {};
  const own = Object.entries(entries).find(([id]) => normal(id) === normal(requester))?.[1];
  return own?.subagents?.allowAgents ?? defaults?.subagents?.allowAgents ?? [];
}

function normal(id: string): string {
  return id.trim().toLowerCase();
}
