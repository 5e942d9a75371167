/** Owns: which events a stream mode shows (stream-modes.md), and what a client may ask of a stream. */
import { refuse, type HttpRefusal } from "../http/error-map.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import { MESSAGE_CHUNK } from "./message-chunks.ts";

const MODES = ["updates", "values", "messages", "debug"] as const;
export type StreamMode = (typeof MODES)[number];

export interface StreamRequest {
  readonly modes: readonly StreamMode[];
  /** 0: each event is sent by itself. */
  readonly bufferMs: number;
}

const UPDATES: ReadonlySet<string> = new Set([
  "run.started",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "run.paused",
  "run.resumed",
  "run.annotated",
  "workspace.updated",
  "node.completed",
  "node.failed",
  "node.skipped",
  "node.cancelled",
  "node.suspended",
  "node.resumed",
  "node.dispatched",
  "approval.requested",
  "approval.received",
  "clarification.requested",
  "clarification.resolved",
  "interrupt.requested",
  "interrupt.resolved",
  "artifact.created",
]);

const RUN_ENDS: ReadonlySet<string> = new Set(["run.completed", "run.failed", "run.cancelled"]);

/**
 * Returns the modes and the buffer time that a client's query asks of an event stream, `updates` without a mode; or a
 * refusal where they are none, or do not go together.
 */
export function readStreamRequest(
  streamMode: string | undefined,
  bufferMs: string | undefined,
): StreamRequest | HttpRefusal {
  const names = streamMode === undefined ? ["updates"] : streamMode.split(",").map((name) => name.trim());
  const modes = MODES.filter((mode) => names.includes(mode));
  if (!names.every((name) => isStreamMode(name)) || (modes.length > 1 && modes.includes("values")))
    return refuse(
      "unsupported_stream_mode",
      "`streamMode` is updates, messages or debug, or several of these with commas, or values alone.",
      { supported: [...MODES] },
    );
  const wait = bufferMs ?? "0";
  if (!/^\d{1,4}$/.test(wait) || Number(wait) > HTTP_BOUNDS.bufferMsMax)
    return refuse("validation_error", `\`bufferMs\` is a whole number from 0 to ${HTTP_BOUNDS.bufferMsMax}.`);
  return { modes, bufferMs: Number(wait) };
}

function isStreamMode(name: string): name is StreamMode {
  return (MODES as readonly string[]).includes(name);
}

/**
 * True where a stream in this mode shows an event of this type; in the mode `values`, where it shows the state again
 * after it.
 */
export function isShownInMode(mode: StreamMode, type: string): boolean {
  switch (mode) {
    case "debug":
      return true;
    case "messages":
      return type === MESSAGE_CHUNK;
    case "values":
      return UPDATES.has(type) || type === "node.started";
    case "updates":
      return UPDATES.has(type);
  }
}

/** True of the type of an event that ends a run or suspends a node, for which a buffered batch must not wait. */
export function isUrgentType(type: string): boolean {
  return RUN_ENDS.has(type) || type === "node.suspended";
}
