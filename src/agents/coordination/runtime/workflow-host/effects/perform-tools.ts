/** Owns: calling a tool over MCP, or another agent over A2A, for a node that names one. */
import type { CallingRun } from "../../../contracts/workflows/workflow-events.ts";
import type { TraceContext } from "../../../ports/outbound.ts";
import type { EffectOutcome, NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import { failureOf } from "../models/outbound-outcome.ts";
import { findToolDenial, type GateParts } from "../agents/tool-gate.ts";
import type { WorkflowHostParts } from "../records/workflow-parts.ts";

export type ToolParts = GateParts & Pick<WorkflowHostParts, "tools" | "clock">;

export interface ToolAct<E> {
  readonly effect: E;
  readonly signal: AbortSignal;
  readonly parent: CallingRun;
  readonly trace: TraceContext;
}

type Of<K extends NodeEffect["kind"]> = NodeEffect & { readonly kind: K };

export async function callTool(
  parts: ToolParts,
  run: WorkflowRun,
  { effect, signal, parent, trace }: ToolAct<Of<"call_tool">>,
): Promise<EffectOutcome> {
  const { url, peerUrl, tool, args, id } = effect;
  const denied = findToolDenial(parts, run, { toolName: tool, tool: { tool, ...findServer(parts, url) } });
  if (denied) return { kind: "failed", error: denied.error };
  const begunAt = parts.clock.now();
  const caller = await parts.tools();
  // A server that does a call once for each id does it once, also after a crash.
  const callId = `${run.runId}:${id}`;
  const address = { url, ...(peerUrl !== undefined && { peerUrl }) };
  const answer = await caller.callMcp({ ...address, tool, args, callId, signal, parent, ...trace });
  const durationMs = Math.max(0, parts.clock.now() - begunAt);
  if (answer.kind !== "answered") return failureOf(answer, { durationMs });
  const { ok, text, structured } = answer;
  return { kind: "tool_answered", ok, text, content: structured ?? answer.content, durationMs };
}

/** The server's name, where the operator gave it one. */
function findServer({ agentHost }: ToolParts, url: string): { readonly server?: string } {
  const found = Object.entries(agentHost.mcpServers).find(([, serverUrl]) => serverUrl === url);
  return found ? { server: found[0] } : {};
}

export async function sendMessage(
  parts: ToolParts,
  run: WorkflowRun,
  { effect, signal, parent, trace }: ToolAct<Of<"send_message">>,
): Promise<EffectOutcome> {
  const { url, peerUrl, skill, message, id } = effect;
  const denied = findToolDenial(parts, run, { toolName: `a2a:${skill}`, tool: {} });
  if (denied) return { kind: "failed", error: denied.error };
  const begunAt = parts.clock.now();
  const messageId = `${run.runId}:${id}`;
  const caller = await parts.tools();
  const address = { url, ...(peerUrl !== undefined && { peerUrl }) };
  const answer = await caller.sendA2a({ ...address, skill, message, messageId, signal, parent, ...trace });
  const durationMs = Math.max(0, parts.clock.now() - begunAt);
  if (answer.kind !== "answered") return failureOf(answer, { durationMs });
  const { ok, text, data, state } = answer;
  return { kind: "tool_answered", ok, text, content: data, state, durationMs };
}
