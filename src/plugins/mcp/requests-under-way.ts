/**
 * Owns: which requests of an MCP session are not answered yet.
 *
 * The library finds the stream of an answer by the request's id: of two requests with one id, the older one would never
 * be answered.
 */
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { isRecord, type UnknownRecord } from "../../agents/coordination/std/is-record.ts";

export interface RequestsUnderWay {
  /** Notes the requests of a message, which may be several. Notes none where one of their ids is in use. */
  begin(body: unknown): BegunRequests;
  /** Notes that a request is answered, or cancelled. Returns whether it was the last one of its message. */
  end(id: RequestId): boolean;
  /** True while a request is not answered. */
  hasAny(): boolean;
}

export type BegunRequests =
  | { readonly kind: "begun"; readonly ids: readonly RequestId[] }
  | { readonly kind: "id_in_use"; readonly id: RequestId };

/**
 * Creates the record of the JSON-RPC requests of a session that have no answer yet; `end` is true when the last one of
 * those that came together has ended.
 */
export function createRequestsUnderWay(): RequestsUnderWay {
  // Each with those that came with it and are open, too.
  const open = new Map<RequestId, Set<RequestId>>();
  return {
    begin: (body) => {
      const ids = listRequests(body);
      const usedId = ids.find((id, place) => open.has(id) || ids.indexOf(id) < place);
      if (usedId !== undefined) return { kind: "id_in_use", id: usedId };
      const together = new Set(ids);
      for (const id of ids) open.set(id, together);
      return { kind: "begun", ids };
    },
    end: (id) => {
      const together = open.get(id);
      open.delete(id);
      together?.delete(id);
      return together?.size === 0;
    },
    hasAny: () => open.size > 0,
  };
}

/**
 * True where a body has a JSON-RPC request, to which a client expects an answer, and not notifications or answers
 * alone.
 */
export function hasRequests(body: unknown): boolean {
  return listRequests(body).length > 0;
}

function listRequests(body: unknown): RequestId[] {
  return listMessages(body).flatMap(({ id, method }) =>
    method !== undefined && isRequestId(id) ? [id] : [],
  );
}

/** Lists the ids of the requests that the `notifications/cancelled` messages of a body cancel. */
export function listCancelledRequests(body: unknown): RequestId[] {
  return listMessages(body).flatMap(({ method, params }) => {
    const id = method === "notifications/cancelled" && isRecord(params) ? params["requestId"] : undefined;
    return isRequestId(id) ? [id] : [];
  });
}

/** Lists the JSON-RPC messages of a body, which is one message or a batch; what is no object is left out. */
export function listMessages(body: unknown): UnknownRecord[] {
  return [body].flat().filter(isRecord);
}

function isRequestId(value: unknown): value is RequestId {
  return typeof value === "string" || typeof value === "number";
}
