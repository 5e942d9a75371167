/**
 * Owns: the folder from which a session's tools take relative paths, as the host finds it. The host does not tell it with a tool
 * call, and what it tells elsewhere as the workspace is wrong for a child that was spawned into another folder.
 */
import type { OpenClawPluginApi } from "./sdk.ts";
import { createRecent } from "../../../agents/coordination/std/recent.ts";
import { readSessionEntry } from "./session-entry.ts";

type HostRuntime = OpenClawPluginApi["runtime"];

export type WorkingFolders = (session: string, agentId: string) => string;

const SESSIONS_MAX = 1_000;

/** Folders that we gave sessions of ours in this process: the host may write them to its records later than they are used. */
export type AssignedFolders = ReturnType<typeof createRecent<string>>;

export function createAssignedFolders(): AssignedFolders {
  return createRecent<string>(SESSIONS_MAX);
}

/** A session's own folder is fixed when it is spawned; what the configuration says may change at any time. */
export function createWorkingFolders(runtime: HostRuntime, assigned: AssignedFolders): WorkingFolders {
  const foldersBySession = createRecent<Folders>(SESSIONS_MAX);
  return (sessionKey, agentId) => {
    const assignedFolder = assigned.get(sessionKey);
    if (assignedFolder !== undefined) return assignedFolder;
    const folders = foldersBySession.get(sessionKey) ?? ownFolders(runtime, sessionKey, agentId);
    foldersBySession.set(sessionKey, folders);
    return folderOf(runtime, folders, agentId);
  };
}

/** Returns the folder of a session that has none of its own. */
export function findAgentFolder(runtime: HostRuntime, agentId: string): string {
  return folderOf(runtime, {}, agentId);
}

interface Folders {
  readonly spawnedCwd?: unknown;
  readonly spawnedWorkspaceDir?: unknown;
}

function ownFolders(runtime: HostRuntime, sessionKey: string, agentId: string): Folders {
  const entry: Folders | undefined = readSessionEntry(runtime.agent.session, sessionKey, agentId);
  return { spawnedCwd: entry?.spawnedCwd, spawnedWorkspaceDir: entry?.spawnedWorkspaceDir };
}

function folderOf(
  runtime: HostRuntime,
  { spawnedCwd, spawnedWorkspaceDir }: Folders,
  agentId: string,
): string {
  const { defaults, entries } = readAgents(runtime.config.current());
  return (
    [spawnedCwd, entries?.[agentId]?.cwd, defaults?.cwd, spawnedWorkspaceDir].find(isFolder) ??
    findWorkspace(runtime, agentId)
  );
}

/** Returns the workspace of an agent, wherever its sessions work. */
export function findWorkspace({ agent, config }: HostRuntime, agentId: string): string {
  // The host's own types of its config disagree about `undefined`.
  const current = config.current() as Parameters<typeof agent.resolveAgentWorkspaceDir>[0];
  return agent.resolveAgentWorkspaceDir(current, agentId);
}

interface Agents {
  readonly defaults?: { readonly cwd?: unknown };
  readonly entries?: Readonly<Record<string, { readonly cwd?: unknown } | undefined>>;
}

function readAgents(config: unknown): Agents {
  return (config as { readonly agents?: Agents } | undefined)?.agents ?? {};
}

function isFolder(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("/");
}
