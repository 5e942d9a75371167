/** Owns: putting the MCP server together over a host of workflow runs. Loaded only where somebody wants it. */
import type { RunningWorkflows } from "./compose-workflows.ts";
import { createMcpFace } from "./mcp/mcp-routes.ts";
import type { McpParts } from "./mcp/mcp-tool.ts";
import type { ProtocolFace } from "./openwop/http/route.ts";

type McpSettings = Pick<McpParts, "clock" | "version" | "toolScopes" | "mayAnswer" | "operator">;

export function createMcpParts(
  { host, logger, runs, contract }: RunningWorkflows,
  settings: McpSettings,
): McpParts {
  return { host, logger, runs, contract, ...settings };
}

export interface ServedMcpOptions extends Pick<McpParts, "clock" | "version" | "toolScopes"> {
  readonly allowedOrigins: readonly string[];
}

/** Whoever has a token may answer, as at the other routes; `toolScopes` may ask for more. */
export function createServedMcp(
  running: RunningWorkflows,
  { allowedOrigins, ...settings }: ServedMcpOptions,
): ProtocolFace {
  return createMcpFace({ ...createMcpParts(running, { ...settings, mayAnswer: true }), allowedOrigins });
}
