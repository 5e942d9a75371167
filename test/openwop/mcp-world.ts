/** Owns: a `serve` with its MCP server in this process, and unmodified clients of the official library. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { startServedOpenWop, type ServingOptions } from "../../src/plugins/serve-openwop.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { chain, createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { createServing } from "./create-serving.ts";

export const TOKEN = "s3cret";
export const OTHER_TOKEN = "0ther-s3cret";

export const DEFINITIONS = [
  createWorkflow("echo", { nodes: [createNode("only")], variables: { word: "none", times: undefined } }),
  createWorkflow("gated", {
    nodes: [
      createNode("before"),
      createNode("gate", "core.approvalGate", { title: "Dig?" }),
      createNode("after"),
    ],
    edges: chain("before>gate>after"),
  }),
  createWorkflow("slow", {
    nodes: [createNode("first"), createNode("wait", "core.delay", { delayMs: 600_000 })],
    edges: [createEdge("first>wait")],
  }),
  createWorkflow("status", { nodes: [createNode("only")] }),
];

export interface McpWorld {
  readonly baseUrl: string;
  readonly mcpUrl: string;
  readonly ledger: string;
  connect(token?: string): Promise<McpClient>;
  ask(
    path: string,
    request?: { readonly method?: string; readonly body?: unknown; readonly token?: string },
  ): Promise<Record<string, unknown>>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface McpClient {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

export async function openMcpWorld(options: Partial<ServingOptions> = {}): Promise<McpWorld> {
  const folder = createTempFolder();
  const ledger = folder.file("ledger.sqlite");
  const served = await startServedOpenWop(
    createServing(ledger, {
      tokens: [
        { tenant: "miners", token: TOKEN, principal: "ann" },
        { tenant: "others", token: OTHER_TOKEN },
      ],
      definitions: DEFINITIONS,
      mcp: { toolScopes: {} },
      ...options,
    }),
  );
  const mcpUrl = `${served.baseUrl}/v1/mcp`;
  const clients: Client[] = [];
  return {
    baseUrl: served.baseUrl,
    mcpUrl,
    ledger,
    connect: async (token) => {
      const connected = await connectMcp(served, token);
      clients.push(connected.client);
      return connected;
    },
    ask: async (path, { method = "GET", body, token = TOKEN } = {}) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
      return (await (await fetch(`${served.baseUrl}${path}`, init)).json()) as Record<string, unknown>;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await served.stop();
      folder[Symbol.dispose]();
    },
  };
}

/** Connects a client of the official library. */
export async function connectMcp({ baseUrl }: Pick<McpWorld, "baseUrl">, token = TOKEN): Promise<McpClient> {
  const client = new Client({ name: "a-client", version: "1" });
  const headers = { authorization: `Bearer ${token}` };
  const transport = new StreamableHTTPClientTransport(new URL(`${baseUrl}/v1/mcp`), {
    requestInit: { headers },
  });
  await client.connect(transport);
  return { client, transport };
}

/** The result of a call of a tool, as text and as a value. */
export interface McpToolResult {
  readonly isError: boolean;
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export async function callTool(
  { client }: Pick<McpClient, "client">,
  name: string,
  args: Record<string, unknown> = {},
  options: Parameters<Client["callTool"]>[2] = {},
): Promise<McpToolResult> {
  const {
    content,
    structuredContent = {},
    isError = false,
  } = await client.callTool({ name, arguments: args }, undefined, options);
  const [first] = content as { readonly text: string }[];
  return {
    isError: isError === true,
    text: first?.text ?? "",
    data: structuredContent as McpToolResult["data"],
  };
}
