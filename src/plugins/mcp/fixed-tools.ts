/** Owns: which tools the MCP server has besides the workflows. */
import type { McpDependencies, McpTool } from "./mcp-tool.ts";
import { createPlanTool } from "./plan-tool.ts";
import { listRunTools } from "./run-tools.ts";

/** Lists the tools that are there whatever the workflows are. */
export function listFixedTools(dependencies: McpDependencies): readonly McpTool[] {
  const { operator } = dependencies;
  return [...listRunTools(dependencies), ...(operator ? [createPlanTool(operator)] : [])];
}
