/**
 * Owns: the ports through which workflow runs call others: OpenWOP hosts, tools over MCP, agents over A2A, and models;
 * and how such a call may fail.
 */
import type { CallingRun } from "../contracts/workflows/workflow-events.ts";
import type { WorkflowStatus } from "../contracts/workflows/workflow-summary.ts";

/**
 * Requests of a workflow host to others: peers, tools, agents and models. Every method answers with data and never rejects.
 * No message holds a token, an address or what the other side wrote.
 */
export type OutboundCode =
  /** The address may not be called: not public, not HTTPS, or no URL at all. */
  | "address_not_allowed"
  | "unreachable"
  | "timed_out"
  /** The caller's signal. */
  | "aborted"
  | "redirected"
  | "too_large"
  /** An answer that is not of the protocol. */
  | "malformed"
  /** The other side said no, with a status or a protocol error. */
  | "rejected"
  /** The other side failed, or asks to come later. */
  | "unavailable"
  /** The library for it cannot be loaded, or no model or peer of that name is configured. */
  | "not_configured";

/** Nothing was done over there, and asking again would change nothing. */
export interface OutboundRefusal {
  readonly kind: "refused";
  readonly code: OutboundCode;
  readonly message: string;
  /** HTTP status, where there was one. */
  readonly status?: number;
  /** The error code that the other side gave, where it is a short name. */
  readonly errorCode?: string;
}

/** It may have been done. */
export interface OutboundUnknown {
  readonly kind: "unknown";
  readonly code: OutboundCode;
  readonly message: string;
  readonly status?: number;
  readonly errorCode?: string;
}

/** A call that failed: it was refused, or nobody knows what became of it. */
export type OutboundFailure = OutboundRefusal | OutboundUnknown;

/** W3C trace context of the run that calls. */
export interface TraceContext {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** Another host that offers OpenWOP. */
export interface PeerHost {
  readonly kind: "host";
  /** As it names itself in `crossHostCausation`; else the origin of its URL. */
  readonly hostId: string;
  readonly wellKnownUrl: string;
}

/** A request to start a run on another host. */
export interface PeerRunRequest extends TraceContext {
  readonly workflowId: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly configurable?: Readonly<Record<string, unknown>>;
  /** The same key again is the same run, also after a crash. */
  readonly idempotencyKey: string;
  readonly parent: CallingRun;
  readonly signal: AbortSignal;
  /** Aborted when the run that asks has ended: then it is tried a few times only, so that what a try created can be cancelled. */
  readonly runSignal?: AbortSignal;
  /** True where an earlier try may have created the run: then its peer is asked for longer, because only the same key brings its id. */
  readonly mayBeStored?: boolean;
}

/** The run that another host created. */
export interface PeerRunCreated {
  readonly kind: "created";
  readonly runId: string;
  readonly status: WorkflowStatus;
}

/** The state of a run on another host. */
export interface PeerRunSnapshot {
  readonly kind: "snapshot";
  readonly runId: string;
  readonly workflowId: string;
  readonly status: WorkflowStatus;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: string; readonly message: string };
}

/** A run of a peer that reached its end. */
export interface PeerRunEnded {
  readonly kind: "ended";
  readonly status: "completed" | "failed" | "cancelled";
  /** Outputs of the terminal event, or the snapshot's variables where the event has none. */
  readonly outputs: Readonly<Record<string, unknown>>;
  readonly variables: Readonly<Record<string, unknown>>;
  /** Where its snapshot says that it did not reach its goal: keys of what it did not meet. */
  readonly unmet?: readonly string[];
  readonly error?: { readonly code: string; readonly message: string };
}

/** Other OpenWOP hosts. `peerUrl` is the root of one. */
export interface PeerHosts {
  discover(peerUrl: string, signal: AbortSignal): Promise<PeerHost | OutboundFailure>;
  /** Tries with the same key through faults of the peer. `unknown`: the peer may run it; the same request again tells. */
  createRun(peerUrl: string, request: PeerRunRequest): Promise<PeerRunCreated | OutboundFailure>;
  snapshot(peerUrl: string, runId: string, signal: AbortSignal): Promise<PeerRunSnapshot | OutboundFailure>;
  /** Waits for the end, through faults of the peer, until it is reached, the peer knows of no such run, or the signal. */
  awaitEnd(peerUrl: string, runId: string, signal: AbortSignal): Promise<PeerRunEnded | OutboundFailure>;
  /** Cancelling a run that has ended is no failure. */
  cancel(
    peerUrl: string,
    runId: string,
    request: { readonly reason?: string; readonly signal: AbortSignal },
  ): Promise<{ readonly kind: "cancelling"; readonly status: WorkflowStatus } | OutboundFailure>;
}

/** A call of a tool over MCP. */
export interface McpCall extends TraceContext {
  /** The MCP endpoint itself. */
  readonly url: string;
  /** Root of the host that the caller of a run named: only those that the operator named are asked. */
  readonly peerUrl?: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The same again is the same call, which a server may use to do it once. */
  readonly callId?: string;
  readonly parent?: CallingRun;
  readonly signal: AbortSignal;
}

/** The answer of a tool over MCP. */
export interface McpAnswer {
  readonly kind: "answered";
  /** False where the tool itself says that it failed; `content` says why. */
  readonly ok: boolean;
  /** Blocks of the protocol, as they came. */
  readonly content: readonly Readonly<Record<string, unknown>>[];
  /** The text blocks, joined by newlines. */
  readonly text: string;
  readonly structured?: Readonly<Record<string, unknown>>;
}

