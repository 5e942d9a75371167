/** Owns: `serve`, which runs an OpenWOP host over a ledger until it is stopped. */
import { dirname, resolve } from "node:path";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import {
  DAY_MS,
  REPLAY_RETENTION_DAYS_MAX,
} from "../../../agents/coordination/contracts/config/openwop-config.ts";
import {
  DEFAULT_QUOTAS,
  QUOTA_MAX,
  QUOTA_NAMES,
} from "../../../agents/coordination/contracts/workflows/quotas.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import { readPackageVersion } from "../../../platform/package-files.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { formatLedger, isLedgerFile, resolveLedgerPath, resolvePathBeside } from "../ledger/open-ledger.ts";
import {
  runCommand,
  withExamples,
  withJson,
  writeJson,
  writeLines,
  type JsonOption,
} from "../terminal/run-command.ts";
import { readTokens } from "./serve-tokens.ts";
import { readAgentFolder } from "../files/agent-folder.ts";
import { readWorkflowFolder } from "../files/workflow-folder.ts";

const SECOND_MS = 1_000;
/** A shorter lease is lost by a pause for collecting garbage, a longer one is no recovery. */
const LEASE_SECONDS = { min: 2, max: 300 };

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
  readonly agents?: string;
  readonly modelClass?: string[];
  readonly mcpServer?: string[];
  readonly toolScope?: string[];
  readonly peer?: string[];
  readonly peerToken?: string[];
  readonly verbose?: boolean;
  readonly testSeams?: boolean;
  readonly metrics?: boolean;
  readonly otlp?: string | true;
  readonly transcriptWindow: string;
  readonly replayReinvokesModels?: boolean;
  readonly replayRetention: string;
  readonly lease: string;
  readonly interruptKey?: string;
  readonly quota?: string[];
}

export function addServe(command: CommandGroup, host: CliHost): void {
  const serve = withJson(command.command("serve"))
    .description("Serve the ledger as an OpenWOP host: run workflows, and let clients follow and answer them")
    .option("--port <port>", "listen on this port; 0 takes any that is free", "4096")
    .option("--host <address>", "listen on this address", "127.0.0.1")
    .option(
      "--ledger <file>",
      "keep runs in this file, or postgres:// (default: that of OpenClaw's state folder)",
    )
    .option("--token <token>", "bearer token of the only tenant (default: OPENWOP_API_KEY)")
    .option("--tokens <file>", 'bearer tokens of several tenants: JSON {"<tenant>": "<token>"}')
    .option("--workflows <folder>", "workflow definitions, JSON or YAML, that every tenant may run")
    .option("--agents <folder>", "packs of agents (pack.json with agents[]), or one file for each agent")
    .option("--model-class <class=model...>", "models of agents by the class that their manifests name")
    .option("--mcp-server <name=url...>", "servers whose tools agents may be allowed, as mcp:<tool>")
    .option(
      "--tool-scope <tool=scope,...>",
      "scopes that a token needs for a tool, such as mcp:pay=money",
      collect,
    )
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
    .option(
      "--transcript-window <events>",
      "so many events of its log each turn of a supervisor is told",
      String(WORKFLOW_BOUNDS.transcriptWindow),
    )
    .option(
      "--replay-reinvokes-models",
      "replays ask the model again, and fail where it refuses what it answered, or answers what it refused",
    )
    .option("--replay-retention <days>", "runs can be forked for so long after their end", "7")
    .option(
      "--quota <name=number...>",
      `what a tenant, request or address may take: ${QUOTA_NAMES.join(", ")}`,
    )
    .option("--peer <url...>", "other hosts that runs may name in their input peerUrl")
    .option("--peer-token <origin=token...>", "bearer tokens for other hosts; ${VARIABLE} works")
    .option("--verbose", "log every append")
    .option("--test-seams", "offer the routes of the protocol's conformance suite");
  addMonitoringOptions(serve);
  addSharedLedgerOptions(serve);
  withExamples(serve, host, [
    "serve --token s3cret --workflows ./workflows",
    "serve --port 0 --ledger ./runs.sqlite --workflows ./workflows --json",
    "serve --ledger postgres://coordination@db.example/coordination",
  ]).action((options: ServeOptions) => runCommand(host, options, () => serveUntilStopped(host, options)));
}

/** Adds the ways by which others see how the work goes. */
function addMonitoringOptions(serve: ReturnType<CommandGroup["command"]>): void {
  serve
    .option("--metrics", "let Prometheus read /metrics, with a bearer token")
    .option(
      "--otlp [url]",
      "export spans to this collector of OpenTelemetry (default: OTEL_EXPORTER_OTLP_ENDPOINT, or port 4318 here)",
    );
}

/** Adds what several `serve` of one ledger have in common. */
function addSharedLedgerOptions(serve: ReturnType<CommandGroup["command"]>): void {
  serve
    .option(
      "--lease <seconds>",
      "several serve on one ledger: how long one may be silent until others go on with its runs, 2 to 300",
      String(WORKFLOW_BOUNDS.leaseMs / SECOND_MS),
    )
    .option(
      "--interrupt-key <file>",
      "the key that signs links to questions; the same for all serve of one ledger (default: one of its own)",
    );
}

