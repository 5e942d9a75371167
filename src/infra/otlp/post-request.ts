/** Owns: one request to a collector, and reading what it answers. Does not own: what is sent, and whether it is sent again. */
import { once } from "node:events";
import { request as requestHttp, STATUS_CODES, type Agent, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { gzipSync } from "node:zlib";

/** Where requests go, and how. */
export interface CollectorAddress {
  readonly url: string;
  readonly headers: () => Promise<Record<string, string>>;
  readonly compression: "gzip" | "none";
  readonly timeoutMillis: number;
  readonly agentFactory: (protocol: string) => Agent | Promise<Agent>;
}

export interface CollectorAnswer {
  readonly status: number;
  /** The status in words. */
  readonly described: string;
  /** How long the collector asks to wait. */
  readonly retryAfterMs?: number;
  readonly body: Uint8Array;
}

/** An answer says little; of a longer one nothing is read. */
const BODY_BYTES_MAX = 100_000;

/**
 * Posts a protobuf message to an OpenTelemetry collector and returns the answer's status, body and the wait that it
 * asks for. @throws Error where the collector does not answer in time
 */
export async function postToCollector(
  address: CollectorAddress,
  message: Uint8Array,
): Promise<CollectorAnswer> {
  const url = new URL(address.url);
  const isCompressed = address.compression === "gzip";
  const options = {
    method: "POST",
    headers: { ...(await address.headers()), ...(isCompressed && { "content-encoding": "gzip" }) },
    agent: await address.agentFactory(url.protocol),
    signal: AbortSignal.timeout(address.timeoutMillis),
  };
  const request = url.protocol === "https:" ? requestHttps(url, options) : requestHttp(url, options);
  const answering = once(request, "response") as Promise<[IncomingMessage]>;
  // An error after the answer has begun is one of its body, too.
  request.on("error", () => undefined);
  request.end(isCompressed ? gzipSync(message) : message);
  const [response] = await answering;
  const { statusCode: status = 0, headers } = response;
  const retryAfterMs = readRetryAfterMs(headers["retry-after"]);
  return {
    status,
    described: `the collector answered ${status} ${STATUS_CODES[status] ?? ""}`.trimEnd(),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    body: await readBoundedBody(response),
  };
}

/** Returns the wait that a number of seconds or a date asks for, in ms from now. */
function readRetryAfterMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d+$/u.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

/** Reads the body of an answer; empty for one that is too long, or breaks off: the status has come, and counts. */
async function readBoundedBody(response: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) return new Uint8Array();
      chunks.push(chunk);
    }
  } catch {
    return new Uint8Array();
  }
  return Buffer.concat(chunks);
}
