/**
 * Owns: calling or listing the tools of an MCP server over streamable HTTP, with the official client, which is loaded when it is
 * first needed. A session lasts for one call. Does not own: what may be called, or what becomes of the answer.
 */
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type {
  McpAnswer,
  McpCall,
  McpTools,
  OutboundFailure,
  ToolCaller,
  McpQuery,
} from "../../agents/coordination/ports/outbound.ts";
import { PARENT_HEADER, formatParentHeader } from "../../agents/coordination/workflow/parent-header.ts";
import { createTraceHeaders } from "../../agents/coordination/workflow/trace-context.ts";
import { startCallBounds, type CallBounds } from "../http/call-bounds.ts";
import { classifyThrown, createOutboundFailure, OutboundError } from "../http/outbound-error.ts";
import type { SafeFetch } from "../http/safe-fetch.ts";
import { isRecord } from "../../agents/coordination/std/is-record.ts";
import { waitForDuration } from "../../agents/coordination/std/wait-for.ts";

export interface McpDependencies {
  /** Carries the tokens. */
  readonly fetch: SafeFetch;
  readonly clock: Clock;
  /** For a whole call, the handshake included. */
  readonly timeoutMs: number;
}

/** The MCP SDK as it was loaded. */
type McpSdk = Awaited<ReturnType<typeof loadMcpSdk>>;

/** The client's own timer is of real time; it only must not come first. */
const NEVER_MS = 2_147_483_647;
/** How long an answer that came is given to be read, once its stream has ended. */
const READ_MS = 1_000;
/** How long a session is given to be ended. */
const CLOSE_MS = 2_000;
/** From this revision on, requests name their revision in a header. */
const HEADER_SINCE = "2025-06-18";
const VERSION_HEADER = "mcp-protocol-version";

/**
 * Creates the function that calls one tool of an MCP server, in a session of its own that it opens and closes; a
 * failure is returned, not thrown.
 */
export function createMcpCaller(dependencies: McpDependencies): ToolCaller["callMcp"] {
  return (call) => runInSession(dependencies, call, (session) => callTool(session, call));
}

/**
 * Creates the function that lists the tools of an MCP server, at most 500, in a session of its own that it opens and
 * closes; a failure is returned, not thrown.
 */
export function createMcpLister(dependencies: McpDependencies): ToolCaller["listMcp"] {
  return (call) => runInSession(dependencies, call, listTools);
}

/** Does the work in a new session with the server, within the time of the call. It resolves with failures, too. */
async function runInSession<T>(
  dependencies: McpDependencies,
  call: McpQuery,
  work: (session: ServerSession) => Promise<T>,
): Promise<T | OutboundFailure> {
  const url = URL.parse(call.url);
  if (!url)
    return createOutboundFailure({ code: "address_not_allowed", message: "The tool's URL cannot be read." });
  const sdk = await loadMcpSdk().catch(() => undefined);
  if (!sdk)
    return createOutboundFailure({ code: "not_configured", message: "The MCP client cannot be loaded." });
  const bounds = startCallBounds(dependencies.clock, dependencies.timeoutMs, call.signal);
  try {
    return await withClient(dependencies, { sdk, url, call, bounds }, work);
  } catch (error) {
    return classifyMcpError(error, bounds, sdk);
  } finally {
    bounds.release();
  }
}

async function loadMcpSdk() {
  const [{ Client }, { StreamableHTTPClientTransport, StreamableHTTPError }, { McpError }] =
    await Promise.all([
      import("@modelcontextprotocol/sdk/client/index.js"),
      import("@modelcontextprotocol/sdk/client/streamableHttp.js"),
      import("@modelcontextprotocol/sdk/types.js"),
    ]);
  return { Client, StreamableHTTPClientTransport, StreamableHTTPError, McpError };
}

/** A call of a server, with its bounds. */
interface ServerCall {
  readonly sdk: McpSdk;
  readonly url: URL;
  readonly call: McpQuery;
  readonly bounds: CallBounds;
}

/** A connection to a server, with the options of each of its calls. */
interface ServerSession {
  readonly client: InstanceType<McpSdk["Client"]>;
  readonly trace: Readonly<Record<string, string>>;
  readonly options: { readonly signal: AbortSignal; readonly timeout: number };
}

/** Connects a client, does the work with it, and ends the session and the client. */
async function withClient<T>(
  dependencies: McpDependencies,
  { sdk, url, call, bounds }: ServerCall,
  work: (session: ServerSession) => Promise<T>,
): Promise<T> {
  const { signal } = bounds;
  const trace = createTraceHeaders(call);
  const client = new sdk.Client({ name: "openclaw-coordination", version: "1" });
  const headers = { ...trace, ...(call.parent && { [PARENT_HEADER]: formatParentHeader(call.parent) }) };
  const closing = new AbortController();
  const answered = new Set<string>();
  const transport = new sdk.StreamableHTTPClientTransport(url, {
    fetch: createMcpFetch({ ...dependencies, bounds, answered, closed: closing.signal }),
    requestInit: { headers },
  });
  // The client keeps what listens before it connects.
  transport.onmessage = (message) => {
    if (!("method" in message)) answered.add(String(message.id));
  };
  const options = { signal, timeout: NEVER_MS };
  try {
    await client.connect(transport, options);
    return await work({ client, trace, options });
  } finally {
    closing.abort();
    if (transport.sessionId !== undefined && !signal.aborted) {
      const ended = transport.terminateSession().catch(() => undefined);
      await Promise.race([ended, waitForDuration(dependencies.clock, CLOSE_MS, signal)]);
    }
    await client.close().catch(() => undefined);
  }
}

