/**
 * Owns: which agents the plan of an agent may use. It is the host's own rule for spawns: itself, and those that
 * `subagents.allowAgents` lists; a sandboxed session only itself, because others may run outside of the sandbox. A plan must
 * not be a way around it (H3).
 */
import type { AgentId } from "../../../agents/coordination/contracts/ids.ts";
import type { OpenClawPluginApi } from "./sdk.ts";

type HostConfig = ReturnType<OpenClawPluginApi["runtime"]["config"]["current"]>;

export interface Requester {
  readonly agent: AgentId;
  readonly isSandboxed: boolean;
}

export interface Wanted {
  readonly agent: AgentId;
  /** One of `acpAgents`: `*` speaks of the host's agents only. */
  readonly isProgram: boolean;
}

export type MayRun = (requester: Requester, wanted: Wanted) => boolean;

export function createAllowedAgents(api: OpenClawPluginApi): MayRun {
  return (requester, wanted) => mayRun(api.runtime.config.current(), requester, wanted);
}

export function mayRun(
  { agents }: { readonly agents?: HostConfig["agents"] | undefined },
  requester: Requester,
  { agent, isProgram }: Wanted,
): boolean {
  if (!isProgram && normalizeId(agent) === normalizeId(requester.agent)) return true;
  if (requester.isSandboxed) return false;
  const listed = listOf(agents, requester.agent).map(normalizeId);
  return listed.includes(normalizeId(agent)) || (!isProgram && listed.includes("*"));
}

/** Returns the requester's own list, or else the one for all agents. */
function listOf(agents: HostConfig["agents"], requester: AgentId): readonly string[] {
  const { entries = {}, defaults } = agents ?? {};
  const ownEntry = Object.entries(entries).find(([id]) => normalizeId(id) === normalizeId(requester))?.[1];
  return ownEntry?.subagents?.allowAgents ?? defaults?.subagents?.allowAgents ?? [];
}

function normalizeId(id: string): string {
  return id.trim().toLowerCase();
}
