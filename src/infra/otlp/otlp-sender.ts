/** Owns: sending spans to a collector by OTLP over HTTP, with the official exporter. Does not own: when, and what becomes of the rest. */
import { SpanKind, SpanStatusCode, TraceFlags, type HrTime, type SpanContext } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
  type Resource,
} from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { dropTrailingSlashes } from "../../agents/coordination/std/foreign-text.ts";
import type { Span, SpanPlace } from "../../agents/coordination/telemetry/span.ts";

export interface OtlpOptions {
  /** The collector's address, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it. Absent: what the environment says, or port 4318 here. */
  readonly endpoint?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly version: string;
  /** How long a request may take, the exporter's further tries included. Absent: 30 s. */
  readonly sendMs?: number;
}

/** The fate of a request: what is `refused` will be refused again. */
export type Sent =
  { readonly kind: "sent" } | { readonly kind: "refused" | "unavailable"; readonly why: string };

export interface SpanSender {
  send(spans: readonly Span[]): Promise<Sent>;
  /** Ends it. A request that is still under way is not waited for: it ends by itself within `sendMs`. */
  close(): void;
}

/** The exporter tries again within this time, as `retry-after` says. */
const SEND_MS = 30_000;
const SERVICE_NAME = "openclaw-coordination";
const TRACES_PATH = "v1/traces";

export function createOtlpSender({ endpoint, headers, version, sendMs = SEND_MS }: OtlpOptions): SpanSender {
  const exporter = new OTLPTraceExporter({
    ...(endpoint !== undefined && { url: formatTracesUrl(endpoint) }),
    ...(headers && { headers: { ...headers } }),
    timeoutMillis: sendMs,
  });
  const resource = resourceFromAttributes({ "service.name": SERVICE_NAME, "service.version": version }).merge(
    detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }),
  );
  const scope = { name: SERVICE_NAME, version };
  return {
    send: (spans) =>
      new Promise((resolve) => {
        const readable = spans.map((span) => toReadableSpan(span, resource, scope));
        exporter.export(readable, ({ error }) => {
          resolve(error === undefined ? { kind: "sent" } : describeFailure(error));
        });
      }),
    close: () => void exporter.shutdown(),
  };
}

/** The address of a collector is a base; some give that of the traces itself. */
function formatTracesUrl(endpoint: string): string {
  const base = dropTrailingSlashes(endpoint);
  return base.endsWith(TRACES_PATH) ? base : `${base}/${TRACES_PATH}`;
}

/** The collector understood the request, and does not want it. */
const REFUSALS: ReadonlySet<unknown> = new Set([400, 413, 422]);

function describeFailure(error: Error | undefined): Sent {
  const code = error && "code" in error ? error.code : undefined;
  const status = typeof code === "number" ? ` (status ${code})` : "";
  const why = `${error?.message ?? "no answer"}${status}`;
  return { kind: REFUSALS.has(code) ? "refused" : "unavailable", why };
}

function toReadableSpan(
  span: Span,
  resource: Resource,
  instrumentationScope: ReadableSpan["instrumentationScope"],
): ReadableSpan {
  const { name, startMs, endMs, attributes, events, links, parentSpanId, traceId, error, droppedEvents } =
    span;
  return {
    name,
    kind: SpanKind.INTERNAL,
    spanContext: () => toContext(span),
    ...(parentSpanId !== undefined && { parentSpanContext: toContext({ traceId, spanId: parentSpanId }) }),
    startTime: toHrTime(startMs),
    endTime: toHrTime(endMs),
    duration: toHrTime(endMs - startMs),
    ended: true,
    status:
      error === undefined ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: error },
    attributes: { ...attributes },
    events: events.map((event) => ({
      name: event.name,
      time: toHrTime(event.atMs),
      attributes: { ...event.attributes },
    })),
    links: links.map((place) => ({ context: toContext(place) })),
    resource,
    instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: droppedEvents,
    droppedLinksCount: 0,
  };
}

function toContext({ traceId, spanId }: SpanPlace): SpanContext {
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
}

/** Seconds and nanoseconds. */
function toHrTime(ms: number): HrTime {
  return [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1_000_000)];
}
