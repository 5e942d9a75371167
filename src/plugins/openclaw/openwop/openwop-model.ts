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
import { readUnfenced } from "../../../agents/coordination/std/foreign-text.ts";
import { readDefaultAgent } from "../host/host-model.ts";
import type { HostRuntime } from "../host/host-runs.ts";
import { flattenMessages, formatToolRules, readToolTurn } from "./openwop-tools.ts";
import type { RequestContexts } from "./request-contexts.ts";

type Completion = Awaited<ReturnType<HostRuntime["llm"]["complete"]>>;

/**
 * The host binds a call of a model to the plugins of the caller's async context, and refuses it, without a code and before
 * anything is asked, where a reload has replaced these. No context is right for ever: each of `contexts` is tried.
 */
export function createHostChat(
  runtime: HostRuntime,
  logger: Logger,
  contexts: RequestContexts["all"],
): ChatModel {
  return {
    complete: async (request) => {
      let failure: unknown;
      for await (const enter of contexts(request.signal)) {
        try {
          return answerOf(
            await enter(() => runtime.llm.complete(createHostRequest(runtime, request))),
            request,
          );
        } catch (error) {
          failure = error;
        }
        if (request.signal.aborted) return createAborted();
        if (describeError(failure).code !== undefined) break;
      }
      const { name, code } = describeError(failure);
      logger.warn({ error: name, ...(code !== undefined && { code }) }, "the host's model gave no answer");
      return createUnavailable(`the host's model gave no answer${code === undefined ? "" : ` (${code})`}`);
    },
  };
}

function createHostRequest(
  runtime: HostRuntime,
  request: ChatRequest,
): Parameters<HostRuntime["llm"]["complete"]>[0] {
  const { model, messages, temperature, maxTokens, signal } = request;
  const agentId = agentOf(runtime, request.agentId);
  const system = systemOf(request);
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
 * Agents of workflows are named by the workflow; only where that is one of the host's, and not the one that it would take
 * anyhow, is it named to the host, which asks for a permission then.
 */
function agentOf(runtime: HostRuntime, agentId: string | undefined): AgentId | undefined {
  const { agents = {} } = runtime.config.current() as { readonly agents?: { readonly entries?: object } };
  const wanted = agentId && parseHostAgentId(agentId.replace(/^agent:/, ""));
  const isKnown = Object.keys(agents.entries ?? {}).some((id) => parseHostAgentId(id) === wanted);
  return wanted && isKnown && wanted !== readDefaultAgent(runtime) ? wanted : undefined;
}

/** The host has no common way to bind an answer to a schema; whoever asks checks it. */
function systemOf({ system: instructions = "", schema, tools = [] }: ChatRequest): string {
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

/** An aborted call resolves. */
function answerOf(completion: Completion, request: ChatRequest): ChatAnswer | OutboundFailure {
  const { text, stopReason, provider, model, responseModel, usage } = completion;
  const isCut = text.length > BOUNDS.replyCharsMax;
  if (stopReason === "aborted") return createAborted();
  if (stopReason === "error") return createUnavailable("the host's model failed");
  return {
    kind: "answered",
    provider,
    model: responseModel ?? model,
    ...readAnswer(text.slice(0, BOUNDS.replyCharsMax), request),
    finishReason: isCut ? "length" : (FINISHES[stopReason ?? ""] ?? "other"),
    usage: {
      ...(usage.inputTokens !== undefined && { inputTokens: usage.inputTokens }),
      ...(usage.outputTokens !== undefined && { outputTokens: usage.outputTokens }),
    },
  };
}

/** Calls of tools, the JSON that was asked for, or a text. */
function readAnswer(
  text: string,
  { schema, tools = [] }: ChatRequest,
): Pick<ChatAnswer, "text" | "object" | "toolCalls"> {
  const turn = tools.length > 0 ? readToolTurn(jsonOf(text)) : undefined;
  if (turn) return { text: turn.text, toolCalls: turn.calls };
  const object = schema && jsonOf(text);
  return object === undefined ? { text } : { text, object };
}

/** Models like to put what they were asked for into a fence. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(readUnfenced(text));
  } catch {
    return undefined;
  }
}

function createAborted(): OutboundFailure {
  return { kind: "unknown", code: "aborted", message: "the call was given up" };
}

function createUnavailable(message: string): OutboundFailure {
  return { kind: "unknown", code: "unavailable", message };
}

/** Describes an error without its message, which may quote what was asked. */
function describeError(error: unknown): { readonly name: string; readonly code?: string } {
  if (!(error instanceof Error)) return { name: typeof error };
  const { code } = error as { readonly code?: unknown };
  return { name: error.name, ...(typeof code === "string" && { code: code.slice(0, BOUNDS.nameCharsMax) }) };
}