function readMonitoring({ metrics, otlp }: ServeOptions): {
  readonly metrics: boolean;
  readonly otlp?: string;
} {
  return { metrics: metrics === true, ...(otlp !== undefined && { otlp: readCollector(otlp) }) };
}

/** @throws CoordinationError `INPUT_INVALID` for what is no address */
function readCollector(otlp: string | true): string {
  if (otlp === true) return "";
  if (/^https?:$/u.test(URL.parse(otlp)?.protocol ?? "")) return otlp;
  throw new CoordinationError(
    "INPUT_INVALID",
    `--otlp: expected an address that begins with http:// or https://, got ${JSON.stringify(otlp)}`,
  );
}

async function serveUntilStopped(host: CliHost, options: ServeOptions): Promise<void> {
  const { startServing } = await import("../../serve-openwop.ts");
  const ledgerPath = await resolveLedgerPath(host, options);
  const keyPlace = await keyPlaceOf(host, ledgerPath, options);
  const tokens = readTokens(options, process.env);
  const definitions = options.workflows === undefined ? [] : await readWorkflowFolder(options.workflows);
  const agents = await agentsOf(options);
  const served = await startServing({
    ledgerPath,
    ...keyPlace,
    tokens,
    definitions,
    version: readPackageVersion(),
    port: parseWhole("--port", options.port, 65_535),
    hostname: options.host,
    allowRemote: options.allowRemote === true,
    testSeams: options.testSeams === true,
    ...readMonitoring(options),
    transcriptWindow: parseTranscriptWindow(options.transcriptWindow),
    replayReinvokesModels: options.replayReinvokesModels === true,
    retentionMs: parseDays("--replay-retention", options.replayRetention) * DAY_MS,
    leaseMs: parseLease(options.lease) * SECOND_MS,
    quotas: Object.fromEntries((options.quota ?? []).map(parseQuota)),
    verbose: options.verbose === true,
    confidenceFloor: share("--confidence-floor", options.confidenceFloor, 0.5),
    escalationThreshold: share("--escalation-threshold", options.escalationThreshold, 0),
    privateOrigins: [...(options.allowPrivate ?? []).map(originOf), ...readSuitePeers(process.env)],
    ...peersOf(options),
    ...(options.hostId !== undefined && { hostId: options.hostId }),
    ...(options.baseUrl !== undefined && { baseUrl: options.baseUrl.replace(/\/+$/, "") }),
    ...(options.allowOrigin && { allowedOrigins: options.allowOrigin.map(originOf) }),
    ...modelOf(options),
    ...(agents && { agents }),
    ...readSuiteTargets(process.env),
    log: (line) => void host.stderr.write(line),
  });
  const printLink = (): void => {
    const page = served.createPageUrl();
    void (options.json ? writeJson(host, { page }) : writeLines(host, [describePage(page)]));
  };
  process.on("SIGUSR2", printLink);
  const listening = {
    baseUrl: served.baseUrl,
    page: served.createPageUrl(),
    ledger: await formatLedger(ledgerPath),
    workflows: definitions.length,
    ...(agents && { agents: agents.installed.length }),
    tenants: tokens.length,
  };
  if (options.json) await writeJson(host, listening);
  else await writeLines(host, describeListening(listening));
  await stopSignal();
  process.removeListener("SIGUSR2", printLink);
  await served.stop();
}

interface Listening {
  readonly baseUrl: string;
  readonly page: string;
  readonly ledger: string;
  readonly workflows: number;
}

function describeListening({ baseUrl, page, ledger, workflows }: Listening): string[] {
  return [
    `OpenWOP host on ${baseUrl}, ${workflows} workflows, runs in ${ledger}`,
    describePage(page),
    `A new link to the page: kill -USR2 ${process.pid}`,
    "Stop it with Ctrl-C; runs that are under way go on with the next start.",
  ];
}

/** Beside a ledger on a server there is no folder: its key lies where that of the state folder's ledger would. */
async function keyPlaceOf(
  host: CliHost,
  ledgerPath: string,
  { interruptKey }: ServeOptions,
): Promise<{ readonly keyFolder?: string; readonly interruptKeyFile?: string }> {
  if (interruptKey !== undefined) return { interruptKeyFile: resolve(interruptKey) };
  if (await isLedgerFile(ledgerPath)) return {};
  return { keyFolder: dirname(await resolvePathBeside(host, {})) };
}

function describePage(url: string): string {
  return `Operator's page: ${url} (the link signs in once, within five minutes)`;
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => resolve();
    process.once("SIGINT", stop);
    process.once("SIGTERM", stop);
  });
}

function createInputError(message: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", message);
}

function parseWhole(option: string, text: string, max: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > max)
    throw createInputError(`${option}: expected a whole number from 0 to ${max}, got ${text}`);
  return value;
}

