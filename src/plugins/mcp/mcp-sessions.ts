/**
 * Owns: the sessions of the MCP server over HTTP.
 *
 * M5 A session belongs to the caller that began it, with the scopes of its token. To everybody else its id is one that is
 *    not there.
 * M6 There is a bound on the sessions of one caller and on all: for a new one, the one that was idle longest ends. A session
 *    that has a request under way is not idle: where all have one, there is no new session.
 */
import { randomUUID } from "node:crypto";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { Caller } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { refuse, type HttpRefusal } from "../openwop/http/error-map.ts";
import { createMcpServer } from "./create-mcp-server.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import type { McpDependencies } from "./mcp-tool.ts";
import { createRequestsUnderWay, type RequestsUnderWay } from "./requests-under-way.ts";

/** A session of one client. */
export interface McpSession {
  readonly id: string;
  readonly holder: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly underWay: Pick<RequestsUnderWay, "begin" | "hasAny">;
  /** Notes that a request is answered, or cancelled, and ends the stream of its answer with the last request of it. */
  readonly endRequest: (id: RequestId) => void;
  usedAtMs: EpochMs;
  end(): Promise<void>;
}

export interface McpSessions {
  /** Begins a session; the answer to the request that did names it. Refuses where there is no room for one. */
  begin(caller: Caller): Promise<McpSession | HttpRefusal>;
  /** Finds a session of the caller's. */
  find(caller: Caller, id: string): McpSession | undefined;
  readonly size: number;
  close(): Promise<void>;
}

/**
 * Creates the store of MCP sessions over HTTP, each with a server and a transport of its own, in the order of their
 * last use.
 */
export function createMcpSessions(dependencies: McpDependencies): McpSessions {
  // In the order of their last use.
  const sessions = new Map<string, McpSession>();
  const open = async (caller: Caller): Promise<McpSession> => {
    const id = randomUUID();
    let hasLeft = false;
    const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id });
    transport.onclose = () => {
      hasLeft = true;
      sessions.delete(id);
    };
    const underWay = createRequestsUnderWay();
    const endRequest = (requestId: RequestId): void => {
      // The library waits for the answers to all requests of a stream, also for those that it does not give.
      if (underWay.end(requestId)) transport.closeSSEStream(requestId);
    };
    endRequestsWhenAnswered(transport, endRequest);
    const server = createMcpServer(dependencies, caller, () => hasLeft);
    await server.connect(transport);
    return {
      id,
      holder: nameHolder(caller),
      transport,
      underWay,
      endRequest,
      usedAtMs: dependencies.clock.now(),
      end: () => server.close(),
    };
  };
  return {
    begin: async (caller) => {
      await endIdleSessions(sessions, dependencies.clock.now());
      const refusal = await makeRoomForSession(sessions, nameHolder(caller));
      if (refusal) return refusal;
      const session = await open(caller);
      sessions.set(session.id, session);
      return session;
    },
    find: (caller, id) => {
      const session = sessions.get(id);
      if (session?.holder !== nameHolder(caller)) return undefined;
      session.usedAtMs = dependencies.clock.now();
      sessions.delete(id);
      sessions.set(id, session);
      return session;
    },
    get size() {
      return sessions.size;
    },
    close: async () => {
      await Promise.all([...sessions.values()].map((session) => session.end()));
    },
  };
}

/** Lets a request end when its answer has been sent, also where nobody is there to hear it. */
function endRequestsWhenAnswered(
  transport: WebStandardStreamableHTTPServerTransport,
  endRequest: McpSession["endRequest"],
): void {
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    try {
      await send(message, options);
    } finally {
      const isAnswer = "result" in message || "error" in message;
      if (isAnswer && message.id !== undefined) endRequest(message.id);
    }
  };
}

/** Returns a name for the caller with its scopes: tokens of one principal with other scopes are other holders (M5). */
function nameHolder({ tenant, principal, scopes }: Caller): string {
  return JSON.stringify([tenant, principal, scopes?.toSorted()]);
}

async function endIdleSessions(sessions: ReadonlyMap<string, McpSession>, nowMs: EpochMs): Promise<void> {
  for (const session of [...sessions.values()]) {
    if (nowMs - session.usedAtMs < MCP_BOUNDS.sessionIdleMs) return;
    await session.end();
  }
}

/**
 * Ends the session that was idle longest, where there are too many. Refuses where all have a request under way (M6).
 */
async function makeRoomForSession(
  sessions: ReadonlyMap<string, McpSession>,
  holder: string,
): Promise<HttpRefusal | undefined> {
  const all = [...sessions.values()];
  const ofHolder = all.filter((session) => session.holder === holder);
  const isHolderFull = ofHolder.length >= MCP_BOUNDS.sessionsOfCallerMax;
  if (!isHolderFull && all.length < MCP_BOUNDS.sessionsMax) return undefined;
  const idle = (isHolderFull ? ofHolder : all).find(({ underWay }) => !underWay.hasAny());
  if (!idle)
    return isHolderFull ? refuseNewSession("of this token", "tenant") : refuseNewSession("here", "global");
  await idle.end();
  return undefined;
}

function refuseNewSession(place: string, scope: "tenant" | "global"): HttpRefusal {
  const message = `All sessions that there may be ${place} have a request under way: wait for an answer, or end a session.`;
  return refuse("rate_limited", message, { retryAfter: 1, scope });
}
