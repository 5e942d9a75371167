/**
 * Owns: which agents the plan of an agent may use. It is the host's own rule for spawns: itself, and those that
 * `subagents.allowAgents` lists; a sandboxed session only itself, because others may run outside of the sandbox. A plan must
 * not be a way around it (H3).
 */
import type { AgentId } from "../../../agents/coordination/contracts/ids.ts";
import type { OpenClawPluginApi } from "./sdk.ts";

type HostConfig = ReturnType<OpenClawPluginApi["runtime"]["config"]["current"]>;

/** The agent that wants to run another one. */
export interface AgentRequester {
  readonly agent: AgentId;
  readonly isSandboxed: boolean;
}

/** An agent that a requester wants to run. */
export interface WantedAgent {
  readonly agent: AgentId;
  /** One of `acpAgents`: `*` speaks of the host's agents only. */
  readonly isProgram: boolean;
}

export type MayRun = (requester: AgentRequester, wanted: WantedAgent) => boolean;

/** Creates the check whether a requester may run an agent, by the host's configuration as it is at each call. */
export function createMayRun(api: OpenClawPluginApi): MayRun {
  return (requester, wanted) => mayRun(api.runtime.config.current(), requester, wanted);
}

/**
 * True where the host's rule for spawns lets the requesting agent run the wanted agent or program; a sandboxed
 * requester may run itself alone.
 */
export function mayRun(
  { agents }: { readonly agents?: HostConfig["agents"] | undefined },
  requester: AgentRequester,
  { agent, isProgram }: WantedAgent,
): boolean {
  if (!isProgram && normalizeId(agent) === normalizeId(requester.agent)) return true;
  if (requester.isSandboxed) return false;
  const listed = readAllowedAgents(agents, requester.agent).map(normalizeId);
  return listed.includes(normalizeId(agent)) || (!isProgram && listed.includes("*"));
}

/** Returns the requester's own list of agents that it may spawn, or else the one for all agents. */
function readAllowedAgents(agents: HostConfig["agents"], requester: AgentId): readonly string[] {
  const { entries = {}, defaults } = agents ?? {};
  const ownEntry = Object.entries(entries).find(([id]) => normalizeId(id) === normalizeId(requester))?.[1];
  return ownEntry?.subagents?.allowAgents ?? defaults?.subagents?.allowAgents ?? [];
}

function normalizeId(id: string): string {
  return id.trim().toLowerCase();
}