/** Servers that do a call once for each id find it here. */
const CALL_ID = "openclaw/callId";

async function callTool(
  { client, trace, options }: ServerSession,
  { tool, args, callId }: McpCall,
): Promise<McpAnswer> {
  const _meta = { ...trace, ...(callId !== undefined && { [CALL_ID]: callId }) };
  return createMcpAnswer(
    await client.callTool({ name: tool, arguments: { ...args }, _meta }, undefined, options),
  );
}

const PAGES_MAX = 20;
const TOOLS_MAX = 500;

async function listTools({ client, trace, options }: ServerSession): Promise<McpTools> {
  const tools: McpTools["tools"][number][] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX && tools.length < TOOLS_MAX; page += 1) {
    const call = { _meta: { ...trace }, ...(cursor !== undefined && { cursor }) };
    const listed = await client.listTools(call, options);
    for (const { name, description, inputSchema } of listed.tools)
      tools.push({ name, inputSchema, ...(description !== undefined && { description }) });
    cursor = listed.nextCursor;
    if (cursor === undefined) break;
  }
  return { kind: "listed", tools: tools.slice(0, TOOLS_MAX) };
}

interface McpExchanges {
  readonly fetch: SafeFetch;
  readonly clock: Clock;
  readonly bounds: CallBounds;
  /** The ids of requests whose answers came. */
  readonly answered: ReadonlySet<string>;
  /** Aborted at the end of the session. */
  readonly closed: AbortSignal;
}

/**
 * Creates a fetch that only sends messages: the server may speak in its answers alone, and no broken answer is
 * resumed.
 */
function createMcpFetch(exchanges: McpExchanges): SafeFetch {
  const { fetch, bounds } = exchanges;
  return async (input, init = {}) => {
    if (init.method === "GET") return new Response(null, { status: 405 });
    const headers = new Headers(init.headers);
    if ((headers.get(VERSION_HEADER) ?? HEADER_SINCE) < HEADER_SINCE) headers.delete(VERSION_HEADER);
    const signal = init.signal ? AbortSignal.any([init.signal, bounds.signal]) : bounds.signal;
    if (init.method !== "POST") return fetch(input, { ...init, headers, signal });
    const response = await fetch(input, { ...init, headers, signal, onBroken: bounds.fail });
    const requestId = readRequestId(init.body);
    return requestId === undefined ? response : failWithoutAnswer(exchanges, requestId, response);
  };
}

/** Returns the id of a request; `undefined` for a notification or an answer. */
function readRequestId(body: unknown): string | undefined {
  const message: unknown = typeof body === "string" ? JSON.parse(body) : undefined;
  return isRecord(message) && "method" in message && "id" in message ? String(message["id"]) : undefined;
}

/**
 * Returns the response, watched: the call fails where the exchange ends and its answer was not in it. The client would
 * wait on.
 */
function failWithoutAnswer(
  { clock, bounds, answered, closed }: McpExchanges,
  requestId: string,
  response: Response,
): Response {
  const checkAnswer = async (): Promise<void> => {
    await waitForDuration(clock, READ_MS, closed);
    if (!closed.aborted && !answered.has(requestId))
      bounds.fail(new OutboundError("unreachable", "The answer ended without the result."));
  };
  // The client reads no answer to what is only accepted.
  if (response.status === 202) void checkAnswer();
  if (!response.ok || !response.body) return response;
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({ flush: () => void checkAnswer() }),
  );
  const { status, headers } = response;
  return new Response(body, { status, headers });
}

type ToolResult = Awaited<ReturnType<InstanceType<McpSdk["Client"]>["callTool"]>>;

function createMcpAnswer(result: ToolResult): McpAnswer {
  const content = Array.isArray(result.content) ? (result.content as McpAnswer["content"]) : [];
  const texts = content.flatMap(({ type, text }) =>
    type === "text" && typeof text === "string" ? [text] : [],
  );
  const { structuredContent } = result;
  return {
    kind: "answered",
    ok: result.isError !== true,
    content,
    text: texts.join("\n"),
    ...(isRecord(structuredContent) && { structured: structuredContent }),
  };
}

/** Returns an error as a failure: by why the call ended from here, else by the status or the server's code. */
function classifyMcpError(error: unknown, bounds: CallBounds, sdk: McpSdk): OutboundFailure {
  const status = error instanceof sdk.StreamableHTTPError ? (error.code ?? 0) : 0;
  const failure = classifyThrown(bounds.error() ?? error, status);
  if (failure) return failure;
  if (error instanceof sdk.McpError) return classifyRpcCode(error.code);
  return createOutboundFailure({ code: "malformed", message: "The answer is not of the protocol." });
}

/** Codes of JSON-RPC for a request that was not carried out: not understood, or not found. */
const NOT_DONE: readonly number[] = [-32700, -32600, -32601, -32602];

/** Returns the failure for a code of JSON-RPC: `refused` where the request was not carried out, else `unknown`. */
function classifyRpcCode(code: number): OutboundFailure {
  const fields = { message: `The tool's server answered with error ${code}.`, errorCode: String(code) };
  return NOT_DONE.includes(code)
    ? { kind: "refused", code: "rejected", ...fields }
    : { kind: "unknown", code: "unavailable", ...fields };
}
