/** Owns: the processes that the OpenWOP benchmarks measure, and asking the load client for its figures. */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { TempFolder } from "../support/temp-ledger.ts";
import type { Load, LoadFigures } from "./openwop-load.ts";
import { TOKEN, WORKFLOWS } from "./openwop-workflows.ts";
import { isInstalled } from "./peers.ts";
import { runForJson } from "./run-for-json.ts";

const CLI = fileURLToPath(new URL("../../src/plugins/cli/main.ts", import.meta.url));
const ECHO = fileURLToPath(new URL("openwop-echo.ts", import.meta.url));
const HONO = fileURLToPath(new URL("hono-server.ts", import.meta.url));
const OPENWORKFLOW = fileURLToPath(new URL("openworkflow/serve.mjs", import.meta.url));
const LOAD = new URL("openwop-load.ts", import.meta.url);

type ServerAnnouncement = Readonly<Record<string, unknown>> & { readonly baseUrl: string };

/** A process that listens for HTTP requests, and what ends it. */
export interface ServerProcess {
  readonly baseUrl: string;
  readonly pid: number;
  /** Its words when it listened. */
  readonly telling: ServerAnnouncement;
  stop(): Promise<void>;
}

/** The product: `openclaw-coordination serve`, as people start it. */
export async function startHost(
  ledger: string,
  folder: TempFolder,
  nodeOptions: readonly string[] = [],
): Promise<ServerProcess> {
  const workflows = folder.file("workflows");
  mkdirSync(workflows, { recursive: true });
  for (const workflow of WORKFLOWS)
    writeFileSync(`${workflows}/${workflow.id}.json`, JSON.stringify(workflow));
  return startServe(["--token", TOKEN, "--workflows", workflows, "--ledger", ledger], nodeOptions);
}

export function startServe(
  flags: readonly string[],
  nodeOptions: readonly string[] = [],
): Promise<ServerProcess> {
  // A process that is inspected says so, over and over.
  const isHeard = nodeOptions.length === 0;
  return start([...nodeOptions, CLI, "serve", "--test-seams", "--port", "0", ...flags, "--json"], isHeard);
}

/** A bare `node:http` server, which says what the machine, Node.js and the client make of HTTP. */
export function startEcho(): Promise<ServerProcess> {
  return start([ECHO]);
}

/** A bare Hono server that answers from the file, as `hono-server.ts` says. */
export function startHono(file: string): Promise<ServerProcess> {
  return start([HONO, file]);
}

/** `undefined` where the peer is not installed. */
export async function startOpenWorkflow(file: string): Promise<ServerProcess | undefined> {
  return isInstalled("openworkflow") ? start([OPENWORKFLOW, file]) : undefined;
}

/** The token is that of `startHost`, where the load brings no other. */
export function putLoad(
  { baseUrl }: ServerProcess,
  load: Omit<Load, "baseUrl" | "token"> & { readonly token?: string },
): Promise<LoadFigures> {
  return runForJson<LoadFigures>(LOAD, [JSON.stringify({ token: TOKEN, ...load, baseUrl })]);
}

async function start(args: readonly string[], isHeard = true): Promise<ServerProcess> {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", isHeard ? "inherit" : "ignore"] });
  const telling = await readFirstObject(child);
  const { baseUrl } = telling;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return {
    baseUrl,
    telling: telling,
    pid: child.pid ?? 0,
    stop: async () => {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** JSON that it prints once it listens. */
function readFirstObject(child: ChildProcessByStdio<null, Readable, null>): Promise<ServerAnnouncement> {
  const { promise, resolve, reject } = Promise.withResolvers<ServerAnnouncement>();
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
    if (printed.trimEnd().endsWith("}")) resolve(JSON.parse(printed) as ServerAnnouncement);
  });
  child.once("error", reject);
  child.once("exit", (code) => {
    reject(new Error(`a server ended with code ${code} before it listened: ${printed}`));
  });
  return promise;
}
