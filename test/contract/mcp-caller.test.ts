import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { IncomingHttpHeaders } from "node:http";
import { json as readJson } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { McpCall } from "../../src/agents/coordination/ports/outbound.ts";
import { readParentHeader } from "../../src/agents/coordination/workflow/parent-header.ts";
import { withTokens } from "../../src/infra/http/tokens.ts";
import { createMcpCaller, createMcpLister } from "../../src/infra/mcp/mcp-caller.ts";
import {
  replyJson,
  listen,
  createUnendingSignal,
  PARENT,
  serve,
  createSteppingClock,
  testFetch,
  TIMEOUT_MS,
  TRACEPARENT,
  type Reply,
} from "./outbound-scene.ts";

interface SeenRequests {
  readonly metas: unknown[];
  readonly requests: { readonly method: string; readonly headers: IncomingHttpHeaders }[];
}

/** The official server, one per request: it keeps no sessions. */
async function startMcpServer(isJson: boolean): Promise<SeenRequests & { readonly url: string }> {
  const seen: SeenRequests = { metas: [], requests: [] };
  const url = await listen((request, response) => {
    void (async () => {
      seen.requests.push({ method: request.method ?? "", headers: request.headers });
      const body = request.method === "POST" ? await readJson(request) : undefined;
      const server = new McpServer({ name: "tools", version: "1" });
      server.registerTool("echo", { inputSchema: { text: z.string() } }, ({ text }, { _meta }) => {
        seen.metas.push(_meta);
        return {
          content: [
            { type: "text", text },
            { type: "text", text: "end" },
          ],
        };
      });
      server.registerTool("broken", {}, () => ({ isError: true, content: [{ type: "text", text: "why" }] }));
      server.registerTool("shaped", { outputSchema: { n: z.number() } }, () => ({
        content: [],
        structuredContent: { n: 1 },
      }));
      const transport = new StreamableHTTPServerTransport({ enableJsonResponse: isJson });
      await server.connect(transport);
      await transport.handleRequest(request, response, body);
    })();
  });
  return { ...seen, url: `${url}/mcp` };
}

function createCallerWith(clock = createSteppingClock(), tokens: Record<string, string> = {}) {
  const fetch = withTokens(testFetch(clock), tokens);
  return createMcpCaller({ fetch, clock, timeoutMs: TIMEOUT_MS });
}

const callOf = (url: string, more: Partial<McpCall> = {}): McpCall => ({
  url,
  tool: "echo",
  args: { text: "hi" },
  traceparent: TRACEPARENT,
  tracestate: "v=1",
  signal: createUnendingSignal(),
  ...more,
});

/** Answers the handshake, and the tool's call as told. */
const replyAfterHandshake =
  (tool: Reply): Reply =>
  (response, request) => {
    const { id, method } = JSON.parse(request.body || "{}") as { id?: number; method?: string };
    const serverInfo = { name: "x", version: "1" };
    const result = { protocolVersion: "2025-03-26", capabilities: { tools: {} }, serverInfo };
    if (method === "initialize") replyJson(200, { jsonrpc: "2.0", id, result })(response, request);
    else if (method === "tools/call") tool(response, request);
    else response.writeHead(202).end();
  };
const createRpcReply =
  (content: object): Reply =>
  (response, request) => {
    const { id } = JSON.parse(request.body) as { id: number };
    replyJson(200, { jsonrpc: "2.0", id, ...content })(response, request);
  };

