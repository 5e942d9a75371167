/**
 * Owns: the folder from which a session's tools take relative paths, as the host finds it. The host does not tell it with a tool
 * call, and what it tells elsewhere as the workspace is wrong for a child that was spawned into another folder.
 */
import type { OpenClawPluginApi } from "./sdk.ts";
import { recent } from "./recent.ts";

type HostRuntime = OpenClawPluginApi["runtime"];

export type WorkingFolders = (session: string, agentId: string) => string;

const SESSIONS_MAX = 1_000;

/** A session's own folder is fixed when it is spawned; what the configuration says may change with a reload. */
export function workingFolders(runtime: HostRuntime): WorkingFolders {
  const known = recent<string>(SESSIONS_MAX);
  return (sessionKey, agentId) => {
    const before = known.get(sessionKey);
    if (before !== undefined) return before;
    const folder = folderOf(runtime, sessionKey, agentId);
    known.set(sessionKey, folder);
    return folder;
  };
}

interface Folders {
  readonly spawnedCwd?: unknown;
  readonly spawnedWorkspaceDir?: unknown;
}

function folderOf(runtime: HostRuntime, sessionKey: string, agentId: string): string {
  const entry: Folders | undefined = runtime.agent.session.getSessionEntry({
    sessionKey,
    agentId,
    readConsistency: "latest",
  });
  // The host's own types of its config disagree about `undefined`.
  const config = runtime.config.current() as Parameters<typeof runtime.agent.resolveAgentWorkspaceDir>[0];
  const { defaults, entries } = agentsIn(config);
  const own = entries?.[agentId]?.cwd;
  return (
    [entry?.spawnedCwd, own, defaults?.cwd, entry?.spawnedWorkspaceDir].find(isFolder) ??
    runtime.agent.resolveAgentWorkspaceDir(config, agentId)
  );
}

interface Agents {
  readonly defaults?: { readonly cwd?: unknown };
  readonly entries?: Readonly<Record<string, { readonly cwd?: unknown } | undefined>>;
}

function agentsIn(config: unknown): Agents {
  return (config as { readonly agents?: Agents } | undefined)?.agents ?? {};
}

function isFolder(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("/");
}
