/** Owns: one POST to addresses that were checked (W2), of whose answer only the status counts. */
import type { IncomingMessage } from "node:http";
import { readSafeErrorCode, openPinnedRequest } from "../http/pinned-request.ts";

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

/** An answer that nobody looks at is read to here, so that its sender can finish. */
const BODY_BYTES_MAX = 65_536;

/**
 * Posts a request to addresses that were resolved before, whatever the name resolves to now, and returns the status or
 * the code of what failed. Never rejects.
 */
export function sendPinnedPost(post: PinnedPost): Promise<PostAnswer> {
  if (post.signal.aborted) return Promise.resolve({ kind: "none", code: "ABORTED" });
  return new Promise((resolve) => {
    let answer: PostAnswer = { kind: "none", code: "ECONNRESET" };
    const { url, addresses, headers, body } = post;
    const request = openPinnedRequest({ method: "POST", url, addresses, headers, bodyBytes: body.length });
    const stop = (): void => void request.destroy();
    post.signal.addEventListener("abort", stop, { once: true });
    request.on("error", (error) => {
      if (answer.kind === "none") answer = { kind: "none", code: readSafeErrorCode(error) };
    });
    request.once("response", (response) => {
      answer = createStatusAnswer(response);
      drainBody(response, stop);
    });
    // Comes last, whatever happened: a whole answer, an error, an upgrade that nobody asked for.
    request.once("close", () => {
      post.signal.removeEventListener("abort", stop);
      resolve(answer);
    });
    request.end(body);
  });
}

function createStatusAnswer({ statusCode = 0, headers }: IncomingMessage): PostAnswer {
  const retryAfter = headers["retry-after"];
  return { kind: "status", status: statusCode, ...(retryAfter === undefined ? {} : { retryAfter }) };
}

/** Reads a body that nobody looks at, so that its sender can finish; stops one that is too long. */
function drainBody(response: IncomingMessage, stop: () => void): void {
  let bytes = 0;
  response.on("error", stop);
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) stop();
  });
}
