/** Owns: `ChatModel` over the host's completions, for the nodes of workflows that ask a model. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { parseHostAgentId } from "../../../agents/coordination/contracts/host-agent-id.ts";
import type { AgentId } from "../../../agents/coordination/contracts/ids.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type {
  ChatAnswer,
  ChatFinish,
  ChatModel,
  ChatRequest,
  OutboundFailure,
} from "../../../agents/coordination/ports/outbound.ts";
import { stripJsonFence } from "../../../agents/coordination/std/foreign-text.ts";
import { readDefaultAgent } from "../host/host-model.ts";
import type { HostRuntime } from "../host/host-runs.ts";
import { flattenMessages, formatToolRules, readToolTurn } from "./openwop-tools.ts";
import type { RequestContexts } from "./request-contexts.ts";

/** The host's answer to a call of its model. */
type HostCompletion = Awaited<ReturnType<HostRuntime["llm"]["complete"]>>;

/**
 * Creates the chat model of workflows that asks the host's model, in one of `contexts` after the other where it is
 * refused without a code; a failure is logged, returned and not thrown. The host binds a model call to the plugins of
 * the caller's async context, and refuses it so, before anything is asked, where a reload has replaced these. No
 * context is right for ever.
 */
export function createHostChatModel(
  runtime: HostRuntime,
  logger: Logger,
  contexts: RequestContexts["all"],
): ChatModel {
  return {
    complete: async (request) => {
      let failure: unknown;
      for await (const enter of contexts(request.signal)) {
        try {
          return createAnswerFromCompletion(
            await enter(() => runtime.llm.complete(createCompletionRequest(runtime, request))),
            request,
          );
        } catch (error) {
          failure = error;
        }
        if (request.signal.aborted) return createAbortedChatFailure();
        if (identifyError(failure).code !== undefined) break;
      }
      const { name, code } = identifyError(failure);
      logger.warn({ error: name, ...(code !== undefined && { code }) }, "the host's model gave no answer");
      return createUnavailableChatFailure(
        `the host's model gave no answer${code === undefined ? "" : ` (${code})`}`,
      );
    },
  };
}

function createCompletionRequest(
  runtime: HostRuntime,
  request: ChatRequest,
): Parameters<HostRuntime["llm"]["complete"]>[0] {
  const { model, messages, temperature, maxTokens, signal } = request;
  const agentId = selectNamedAgent(runtime, request.agentId);
  const system = formatSystemPrompt(request);
  return {
    messages: flattenMessages(messages),
    maxTokens,
    signal,
    purpose: "coordination.openwop",
    ...(system !== "" && { systemPrompt: system }),
    ...(model !== undefined && { model }),
    ...(temperature !== undefined && { temperature }),
    ...(agentId && { agentId }),
  };
}

/**
 * Returns the agent to name to the host; `undefined` for one that it does not know, or would take anyhow. Agents of
 * workflows are named by the workflow; the host asks for a permission where one is named.
 */
function selectNamedAgent(runtime: HostRuntime, agentId: string | undefined): AgentId | undefined {
  const { agents = {} } = runtime.config.current() as { readonly agents?: { readonly entries?: object } };
  const wanted = agentId && parseHostAgentId(agentId.replace(/^agent:/, ""));
  const isKnown = Object.keys(agents.entries ?? {}).some((id) => parseHostAgentId(id) === wanted);
  return wanted && isKnown && wanted !== readDefaultAgent(runtime) ? wanted : undefined;
}

/**
 * Adds the rules for tools and the wanted JSON Schema to the instructions. The host has no common way to bind an
 * answer to a schema; whoever asks checks it.
 */
function formatSystemPrompt({ system: instructions = "", schema, tools = [] }: ChatRequest): string {
  const system = `${instructions}\n\n${formatToolRules(tools)}`.trim();
  if (!schema) return system;
  const wanted = `Answer with one JSON value and nothing else. It must satisfy this JSON Schema:\n${JSON.stringify(schema.schema)}`;
  return `${system}\n\n${wanted}`.trim();
}

const FINISHES: Readonly<Record<string, ChatFinish>> = {
  stop: "stop",
  length: "length",
  toolUse: "tool-calls",
};

/** Translates the host's completion; one that was aborted or failed, which resolves too, becomes a failure. */
function createAnswerFromCompletion(
  completion: HostCompletion,
  request: ChatRequest,
): ChatAnswer | OutboundFailure {
  const { text, stopReason, provider, model, responseModel, usage } = completion;
  const isCut = text.length > BOUNDS.replyCharsMax;
  if (stopReason === "aborted") return createAbortedChatFailure();
  if (stopReason === "error") return createUnavailableChatFailure("the host's model failed");
  return {
    kind: "answered",
    provider,
    model: responseModel ?? model,
    ...readAnswerParts(text.slice(0, BOUNDS.replyCharsMax), request),
    finishReason: isCut ? "length" : (FINISHES[stopReason ?? ""] ?? "other"),
    usage: {
      ...(usage.inputTokens !== undefined && { inputTokens: usage.inputTokens }),
      ...(usage.outputTokens !== undefined && { outputTokens: usage.outputTokens }),
    },
  };
}

/** Returns the text with the tool calls that it asks for, or with the JSON that was wanted, or alone. */
function readAnswerParts(
  text: string,
  { schema, tools = [] }: ChatRequest,
): Pick<ChatAnswer, "text" | "object" | "toolCalls"> {
  const turn = tools.length > 0 ? readToolTurn(parseFencedJson(text)) : undefined;
  if (turn) return { text: turn.text, toolCalls: turn.calls };
  const object = schema && parseFencedJson(text);
  return object === undefined ? { text } : { text, object };
}

/**
 * Parses the text as JSON, with or without a fence around it; `undefined` for what is no JSON. Models like to put what
 * they were asked for into a fence.
 */
function parseFencedJson(text: string): unknown {
  try {
    return JSON.parse(stripJsonFence(text));
  } catch {
    return undefined;
  }
}

function createAbortedChatFailure(): OutboundFailure {
  return { kind: "unknown", code: "aborted", message: "the call was given up" };
}

function createUnavailableChatFailure(message: string): OutboundFailure {
  return { kind: "unknown", code: "unavailable", message };
}

/** Returns the name and the code of an error, without its message, which may quote what was asked. */
function identifyError(error: unknown): { readonly name: string; readonly code?: string } {
  if (!(error instanceof Error)) return { name: typeof error };
  const { code } = error as { readonly code?: unknown };
  return { name: error.name, ...(typeof code === "string" && { code: code.slice(0, BOUNDS.nameCharsMax) }) };
}
