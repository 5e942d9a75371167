/** Owns: `mcp` as a process of its own, to which raw lines are written, whatever is in them. */
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";

const MAIN = join(import.meta.dirname, "..", "..", "src", "plugins", "cli", "main.ts");
const ERRORS_CHARS_MAX = 10_000;

export interface StdioLines extends AsyncDisposable {
  write(line: string | Uint8Array): void;
  /** Calls a method properly, and returns its result. */
  ask(method: string, params?: object): Promise<unknown>;
  /** Lines that were answers to others than `ask`. */
  takeOutput(): string[];
}

export async function startStdioLines(
  folder: string,
  definitions: readonly WorkflowDefinition[],
): Promise<StdioLines> {
  const workflows = join(folder, "workflows");
  mkdirSync(workflows);
  for (const definition of definitions)
    writeFileSync(join(workflows, `${definition.id}.json`), JSON.stringify(definition));
  const args = [MAIN, "mcp", "--ledger", join(folder, "runs.sqlite"), "--workflows", workflows];
  const child = spawn(process.execPath, [...args, "--allow-answers"], {
    env: { PATH: process.env["PATH"] ?? "", OPENCLAW_STATE_DIR: join(folder, "state") },
  });
  const waiting = new Map<string, (result: unknown) => void>();
  const failures: ((error: Error) => void)[] = [];
  const output: string[] = [];
  let errors = "";
  let count = 0;
  child.stderr.on("data", (part: Buffer) => {
    if (errors.length < ERRORS_CHARS_MAX) errors += part.toString();
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.once("exit", (code) => {
    for (const fail of failures) fail(new Error(`the server ended with ${code}: ${errors}`));
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id, result } = JSON.parse(line) as { readonly id?: unknown; readonly result?: unknown };
    const answer = typeof id === "string" ? waiting.get(id) : undefined;
    if (answer) answer(result);
    else output.push(line);
  });
  const send = (message: object): void =>
    void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const ask = (method: string, params: object = {}): Promise<unknown> => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = `ours-${(count += 1)}`;
    waiting.set(id, resolve);
    failures.splice(0, failures.length, reject);
    send({ id, method, params });
    return promise.finally(() => waiting.delete(id));
  };
  await ask("initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "fuzz", version: "1" },
  });
  send({ method: "notifications/initialized" });
  return {
    ask,
    write: (line) => {
      child.stdin.write(line);
      child.stdin.write("\n");
    },
    takeOutput: () => output.splice(0),
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      await exited;
    },
  };
}
