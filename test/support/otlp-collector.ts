/**
 * Owns: a collector of OpenTelemetry: it takes OTLP over HTTP in protobuf, as any collector does, refuses a request that is not
 * valid, and keeps the spans of the others.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import protobuf from "protobufjs";

/** The part of opentelemetry/proto/collector/trace/v1 that is about spans. */
const PROTO = `
  syntax = "proto3";
  message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
  message ExportTraceServiceResponse { ExportTracePartialSuccess partial_success = 1; }
  message ExportTracePartialSuccess { int64 rejected_spans = 1; string error_message = 2; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { Scope scope = 1; repeated Span spans = 2; }
  message Scope { string name = 1; string version = 2; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5;
    int32 kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9; repeated Event events = 11; repeated Link links = 13; Status status = 15;
  }
  message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; }
  message Link { bytes trace_id = 1; bytes span_id = 2; }
  message Status { string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; } }
`;
const { root } = protobuf.parse(PROTO, { keepCase: true });
const REQUEST = root.lookupType("ExportTraceServiceRequest");
const RESPONSE = root.lookupType("ExportTraceServiceResponse");

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: the span has no parent. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly events: readonly string[];
  readonly links: readonly string[];
  readonly isError: boolean;
  readonly service: string;
}

/** How it answers a request with these spans. Absent: it takes them. */
export type SpanAnswerer = (spans: readonly CollectedSpan[]) => Answer | undefined;

interface Answer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  /** It took the request without these spans. */
  readonly rejected?: { readonly spans: number; readonly why: string };
}

export interface OtlpCollector extends AsyncDisposable {
  readonly url: string;
  /** All spans that came, in their order, some perhaps more than once. */
  readonly spans: CollectedSpan[];
  /** Problems of requests. */
  readonly problems: string[];
  readonly headers: IncomingMessage["headers"][];
  /** Requests, refused ones included. */
  requests: number;
  answer: SpanAnswerer | "hang";
}

interface DecodedRequest {
  /** Absent: a request without spans, which is valid. */
  readonly resource_spans?: readonly {
    readonly resource: { readonly attributes: readonly Pair[] };
    readonly scope_spans: readonly { readonly spans: readonly DecodedSpan[] }[];
  }[];
}

interface Pair {
  readonly key: string;
  readonly value: Readonly<Record<string, string | number | boolean>>;
}

interface DecodedSpan {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string;
  readonly name: string;
  readonly start_time_unix_nano: string;
  readonly end_time_unix_nano: string;
  readonly attributes?: readonly Pair[];
  readonly events?: readonly { readonly name: string; readonly time_unix_nano: string }[];
  readonly links?: readonly { readonly trace_id: string; readonly span_id: string }[];
  readonly status?: { readonly code: number };
}

export async function startOtlpCollector(port = 0): Promise<OtlpCollector> {
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      collector.requests += 1;
      collector.headers.push(request.headers);
      const spans = decodeRequest(request, body, collector.problems);
      if (collector.answer === "hang") return;
      const answer = collector.answer(spans);
      if (!answer) collector.spans.push(...spans);
      response.writeHead(answer?.status ?? 200, answer?.headers).end(encodeAnswer(answer));
    });
  }).listen(port, "127.0.0.1");
  await once(server, "listening");
  const collector: OtlpCollector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    problems: [],
    headers: [],
    requests: 0,
    answer: () => undefined,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return collector;
}

function encodeAnswer({ rejected }: Partial<Answer> = {}): Uint8Array {
  if (!rejected) return new Uint8Array();
  const partial = { rejected_spans: rejected.spans, error_message: rejected.why };
  return RESPONSE.encode({ partial_success: partial }).finish();
}

function decodeRequest(request: IncomingMessage, body: Buffer, problems: string[]): CollectedSpan[] {
  if (request.url !== "/v1/traces") problems.push(`${request.method} ${request.url}`);
  if (request.headers["content-type"] !== "application/x-protobuf") problems.push("content-type");
  const bytes = request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
  const decoded = REQUEST.toObject(REQUEST.decode(bytes), { longs: String, bytes: String }) as DecodedRequest;
  return (decoded.resource_spans ?? []).flatMap(({ resource, scope_spans: scopes }) => {
    const service = String(readPairs(resource.attributes)["service.name"]);
    return scopes.flatMap(({ spans }) => spans.map((span) => readSpan(span, service, problems)));
  });
}

function readSpan(span: DecodedSpan, service: string, problems: string[]): CollectedSpan {
  const read = {
    traceId: toHex(span.trace_id),
    spanId: toHex(span.span_id),
    parentSpanId: toHex(span.parent_span_id),
    name: span.name,
    startMs: Number(BigInt(span.start_time_unix_nano) / 1_000_000n),
    endMs: Number(BigInt(span.end_time_unix_nano) / 1_000_000n),
    attributes: readPairs(span.attributes),
    events: (span.events ?? []).map(({ name }) => name),
    links: (span.links ?? []).map((link) => toHex(link.span_id)),
    isError: span.status?.code === 2,
    service,
  };
  problems.push(...listProblems(read, span));
  return read;
}

/** As the specification demands: lengths of ids, a name, an end that is not before the beginning, events between the two. */
function listProblems(span: CollectedSpan, { events = [] }: DecodedSpan): string[] {
  const times = events.map(({ time_unix_nano: time }) => Number(BigInt(time) / 1_000_000n));
  const rules: readonly (readonly [string, boolean])[] = [
    ["trace_id", /^(?!0{32})[0-9a-f]{32}$/u.test(span.traceId)],
    ["span_id", /^(?!0{16})[0-9a-f]{16}$/u.test(span.spanId)],
    ["parent_span_id", /^(?:|(?!0{16})[0-9a-f]{16})$/u.test(span.parentSpanId)],
    ["name", span.name !== ""],
    ["end", span.startMs > 0 && span.endMs >= span.startMs],
    ["events", times.every((atMs) => atMs >= span.startMs && atMs <= span.endMs)],
    ["service", span.service !== "undefined"],
  ];
  return rules.flatMap(([rule, isMet]) => (isMet ? [] : [`${span.name}: ${rule}`]));
}

function readPairs(pairs: readonly Pair[] = []): Record<string, string | number | boolean> {
  return Object.fromEntries(
    pairs.map(({ key, value }) => {
      const [[kind, read] = ["", ""]] = Object.entries(value);
      return [key, kind === "int_value" ? Number(read) : read];
    }),
  );
}

function toHex(base64 = ""): string {
  return Buffer.from(base64, "base64").toString("hex");
}

/** Each span once, as a backend shows it: the one that came last. */
export function listUnique(spans: readonly CollectedSpan[]): CollectedSpan[] {
  return [...new Map(spans.map((span) => [span.spanId, span])).values()];
}
