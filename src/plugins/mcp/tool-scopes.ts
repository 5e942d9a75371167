/**
 * Owns: the scopes that tools of the MCP server ask for, by the name of a tool or by the id of the workflow that it runs.
 *
 * M7 Scopes that are demanded under either name of a tool are demanded. Those of a name that is not there are refused
 *    when the server starts: a demand that holds for nothing would pass unseen.
 */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { Caller } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { listFixedTools } from "./fixed-tools.ts";
import type { McpDependencies, McpTool } from "./mcp-tool.ts";
import { nameWorkflowTools } from "./workflow-tools.ts";

type ToolScopes = McpDependencies["toolScopes"];

/**
 * True where the caller has all scopes that are configured for the tool, by its own name or that of its workflow; also
 * for a tool without any.
 */
export function hasScopesForTool(
  toolScopes: ToolScopes,
  { scopes }: Caller,
  { name, workflowId = name }: McpTool,
): boolean {
  return [name, workflowId]
    .flatMap((each) => (Object.hasOwn(toolScopes, each) ? (toolScopes[each] ?? []) : []))
    .every((scope) => scopes?.includes(scope));
}

const NAMES_SHOWN_MAX = 50;
const NAME_CHARS_SHOWN_MAX = 100;

/**
 * Throws where scopes are configured for a name that is neither a tool nor one of `workflowIds`, which may have more
 * than the host offers. @throws CoordinationError `INPUT_INVALID`
 */
export function assertScopesKnown(dependencies: McpDependencies, workflowIds: readonly string[]): void {
  const { host, toolScopes } = dependencies;
  const fixedNames = listFixedTools(dependencies).map(({ name }) => name);
  const toolNames = nameWorkflowTools(host.workflowIds(), fixedNames).map(({ name }) => name);
  const names = new Set([...fixedNames, ...workflowIds, ...toolNames]);
  const unknown = Object.keys(toolScopes).find((name) => !names.has(name));
  if (unknown === undefined) return;
  const offered = [...new Set([...fixedNames, ...workflowIds])];
  const more = offered.length - NAMES_SHOWN_MAX;
  const shown = offered.slice(0, NAMES_SHOWN_MAX).join(", ");
  throw new CoordinationError(
    "INPUT_INVALID",
    `--mcp-scope: there is no tool or workflow ${JSON.stringify(unknown.slice(0, NAME_CHARS_SHOWN_MAX))}; ` +
      `there are: ${shown}${more > 0 ? ` and ${more} more` : ""}`,
  );
}
