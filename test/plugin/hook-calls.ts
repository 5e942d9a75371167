/** Owns: what the host hands to the hooks of a tool call. */
import type { HookContext, HookEvent } from "../../src/plugins/openclaw/host/sdk.ts";

let calls = 0;

/** Returns a call of a tool, each under an id of its own. */
export function createCallEvent(
  toolName: string,
  params: Record<string, unknown>,
): HookEvent<"before_tool_call"> {
  calls += 1;
  return { toolName, toolCallId: `call-${calls}`, runId: "run", params };
}

/** Returns the context of a session's turn. Turns whose traces have the same letter belong to one coordination. */
export function createCallContext(sessionKey: string, trace = "t"): HookContext<"before_tool_call"> {
  return {
    sessionKey,
    agentId: "main",
    runId: `run of ${sessionKey}`,
    trace: { traceId: trace.repeat(32) },
  } as never;
}
