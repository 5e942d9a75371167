/** Owns: what `serve` says when it listens, and the addresses in its answers where clients reach it below a path. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import { createNode, createNoop, createWorkflow } from "../openwop/levels-workflows.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";

const MAIN = join(import.meta.dirname, "..", "..", "src", "plugins", "cli", "main.ts");
const TOKEN = "token-of-acme-0001";
const TOKENS = { acme: [TOKEN, "token-of-acme-0002"], other: "token-of-other-0001" };

interface ServeAnnouncement {
  readonly baseUrl: string;
  readonly page: string;
  readonly workflows: number;
  readonly tenants: number;
}

/** Reads JSON that is complete with a line of its own. */
async function readListening(stdout: NodeJS.ReadableStream): Promise<ServeAnnouncement> {
  let text = "";
  for await (const chunk of stdout) {
    text += String(chunk);
    if (text.endsWith("\n}\n")) return JSON.parse(text) as ServeAnnouncement;
  }
  throw new Error(`serve has ended: ${text}`);
}

interface ServeProgram extends AsyncDisposable {
  readonly listening: ServeAnnouncement;
  /** Returns all that was written to the standard error stream. */
  readError(): string;
}

/** Starts `serve` with these workflows and options, and ends it with the test. */
async function startServe(
  folder: TempFolder,
  definitions: readonly WorkflowDefinition[],
  ...options: readonly string[]
): Promise<ServeProgram> {
  const workflows = folder.file("workflows");
  mkdirSync(workflows);
  for (const definition of definitions)
    writeFileSync(join(workflows, `${definition.id}.json`), JSON.stringify(definition));
  writeFileSync(folder.file("tokens.json"), JSON.stringify(TOKENS));
  const args = ["--port", "0", "--ledger", folder.file("ledger.sqlite"), "--workflows", workflows, "--json"];
  const where = ["--tokens", folder.file("tokens.json"), ...options];
  const serve = spawn(process.execPath, [MAIN, "serve", ...args, ...where], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let errorText = "";
  serve.stderr.on("data", (chunk) => (errorText += String(chunk)));
  const stop = async (): Promise<void> => {
    const ended = once(serve, "exit");
    serve.kill("SIGTERM");
    await ended;
  };
  try {
    const listening = await readListening(serve.stdout);
    return { listening, readError: () => errorText, [Symbol.asyncDispose]: stop };
  } catch (error) {
    throw new Error(errorText, { cause: error });
  }
}

it("serve behind a path names runs below that path, and counts tenants and not their tokens", async () => {
  using folder = createTempFolder();
  const quick = createWorkflow("quick", { nodes: [createNoop("n")] });
  await using served = await startServe(folder, [quick], "--base-url", "https://h.example/wop/");
  const { baseUrl, page, tenants } = served.listening;
  expect({ baseUrl, tenants }).toEqual({ baseUrl: "https://h.example/wop", tenants: 2 });
  const response = await fetch(new URL("/v1/runs", page), {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ workflowId: "quick" }),
  });
  const { runId, ...answer } = (await response.json()) as Record<string, string>;
  expect(answer).toMatchObject({
    eventsUrl: `/wop/v1/runs/${runId}/events`,
    statusUrl: `/wop/v1/runs/${runId}`,
  });
});

it("serve says why it does not offer a workflow that it would refuse to run, and does not count it", async () => {
  using folder = createTempFolder();
  const quick = createWorkflow("quick", { nodes: [createNoop("n")] });
  const typo = createWorkflow("typo", {
    nodes: [createNode("n", "core.interrupt", { config: { resumeSchema: { type: "strng" } } })],
  });
  await using served = await startServe(folder, [quick, typo]);
  expect(served.listening.workflows).toBe(1);
  await waitFor(() => served.readError().includes("is not offered"), {
    what: "the warning",
    timeoutMs: 10_000,
  });
  expect(served.readError()).toContain(
    "the workflow typo is not offered: resumeSchema of node n is not a usable JSON Schema: type: type must be",
  );
});
