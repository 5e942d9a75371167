/** Owns: offering the agent tools to the host. Their code is loaded at the first call. */
import { createMayRun } from "./host/allowed-agents.ts";
import { createPlanAccess } from "./runtime-access/plan-access.ts";
import { createSessionParents } from "./privileges/session-parents.ts";
import type { CallingSession } from "./plans/plan-tools.ts";
import type { ToolAnswer } from "./runtime-access/tool-call.ts";
import type { OpenClawPluginApi, ToolContext, ToolResult } from "./host/sdk.ts";
import { CHILD_TOOLS, TOOL_DECLARATIONS, type ToolName } from "./declarations/tool-declarations.ts";

/**
 * Registers the agent tools of this plugin, whose code is loaded at the first call; those that children must use are
 * never hidden behind the host's tool search.
 */
export function registerCoordinationTools(api: OpenClawPluginApi): void {
  const { parentOf } = createSessionParents(api);
  const call = async (tool: ToolName, caller: CallingSession, params: unknown): Promise<ToolResult> => {
    const { createPlanTools } = await import("./plans/plan-tools.ts");
    const tools = createPlanTools(createPlanAccess(api), createMayRun(api), parentOf);
    return createToolResult(await tools(tool, caller, params));
  };
  for (const { name, label, description, parameters } of TOOL_DECLARATIONS) {
    api.registerTool(
      ({ sessionKey, sessionId, agentId, sandboxed }: ToolContext) => ({
        name,
        label,
        description,
        parameters,
        // A child is told to report and may ask, so it must see these where the host hides the others behind a search.
        ...((CHILD_TOOLS as readonly string[]).includes(name) && { catalogMode: "direct-only" as const }),
        execute: (toolCallId: string, params: unknown, signal?: AbortSignal) =>
          call(name, { sessionKey, sessionId, agentId, sandboxed, toolCallId, signal }, params),
      }),
      { name },
    );
  }
}

function createToolResult(answer: ToolAnswer): ToolResult {
  return { content: [{ type: "text", text: JSON.stringify(answer) }], details: answer };
}
