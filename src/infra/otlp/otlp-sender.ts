/** Owns: sending spans to a collector by OTLP over HTTP, in the official encoding. Does not own: when, and what becomes of the rest. */
import { SpanKind, SpanStatusCode, TraceFlags, type HrTime, type SpanContext } from "@opentelemetry/api";
import {
  convertLegacyHttpOptions,
  type OTLPExporterNodeConfigBase,
} from "@opentelemetry/otlp-exporter-base/node-http";
import { ProtobufTraceSerializer, type IExportTraceServiceResponse } from "@opentelemetry/otlp-transformer";
import {
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
  type Resource,
} from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { describeError } from "../../agents/coordination/std/describe-error.ts";
import { dropTrailingSlashes } from "../../agents/coordination/std/foreign-text.ts";
import { replaceHiddenCharacters } from "../../agents/coordination/std/hidden-characters.ts";
import type { Span, SpanPlace } from "../../agents/coordination/telemetry/span.ts";
import { postToCollector, type CollectorAddress, type CollectorAnswer } from "./post-request.ts";
import { readSystemErrorCode } from "../../platform/system-error.ts";

export interface OtlpOptions {
  /** The collector's address, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it. Absent: what the environment says, or port 4318 here. */
  readonly endpoint?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly version: string;
  /** How long a request may take. Absent: 30 s. */
  readonly sendMs?: number;
}

/** The fate of a request: what is `refused` will be refused again. */
export type SendOutcome =
  | {
      readonly kind: "sent";
      /** Spans of the request that the collector left out, and why. */
      readonly leftOut?: { readonly count: number; readonly why: string };
    }
  | { readonly kind: "refused"; readonly why: string }
  | {
      readonly kind: "unavailable";
      readonly why: string;
      /** How long the collector asks to wait. */
      readonly retryAfterMs?: number;
    };

export interface SpanSender {
  /** Sends a request, which ends within `sendMs`. */
  send(spans: readonly Span[]): Promise<SendOutcome>;
}

const SEND_MS = 30_000;
const WHY_CHARS_MAX = 300;
const SERVICE_NAME = "openclaw-coordination";
const TRACES_PATH = "v1/traces";

/**
 * Creates the sender of spans to an OpenTelemetry collector. Each batch is sent once; a failure is returned and not
 * thrown, and whether to try again is up to the caller.
 */
export function createOtlpSender({ endpoint, headers, version, sendMs = SEND_MS }: OtlpOptions): SpanSender {
  const scope = { name: SERVICE_NAME, version };
  const address = resolveCollectorAddress(scope, {
    ...(endpoint !== undefined && { url: formatTracesUrl(endpoint) }),
    ...(headers && { headers: { ...headers } }),
    timeoutMillis: sendMs,
  });
  const resource = resourceFromAttributes({ "service.name": SERVICE_NAME, "service.version": version }).merge(
    detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }),
  );
  return {
    send: async (spans) => {
      const readable = spans.map((span) => toReadableSpan(span, resource, scope));
      const message = ProtobufTraceSerializer.serializeRequest(readable) ?? new Uint8Array();
      try {
        return classifyAnswer(await postToCollector(address, message));
      } catch (error) {
        return { kind: "unavailable", why: describeNoAnswer(error, sendMs) };
      }
    },
  };
}

/** Says why no answer came. Where a name has several addresses, the error of a connection has a code and no message. */
function describeNoAnswer(error: unknown, sendMs: number): string {
  if (error instanceof Error && error.name === "AbortError") return `no answer within ${sendMs / 1_000} s`;
  return describeError(error) || (readSystemErrorCode(error) ?? "the connection failed");
}

/** Returns where to send: as the settings say, and by the standard variables where they say nothing. */
function resolveCollectorAddress(
  { name, version }: Readonly<Record<"name" | "version", string>>,
  settings: OTLPExporterNodeConfigBase,
): CollectorAddress {
  const required = { "content-type": "application/x-protobuf", "user-agent": `${name}/${version}` };
  // oxlint-disable-next-line typescript/no-deprecated -- nothing else of this release reads the variables
  const address = convertLegacyHttpOptions(settings, "TRACES", TRACES_PATH, required);
  let agent: ReturnType<CollectorAddress["agentFactory"]> | undefined;
  // One agent for all requests keeps its connection.
  return { ...address, agentFactory: (protocol) => (agent ??= address.agentFactory(protocol)) };
}

/** Returns the URL for traces below a collector's address, unless the address is that URL already. */
function formatTracesUrl(endpoint: string): string {
  const base = dropTrailingSlashes(endpoint);
  return base.endsWith(TRACES_PATH) ? base : `${base}/${TRACES_PATH}`;
}

/** The collector understood the request, and does not want it. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 422]);

/** Returns the fate of a request by the status of its answer. */
function classifyAnswer({ status, described, retryAfterMs, body }: CollectorAnswer): SendOutcome {
  if (status >= 200 && status < 300) return { kind: "sent", ...readLeftOutSpans(body) };
  if (REFUSALS.has(status)) return { kind: "refused", why: described };
  return { kind: "unavailable", why: described, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

/** Reads how many spans of an accepted request the collector left out, and why ("partial success"). */
function readLeftOutSpans(
  body: Uint8Array,
): Pick<Extract<SendOutcome, { readonly kind: "sent" }>, "leftOut"> {
  const { rejectedSpans: count = 0, errorMessage = "" } = decodeAnswer(body)?.partialSuccess ?? {};
  if (count === 0) return {};
  return {
    leftOut: { count, why: replaceHiddenCharacters(errorMessage.slice(0, WHY_CHARS_MAX), () => " ") },
  };
}

/** Returns nothing for what is no answer of OTLP. */
function decodeAnswer(body: Uint8Array): IExportTraceServiceResponse | undefined {
  try {
    return ProtobufTraceSerializer.deserializeResponse(body);
  } catch {
    return undefined;
  }
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
