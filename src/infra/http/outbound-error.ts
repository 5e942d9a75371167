/** Owns: how a call to the outside failed. Its message holds no address, no token and no text of the other side. */
import type { OutboundCode, OutboundFailure } from "../../agents/coordination/ports/outbound.ts";

export class OutboundError extends Error {
  readonly code: OutboundCode;
  /** True when no connection was made, so that the other side has nothing of the call. */
  readonly isUndelivered: boolean;

  constructor(
    code: OutboundCode,
    message: string,
    { isUndelivered = false, ...options }: ErrorOptions & { readonly isUndelivered?: boolean } = {},
  ) {
    super(message, options);
    this.name = "OutboundError";
    this.code = code;
    this.isUndelivered = isUndelivered;
  }
}

/** How far libraries wrap what their fetch threw. */
const CAUSES_MAX = 8;

/**
 * Returns the first `OutboundError` among an error and its causes, looking at eight of them at most; `undefined` where
 * there is none. Libraries wrap what their fetch threw.
 */
export function findOutboundError(error: unknown): OutboundError | undefined {
  let inner = error;
  for (let step = 0; step < CAUSES_MAX && inner instanceof Error; step += 1) {
    if (inner instanceof OutboundError) return inner;
    inner = inner.cause;
  }
  return undefined;
}

/** After these, nothing was done over there. */
const NOTHING_DONE: readonly OutboundCode[] = ["address_not_allowed", "redirected", "not_configured"];

/**
 * Returns the result of an outbound call that failed: `refused` where certainly nothing was done on the other side,
 * else `unknown`.
 */
export function createOutboundFailure({
  code,
  message,
}: Pick<OutboundError, "code" | "message">): OutboundFailure {
  return { kind: NOTHING_DONE.includes(code) ? "refused" : "unknown", code, message };
}

/**
 * Returns the failure for what a client threw: by the `OutboundError` in it, else by the HTTP status, which is 0 where none came.
 * `undefined` where neither says that the call failed.
 */
export function classifyThrown(error: unknown, status: number): OutboundFailure | undefined {
  const outboundError = findOutboundError(error);
  if (outboundError) return createOutboundFailure(outboundError);
  return status > 0 ? classifyStatus(status) : undefined;
}

/** Statuses that ask to come again, besides those of servers that failed. */
const COME_AGAIN: readonly number[] = [408, 425, 429];

/**
 * Returns the failure of a call that was answered with an HTTP status; `undefined` for a success. It is `unknown`
 * where the status asks to come again or the server failed, else `refused`.
 */
export function classifyStatus(status: number, errorCode?: string): OutboundFailure | undefined {
  if (status >= 200 && status < 300) return undefined;
  const fields = {
    message: `The other side answered with status ${status}.`,
    status,
    ...(errorCode !== undefined && { errorCode }),
  };
  return status >= 500 || COME_AGAIN.includes(status)
    ? { kind: "unknown", code: "unavailable", ...fields }
    : { kind: "refused", code: "rejected", ...fields };
}
