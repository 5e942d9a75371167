/** Owns: what an operator says about the agents of manifests, their models and their tools. */
import type { InstalledAgent } from "../../../contracts/workflows/agent-manifest.ts";

export interface AgentHostDependencies {
  readonly installed: readonly InstalledAgent[];
  /** Models by the classes that manifests name; a class without one gets the host's own. */
  readonly modelClasses: Readonly<Record<string, string>>;
  /** MCP endpoints by the names of their servers. Where two have the same tool the first is meant, unless the server is named. */
  readonly mcpServers: Readonly<Record<string, string>>;
  /** Scopes that whoever started the run needs for a tool, by the tool's id. A tool that is not here asks for nothing. */
  readonly toolScopes: Readonly<Record<string, readonly string[]>>;
  /** The rate of one principal for one tool. */
  readonly toolRate: ToolRate;
}

export interface ToolRate {
  readonly perMinute: number;
  readonly burst: number;
}

export const NO_AGENTS: AgentHostDependencies = {
  installed: [],
  modelClasses: {},
  mcpServers: {},
  toolScopes: {},
  toolRate: { perMinute: 120, burst: 60 },
};
