/** Owns: calling a tool over MCP, or another agent over A2A, for a node that names one. */
import type { CallingRun } from "../../../contracts/workflows/workflow-events.ts";
import type { TraceContext } from "../../../ports/outbound.ts";
import type { EffectOutcome } from "../../../workflow/node-contract/node-type.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import { isLeftToOthers } from "../driving/driven-runs.ts";
import { convertToFailedOutcome } from "../models/outbound-outcome.ts";
import { countOrDenyCall, type GateDependencies } from "../agents/tool-gate.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";
import type { EffectOfKind } from "./effect-dependencies.ts";

export type ToolDependencies = GateDependencies & Pick<WorkflowHostDependencies, "tools" | "clock">;

export interface ToolAct<E> {
  readonly effect: E;
  readonly signal: AbortSignal;
  readonly parent: CallingRun;
  readonly trace: TraceContext;
}

/**
 * Calls a tool over MCP for a node, and returns the outcome. A call that scopes or the rate deny is not made and is a
 * failure.
 */
export async function callMcpTool(
  dependencies: ToolDependencies,
  run: WorkflowRun,
  { effect, signal, parent, trace }: ToolAct<EffectOfKind<"call_tool">>,
): Promise<EffectOutcome> {
  const { url, peerUrl, tool, args, id } = effect;
  const denied = countOrDenyCall(dependencies, run, { toolName: tool, tool: { tool, url } });
  if (denied) return { kind: "failed", error: denied.error };
  const begunAt = dependencies.clock.now();
  const caller = await dependencies.tools();
  // A server that does a call once for each id does it once, also after a crash.
  const callId = `${run.runId}:${id}`;
  const address = { url, ...(peerUrl !== undefined && { peerUrl }) };
  const answer = await caller.callMcp({ ...address, tool, args, callId, signal, parent, ...trace });
  const durationMs = Math.max(0, dependencies.clock.now() - begunAt);
  if (answer.kind !== "answered") return convertToFailedOutcome(answer, { durationMs });
  const { ok, text, structured } = answer;
  return { kind: "tool_answered", ok, text, content: structured ?? answer.content, durationMs };
}

/**
 * Sends a message to another agent over A2A for a node, and returns the outcome with its answer. A message that scopes
 * or the rate deny is not sent and is a failure.
 */
export async function sendA2aMessage(
  dependencies: ToolDependencies,
  run: WorkflowRun,
  { effect, signal, parent, trace }: ToolAct<EffectOfKind<"send_message">>,
): Promise<EffectOutcome> {
  const { url, peerUrl, skill, message, id } = effect;
  const denied = countOrDenyCall(dependencies, run, { toolName: `a2a:${skill}`, tool: {} });
  if (denied) return { kind: "failed", error: denied.error };
  const begunAt = dependencies.clock.now();
  const messageId = `${run.runId}:${id}`;
  const caller = await dependencies.tools();
  const address = { url, ...(peerUrl !== undefined && { peerUrl }) };
  const answer = await caller.sendA2a({
    ...address,
    skill,
    message,
    messageId,
    signal,
    isLeftToOthers: () => isLeftToOthers(signal),
    parent,
    ...trace,
  });
  const durationMs = Math.max(0, dependencies.clock.now() - begunAt);
  if (answer.kind !== "answered") return convertToFailedOutcome(answer, { durationMs });
  const { ok, text, data, state } = answer;
  return { kind: "tool_answered", ok, text, content: data, state, durationMs };
}
