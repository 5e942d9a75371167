/** Owns: what tools, calls of them and what came back are to the AI SDK. No tool is executed by it. */
import type { AssistantContent, JSONSchema7, jsonSchema, ModelMessage, ToolSet } from "ai";
import type { ChatCallAsked, ChatMessage, ChatRequest } from "../../agents/coordination/ports/outbound.ts";
import { isRecord } from "../../agents/coordination/std/is-record.ts";

/** The function of the AI SDK that wraps a JSON schema. */
interface SchemaLibrary {
  readonly jsonSchema: typeof jsonSchema;
}

/** Returns the messages of a chat as the AI SDK takes them, with tool calls and tool results as its parts. */
export function convertChatMessages(messages: readonly ChatMessage[]): ModelMessage[] {
  return messages.map((message): ModelMessage => {
    if (message.role === "tool") {
      const { callId: toolCallId, name: toolName, content: value } = message;
      const output = { type: "text", value } as const;
      return { role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output }] };
    }
    const { role, content, toolCalls = [] } = message;
    if (role === "user" || toolCalls.length === 0) return { role, content };
    const assistantContent: AssistantContent = [
      ...(content === "" ? [] : [{ type: "text", text: content } as const]),
      ...toolCalls.map(({ callId: toolCallId, name: toolName, args: input }) => ({
        ...({ type: "tool-call" } as const),
        toolCallId,
        toolName,
        input,
      })),
    ];
    return { role, content: assistantContent };
  });
}

/**
 * Returns the tools of a chat request as the AI SDK takes them, without `execute`, so that the SDK hands the model's
 * calls back; an empty record without tools.
 */
export function convertTools(sdk: SchemaLibrary, { tools = [] }: ChatRequest): { readonly tools?: ToolSet } {
  if (tools.length === 0) return {};
  const entries = tools.map(({ name, description, parameters }) => [
    name,
    {
      inputSchema: sdk.jsonSchema(parameters as JSONSchema7),
      ...(description !== undefined && { description }),
    },
  ]);
  return { tools: Object.fromEntries(entries) as ToolSet };
}

interface SdkCall {
  readonly toolName: string;
  readonly input: unknown;
}

/**
 * Returns the tool calls that a model asks for, also of tools that were not offered; without arguments where those
 * cannot be read. The caller rules on them.
 */
export function readToolCalls(calls: readonly SdkCall[]): ChatCallAsked[] {
  return calls.map(({ toolName: name, input }) => {
    const args = typeof input === "string" ? parseArguments(input) : input;
    return isRecord(args) ? { name, args } : { name };
  });
}

/** Parses the arguments of a call: none for an empty text, `undefined` for what is no JSON. */
function parseArguments(text: string): unknown {
  try {
    return text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    return undefined;
  }
}
