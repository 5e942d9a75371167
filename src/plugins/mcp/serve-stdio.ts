/** Owns: the MCP server over the standard streams of this process, for the one client that started it. */
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { Readable, Writable } from "node:stream";
import type { Caller } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { createMcpServer } from "./create-mcp-server.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import type { McpDependencies } from "./mcp-tool.ts";

export interface StdioSession {
  /** Resolves when the client has left. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

/**
 * Connects an MCP server to the client at the two streams, and returns the session, whose `ended` resolves when it is
 * over; it closes by itself at the end of `input`. Nothing else may be written to `output`.
 */
export async function serveStdio(
  dependencies: McpDependencies,
  { caller, input, output }: { readonly caller: Caller; readonly input: Readable; readonly output: Writable },
): Promise<StdioSession> {
  const transport = new StdioServerTransport(input, output, { maxBufferSize: MCP_BOUNDS.messageBytesMax });
  let hasLeft = false;
  const server = createMcpServer(dependencies, caller, () => hasLeft);
  const ended = new Promise<void>((resolve) => {
    transport.onclose = () => {
      hasLeft = true;
      resolve();
    };
  });
  // The library does not look for the end of its input.
  const leave = (): void => void server.close();
  input.once("end", leave);
  input.once("close", leave);
  await server.connect(transport);
  return { ended, close: () => server.close() };
}
