/**
 * Owns: one call of a tool for an agent: whether its caller may, whether that is often enough for now, then the call.
 *
 * Demands on the caller fail closed: scopes that nobody knows are not there (RFC 0064). A call that may have been made
 * when a process died is made again with the same id.
 */
import type { CallingRun } from "../../../contracts/workflows/workflow-events.ts";
import type { CoordinationId } from "../../../contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import type { BoundTool } from "../../../contracts/workflows/agent-events.ts";
import type { TraceContext } from "../../../ports/outbound.ts";
import type { AgentEffect, AgentOutcome } from "../../../workflow/node-contract/agent-effects.ts";
import {
  HANDOFF,
  readHandoffRequest,
  MEMORY_READ,
  MEMORY_WRITE,
  readMemoryNote,
} from "../../../workflow/node-contract/agent-tools.ts";
import { cutToolResult } from "../../../workflow/nodes/agent-messages.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import type { Values } from "../../../workflow/state/values.ts";
import type { AgentBook } from "./agent-book.ts";
import type { PlayedTool } from "../records/conformance-play.ts";
import { maskText } from "../records/mask-secrets.ts";
import { countOrDenyCall, findScopeDenial, type GateDependencies } from "./tool-gate.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

export interface CallDependencies
  extends GateDependencies, Pick<WorkflowHostDependencies, "tools" | "clock" | "secrets" | "conformance"> {
  readonly agentBook: AgentBook;
}

/** A tool call of an agent, with its run and what performing it takes. */
export interface AgentToolCall {
  readonly run: WorkflowRun;
  readonly effect: AgentEffect & { readonly kind: "call_agent_tool" };
  readonly signal: AbortSignal;
  readonly trace: TraceContext;
  readonly parent: CallingRun;
  /** Reads the agent's own memory, newest first. */
  readonly readMemory: (query: {
    readonly tag?: string;
    readonly limit?: number;
  }) => Promise<readonly Values[]>;
}

/** The result of an agent's tool call, which may be a refusal or a failure. */
type AgentToolResult = (AgentOutcome & { readonly kind: "agent_tool_returned" })["returned"];

/**
 * Checks the caller's scopes and the tool's rate, then runs the tool for an agent, and returns what came back. A
 * refusal or a failure is an outcome, too.
 */
export async function callAgentTool(
  dependencies: CallDependencies,
  toolCall: AgentToolCall,
): Promise<AgentOutcome> {
  const gated = refuseToolCall(dependencies, toolCall);
  if (gated) return { kind: "agent_tool_returned", returned: gated };
  const begunAt = dependencies.clock.now();
  const returned = await runTool(dependencies, toolCall);
  const durationMs = Math.max(0, dependencies.clock.now() - begunAt);
  return { kind: "agent_tool_returned", returned: { ...returned, durationMs } };
}

/** Returns why the tool call is refused; `undefined` where it may be made, which counts against its rate. */
function refuseToolCall(
  dependencies: CallDependencies,
  { run, effect: { call, tool } }: AgentToolCall,
): AgentToolResult | undefined {
  const played = findPlayedTool(dependencies, run, tool);
  const denied = findScopeDenial(played?.requiredScopes ?? [], run.started.scopes, call.toolName);
  if (denied) return denied;
  const isExhausted = played?.isExhausted ?? false;
  return countOrDenyCall(dependencies, run, {
    toolName: call.toolName,
    tool: played ? {} : tool,
    isExhausted,
  });
}

/**
 * Returns what the conformance suite has play the tool; `undefined` for a run that is not played, or a tool that its
 * play does not have.
 */
function findPlayedTool(
  { conformance }: CallDependencies,
  { started }: WorkflowRun,
  tool: BoundTool,
): PlayedTool | undefined {
  return conformance?.agentOf(started.configurable)?.findTool(tool);
}

/** Runs the tool on its MCP server, in the conformance play, or as a native tool of this host. */
async function runTool(dependencies: CallDependencies, toolCall: AgentToolCall): Promise<AgentToolResult> {
  const { tool, call: made } = toolCall.effect;
  if (tool.transport === "mcp") return callToolOfServer(dependencies, toolCall);
  const played = findPlayedTool(dependencies, toolCall.run, tool);
  if (played)
    return played.fails
      ? createToolError("tool_failed", "the tool failed")
      : createToolSuccess(dependencies, "done");
  switch (made.toolName) {
    case MEMORY_READ:
      return readMemoryNotes(dependencies, toolCall);
    case MEMORY_WRITE:
      return checkNote(made.args);
    case HANDOFF:
      return checkHandoff(dependencies, toolCall);
    default:
      return createToolError("not_configured", "this host has no such tool");
  }
}

