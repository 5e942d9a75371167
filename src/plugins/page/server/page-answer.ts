/** Owns: the forms in which the page's server answers. */
import { ERROR_CODES } from "../../../agents/coordination/contracts/errors.ts";
import { runInSlices } from "../../../platform/give-way.ts";
import { countBytes, streamParts } from "../../../platform/text-parts.ts";
import { writeJsonInParts } from "../../../platform/write-json.ts";
import { PAGE_ERRORS, type PageError, type PageErrorCode } from "../contract/session.ts";

export interface JsonAnswer {
  readonly status: number;
  readonly body: object;
  /** True where it is no use to ask again until somebody has acted. */
  readonly isLasting?: true;
}

/** Returns the JSON answer of a page request that succeeded, with status 200. */
export function createSuccessAnswer(body: object): JsonAnswer {
  return { status: 200, body };
}

/**
 * Returns the JSON answer of a page request that was refused, with the status of the code; nothing is thrown.
 * `message`: one sentence that says what happened, and what to do.
 */
export function createRefusalAnswer(error: PageErrorCode, message: string): JsonAnswer {
  const body: PageError = { error, message };
  return { status: PAGE_ERRORS[error], body };
}

/**
 * Returns the refusal, with what to do, for an error that does not pass by waiting: another process is this gateway
 * now, or a newer release has the ledger; `undefined` for any other error.
 */
export function createLastingRefusal(error: {
  readonly code: string;
  readonly message: string;
}): JsonAnswer | undefined {
  const { code, message } = error;
  if (code !== "GATEWAY_REPLACED" && code !== "LEDGER_TOO_NEW") return undefined;
  return {
    ...createRefusalAnswer("unavailable", `${message}. ${ERROR_CODES[code].advice}`),
    isLasting: true,
  };
}

/** Returns the HTTP response of a JSON answer, which is serialized at once. */
export function createJsonResponse(answer: JsonAnswer): Response {
  return new Response(JSON.stringify(answer.body), {
    status: answer.status,
    headers: createJsonHeaders(answer),
  });
}

/**
 * Returns the HTTP response of a JSON answer that may have megabytes; it is serialized in slices, so that others are
 * not held up for long.
 */
export async function createLongJsonResponse(answer: JsonAnswer): Promise<Response> {
  const parts = await runInSlices(writeJsonInParts(answer.body));
  const headers = { ...createJsonHeaders(answer), "content-length": String(countBytes(parts)) };
  return new Response(streamParts(parts), { status: answer.status, headers });
}

function createJsonHeaders({ status, isLasting }: JsonAnswer): Readonly<Record<string, string>> {
  const wait = (status === 503 || status === 429) && !isLasting ? { "retry-after": "2" } : {};
  return { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...wait };
}
