/** Owns: the forms in which the page's server answers. */
import { ERROR_CODES } from "../../../agents/coordination/contracts/errors.ts";
import { runInSlices } from "../../../platform/give-way.ts";
import { countBytes, streamParts } from "../../../platform/text-parts.ts";
import { writeJson } from "../../../platform/write-json.ts";
import { PAGE_ERRORS, type PageError, type PageErrorCode } from "../contract/session.ts";

export interface JsonAnswer {
  readonly status: number;
  readonly body: object;
  /** True where it is no use to ask again until somebody has acted. */
  readonly isLasting?: true;
}

export function answerWith(body: object): JsonAnswer {
  return { status: 200, body };
}

/** `message`: one sentence that says what happened, and what to do. */
export function refuse(error: PageErrorCode, message: string): JsonAnswer {
  const body: PageError = { error, message };
  return { status: PAGE_ERRORS[error], body };
}

/**
 * Refuses what no waiting helps with: another process is this gateway now, or a newer release has the ledger. The message says what
 * to do. `undefined` for other codes.
 */
export function refuseUntilMended(error: {
  readonly code: string;
  readonly message: string;
}): JsonAnswer | undefined {
  const { code, message } = error;
  if (code !== "GATEWAY_REPLACED" && code !== "LEDGER_TOO_NEW") return undefined;
  return { ...refuse("unavailable", `${message}. ${ERROR_CODES[code].advice}`), isLasting: true };
}

export function createJsonResponse(answer: JsonAnswer): Response {
  return new Response(JSON.stringify(answer.body), { status: answer.status, headers: createHeaders(answer) });
}

/** Writes an answer that may have megabytes without holding up others for long. */
export async function createLongJsonResponse(answer: JsonAnswer): Promise<Response> {
  const parts = await runInSlices(writeJson(answer.body));
  const headers = { ...createHeaders(answer), "content-length": String(countBytes(parts)) };
  return new Response(streamParts(parts), { status: answer.status, headers });
}

function createHeaders({ status, isLasting }: JsonAnswer): Readonly<Record<string, string>> {
  const wait = (status === 503 || status === 429) && !isLasting ? { "retry-after": "2" } : {};
  return { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...wait };
}
