/** Owns: `serve` as a process of its own, started from source, with the requests that tests make of it. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { killAtExit } from "./kill-at-exit.ts";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";

const MAIN = join(import.meta.dirname, "..", "..", "src", "plugins", "cli", "main.ts");
const LISTENING = /^OpenWOP host on (?<base>\S+), /u;
const TOKEN = "s3cret";
const REQUEST_MS = 30_000;

export interface ServeProcess {
  readonly baseUrl: string;
  readonly process: ChildProcess;
  /** The answer, read as JSON. */
  ask(method: "GET" | "POST", path: string, request?: AskedOfServe): Promise<ServeAnswer>;
  /** An event stream of everything, as it comes. */
  follow(runId: string, after?: string): AsyncGenerator<StreamedEvent>;
  /** Resolves when the process has ended. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
}

export interface AskedOfServe {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ServeAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface StreamedEvent {
  readonly id: string;
  readonly event: string;
}

export interface StartServe {
  readonly ledger: string;
  /** A folder of the test, for the workflows and what the process keeps. */
  readonly folder: string;
  readonly definitions: readonly WorkflowDefinition[];
  readonly args?: readonly string[];
}

/** Starts a process and resolves when it listens. */
export async function startServe({
  ledger,
  folder,
  definitions,
  args = [],
}: StartServe): Promise<ServeProcess> {
  const workflows = join(folder, "workflows");
  mkdirSync(workflows, { recursive: true });
  for (const definition of definitions)
    writeFileSync(join(workflows, `${definition.id}.json`), JSON.stringify(definition));
  const child = spawn(
    process.execPath,
    [MAIN, "serve", "--port", "0", "--ledger", ledger, "--token", TOKEN, "--workflows", workflows, ...args],
    {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, OPENCLAW_STATE_DIR: join(folder, "state") },
    },
  );
  killAtExit(child);
  let complaints = "";
  child.stderr.on("data", (chunk: Buffer) => (complaints += chunk.toString()));
  const ended = once(child, "exit");
  const baseUrl = await readBaseUrl(child.stdout, () => complaints);
  child.stdout.resume();
  return {
    baseUrl,
    process: child,
    ask: (method, path, request) => sendRequest(`${baseUrl}${path}`, method, request),
    follow: (runId, after) => followEvents(baseUrl, runId, after),
    end: async (signal) => {
      child.kill(signal);
      await ended;
    },
  };
}

async function readBaseUrl(stdout: NodeJS.ReadableStream, readComplaints: () => string): Promise<string> {
  for await (const line of createInterface({ input: stdout })) {
    const base = LISTENING.exec(line)?.groups?.["base"];
    if (base !== undefined) return base;
  }
  throw new Error(`serve has ended: ${readComplaints()}`);
}

async function sendRequest(
  url: string,
  method: "GET" | "POST",
  { body, headers = {} }: AskedOfServe = {},
): Promise<ServeAnswer> {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json", ...headers },
    signal: AbortSignal.timeout(REQUEST_MS),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Readonly<Record<string, unknown>>,
  };
}

async function* followEvents(
  baseUrl: string,
  runId: string,
  after: string | undefined,
): AsyncGenerator<StreamedEvent> {
  const response = await fetch(`${baseUrl}/v1/runs/${runId}/events?streamMode=debug`, {
    headers: {
      accept: "text/event-stream",
      authorization: `Bearer ${TOKEN}`,
      ...(after !== undefined && { "last-event-id": after }),
    },
    signal: AbortSignal.timeout(REQUEST_MS),
  });
  if (!response.body) throw new Error(`the stream answered ${response.status}`);
  let text = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    yield* frames.flatMap(parseFrame);
  }
}

/** Comments and refusals are no events. */
function parseFrame(frame: string): StreamedEvent[] {
  const { id, event } = /^(?:id: (?<id>.*)\n)?event: (?<event>.*)$/mu.exec(frame)?.groups ?? {};
  return id === undefined || event === undefined ? [] : [{ id, event }];
}
