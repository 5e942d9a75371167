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

/** The error of ours that a library's error comes from. */
export function findOutboundError(error: unknown): OutboundError | undefined {
  let at = error;
  for (let step = 0; step < CAUSES_MAX && at instanceof Error; step += 1) {
    if (at instanceof OutboundError) return at;
    at = at.cause;
  }
  return undefined;
}

/** After these, nothing was done over there. */
const NOTHING_DONE: readonly OutboundCode[] = ["address_not_allowed", "redirected", "not_configured"];

export function failureOf({ code, message }: Pick<OutboundError, "code" | "message">): OutboundFailure {
  return { kind: NOTHING_DONE.includes(code) ? "refused" : "unknown", code, message };
}

/** Statuses that ask to come again, besides those of servers that failed. */
const COME_AGAIN: readonly number[] = [408, 425, 429];

/** Turns a status that is no success into a failure; `undefined` for a success. */
export function failureFromStatus(status: number, errorCode?: string): OutboundFailure | undefined {
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
