/**
 * Owns: one POST to addresses that were checked (W2). Redirects are not followed, nothing is decompressed, no proxy is used,
 * and of the answer only the status counts.
 */
import { request as requestHttp } from "node:http";
import { request as requestHttps, type RequestOptions } from "node:https";
import type { ClientRequest, IncomingMessage } from "node:http";
import { isIP, type LookupFunction } from "node:net";

export interface PinnedPost {
  readonly url: URL;
  readonly addresses: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export type PostAnswer =
  | { readonly kind: "status"; readonly status: number; readonly retryAfter?: string }
  /** `code` is a code of Node.js, never its message, which names addresses. */
  | { readonly kind: "none"; readonly code: string };

const HEADER_BYTES_MAX = 16_384;
/** What is read of an answer that nobody looks at, so that its sender can finish. */
const BODY_BYTES_MAX = 65_536;

/** Never rejects. */
export function pinnedPost(post: PinnedPost): Promise<PostAnswer> {
  if (post.signal.aborted) return Promise.resolve({ kind: "none", code: "ABORTED" });
  return new Promise((resolve) => {
    let answer: PostAnswer = { kind: "none", code: "ECONNRESET" };
    const request = open(post);
    const stop = (): void => void request.destroy();
    post.signal.addEventListener("abort", stop, { once: true });
    request.on("error", (error) => {
      if (answer.kind === "none") answer = { kind: "none", code: errorCodeOf(error) };
    });
    request.once("response", (response) => {
      answer = answerOf(response);
      drain(response, stop);
    });
    // Comes last, whatever happened: a whole answer, an error, an upgrade that nobody asked for.
    request.once("close", () => {
      post.signal.removeEventListener("abort", stop);
      resolve(answer);
    });
    request.end(post.body);
  });
}

/** The code of an error, where it has one that can be no text of somebody else's. */
export function errorCodeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : "UNKNOWN";
}

function open({ url, addresses, headers, body }: PinnedPost): ClientRequest {
  const options: RequestOptions = {
    method: "POST",
    headers: { ...headers, "content-length": String(body.length), "accept-encoding": "identity" },
    // An agent of its own: one that is shared may be set to go through a proxy, and keeps connections to other addresses.
    agent: false,
    lookup: lookupIn(addresses),
    maxHeaderSize: HEADER_BYTES_MAX,
  };
  return url.protocol === "https:"
    ? requestHttps(url, { ...options, rejectUnauthorized: true })
    : requestHttp(url, options);
}

/** Answers with the checked addresses, whatever name is asked for. */
function lookupIn(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_hostname, options, done) => {
    const [first] = all;
    if (!first) done(Object.assign(new Error("no address"), { code: "ENOTFOUND" }), []);
    else if (options.all === true) done(null, all);
    else done(null, first.address, first.family);
  };
}

function answerOf({ statusCode = 0, headers }: IncomingMessage): PostAnswer {
  const retryAfter = headers["retry-after"];
  return { kind: "status", status: statusCode, ...(retryAfter === undefined ? {} : { retryAfter }) };
}

function drain(response: IncomingMessage, stop: () => void): void {
  let bytes = 0;
  response.on("error", stop);
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) stop();
  });
}
