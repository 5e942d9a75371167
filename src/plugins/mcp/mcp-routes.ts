/**
 * Owns: the MCP server as routes of the HTTP host (streamable HTTP): they go through what every request goes through, and
 * then to the session that they name.
 */
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { PARENT_HEADER } from "../../agents/coordination/workflow/parent-header.ts";
import { refuse, type HttpRefusal } from "../openwop/http/error-map.ts";
import {
  defineRoute,
  type RouteAnswer,
  type RouteRequest,
  type ProtocolFace,
  type RouteDependencies,
} from "../openwop/http/route.ts";
import { anySchema } from "../openwop/http/schemas.ts";
import type { McpDependencies } from "./mcp-tool.ts";
import { createMcpSessions, type McpSession, type McpSessions } from "./mcp-sessions.ts";
import { hasRequests, listCancelledRequests, listMessages } from "./requests-under-way.ts";

const PATH = "/v1/mcp";
const SESSION_HEADER = "mcp-session-id";
/** Headers that the library and the tools read. */
const HEADERS = [
  "accept",
  "content-type",
  "last-event-id",
  "mcp-protocol-version",
  "mcp-session-id",
  "traceparent",
  "tracestate",
  PARENT_HEADER,
];

export interface McpFaceDependencies extends McpDependencies {
  /** Web pages of these origins may ask. */
  readonly allowedOrigins: readonly string[];
}

/**
 * Creates the HTTP routes of the MCP server, with its sessions. Without a stream of its own (GET), the server speaks
 * in its answers alone.
 */
export function createMcpFace(dependencies: McpFaceDependencies): ProtocolFace {
  const sessions = createMcpSessions(dependencies);
  const shared = { path: PATH, auth: "bearer", status: 200, answer: anySchema } as const;
  const isAllowedOrigin = (origin: string | undefined): boolean =>
    origin === undefined || dependencies.allowedOrigins.includes(origin);
  const handle = async (
    ask: RouteRequest,
    method: "POST" | "DELETE",
    { rates }: Pick<RouteDependencies, "rates">,
  ): Promise<RouteAnswer> => {
    if (!isAllowedOrigin(ask.header("origin")))
      return refuse("forbidden", "Web pages of this origin may not ask (--allow-origin).");
    const limited = countFurtherMessages(ask, rates);
    if (limited) return limited;
    const session = await findOrBeginSession(sessions, ask, method);
    if ("kind" in session) return session;
    const response = await passToSession(session, ask, method);
    if (!(response instanceof Response)) return response;
    if (ask.header(SESSION_HEADER) === undefined && response.status !== 200) await session.end();
    return await convertResponse(response);
  };
  return {
    transport: "mcp",
    routes: [
      defineRoute({
        ...shared,
        method: "POST",
        operationId: "sendMcpMessage",
        summary: "A message of the Model Context Protocol.",
        needsStreamPlace: hasRequests,
        handle: (ask, serving) => handle(ask, "POST", serving),
      }),
      defineRoute({
        ...shared,
        method: "DELETE",
        operationId: "endMcpSession",
        summary: "Ends a session of the Model Context Protocol.",
        handle: (ask, serving) => handle(ask, "DELETE", serving),
      }),
    ],
    close: () => sessions.close(),
  };
}

/** Finds the session that a request names, or begins the one that it asks for. */
async function findOrBeginSession(
  sessions: McpSessions,
  { caller, header, body }: RouteRequest,
  method: string,
): Promise<McpSession | HttpRefusal> {
  const id = header(SESSION_HEADER);
  if (id !== undefined)
    return (
      sessions.find(caller, id) ??
      refuse("not_found", "There is no such session; begin one with `initialize`.")
    );
  if (isInitializeRequest(method, body)) return await sessions.begin(caller);
  return refuse("validation_error", `The header ${SESSION_HEADER} is missing: begin with \`initialize\`.`);
}

/**
 * Takes each message but the first from the tenant's rate, and returns the refusal where it is used up. Revision
 * 2025-03-26 lets clients send messages together: each costs what a request does.
 */
function countFurtherMessages(
  { body, caller }: RouteRequest,
  rates: RouteDependencies["rates"],
): HttpRefusal | undefined {
  for (const _ of listMessages(body).slice(1)) {
    const limited = rates.take(caller.tenant);
    if (limited) return limited;
  }
  return undefined;
}

/** Passes a message on to its session. */
async function passToSession(
  { transport, underWay, endRequest }: McpSession,
  ask: RouteRequest,
  method: string,
): Promise<Response | RouteAnswer> {
  const begun = underWay.begin(ask.body);
  if (begun.kind === "id_in_use") return refuseIdInUse(begun.id);
  const response = await transport.handleRequest(createTransportRequest(ask, method), {
    parsedBody: ask.body,
  });
  // Nobody answers a request that is cancelled, nor one of a message that is refused.
  const unanswered = response.ok ? listCancelledRequests(ask.body) : begun.ids;
  for (const requestId of unanswered) endRequest(requestId);
  return response;
}

function refuseIdInUse(id: RequestId): RouteAnswer {
  return refuse(
    "state_conflict",
    `A request with the id ${JSON.stringify(id).slice(0, 100)} is not answered yet in this session; choose another id.`,
  );
}

function isInitializeRequest(method: string, body: unknown): boolean {
  return method === "POST" && (body as { readonly method?: unknown } | null)?.method === "initialize";
}

/** Creates the request for the library, which reads headers only: the body was read, bounded and parsed before. */
function createTransportRequest({ header }: RouteRequest, method: string): Request {
  const headers = HEADERS.flatMap((name): [string, string][] => {
    const value = header(name);
    return value === undefined ? [] : [[name, value]];
  });
  return new Request(`http://localhost${PATH}`, { method, headers });
}

async function convertResponse(response: Response): Promise<RouteAnswer> {
  const headers = { ...Object.fromEntries(response.headers), "x-content-type-options": "nosniff" };
  if (response.headers.get("content-type")?.startsWith("text/event-stream"))
    return { kind: "stream", body: response.body, headers };
  const text = await response.text();
  return { kind: "text", status: response.status, text: text === "" ? null : text, headers };
}
