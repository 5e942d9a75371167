/** Owns: a span of OpenTelemetry as it is projected from a log. Does not own: how it is sent (`infra/otlp`). */

/** Attributes by name. Names are those of the GenAI conventions 0.1.0, or begin with `coordination.` */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** Something that happened at one moment of a span. */
export interface SpanEvent {
  readonly name: string;
  readonly atMs: number;
  readonly attributes: SpanAttributes;
}

/** Names a span, perhaps one that the host exports: 32 and 16 hexadecimal digits. */
export interface SpanPlace {
  readonly traceId: string;
  readonly spanId: string;
}

/** A span that has ended. Projected again from the same log it is the same, its ids included. */
export interface Span extends SpanPlace {
  /** Absent: the span is the root of its trace. */
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: SpanAttributes;
  readonly events: readonly SpanEvent[];
  /** Events that were too many to keep. */
  readonly droppedEvents: number;
  readonly links: readonly SpanPlace[];
  /** Why it failed, as a code. Absent: it did not. */
  readonly error?: string;
}

/** Returns the sha256 of a text, in hexadecimal. */
export type HashText = (text: string) => string;

/** A span whose end is not known yet. */
export interface OpenSpan extends SpanPlace {
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startMs: number;
  attributes: SpanAttributes;
  readonly events: SpanEvent[];
  droppedEvents: number;
  readonly links: readonly SpanPlace[];
}

/** Creates an open span from its start, without events so far. */
export function beginSpan({
  links = [],
  ...start
}: Pick<OpenSpan, "traceId" | "spanId" | "parentSpanId" | "name" | "startMs" | "attributes"> & {
  readonly links?: readonly SpanPlace[];
}): OpenSpan {
  return { ...start, events: [], droppedEvents: 0, links };
}

/** As OpenTelemetry's SDKs keep. */
const EVENTS_MAX = 128;

/**
 * Adds an event to an open span, which is changed; beyond the bound it is only counted. Does nothing without a span.
 */
export function addSpanEvent(span: OpenSpan | undefined, event: SpanEvent): void {
  if (!span) return;
  if (span.events.length < EVENTS_MAX) span.events.push(event);
  else span.droppedEvents += 1;
}

/**
 * Returns the open span as one that has ended, with more attributes and an error, if any. One that ends before it
 * began, by another clock, ends as it begins.
 */
export function endSpan(
  span: OpenSpan,
  end: { readonly atMs: number; readonly attributes?: SpanAttributes; readonly error?: string | undefined },
): Span {
  const { atMs, attributes = {}, error } = end;
  return {
    ...span,
    endMs: Math.max(span.startMs, atMs),
    attributes: { ...span.attributes, ...attributes, ...(error !== undefined && { "error.type": error }) },
    ...(error !== undefined && { error }),
  };
}

const TRACE_ID = /^(?!0{32})[0-9a-f]{32}$/u;
const SPAN_ID = /^(?!0{16})[0-9a-f]{16}$/u;

/**
 * Returns the id of the W3C trace that a run is on: the one that it was opened on where that is valid, else a hash of
 * the run's id.
 */
export function chooseTraceId(runId: string, trace: string | undefined, hash: HashText): string {
  return trace !== undefined && TRACE_ID.test(trace) ? trace : hash(runId).slice(0, 32);
}

/**
 * Returns the id of an attempt's span, a hash of its idempotency key. An agent over ACP is told it, so that its spans
 * are below it.
 */
export function computeAttemptSpanId(idempotencyKey: string, hash: HashText): string {
  return hash(idempotencyKey).slice(0, 16);
}

/**
 * Returns the id of the span of a part of a run, by a name that no other part of the run has; "root" is the run
 * itself.
 */
export function computeSpanId(runId: string, part: string, hash: HashText): string {
  return hash(`${runId}/${part}`).slice(0, 16);
}

/**
 * Returns the id of the span, in a workflow run, that begins with the event of that sequence. Whatever the run calls
 * there is told this id.
 */
export function computeEventSpanId(runId: string, sequence: number, hash: HashText): string {
  return computeSpanId(runId, `event/${sequence}`, hash);
}

/** Returns the id of the span that a run was opened in; `undefined` unless the host named a valid trace and span. */
export function findParentSpanId(trace: string | undefined, span: string | undefined): string | undefined {
  const isOfHost = trace !== undefined && TRACE_ID.test(trace) && span !== undefined && SPAN_ID.test(span);
  return isOfHost ? span : undefined;
}
