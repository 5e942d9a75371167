/** Owns: `mcp` as a process of its own, started from source by an unmodified client of the official library. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";

const MAIN = join(import.meta.dirname, "..", "..", "src", "plugins", "cli", "main.ts");

export interface McpProcess {
  readonly client: Client;
  /** Leaves, upon which the process ends. */
  close(): Promise<void>;
}

export interface StartMcp {
  readonly definitions?: readonly WorkflowDefinition[];
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The program and what stands before `mcp`; absent: ours, from source. */
  readonly program?: readonly string[];
}

/** `folder` is the test's, for the ledger, the workflows and what the process keeps. */
export async function startMcp(
  folder: string,
  { definitions = [], args = [], env = {}, program = [MAIN] }: StartMcp = {},
): Promise<McpProcess> {
  const workflows = join(folder, "workflows");
  mkdirSync(workflows, { recursive: true });
  for (const definition of definitions)
    writeFileSync(join(workflows, `${definition.id}.json`), JSON.stringify(definition));
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [...program, "mcp", "--ledger", join(folder, "runs.sqlite"), "--workflows", workflows, ...args],
    env: { PATH: process.env["PATH"] ?? "", OPENCLAW_STATE_DIR: join(folder, "state"), ...env },
    stderr: "ignore",
  });
  const client = new Client({ name: "a-client", version: "1" });
  await client.connect(transport);
  return { client, close: () => client.close() };
}
