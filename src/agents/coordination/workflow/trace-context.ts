/**
 * Owns: W3C trace context (https://www.w3.org/TR/trace-context): reading one that came, and the one of a call within it.
 * It correlates and is never an authority. One that cannot be read is none: a request does not fail for it.
 */

export interface TraceParent {
  /** 32 lower-case hexadecimal digits. */
  readonly traceId: string;
  /** 16 of them: the span that calls. */
  readonly spanId: string;
  readonly flags: number;
}

/** Sampled, and random (level 2); what the other bits will mean is not known. */
const FLAGS_KNOWN = 0b11;
const SPAN_ID_DIGITS = 16;
/** Later versions than 00 may append fields. Neither version ff nor ids of zeros only are any. */
const TRACEPARENT =
  /^(?!ff)(?!00-.{53})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const TRACESTATE_CHARS_MAX = 512;

export function parseTraceparent(text: string | undefined): TraceParent | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & FLAGS_KNOWN };
}

export function formatTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, "0")}`;
}

/**
 * The trace context of a call that is made within `traceparent`. `seedHex` decides the new span id by its first 16 digits:
 * the same call after a crash is the same span. Nothing where either cannot be read.
 */
export function childOf(traceparent: string | undefined, seedHex: string): string | undefined {
  const parent = parseTraceparent(traceparent);
  const seed = seedHex.slice(0, SPAN_ID_DIGITS).toLowerCase();
  if (!parent || !/^[0-9a-f]{16}$/.test(seed)) return undefined;
  const isTaken = isZero(seed) || seed === parent.spanId;
  return formatTraceparent({ ...parent, spanId: isTaken ? advanceSpanId(seed) : seed });
}

/** The headers of a call, without those that no other side could read. */
export function traceHeaders(context: {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}): Readonly<Record<string, string>> {
  const { traceparent, tracestate } = context;
  if (traceparent === undefined || !parseTraceparent(traceparent)) return {};
  return isTracestate(tracestate) ? { traceparent, tracestate } : { traceparent };
}

/** The trace headers of a request as this version writes them, whatever later version sent them. */
export function readTraceHeaders(context: {
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}): { readonly traceparent?: string; readonly tracestate?: string } {
  const parent = parseTraceparent(context.traceparent);
  return parent ? traceHeaders({ ...context, traceparent: formatTraceparent(parent) }) : {};
}

function isTracestate(text: string | undefined): text is string {
  return text !== undefined && text.length <= TRACESTATE_CHARS_MAX && /^[\x20-\x7e]+$/.test(text);
}

function isZero(digits: string): boolean {
  return /^0*$/.test(digits);
}

/** Returns another span id by advancing the last digit; an id of zeros only is never made. */
function advanceSpanId(digits: string): string {
  const last = Number.parseInt(digits.slice(-1), 16);
  const next = `${digits.slice(0, -1)}${((last + 1) % 16).toString(16)}`;
  return isZero(next) ? `${digits.slice(0, -1)}1` : next;
}
