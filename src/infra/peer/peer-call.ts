/** Owns: one request to a peer, and what its status says of it. Does not own: what the body means. */
import { BOUNDS } from "../../agents/coordination/contracts/bounds.ts";
import { resolvePeerAddress } from "../../agents/coordination/std/foreign-text.ts";
import { parseBoundedJson } from "../../agents/coordination/std/json-text-excess.ts";
import { parseBounded, type ValidationProblem } from "../../agents/coordination/contracts/validation.ts";
import { WORKFLOW_BOUNDS } from "../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { OutboundFailure } from "../../agents/coordination/ports/outbound.ts";
import { z } from "zod";
import {
  createOutboundFailure,
  classifyStatus,
  OutboundError,
  findOutboundError,
} from "../http/outbound-error.ts";
import { readRetrySecondsAsMs } from "../http/retry.ts";
import type { SafeFetch } from "../http/safe-fetch.ts";

export interface PeerDependencies {
  /** Carries the tokens. */
  readonly fetch: SafeFetch;
  readonly clock: Clock;
  /** A bound of its own for an answer's characters; the bytes are bounded by `fetch`. */
  readonly charsMax: number;
}

export interface PeerCall {
  readonly method: "GET" | "POST";
  /** Below the root, such as `/v1/runs`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

export interface PeerAnswer<T> {
  readonly kind: "answer";
  readonly body: T;
}

export type PeerFailure = OutboundFailure & {
  /** How long the peer asks to wait before the next try. */
  readonly waitMs?: number;
  /** True when the peer has nothing of the call. */
  readonly isUndelivered?: boolean;
};

const errorBodySchema = z.object({ error: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/) });
/** Asks for the same request again, though it is of the statuses that do not. */
export const IN_FLIGHT = "idempotency_in_flight";

/** Bounds of a peer's answer, checked before it is parsed; the answer itself is at depth 0. */
const TEXT_BOUNDS = { depthMax: WORKFLOW_BOUNDS.depthMax + 1, valuesMax: BOUNDS.valueNodesMax };

/** Sends a request to an OpenWOP peer and returns its answer, parsed by the schema, or the failure. Never rejects. */
export async function callPeer<S extends z.ZodType>(
  dependencies: PeerDependencies,
  peerUrl: string,
  call: PeerCall,
  schema: S,
): Promise<PeerAnswer<z.output<S>> | PeerFailure> {
  const url = resolvePeerAddress(peerUrl, call.path);
  if (url === undefined)
    return createOutboundFailure({ code: "address_not_allowed", message: "The peer's URL cannot be read." });
  try {
    const response = await dependencies.fetch(url, createRequestInit(call));
    const bodyJson = parseBoundedJson(await response.text(), TEXT_BOUNDS);
    const failure = classifyPeerAnswer(response, bodyJson);
    if (failure) return failure;
    const parsed = parseBounded(schema, bodyJson, {
      charsMax: dependencies.charsMax,
      depthMax: WORKFLOW_BOUNDS.depthMax,
    });
    if (!parsed.ok)
      return createOutboundFailure({ code: "malformed", message: describeMismatch(parsed.problems) });
    return { kind: "answer", body: parsed.value };
  } catch (error) {
    const failed = findOutboundError(error);
    if (!failed)
      return createOutboundFailure({ code: "unreachable", message: "The peer could not be asked." });
    return { ...createOutboundFailure(failed), isUndelivered: failed.isUndelivered };
  }
}

/** Names that the protocol has no place for are the peer's own words. */
const FIELD = /^(?:runId|workflowId|status|variables|events|isComplete)\b/;

function describeMismatch([first]: readonly ValidationProblem[]): string {
  const [field] = FIELD.exec(first?.path ?? "") ?? [];
  const place = first && field !== undefined ? ` (${field}: expected ${first.expected})` : "";
  return `The peer's answer is not of the protocol${place}.`;
}

function createRequestInit({ method, headers, body, signal }: PeerCall): RequestInit {
  const json = body === undefined ? {} : { "content-type": "application/json" };
  return {
    method,
    headers: { accept: "application/json", ...json, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal,
  };
}

/** Returns the failure for an answer's status and error code; `undefined` for a success. */
function classifyPeerAnswer(response: Response, value: unknown): PeerFailure | undefined {
  const error = errorBodySchema.safeParse(value).data?.error;
  const failure = classifyStatus(response.status, error);
  if (!failure) return undefined;
  const waitMs = readRetrySecondsAsMs(response.headers);
  const wait = waitMs === undefined ? {} : { waitMs };
  return error === IN_FLIGHT
    ? { ...failure, kind: "unknown", code: "unavailable", ...wait }
    : { ...failure, ...wait };
}

/** Returns the failure of a call to a peer without the fields that only a retry needs, as callers get it. */
export function stripRetryFields({ waitMs: _, isUndelivered: __, ...failure }: PeerFailure): OutboundFailure {
  return failure;
}

/** Creates the failure of an outbound call that was aborted. */
export function createAbortedFailure(): OutboundFailure {
  return createOutboundFailure(new OutboundError("aborted", "The call was given up."));
}
