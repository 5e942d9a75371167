/** Owns: the forms in which the page's server answers. */
import { PAGE_ERRORS, type PageError, type PageErrorCode } from "../contract/session.ts";

export interface JsonAnswer {
  readonly status: number;
  readonly body: object;
}

export function answerWith(body: object): JsonAnswer {
  return { status: 200, body };
}

/** `message`: one sentence that says what happened, and what to do. */
export function refuse(error: PageErrorCode, message: string): JsonAnswer {
  const body: PageError = { error, message };
  return { status: PAGE_ERRORS[error], body };
}

export function createJsonResponse({ status, body }: JsonAnswer): Response {
  const wait = status === 503 || status === 429 ? { "retry-after": "2" } : {};
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...wait },
  });
}
