/**
 * Owns: W3C trace context (https://www.w3.org/TR/trace-context): reading one that came, and writing that of a call.
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
/** Later versions than 00 may append fields. Neither version ff nor ids of zeros only are any. */
const TRACEPARENT =
  /^(?!ff)(?!00-.{53})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const TRACESTATE_CHARS_MAX = 512;

/** Parses a W3C `traceparent` header, keeping the flags that are known; `undefined` for one that cannot be read. */
export function parseTraceparent(text: string | undefined): TraceParent | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & FLAGS_KNOWN };
}

/** Formats a span's place in a trace as a W3C `traceparent` header. */
export function formatTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, "0")}`;
}

/** Creates the W3C trace headers of an outbound call, without those that the other side could not read. */
export function createTraceHeaders(context: {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}): Readonly<Record<string, string>> {
  const { traceparent, tracestate } = context;
  if (traceparent === undefined || !parseTraceparent(traceparent)) return {};
  return isTracestate(tracestate) ? { traceparent, tracestate } : { traceparent };
}

/**
 * Returns the W3C trace headers of a request as this version writes them, whatever later version sent them; without
 * those that cannot be read.
 */
export function readTraceHeaders(context: {
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}): { readonly traceparent?: string; readonly tracestate?: string } {
  const parent = parseTraceparent(context.traceparent);
  return parent ? createTraceHeaders({ ...context, traceparent: formatTraceparent(parent) }) : {};
}

function isTracestate(text: string | undefined): text is string {
  return text !== undefined && text.length <= TRACESTATE_CHARS_MAX && /^[\x20-\x7e]+$/.test(text);
}