/** A message to an agent over A2A. */
export interface A2aCall extends TraceContext {
  /** Root of the agent, below which its card is, or the card's own URL. */
  readonly url: string;
  /** Root of the host that the caller of a run named: only those that the operator named are asked. */
  readonly peerUrl?: string;
  readonly skill?: string;
  readonly message: string | Readonly<Record<string, unknown>>;
  /** Id of the message; a second one with the same id is the same message. */
  readonly messageId: string;
  readonly contextId?: string;
  readonly parent?: CallingRun;
  readonly signal: AbortSignal;
  /** True where another process goes on with a call that was aborted: the agent's task is not cancelled then. */
  readonly isLeftToOthers: () => boolean;
}

/** The answer of an agent over A2A. */
export interface A2aAnswer {
  readonly kind: "answered";
  /** False where the agent's task failed, was rejected, or was cancelled. */
  readonly ok: boolean;
  /** `message` where the agent answered without a task. */
  readonly state:
    "message" | "completed" | "failed" | "cancelled" | "rejected" | "input-required" | "auth-required";
  readonly text: string;
  /** The data parts of the answer, in order. */
  readonly data: readonly unknown[];
  readonly taskId?: string;
}

/** A tool that an MCP server offers. */
export interface McpTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** All tools that an MCP server offers. */
export interface McpTools {
  readonly kind: "listed";
  readonly tools: readonly McpTool[];
}

/** A request to an MCP server that calls no tool. */
export type McpQuery = Omit<McpCall, "tool" | "args" | "callId">;

/** Tools and agents of others. */
export interface ToolCaller {
  callMcp(call: McpCall): Promise<McpAnswer | OutboundFailure>;
  /** The tools of a server, as many as fit. */
  listMcp(query: McpQuery): Promise<McpTools | OutboundFailure>;
  /**
   * Waits until the agent's task has ended or needs somebody. Cancels a task that nobody waits for any more; a task that needs
   * somebody is left as it is.
   */
  sendA2a(call: A2aCall): Promise<A2aAnswer | OutboundFailure>;
}

/** A tool as a model sees it. Whoever asks calls it; the model only says that it wants to. */
export interface ChatTool {
  /** Letters, digits, `_` and `-`. */
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** A call that a model asked for, or that came back. */
export interface ChatToolCall {
  /** Correlates the call with what came back. */
  readonly callId: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** A message of a conversation with a model. */
export type ChatMessage =
  | {
      readonly role: "user" | "assistant";
      readonly content: string;
      /** Calls that the assistant asked for along with the text. */
      readonly toolCalls?: readonly ChatToolCall[];
    }
  /** The result of a tool. */
  | { readonly role: "tool"; readonly callId: string; readonly name: string; readonly content: string };

/** A call that a model asks for. `args` is absent where what it wrote is no JSON object. */
export interface ChatCallAsked {
  readonly name: string;
  readonly args?: Readonly<Record<string, unknown>>;
}

/** A request to a model, with its conversation and tools. */
export interface ChatRequest {
  /** Whose model is asked; `model` names another one. */
  readonly agentId?: string;
  readonly model?: string;
  readonly system?: string;
  readonly messages: readonly ChatMessage[];
  /** Tools that the model may ask to be called. */
  readonly tools?: readonly ChatTool[];
  /** JSON Schema of the answer. Asked for, and checked by whoever asks. */
  readonly schema?: { readonly name: string; readonly schema: Readonly<Record<string, unknown>> };
  readonly temperature?: number;
  readonly topP?: number;
  readonly seed?: number;
  readonly stop?: readonly string[];
  readonly maxTokens: number;
  readonly traceparent?: string;
  readonly signal: AbortSignal;
}

/** The tokens of a request and its answer. */
export interface ChatUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
}

/** Why a model stopped. */
export type ChatFinish = "stop" | "length" | "content-filter" | "tool-calls" | "other";

/** The answer of a model. */
export interface ChatAnswer {
  readonly kind: "answered";
  /** Empty where the model refused. */
  readonly text: string;
  /** The model's reasoning before its answer, where the provider tells it. */
  readonly reasoning?: string;
  /** In order; absent where the model asks for none. */
  readonly toolCalls?: readonly ChatCallAsked[];
  /** The text as JSON, where a schema was asked for and the text is JSON. */
  readonly object?: unknown;
  readonly finishReason: ChatFinish;
  /** The provider's or model's refusal. Content: it belongs into no log and no snapshot. */
  readonly refusal?: string;
  /** As the provider names it. */
  readonly model: string;
  readonly provider: string;
  readonly usage: ChatUsage;
}

/** Decides which model is asked. */
export type ModelChoice = Pick<ChatRequest, "agentId" | "model">;

/** The fields of an answer by which its use is counted. */
export type AnswerMeter = Pick<ChatAnswer, "model" | "provider" | "usage">;

/** Chat completions for the nodes of workflows. `ModelClient` is the smaller one of the critics. */
export interface ChatModel {
  complete(request: ChatRequest): Promise<ChatAnswer | OutboundFailure>;
  /** Which model a request goes to, where that is known before it is asked. */
  target?(request: ModelChoice): {
    readonly provider: string;
    readonly model: string;
  };
}