function createToolError(code: string, message: string): AgentToolResult {
  return { status: "error", error: { code, message } };
}

/** Creates the outcome of a tool that succeeded, with its text masked and cut to what a model is told. */
function createToolSuccess({ secrets }: CallDependencies, text: string): AgentToolResult {
  const clean = maskText(text.toWellFormed(), secrets);
  return { status: "ok", outcome: { text: cutToolResult(clean), contentTrust: "untrusted" } };
}

const FAILURE_CHARS_MAX = 2_000;

/** Calls the tool on its MCP server. A failure of the connection is an outcome, too. */
async function callToolOfServer(
  dependencies: CallDependencies,
  { run, effect, signal, trace, parent }: AgentToolCall,
): Promise<AgentToolResult> {
  const { tool, call: made } = effect;
  const url = findMcpServerUrl(dependencies, tool);
  const { tool: name = "" } = tool;
  if (url === undefined)
    return createToolError("not_configured", "the tool's server is not configured any more");
  const answer = await (
    await dependencies.tools()
  ).callMcp({
    url,
    tool: name,
    args: made.args,
    signal,
    parent,
    ...trace,
    callId: formatCallId(run.runId, made.callId),
  });
  if (answer.kind !== "answered") return createToolError(answer.errorCode ?? answer.code, answer.message);
  const text = answer.text === "" ? JSON.stringify(answer.structured ?? answer.content) : answer.text;
  if (answer.ok) return createToolSuccess(dependencies, text);
  const why = maskText(text.toWellFormed(), dependencies.secrets).slice(0, FAILURE_CHARS_MAX);
  return createToolError("tool_failed", why === "" ? "the tool says that it failed" : why);
}

function findMcpServerUrl(
  { agentHost: { mcpServers } }: CallDependencies,
  { server = "" }: BoundTool,
): string | undefined {
  return Object.hasOwn(mcpServers, server) ? mcpServers[server] : undefined;
}

function formatCallId(runId: CoordinationId, callId: string): string {
  return `${runId}:${callId}`;
}

const NOTES_MAX = 100;

/**
 * Returns the outcome of a memory read: the agent's notes as JSON, those of the asked tag where one is named, the
 * newest first and at most `NOTES_MAX`.
 */
async function readMemoryNotes(
  dependencies: CallDependencies,
  { effect, readMemory }: AgentToolCall,
): Promise<AgentToolResult> {
  const { tag, limit } = effect.call.args;
  const entries = await readMemory({
    ...(typeof tag === "string" && { tag }),
    limit: typeof limit === "number" && limit >= 1 ? Math.min(Math.floor(limit), NOTES_MAX) : NOTES_MAX,
  });
  const notes = entries.map(({ content, tags, createdAt }) => ({ content, tags, createdAt }));
  return createToolSuccess(dependencies, JSON.stringify(notes));
}

/**
 * Returns the outcome of a memory write: an error for a note that is empty or too large. The note is written together
 * with the event that records it.
 */
function checkNote(args: Values): AgentToolResult {
  const note = readMemoryNote(args);
  if (!note) return createToolError("memory_content_missing", "there is no content to keep");
  const bytes = new TextEncoder().encode(note.content).length;
  if (bytes > WORKFLOW_BOUNDS.memoryEntryBytesMax)
    return createToolError("memory_entry_too_large", "the content is larger than an entry may be");
  return { status: "ok", outcome: { text: "kept" } };
}

/** Returns the outcome of a handoff: an error for an agent that is not installed or is the caller itself. */
function checkHandoff({ agentBook }: CallDependencies, { effect }: AgentToolCall): AgentToolResult {
  const handoff = readHandoffRequest(effect.call.args);
  if (!handoff || !agentBook.find(handoff.toAgentId))
    return createToolError("agent_not_installed", "there is no agent of that name");
  if (handoff.toAgentId === effect.agentId)
    return createToolError("handoff_to_self", "you are that agent yourself");
  return { status: "ok", outcome: { text: "handed over" } };
}
