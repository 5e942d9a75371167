/** Owns: what an agent program is sent for an attempt: its prompt, with the envelope and the trace as metadata. */
import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { Order } from "../../agents/coordination/ports/agent-runner.ts";

/** The task, and what the last message must be where the step has an output contract. */
export function promptOf({ message, outputSchema }: Order): ContentBlock[] {
  const task: ContentBlock = { type: "text", text: message };
  if (!outputSchema) return [task];
  const contract = `Your last message must be one JSON object and nothing else. It must meet this JSON Schema:\n${JSON.stringify(outputSchema)}`;
  return [task, { type: "text", text: contract }];
}

/**
 * The envelope under our own key, and the trace context under the key that ACP reserves for it
 * (https://agentclientprotocol.com/protocol/extensibility).
 */
export function metaOf({ envelope, traceparent }: Order): Record<string, unknown> {
  return { coordination: envelope, traceparent };
}
