/**
 * Owns: which HTTP status every refusal and every failure has, and the one shape of their bodies (error-envelope.schema.json).
 *
 * E1 Both tables are total: a new code does not compile until it has a status.
 * E2 A status of 500 tells nothing of the inside; what happened is in the log, under the correlation id of the answer.
 */
import { randomUUID } from "node:crypto";
import {
  ERROR_CODES,
  isCoordinationError,
  type ErrorCode,
} from "../../../agents/coordination/contracts/errors.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { HostErrorCode } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";

export const HOST_ERROR_STATUS: Readonly<Record<HostErrorCode, number>> = {
  validation_error: 400,
  not_found: 404,
  run_already_active: 409,
  run_not_paused: 409,
  run_not_pausable: 409,
  capability_required: 422,
  unsupported_stream_mode: 400,
  interrupt_not_found: 404,
  interrupt_already_resolved: 409,
  interrupt_expired: 410,
  interrupt_inspect_only: 403,
  mock_provider_forbidden: 403,
  workflow_not_found: 404,
  invalid_from_seq: 422,
  replay_memory_snapshot_unavailable: 422,
  workspace_conflict: 409,
  workspace_too_large: 413,
  forbidden: 403,
  rate_limited: 429,
  unavailable: 503,
  internal_error: 500,
};

/** The status of errors that only the HTTP face has. */
export const FACE_ERROR_STATUS = {
  unauthenticated: 401,
  force_engine_version_forbidden: 403,
  method_not_allowed: 405,
  unversioned_path: 400,
  invalid_argument: 400,
  state_conflict: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  idempotency_key_mismatch: 409,
  idempotency_in_flight: 409,
} as const;
export type FaceErrorCode = keyof typeof FACE_ERROR_STATUS;

/** The code for a client of each error of the ledger and of coordination. */
export const COORDINATION_ERROR: Readonly<Record<ErrorCode, HostErrorCode | FaceErrorCode>> = {
  LEDGER_CONFLICT: "unavailable",
  CLAIM_CONFLICT: "unavailable",
  WORKSPACE_CONFLICT: "unavailable",
  NOT_OWNER: "unavailable",
  LEDGER_BUSY: "unavailable",
  LEDGER_FULL: "unavailable",
  LEDGER_CORRUPT: "internal_error",
  LEDGER_TOO_NEW: "unavailable",
  LEDGER_INCOMPLETE: "unavailable",
  LEDGER_UNAVAILABLE: "unavailable",
  LEDGER_NOT_FOUND: "unavailable",
  LEDGER_CLOSED: "unavailable",
  GATEWAY_REPLACED: "unavailable",
  EVENT_UNREADABLE: "internal_error",
  COORDINATION_NOT_FOUND: "not_found",
  RUN_PRUNED: "state_conflict",
  INPUT_INVALID: "validation_error",
  CONFIG_INVALID: "internal_error",
  CONFIG_NOT_WRITABLE: "internal_error",
  GATEWAY_UNREACHABLE: "unavailable",
  COORDINATION_OFF: "unavailable",
  PLAN_REFUSED: "validation_error",
  REQUEST_REFUSED: "state_conflict",
  RUNTIME_UNSUPPORTED: "internal_error",
  INVARIANT_VIOLATED: "internal_error",
};

export interface HttpRefusal {
  readonly kind: "refused";
  readonly code: HostErrorCode | FaceErrorCode;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body could not be parsed, which other protocols have a code for. */
  readonly isUnparsed?: true;
}

/**
 * Returns a record of a refusal with its code and message, which `createErrorAnswer` turns into an HTTP answer;
 * nothing is thrown.
 */
export function refuse(
  code: HttpRefusal["code"],
  message: string,
  details?: Readonly<Record<string, unknown>>,
): HttpRefusal {
  return { kind: "refused", code, message, ...(details && { details }) };
}

/** Returns the HTTP status of a refusal's code. */
export function findErrorStatus(code: HttpRefusal["code"]): number {
  return code in FACE_ERROR_STATUS
    ? FACE_ERROR_STATUS[code as FaceErrorCode]
    : HOST_ERROR_STATUS[code as HostErrorCode];
}

/** An answer that says no, ready to be sent or kept. */
export interface ErrorAnswer {
  readonly kind: "json";
  readonly status: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns the HTTP answer to a refusal: its status and JSON body, with `Retry-After` where waiting helps. */
export function createErrorAnswer({ code, message, details, headers }: HttpRefusal): ErrorAnswer {
  const status = findErrorStatus(code);
  const wait = findRetryAfterSeconds(code, status, details);
  return {
    kind: "json",
    status,
    body: { error: code, message, ...(details && { details }) },
    headers: { ...headers, ...(wait !== undefined && { "retry-after": String(wait) }) },
  };
}

/** Returns after how many whole seconds to try again; `undefined` for what is not to be tried again. */
function findRetryAfterSeconds(
  code: HttpRefusal["code"],
  status: number,
  details: HttpRefusal["details"],
): number | undefined {
  const stated = details?.["retryAfter"];
  const mayRetry =
    status === 429 || status === 503 || code === "run_already_active" || code === "idempotency_in_flight";
  if (!mayRetry) return undefined;
  return typeof stated === "number" && stated > 0 ? Math.ceil(stated) : 1;
}

/** Tells what a request asks for: to read, or to change something, once for its key or each time that it is made. */
export type RequestKind = "read" | "keyed change" | "change";

/**
 * Returns the refusal for an exception: a known error of the client with its own message; any other is logged, and
 * told with a correlation id and, where the host is unavailable, the reason.
 */
export function createFailureRefusal(
  error: unknown,
  where: string,
  logger: Logger,
  kind: RequestKind,
): HttpRefusal {
  const code = isCoordinationError(error) ? error.code : undefined;
  const outcome = code ? COORDINATION_ERROR[code] : "internal_error";
  if (code && error instanceof Error && findErrorStatus(outcome) < 500) return refuse(outcome, error.message);
  const correlationId = randomUUID();
  // A host that stops closes its ledger under the requests that are not answered yet, which is no failure.
  const level = code === "LEDGER_CLOSED" ? "info" : "error";
  logger[level]({ correlationId, where, code, ...describeError(error) }, "an OpenWOP request failed");
  const message =
    outcome === "unavailable" && code
      ? DESCRIBE[kind](ERROR_CODES[code].summary)
      : "An unexpected error occurred.";
  return refuse(outcome, message, { correlationId });
}

/** A change that failed may have been recorded before it did. */
const DESCRIBE: Readonly<Record<RequestKind, (why: string) => string>> = {
  read: (why) => `The request was not done: ${why}. Try again.`,
  "keyed change": (why) =>
    `It is not known whether the request was done: ${why}. Repeat it with the same key.`,
  change: (why) => `It is not known whether the request was done: ${why}. Look before you repeat it.`,
};

/** Describes an error without its message, which may quote what was asked. */
function describeError(error: unknown): { readonly name: string; readonly at: string } {
  if (!(error instanceof Error)) return { name: typeof error, at: "" };
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return { name: error.name, at: frames.slice(0, 8).join("\n") };
}
