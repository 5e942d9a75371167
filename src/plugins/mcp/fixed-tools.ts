/** Owns: which tools the MCP server has besides the workflows. */
import type { McpDependencies, McpTool } from "./mcp-tool.ts";
import { createPlanTool } from "./plan-tool.ts";
import { listRunTools } from "./run-tools.ts";

/**
 * Lists the MCP tools that there are whatever the workflows are, before scopes are looked at: those about runs and,
 * with a gateway, `plan_run`.
 */
export function listFixedTools(dependencies: McpDependencies): readonly McpTool[] {
  const { operator } = dependencies;
  return [...listRunTools(dependencies), ...(operator ? [createPlanTool(operator)] : [])];
}
