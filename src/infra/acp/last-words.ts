/**
 * Owns: what is kept of an agent's session updates: its last message and what it used. Everything else is let go, so
 * that an agent that talks without end costs no memory.
 */
import { BOUNDS } from "../../agents/coordination/contracts/bounds.ts";
import type { Usage } from "../../agents/coordination/contracts/fact-fields.ts";
import { isRecord, type UnknownRecord } from "../../agents/coordination/std/is-record.ts";

const MICRO = 1_000_000;

export interface LastWords {
  /** Takes the params of one `session/update`; what it cannot read it ignores. */
  hear(params: unknown): void;
  /** The last message, cut to its bound. */
  reply(): string | undefined;
  /** The end of the last message, where it was cut. */
  replyEnd(): string | undefined;
  usage(): Usage | undefined;
}

/**
 * Creates the collector that is fed with the session updates of an ACP agent, and has the agent's last message, cut to
 * its bound, and its usage.
 */
export function createLastWords(): LastWords {
  let text = "";
  let tail = "";
  let isCut = false;
  let messageId: unknown;
  /** The message is over; it stays the last one until another begins. */
  let closed = false;
  let tokens: number | undefined;
  let costMicroUsd: number | undefined;

  const addChunk = (update: UnknownRecord): void => {
    const content = update["content"];
    if (!isRecord(content) || content["type"] !== "text" || typeof content["text"] !== "string") return;
    const id = update["messageId"] ?? undefined;
    if (closed || (id !== undefined && messageId !== undefined && id !== messageId)) {
      text = "";
      tail = "";
      isCut = false;
    }
    closed = false;
    messageId = id;
    const chunk = content["text"];
    const room = BOUNDS.replyCharsMax - text.length;
    text += chunk.slice(0, room);
    tail = (tail + chunk.slice(-BOUNDS.replyEndChars)).slice(-BOUNDS.replyEndChars);
    if (chunk.length > room) isCut = true;
  };
  const addUsage = (update: UnknownRecord): void => {
    // ACP tells how many tokens are in the context, not how many were paid for: the largest is the least it can be.
    const used = readWholeNumber(update["used"]);
    if (used !== undefined) tokens = Math.max(tokens ?? 0, used);
    costMicroUsd = readMicroUsd(update["cost"]) ?? costMicroUsd;
  };

  return {
    hear: (params) => {
      const update = isRecord(params) ? params["update"] : undefined;
      if (!isRecord(update)) return;
      if (update["sessionUpdate"] === "agent_message_chunk") addChunk(update);
      else if (update["sessionUpdate"] === "tool_call") closed = true;
      else if (update["sessionUpdate"] === "usage_update") addUsage(update);
    },
    reply: () => (text === "" ? undefined : text.toWellFormed()),
    replyEnd: () => (isCut ? tail.toWellFormed() : undefined),
    usage: () =>
      tokens === undefined && costMicroUsd === undefined
        ? undefined
        : { ...(tokens !== undefined && { tokens }), ...(costMicroUsd !== undefined && { costMicroUsd }) },
  };
}

/** Returns the session's cost so far in millionths of a dollar. Other currencies are not converted: `undefined`. */
function readMicroUsd(cost: unknown): number | undefined {
  if (!isRecord(cost) || cost["currency"] !== "USD" || typeof cost["amount"] !== "number") return undefined;
  return readWholeNumber(Math.round(cost["amount"] * MICRO));
}

function readWholeNumber(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}
