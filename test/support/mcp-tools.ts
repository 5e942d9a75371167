/** Owns: a real MCP server on a port of its own, with the official library, and what was asked of it. */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json as readJson } from "node:stream/consumers";
import { z } from "zod";

export interface McpToolServer {
  readonly url: string;
  readonly origin: string;
  /** Calls that were carried out, in order. */
  readonly calls: { readonly tool: string; readonly args: unknown; readonly meta: unknown }[];
  /** Holds calls of `slow` back until it is called. */
  release(): void;
  close(): Promise<void>;
}

/** The secret that `tells` gives away. */
export const TOLD = "s3cret-of-the-operator";

/** `echo` gives its text back, `broken` fails, `huge` answers with ten million characters, `slow` waits. */
export async function startMcpTools(): Promise<McpToolServer> {
  const calls: McpToolServer["calls"] = [];
  let release: () => void = () => undefined;
  const holdUntil = new Promise<void>((resolve) => (release = resolve));
  const createTools = (): McpServer => {
    const server = new McpServer({ name: "tools", version: "1" });
    const createTextResult = (words: string) => ({ content: [{ type: "text" as const, text: words }] });
    server.registerTool(
      "echo",
      { description: "Says it again.", inputSchema: { text: z.string() } },
      (args, { _meta: meta }) => {
        calls.push({ tool: "echo", args, meta });
        return createTextResult(`echo: ${args.text}`);
      },
    );
    server.registerTool("tells", {}, () => createTextResult(`the key is ${TOLD}`));
    server.registerTool("broken", {}, () => ({ isError: true, ...createTextResult("no water in the well") }));
    server.registerTool("huge", {}, () => createTextResult("x".repeat(10_000_000)));
    server.registerTool("slow", {}, async ({ _meta: meta }) => {
      calls.push({ tool: "slow", args: {}, meta });
      await holdUntil;
      return createTextResult("at last");
    });
    return server;
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = request.method === "POST" ? await readJson(request) : undefined;
    const server = createTools();
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    response.on("close", () => void server.close());
    await server.connect(transport);
    await transport.handleRequest(request, response, body);
  };
  const http = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  return {
    url: `${origin}/mcp`,
    origin,
    calls,
    release: () => {
      release();
    },
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
}
