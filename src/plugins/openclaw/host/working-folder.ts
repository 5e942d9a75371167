/**
 * Owns: the folder from which a session's tools take relative paths, as the host finds it. The host does not tell it with a tool
 * call, and what it tells elsewhere as the workspace is wrong for a child that was spawned into another folder.
 */
import { createRecentMap } from "../../../agents/coordination/std/recent.ts";
import type { HostRuntime } from "./host-runs.ts";
import { readSessionEntry } from "./session-entry.ts";

export type WorkingFolders = (session: string, agentId: string) => string;

const SESSIONS_MAX = 1_000;

/** Folders that we gave sessions of ours in this process: the host may write them to its records later than they are used. */
export type AssignedFolders = ReturnType<typeof createRecentMap<string>>;

/** Creates the map in which we remember the folders that sessions were given. */
export function createAssignedFolderMap(): AssignedFolders {
  return createRecentMap<string>(SESSIONS_MAX);
}

/**
 * Creates the function that returns the folder in which a session's tools work: the assigned one, else one by what its
 * spawn was given, which is read once, and by the present configuration.
 */
export function createWorkingFolderFinder(runtime: HostRuntime, assigned: AssignedFolders): WorkingFolders {
  const foldersBySession = createRecentMap<SpawnedFolders>(SESSIONS_MAX);
  return (sessionKey, agentId) => {
    const assignedFolder = assigned.get(sessionKey);
    if (assignedFolder !== undefined) return assignedFolder;
    const folders = foldersBySession.get(sessionKey) ?? readSpawnedFolders(runtime, sessionKey, agentId);
    foldersBySession.set(sessionKey, folders);
    return selectWorkingFolder(runtime, folders, agentId);
  };
}

/** Returns the folder in which the tools of an agent's session work where the session has none of its own. */
export function findAgentFolder(runtime: HostRuntime, agentId: string): string {
  return selectWorkingFolder(runtime, {}, agentId);
}

/** The folders that a session was spawned with, unchecked. */
interface SpawnedFolders {
  readonly spawnedCwd?: unknown;
  readonly spawnedWorkspaceDir?: unknown;
}

function readSpawnedFolders(runtime: HostRuntime, sessionKey: string, agentId: string): SpawnedFolders {
  const entry: SpawnedFolders | undefined = readSessionEntry(runtime.agent.session, sessionKey, agentId);
  return { spawnedCwd: entry?.spawnedCwd, spawnedWorkspaceDir: entry?.spawnedWorkspaceDir };
}

/**
 * Returns the first of these that is an absolute path: the folder of the session's spawn, the configured one of its
 * agent, that of all agents, the spawn's workspace; else the agent's workspace.
 */
function selectWorkingFolder(
  runtime: HostRuntime,
  { spawnedCwd, spawnedWorkspaceDir }: SpawnedFolders,
  agentId: string,
): string {
  const { defaults, entries } = readAgentSettings(runtime.config.current());
  return (
    [spawnedCwd, entries?.[agentId]?.cwd, defaults?.cwd, spawnedWorkspaceDir].find(isAbsolutePath) ??
    findAgentWorkspace(runtime, agentId)
  );
}

/** Returns the agent's workspace folder by the host's present configuration, whatever folder its sessions work in. */
export function findAgentWorkspace({ agent, config }: HostRuntime, agentId: string): string {
  // The host's own types of its config disagree about `undefined`.
  const current = config.current() as Parameters<typeof agent.resolveAgentWorkspaceDir>[0];
  return agent.resolveAgentWorkspaceDir(current, agentId);
}

/** The working folders of agents in the host's configuration, unchecked. */
interface AgentFolders {
  readonly defaults?: { readonly cwd?: unknown };
  readonly entries?: Readonly<Record<string, { readonly cwd?: unknown } | undefined>>;
}

function readAgentSettings(config: unknown): AgentFolders {
  return (config as { readonly agents?: AgentFolders } | undefined)?.agents ?? {};
}

function isAbsolutePath(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("/");
}