/** Parses a window of at least one event, because a window of none could not be advertised. */
function parseTranscriptWindow(text: string): number {
  const events = parseWhole("--transcript-window", text, WORKFLOW_BOUNDS.transcriptWindowMax);
  if (events === 0) throw createInputError("--transcript-window: expected at least 1 event");
  return events;
}

function parseQuota(text: string): [name: string, limit: number] {
  const [name, limit] = pairOf("--quota", "<name>=<number>", text);
  if (!Object.hasOwn(DEFAULT_QUOTAS, name))
    throw createInputError(`--quota: there is no quota ${name}; there are ${QUOTA_NAMES.join(", ")}`);
  const value = parseWhole(`--quota ${name}`, limit, QUOTA_MAX);
  if (value === 0) throw createInputError(`--quota ${name}: expected at least 1`);
  return [name, value];
}

function parseDays(option: string, text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= 0 && value <= REPLAY_RETENTION_DAYS_MAX))
    throw createInputError(
      `${option}: expected a number of days from 0 to ${REPLAY_RETENTION_DAYS_MAX}, got ${text}`,
    );
  return value;
}

function parseLease(text: string): number {
  const { min, max } = LEASE_SECONDS;
  const value = Number(text);
  if (text.trim() === "" || !(value >= min && value <= max))
    throw createInputError(`--lease: expected a number of seconds from ${min} to ${max}, got ${text}`);
  return value;
}

function share(option: string, text: string, min: number): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= min && value <= 1))
    throw createInputError(`${option}: expected a number from ${min} to 1, got ${text}`);
  return value;
}

function originOf(text: string): string {
  const url = URL.parse(text);
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    throw createInputError(`${text}: expected an origin such as http://127.0.0.1:4100`);
  return url.origin;
}

function peersOf({ peer = [], peerToken: tokens = [] }: ServeOptions) {
  return { peers: peer.map(peerOf), peerTokens: Object.fromEntries(tokens.map(parsePeerToken)) };
}

/** Parses a peer with its path, which tells peers of one origin apart. */
function peerOf(text: string): string {
  return `${originOf(text)}${new URL(text).pathname}`;
}

function parsePeerToken(text: string): [origin: string, token: string] {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1) throw createInputError("--peer-token: expected <origin>=<token>");
  return [originOf(text.slice(0, at)), text.slice(at + 1)];
}

function modelOf({ modelUrl, model }: ServeOptions) {
  if (modelUrl === undefined && model === undefined) return {};
  if (modelUrl === undefined || model === undefined)
    throw createInputError("--model-url and --model belong together");
  const { OPENAI_API_KEY: key } = process.env;
  return { model: { baseUrl: modelUrl, model, ...(key !== undefined && { apiKey: key }) } };
}

async function agentsOf({ agents, modelClass = [], mcpServer = [], toolScope = [] }: ServeOptions) {
  const isConfigured = [agents, ...modelClass, ...mcpServer, ...toolScope].some((each) => each !== undefined);
  if (!isConfigured) return undefined;
  return {
    installed: agents === undefined ? [] : await readAgentFolder(agents),
    modelClasses: Object.fromEntries(
      modelClass.map((text) => pairOf("--model-class", "<class>=<model>", text)),
    ),
    mcpServers: Object.fromEntries(mcpServer.map((text) => serverOf(text))),
    toolScopes: Object.fromEntries(toolScope.map((text) => scopesOf(text))),
  };
}

function collect(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

function pairOf(option: string, form: string, text: string): [name: string, value: string] {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1) throw createInputError(`${option}: expected ${form}, got ${text}`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function serverOf(text: string): [name: string, url: string] {
  const [name, url] = pairOf("--mcp-server", "<name>=<url>", text);
  const { protocol } = URL.parse(url) ?? {};
  if (protocol !== "http:" && protocol !== "https:")
    throw createInputError(`--mcp-server: ${url}: expected a URL such as https://tools.example/mcp`);
  return [name, url];
}

function scopesOf(text: string): [tool: string, scopes: string[]] {
  const [tool, scopes] = pairOf("--tool-scope", "<tool>=<scope>,...", text);
  return [
    tool,
    scopes
      .split(",")
      .map((scope) => scope.trim())
      .filter((scope) => scope !== ""),
  ];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads where the protocol's conformance suite puts its own peers. */
function readSuiteTargets({ OPENWOP_MCP_REAL_SERVER_URL: mcp, OPENWOP_A2A_REAL_PEER_URL: a2a }: Environment) {
  return { ...(mcp && { mcpUrl: mcp }), ...(a2a && { a2aUrl: a2a }) };
}

function readSuitePeers({
  OPENWOP_MCP_REAL_SERVER_URL: mcp,
  OPENWOP_A2A_REAL_PEER_URL: a2a,
}: Environment): string[] {
  return [mcp, a2a].flatMap((url) => (url ? [originOf(url)] : []));
}
