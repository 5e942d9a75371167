/** Owns: what a completion of the AI SDK is as an answer. */
import type { FinishReason } from "ai";
import type {
  ChatAnswer,
  ChatCallAsked,
  ChatFinish,
  ChatUsage,
} from "../../agents/coordination/ports/outbound.ts";
import { parseJsonOrNothing } from "../../agents/coordination/std/parse-json.ts";

export interface Completion {
  readonly text: string;
  readonly finishReason: FinishReason;
  readonly usage:
    { readonly inputTokens?: number | undefined; readonly outputTokens?: number | undefined } | undefined;
  readonly response: { readonly modelId?: string | undefined; readonly body?: unknown } | undefined;
  readonly isObject: boolean;
  readonly calls?: readonly ChatCallAsked[];
  readonly reasoning?: string | undefined;
}

const FINISHES: Readonly<Record<string, ChatFinish>> = {
  stop: "stop",
  length: "length",
  "content-filter": "content-filter",
  "tool-calls": "tool-calls",
};

/**
 * Returns the answer of a chat model from a completion of the AI SDK: text or refusal, tool calls, why it ended, and
 * its usage; the model as asked for where the completion names none, the provider always as asked for.
 */
export function createChatAnswer(
  completion: Completion,
  modelAsked: { readonly model: string; readonly provider: string },
): ChatAnswer {
  const { finishReason, usage, response, calls = [], reasoning } = completion;
  return {
    kind: "answered",
    ...readTextOrRefusal(completion),
    ...(calls.length > 0 && { toolCalls: calls }),
    ...(reasoning !== undefined && reasoning !== "" && { reasoning }),
    finishReason: FINISHES[finishReason] ?? "other",
    model: response?.modelId ?? modelAsked.model,
    provider: modelAsked.provider,
    usage: pickUsage(usage),
  };
}

/**
 * Returns the answer's text, parsed where an object was asked for, or its refusal. The SDK hands a refusal over as if
 * it were text.
 */
function readTextOrRefusal({
  text,
  finishReason,
  response,
  isObject,
}: Completion): Pick<ChatAnswer, "text" | "object" | "refusal"> {
  const refusal = findRefusal(response?.body) ?? (finishReason === "content-filter" ? text : undefined);
  if (refusal !== undefined) return { text: "", refusal };
  const object = isObject ? parseJsonOrNothing(text) : undefined;
  return object === undefined ? { text } : { text, object };
}

function pickUsage({ inputTokens, outputTokens }: NonNullable<Completion["usage"]> = {}): ChatUsage {
  return {
    ...(inputTokens !== undefined && { inputTokens }),
    ...(outputTokens !== undefined && { outputTokens }),
  };
}

/** Finds the refusal in an answer's body as the server sent it. */
function findRefusal(body: unknown): string | undefined {
  const choices = readField(body, "choices");
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const refusal = readField(readField(first, "message"), "refusal");
  return typeof refusal === "string" && refusal !== "" ? refusal : undefined;
}

function readField(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}
