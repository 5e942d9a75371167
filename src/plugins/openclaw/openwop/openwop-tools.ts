/**
 * Owns: tools for the host's completions, which know none: the model is told of them in words, and asks for a call in JSON. Any
 * other text is an answer; JSON that names a tool which was not offered is a call all the same, and ruled on by whoever asked.
 */
import { z } from "zod";
import type { ChatCallAsked, ChatMessage, ChatTool } from "../../../agents/coordination/ports/outbound.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";

const NAME_CHARS_MAX = 256;

const turnSchema = z.strictObject({
  say: z.string().optional(),
  tool_calls: z
    .array(z.strictObject({ name: z.string().min(1).max(NAME_CHARS_MAX), arguments: z.unknown().optional() }))
    .min(1),
});

/** Returns the instructions that tell a model by which JSON it asks for calls of these tools; empty without tools. */
export function formatToolRules(tools: readonly ChatTool[]): string {
  if (tools.length === 0) return "";
  return [
    "You may call tools. To call some, answer with one JSON object and nothing else:",
    '{"tool_calls":[{"name":"<tool>","arguments":{}}]}',
    "You are told what came back, and may then call more, or give your last answer.",
    `Tools: ${JSON.stringify(tools)}`,
  ].join("\n");
}

export interface PlainMessage {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/**
 * Returns the messages with tool calls and their results as plain text, in the JSON in which the model was told to
 * ask; a result behind another one or a user's message is joined to it.
 */
export function flattenMessages(messages: readonly ChatMessage[]): PlainMessage[] {
  const plain: PlainMessage[] = [];
  for (const message of messages) {
    const next = flattenMessage(message);
    const last = plain.at(-1);
    if (message.role === "tool" && last?.role === "user")
      plain[plain.length - 1] = { role: "user", content: `${last.content}\n${next.content}` };
    else plain.push(next);
  }
  return plain;
}

function flattenMessage(message: ChatMessage): PlainMessage {
  if (message.role === "tool") {
    const { name, content } = message;
    return { role: "user", content: JSON.stringify({ tool_result: { name, content } }) };
  }
  const { role, content, toolCalls = [] } = message;
  if (toolCalls.length === 0) return { role, content };
  const tool_calls = toolCalls.map(({ name, args }) => ({ name, arguments: args }));
  return { role, content: JSON.stringify({ ...(content !== "" && { say: content }), tool_calls }) };
}

export interface ToolTurn {
  readonly text: string;
  readonly calls: readonly ChatCallAsked[];
}

/**
 * Returns the tool calls that a model's answer asks for by the told JSON, with what it says; `undefined` where the
 * answer is not of that form.
 */
export function readToolTurn(value: unknown): ToolTurn | undefined {
  const parsed = turnSchema.safeParse(value);
  if (!parsed.success) return undefined;
  const { say = "", tool_calls } = parsed.data;
  return {
    text: say,
    calls: tool_calls.map(({ name, arguments: args = {} }) => (isRecord(args) ? { name, args } : { name })),
  };
}
