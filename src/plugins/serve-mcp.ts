/** Owns: a host of workflow runs for one MCP client, over the standard streams of a process of its own. */
import type { Readable, Writable } from "node:stream";
import { createRunAccess } from "./compose-faces.ts";
import { openWorkflowHost, createServeLogger, type ServedOptions } from "./compose-workflows.ts";
import { collectServedSecrets } from "./known-secrets.ts";
import type { OperatorAccess } from "./mcp/mcp-tool.ts";
import { serveStdio } from "./mcp/serve-stdio.ts";

export interface McpServing extends ServedOptions {
  readonly version: string;
  readonly baseUrl?: string;
  readonly verbose: boolean;
  /** Whose runs the client's are. */
  readonly tenant: string;
  readonly mayAnswer: boolean;
  readonly operator: OperatorAccess;
  readonly input: Readable;
  /** Belongs to the protocol: nothing else writes to it. */
  readonly output: Writable;
  readonly log: (line: string) => void;
}

export interface ServedMcp {
  /** Resolves when the client has left. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** Nothing listens there: it names the host in causes, and callers of its runs cannot reach it. */
const NO_ADDRESS = "urn:openclaw-coordination:mcp";

/**
 * Starts a workflow host that serves MCP over two streams in a process of its own, and returns its handle; what was
 * opened is closed again where that fails. @throws CoordinationError as `openDatabase` does
 */
export async function startMcp(options: McpServing): Promise<ServedMcp> {
  const { tenant, mayAnswer, operator, version, input, output } = options;
  const running = await openWorkflowHost({
    ...options,
    logger: createServeLogger(options.log, options.verbose),
    baseUrl: () => options.baseUrl ?? NO_ADDRESS,
    secrets: collectServedSecrets({ ...options, tokens: [], environment: process.env }),
    readVariable: (name) => process.env[name],
  });
  try {
    await running.host.start();
    const dependencies = { ...createRunAccess(running, version), operator, mayAnswer, toolScopes: {} };
    const session = await serveStdio(dependencies, {
      caller: { tenant, principal: "operator" },
      input,
      output,
    });
    return {
      ended: session.ended,
      stop: async () => {
        await session.close();
        await running.close();
      },
    };
  } catch (error) {
    await running.close();
    throw error;
  }
}
