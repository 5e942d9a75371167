/**
 * Owns: the `ai.message.chunk` that a stream shows for each answer of a model in words (stream-modes.md). The log has none: this host
 * learns an answer as a whole, so each answer is one chunk, and that chunk is the last of its node.
 */
import type { HostEvent } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";

export const MESSAGE_CHUNK = "ai.message.chunk";

/** An event as a stream shows it. */
export interface ShownEvent {
  readonly eventId: string;
  readonly runId: string;
  readonly sequence: number;
  readonly type: string;
  readonly timestamp: string;
  readonly payload: unknown;
}

/**
 * Returns consecutive events of a log, each preceded by the message chunk that it makes, where it makes one;
 * `previous` is the event ahead of them.
 */
export function addMessageChunks(
  events: readonly HostEvent[],
  previous: HostEvent | undefined,
): readonly ShownEvent[] {
  return events.flatMap((event, index) => {
    const chunk = createMessageChunk(index === 0 ? previous : events[index - 1], event);
    return chunk ? [chunk, event] : [event];
  });
}

/** The tokens that a model used for a node. */
interface ModelUsage {
  readonly nodeId: string;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The fields of a node's completion that message chunks are made of. */
interface NodeCompletion {
  readonly nodeId: string;
  readonly outputs?: { readonly text?: unknown };
}

/**
 * Creates the chunk of a node that completed with a model's words: the use of the model stands right ahead of its end. The chunk has
 * the place of the former, so that whoever resumes behind it goes on with the latter.
 */
function createMessageChunk(used: HostEvent | undefined, completed: HostEvent): ShownEvent | undefined {
  if (used?.type !== "provider.usage" || completed.type !== "node.completed") return undefined;
  const { nodeId, model, inputTokens, outputTokens } = used.payload as unknown as ModelUsage;
  const { nodeId: completedNodeId, outputs } = completed.payload as NodeCompletion;
  const chunk = outputs?.text;
  if (nodeId !== completedNodeId || typeof chunk !== "string") return undefined;
  const usage = {
    promptTokens: inputTokens,
    completionTokens: outputTokens,
    totalTokens: inputTokens + outputTokens,
  };
  return {
    eventId: `${used.eventId}:chunk`,
    runId: completed.runId,
    sequence: used.sequence,
    type: MESSAGE_CHUNK,
    timestamp: completed.timestamp,
    payload: { nodeId, runId: completed.runId, chunk, isLast: true, meta: { model, usage } },
  };
}