describe("calling a tool of an MCP server", () => {
  it.each([
    ["JSON", true],
    ["a stream", false],
  ])(
    "carries the trace in the message and in the header, and takes the answer as %s",
    async (_form, isJson) => {
      const server = await startMcpServer(isJson);
      const tokens = { [new URL(server.url).origin]: "a-token" };
      const answer = await createCallerWith(
        createSteppingClock(),
        tokens,
      )(callOf(server.url, { parent: PARENT }));
      expect(answer).toMatchObject({ kind: "answered", ok: true, text: "hi\nend" });
      expect(server.metas).toEqual([{ traceparent: TRACEPARENT, tracestate: "v=1" }]);
      for (const { method, headers } of server.requests) {
        expect(method).toBe("POST");
        expect(headers).toMatchObject({
          traceparent: TRACEPARENT,
          tracestate: "v=1",
          authorization: "Bearer a-token",
        });
        expect(readParentHeader(String(headers["openwop-parent"]))).toEqual(PARENT);
      }
      expect(server.requests.length).toBeGreaterThanOrEqual(3);
    },
  );

  it("carries no trace that cannot be read", async () => {
    const server = await startMcpServer(true);
    await createCallerWith()(callOf(server.url, { traceparent: "nonsense" }));
    expect(server.metas).toEqual([{}]);
    expect(server.requests.map(({ headers }) => headers["traceparent"])).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it("tells what the tool says of its failure, and its structured content", async () => {
    const server = await startMcpServer(true);
    const call = createCallerWith();
    expect(await call(callOf(server.url, { tool: "broken", args: {} }))).toMatchObject({
      ok: false,
      text: "why",
    });
    expect(await call(callOf(server.url, { tool: "shaped", args: {} }))).toMatchObject({
      structured: { n: 1 },
    });
  });

  it("names no revision in a header to a server that is older than that header", async () => {
    const server = await serve(replyAfterHandshake(createRpcReply({ result: { content: [] } })));
    expect(await createCallerWith()(callOf(server.url))).toMatchObject({
      kind: "answered",
      ok: true,
      text: "",
    });
    expect(server.received.map(({ headers }) => headers["mcp-protocol-version"])).not.toContain("2025-03-26");
  });

  it.each<[string, Reply, object]>([
    [
      "an unknown tool",
      createRpcReply({ error: { code: -32602, message: "secret" } }),
      { kind: "refused", code: "rejected" },
    ],
    [
      "an error of the server",
      createRpcReply({ error: { code: -32603, message: "secret" } }),
      { kind: "unknown" },
    ],
    ["a missing token", replyJson(401, {}), { kind: "refused", code: "rejected", status: 401 }],
    ["a failing server", replyJson(500, {}), { kind: "unknown", code: "unavailable", status: 500 }],
    [
      "a redirect",
      (response) => void response.writeHead(307, { location: "/" }).end(),
      { code: "redirected" },
    ],
    ["a broken connection", (response) => void response.destroy(), { kind: "unknown", code: "unreachable" }],
    ["no JSON", (response) => void response.end("<html>"), { kind: "unknown", code: "malformed" }],
    ["JSON of something else", replyJson(200, { a: 1 }), { kind: "unknown", code: "malformed" }],
    [
      "a result of no protocol",
      createRpcReply({ result: { content: "no" } }),
      { kind: "unknown", code: "malformed" },
    ],
    [
      "a stream that breaks",
      (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write("id: 1\ndata:\n\n", () => response.destroy());
      },
      { kind: "unknown", code: "unreachable" },
    ],
    ...["", "id: 1\ndata:\n\n", 'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'].map(
      (words): [string, Reply, object] => [
        `a stream that ends without the answer: ${JSON.stringify(words)}`,
        (response) => {
          response.writeHead(200, { "content-type": "text/event-stream" });
          response.end(words);
        },
        { kind: "unknown", code: "unreachable" },
      ],
    ),
    ["no answer in an answer", replyJson(200, []), { kind: "unknown", code: "unreachable" }],
    ["a call that is only accepted", replyJson(202, {}), { kind: "unknown", code: "unreachable" }],
    [
      "a stream without end",
      (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.on("error", () => undefined);
        const writeMore = (): void => {
          while (response.write(`: ${"x".repeat(65_536)}\n`));
        };
        response.on("drain", writeMore);
        writeMore();
      },
      { kind: "unknown", code: "too_large" },
    ],
  ])("survives %s", async (_what, tool, expected) => {
    const server = await serve(replyAfterHandshake(tool));
    const outcome = await createCallerWith()(callOf(server.url));
    expect(outcome).toMatchObject(expected);
    expect(JSON.stringify(outcome)).not.toContain("secret");
  });

  it("ends in time, and with the signal", async () => {
    const clock = createSteppingClock();
    const silent = await serve(replyAfterHandshake(() => void setImmediate(() => clock.expire())));
    expect(await createCallerWith(clock)(callOf(silent.url))).toMatchObject({
      kind: "unknown",
      code: "timed_out",
    });
    const controller = new AbortController();
    const other = await serve(replyAfterHandshake(() => controller.abort()));
    const outcome = await createCallerWith()(callOf(other.url, { signal: controller.signal }));
    expect(outcome).toMatchObject({ kind: "unknown", code: "aborted" });
  });

  it("calls nothing that may not be called", async () => {
    const clock = createSteppingClock();
    const fetch = testFetch(clock, { allowPrivate: false });
    const call = createMcpCaller({ fetch, clock, timeoutMs: TIMEOUT_MS });
    for (const url of ["http://127.0.0.1:1/mcp", "https://[::1]/", "nonsense"])
      expect(await call(callOf(url))).toMatchObject({ kind: "refused", code: "address_not_allowed" });
  });
});

describe("listing the tools of an MCP server", () => {
  const createListerWith = (clock = createSteppingClock()) =>
    createMcpLister({ fetch: testFetch(clock), clock, timeoutMs: TIMEOUT_MS });
  const createRequest = (url: string) => ({ url, traceparent: TRACEPARENT, signal: createUnendingSignal() });

  it("tells each with its schema", async () => {
    const { url } = await startMcpServer(true);
    const listed = await createListerWith()(createRequest(url));
    const tools = listed.kind === "listed" ? listed.tools : [];
    expect(tools.map(({ name }) => name)).toEqual(["echo", "broken", "shaped"]);
    expect(tools[0]?.inputSchema).toMatchObject({
      properties: { text: { type: "string" } },
      required: ["text"],
    });
  });

  it("goes on through its pages, and not for ever", async () => {
    const pages: string[] = [];
    const server = await serve((response, request) => {
      const { id, method, params } = JSON.parse(request.body || "{}") as {
        id?: number;
        method?: string;
        params?: { cursor?: string };
      };
      if (method === "tools/list") pages.push(params?.cursor ?? "");
      const serverInfo = { name: "x", version: "1" };
      const tool = { name: `tool-${pages.length}`, inputSchema: { type: "object" } };
      const results: Readonly<Record<string, object>> = {
        initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo },
        "tools/list": { tools: [tool], nextCursor: `page-${pages.length}` },
      };
      const result = results[method ?? ""];
      replyJson(result ? 200 : 202, result ? { jsonrpc: "2.0", id, result } : {})(response, request);
    });
    const listed = await createListerWith()(createRequest(`${server.url}/mcp`));
    expect(listed.kind === "listed" ? listed.tools.length : 0).toBe(20);
    expect(pages.slice(0, 3)).toEqual(["", "page-1", "page-2"]);
  });

  it("says that it cannot be reached", async () => {
    expect(await createListerWith()(createRequest("http://127.0.0.1:9/mcp"))).toMatchObject({
      code: "unreachable",
    });
  });
});

describe("the id of a call", () => {
  it("goes along, so that a server may do it once", async () => {
    const server = await startMcpServer(true);
    await createCallerWith()(callOf(server.url, { callId: "run-1:call-1" }));
    expect(server.metas).toMatchObject([{ "openclaw/callId": "run-1:call-1" }]);
  });
});
