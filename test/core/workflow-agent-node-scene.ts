/** Owns: how far an agent of a manifest is, put together from its members, for tests of the nodes that agents execute. */
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { AskedCall, BoundTool } from "../../src/agents/coordination/contracts/workflows/agent-events.ts";
import type { WorkflowPayloads } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { Invocation } from "../../src/agents/coordination/workflow/state/invocation.ts";

export const MANIFEST = "a".repeat(64);
export const CHILD = "child-1" as CoordinationId;

/** A run that may invoke one agent, and its node `a`, which that agent executes. */
export const STARTED = { agents: { "acme.writer": MANIFEST } };
export const MEMBERS = { agent: { agentId: "acme.writer" } };

type Bound = WorkflowPayloads["coordination.agent_bound"];
type TurnPayload = WorkflowPayloads["coordination.agent_turned"];
type ToolReturnPayload = WorkflowPayloads["agent.toolReturned"];

export function createTool(id: string, change: Partial<BoundTool> = {}): BoundTool {
  return { id, call: id, transport: "native", parameters: {}, ...change };
}

export function createBound(change: Partial<Bound> = {}): Bound {
  const names = { invocationId: "a:1", agentId: "acme.writer" };
  return { ...names, threshold: 0.7, task: "write", tools: [createTool("search")], ...change };
}

export function createCall(callId: string, change: Partial<AskedCall> = {}): AskedCall {
  return { callId, toolName: "search", call: "search", args: {}, argsHash: "0".repeat(64), ...change };
}

export function createTurn(change: Partial<TurnPayload> = {}): TurnPayload {
  return { invocationId: "a:1", turn: 1, text: "", calls: [], tokens: 0, ...change };
}

/** An agent that is ready to be asked. */
export function createInvocation(change: Partial<Invocation> = {}): Invocation {
  return {
    started: { invocationId: "a:1", agentId: "acme.writer", source: "workflow-node", manifest: MANIFEST },
    bound: createBound(),
    turns: [],
    called: new Map(),
    returned: new Map(),
    chars: 0,
    tokens: 0,
    ...change,
  };
}

/** The newest turn of an agent asked for the calls; they returned as `status` says. */
export function createCallers(
  calls: readonly AskedCall[],
  status: NonNullable<ToolReturnPayload["status"]> = "ok",
): Pick<Invocation, "turns" | "returned"> {
  const returned = calls.map(({ callId, toolName }): [string, ToolReturnPayload] => [
    callId,
    { agentId: "acme.writer", toolName, callId, status },
  ]);
  return { turns: [createTurn({ calls: [...calls] })], returned: new Map(returned) };
}

type CompletionPayload = WorkflowPayloads["agent.invocation.completed"];

export function createCompleted(
  outcome: CompletionPayload["outcome"],
  change: Partial<CompletionPayload> = {},
): CompletionPayload {
  return { invocationId: "a:1", agentId: "acme.writer", outcome, ...change };
}
