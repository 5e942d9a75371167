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

/** True of a message with requests: a stream has their answers. */
export function hasRequests(body: unknown): boolean {
  return listRequests(body).length > 0;
}

function listRequests(body: unknown): RequestId[] {
  return listMessages(body).flatMap(({ id, method }) => (method !== undefined && isId(id) ? [id] : []));
}

/** Lists the requests that a message cancels: they are not answered. */
export function listCancelledRequests(body: unknown): RequestId[] {
  return listMessages(body).flatMap(({ method, params }) => {
    const id = method === "notifications/cancelled" && isRecord(params) ? params["requestId"] : undefined;
    return isId(id) ? [id] : [];
  });
}

/** Lists the messages of a body, which may be several. */
export function listMessages(body: unknown): UnknownRecord[] {
  return [body].flat().filter(isRecord);
}

function isId(value: unknown): value is RequestId {
  return typeof value === "string" || typeof value === "number";
}
