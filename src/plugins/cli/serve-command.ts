/** Owns: `serve`, which runs an OpenWOP host over a ledger until it is stopped. */
import { readFileSync } from "node:fs";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { CliHost, CommandGroup } from "./cli-host.ts";
import { ledgerPathFor } from "./open-ledger.ts";
import { runCommand, withExamples, withJson, writeJson, writeLines, type JsonOption } from "./run-command.ts";
import { readTokens } from "./serve-tokens.ts";
import { readWorkflowFolder } from "./workflow-folder.ts";

interface ServeOptions extends JsonOption {
  readonly port: string;
  readonly host: string;
  readonly ledger?: string;
  readonly token?: string;
  readonly tokens?: string;
  readonly workflows?: string;
  readonly hostId?: string;
  readonly baseUrl?: string;
  readonly allowRemote?: boolean;
  readonly allowPrivate?: string[];
  readonly allowOrigin?: string[];
  readonly confidenceFloor: string;
  readonly escalationThreshold: string;
  readonly modelUrl?: string;
  readonly model?: string;
  readonly peerToken?: string[];
  readonly verbose?: boolean;
  readonly testSeams?: boolean;
}

export function addServe(command: CommandGroup, host: CliHost): void {
  const serve = withJson(command.command("serve"))
    .description("Serve the ledger as an OpenWOP host: run workflows, and let clients follow and answer them")
    .option("--port <port>", "listen on this port; 0 takes any that is free", "4096")
    .option("--host <address>", "listen on this address", "127.0.0.1")
    .option("--ledger <file>", "keep runs in this ledger (default: that of OpenClaw's state folder)")
    .option("--token <token>", "bearer token of the only tenant (default: OPENWOP_API_KEY)")
    .option("--tokens <file>", 'bearer tokens of several tenants: JSON {"<tenant>": "<token>"}')
    .option("--workflows <folder>", "workflow definitions, JSON or YAML, that every tenant may run")
    .option("--host-id <id>", "the name of this host in causes (default: the base URL)")
    .option("--base-url <url>", "under which clients reach this host (default: the address it listens on)")
    .option("--allow-remote", "listen on an address that other machines reach")
    .option(
      "--allow-private <origin...>",
      "peers, tools and models of these origins may be on private addresses",
    )
    .option("--allow-origin <origin...>", "web pages of these origins may ask (CORS)")
    .option("--confidence-floor <share>", "decisions below it wait for people, 0.5 to 1", "0.5")
    .option("--escalation-threshold <share>", "agents' own decisions below it wait for people, 0 to 1", "0.7")
    .option("--model-url <url>", "a model that answers like OpenAI's chat completions (key: OPENAI_API_KEY)")
    .option("--model <name>", "the model's name")
    .option("--peer-token <origin=token...>", "bearer tokens for other hosts; ${VARIABLE} works")
    .option("--verbose", "log every append")
    .option("--test-seams", "offer the routes of the protocol's conformance suite");
  withExamples(serve, host, [
    "serve --token s3cret --workflows ./workflows",
    "serve --port 0 --ledger ./runs.sqlite --workflows ./workflows --json",
  ]).action((options: ServeOptions) => runCommand(host, options, () => serveUntilStopped(host, options)));
}

async function serveUntilStopped(host: CliHost, options: ServeOptions): Promise<void> {
  const { startServing } = await import("../serve-openwop.ts");
  const ledgerPath = await ledgerPathFor(host, options);
  const tokens = readTokens(options, process.env);
  const definitions = options.workflows === undefined ? [] : await readWorkflowFolder(options.workflows);
  const served = await startServing({
    ...{ ledgerPath, tokens, definitions, version: VERSION },
    port: whole("--port", options.port, 65_535),
    hostname: options.host,
    allowRemote: options.allowRemote === true,
    testSeams: options.testSeams === true,
    verbose: options.verbose === true,
    confidenceFloor: share("--confidence-floor", options.confidenceFloor, 0.5),
    escalationThreshold: share("--escalation-threshold", options.escalationThreshold, 0),
    privateOrigins: [...(options.allowPrivate ?? []).map(originOf), ...suitePeers(process.env)],
    peerTokens: Object.fromEntries((options.peerToken ?? []).map(peerToken)),
    ...(options.hostId !== undefined && { hostId: options.hostId }),
    ...(options.baseUrl !== undefined && { baseUrl: options.baseUrl.replace(/\/+$/, "") }),
    ...(options.allowOrigin && { allowedOrigins: options.allowOrigin.map(originOf) }),
    ...modelOf(options),
    ...suiteTargets(process.env),
    log: (line) => void host.stderr.write(line),
  });
  const told = {
    baseUrl: served.baseUrl,
    ledger: ledgerPath,
    workflows: definitions.length,
    tenants: tokens.length,
  };
  if (options.json) await writeJson(host, told);
  else
    await writeLines(host, [
      `OpenWOP host on ${served.baseUrl}, ${definitions.length} workflows, runs in ${ledgerPath}`,
      "Stop it with Ctrl-C; runs that are under way go on with the next start.",
    ]);
  await stopSignal();
  await served.stop();
}

const { version: VERSION } = JSON.parse(
  readFileSync(new URL("../../../package.json", import.meta.url), "utf8"),
) as { version: string };

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => resolve();
    process.once("SIGINT", stop);
    process.once("SIGTERM", stop);
  });
}

function invalid(message: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", message);
}

function whole(option: string, text: string, max: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > max)
    throw invalid(`${option}: expected a whole number from 0 to ${max}, got ${text}`);
  return value;
}

function share(option: string, text: string, min: number): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= min && value <= 1))
    throw invalid(`${option}: expected a number from ${min} to 1, got ${text}`);
  return value;
}

function originOf(text: string): string {
  const url = URL.parse(text);
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    throw invalid(`${text}: expected an origin such as http://127.0.0.1:4100`);
  return url.origin;
}

function peerToken(text: string): [origin: string, token: string] {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1) throw invalid("--peer-token: expected <origin>=<token>");
  return [originOf(text.slice(0, at)), text.slice(at + 1)];
}

function modelOf({ modelUrl, model }: ServeOptions) {
  if (modelUrl === undefined && model === undefined) return {};
  if (modelUrl === undefined || model === undefined) throw invalid("--model-url and --model belong together");
  const { OPENAI_API_KEY: key } = process.env;
  return { model: { baseUrl: modelUrl, model, ...(key !== undefined && { apiKey: key }) } };
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the protocol's conformance suite puts its own peers. */
function suiteTargets({ OPENWOP_MCP_REAL_SERVER_URL: mcp, OPENWOP_A2A_REAL_PEER_URL: a2a }: Environment) {
  return { ...(mcp && { mcpUrl: mcp }), ...(a2a && { a2aUrl: a2a }) };
}

function suitePeers({
  OPENWOP_MCP_REAL_SERVER_URL: mcp,
  OPENWOP_A2A_REAL_PEER_URL: a2a,
}: Environment): string[] {
  return [mcp, a2a].flatMap((url) => (url ? [originOf(url)] : []));
}
