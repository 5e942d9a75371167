/** Owns: the options of a host of workflow runs, which `serve` and `mcp` have in common, and what they mean. */
import type { Command } from "commander";
import { dirname, resolve } from "node:path";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { createInputError } from "../../../agents/coordination/contracts/errors.ts";
import {
  DAY_MS,
  hasUserOrPassword,
  REPLAY_RETENTION_DAYS_MAX,
} from "../../../agents/coordination/contracts/config/openwop-config.ts";
import {
  DEFAULT_QUOTAS,
  QUOTA_MAX,
  QUOTA_NAMES,
} from "../../../agents/coordination/contracts/workflows/quotas.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import { dropTrailingSlashes } from "../../../agents/coordination/std/foreign-text.ts";
import { readPackageVersion } from "../../../platform/package-files.ts";
import { readAgentFolder } from "../files/agent-folder.ts";
import { readWorkflowFolder } from "../files/workflow-folder.ts";
import { isFileLedger, resolveLedgerPath, resolveSidecarPath } from "../ledger/open-ledger.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { parseFilePath, parseNumber, parseShare, parseWholeNumber } from "../terminal/run-command.ts";

const SECOND_MS = 1_000;
/** A shorter lease is lost by a pause for collecting garbage, a longer one is no recovery. */
const LEASE_SECONDS = { option: "--lease", min: 2, max: 300, unit: "seconds" };
const RETENTION_DAYS = { option: "--replay-retention", min: 0, max: REPLAY_RETENTION_DAYS_MAX, unit: "days" };

export interface HostOptions {
  readonly ledger?: string;
  readonly workflows?: string;
  readonly hostId?: string;
  readonly baseUrl?: string;
  readonly allowPrivate?: string[];
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
  readonly transcriptWindow: string;
  readonly replayReinvokesModels?: boolean;
  readonly replayRetention: string;
  readonly lease: string;
  readonly keepDays?: string;
  readonly interruptKey?: string;
  readonly quota?: string[];
}

/**
 * Adds the options of commands that run workflows (ledger, workflows, agents, models, limits) to a command and returns
 * it.
 */
export function addHostOptions(command: Command): Command {
  command
    .option(
      "--ledger <file>",
      "keep runs in this file, or postgres:// (default: the gateway's: as ledger.url says, or in its state folder)",
    )
    .option("--workflows <folder>", "workflow definitions, JSON or YAML, that every tenant may run")
    .option("--agents <folder>", "packs of agents (pack.json with agents[]), or one file for each agent")
    .option("--model-class <class=model...>", "models of agents by the class that their manifests name")
    .option("--mcp-server <name=url...>", "servers whose tools agents may be allowed, as mcp:<tool>")
    .option(
      "--tool-scope <tool=scope,...>",
      "scopes that a token needs for a tool, such as mcp:pay=money",
      collectValues,
    )
    .option("--host-id <id>", "the name of this host in causes (default: the base URL)")
    .option("--base-url <url>", "under which clients reach this host (default: the address it listens on)")
    .option(
      "--allow-private <origin...>",
      "peers, tools and models of these origins may be on private addresses",
    )
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
    .option("--verbose", "log every append");
  return addSharedLedgerOptions(command);
}

/** Adds what several hosts of one ledger have in common. */
function addSharedLedgerOptions(command: Command): Command {
  return command
    .option(
      "--lease <seconds>",
      "several hosts on one ledger: how long one may be silent until others go on with its runs, 2 to 300",
      String(WORKFLOW_BOUNDS.leaseMs / SECOND_MS),
    )
    .option("--keep-days <days>", "remove runs that ended longer ago, once a day (default: none)")
    .option(
      "--interrupt-key <file>",
      "the key that signs links to questions; the same for all hosts of one ledger (default: one of its own)",
    );
}

/**
 * Returns the settings of a workflow host that the options mean, for which it reads the folders of workflows and
 * agents. @throws CoordinationError `INPUT_INVALID` with the option that is wrong
 */
export async function readHostOptions(host: CliHost, options: HostOptions) {
  const ledgerPath = await resolveLedgerPath(host, options);
  const definitions = options.workflows === undefined ? [] : await readWorkflowFolder(options.workflows);
  const agents = await loadAgentOptions(options);
  return {
    ledgerPath,
    ...(await findKeyPlace(host, ledgerPath, options)),
    definitions,
    version: readPackageVersion(),
    transcriptWindow: parseTranscriptWindow(options.transcriptWindow),
    replayReinvokesModels: options.replayReinvokesModels === true,
    retentionMs: parseNumber(options.replayRetention, RETENTION_DAYS) * DAY_MS,
    leaseMs: parseNumber(options.lease, LEASE_SECONDS) * SECOND_MS,
    ...(options.keepDays !== undefined && { keepDays: parseKeepDays(options.keepDays) }),
    quotas: Object.fromEntries((options.quota ?? []).map(parseQuota)),
    verbose: options.verbose === true,
    confidenceFloor: parseNumber(options.confidenceFloor, { option: "--confidence-floor", min: 0.5, max: 1 }),
    escalationThreshold: parseShare(options.escalationThreshold, "--escalation-threshold"),
    privateOrigins: [...(options.allowPrivate ?? []).map(parseOrigin), ...listSuiteOrigins(process.env)],
    ...parsePeers(options),
    ...(options.hostId !== undefined && { hostId: options.hostId }),
    ...(options.baseUrl !== undefined && { baseUrl: parseBaseUrl(options.baseUrl) }),
    ...parseModelOptions(options),
    ...(agents && { agents }),
    ...readSuiteTargets(process.env),
    log: (line: string) => void host.stderr.write(line),
  };
}

/**
 * Returns the key file that is named, or the folder of the key; empty where it lies beside the ledger. Beside a ledger
 * on a server there is no folder: its key lies where that of the state folder's ledger would.
 */
async function findKeyPlace(
  host: CliHost,
  ledgerPath: string,
  { interruptKey }: HostOptions,
): Promise<{ readonly keyFolder?: string; readonly interruptKeyFile?: string }> {
  if (interruptKey !== undefined)
    return { interruptKeyFile: resolve(parseFilePath(interruptKey, "--interrupt-key")) };
  if (await isFileLedger(ledgerPath)) return {};
  return { keyFolder: dirname(await resolveSidecarPath(host, {})) };
}

/** Parses a window of at least one event, because a window of none could not be advertised. */
function parseTranscriptWindow(text: string): number {
  const events = parseWholeNumber(text, {
    option: "--transcript-window",
    min: 0,
    max: WORKFLOW_BOUNDS.transcriptWindowMax,
  });
  if (events === 0) throw createInputError("--transcript-window: expected at least 1 event");
  return events;
}

function parseQuota(text: string): [name: string, limit: number] {
  const [name, limit] = parsePair(text, "--quota", "<name>=<number>");
  if (!Object.hasOwn(DEFAULT_QUOTAS, name))
    throw createInputError(`--quota: there is no quota ${name}; there are ${QUOTA_NAMES.join(", ")}`);
  const value = parseWholeNumber(limit, { option: `--quota ${name}`, min: 0, max: QUOTA_MAX });
  if (value === 0) throw createInputError(`--quota ${name}: expected at least 1`);
  return [name, value];
}

/** Parses a number of at least one day: what ended just now may still be asked for. */
function parseKeepDays(text: string): number {
  const days = parseWholeNumber(text, { option: "--keep-days", min: 0, max: BOUNDS.ledgerKeepDaysMax });
  if (days === 0) throw createInputError("--keep-days: expected at least 1 day");
  return days;
}

/**
 * Returns the origin of an HTTP address, such as `http://127.0.0.1:4100`; path and query are dropped. @throws
 * CoordinationError `INPUT_INVALID` for what is no address
 */
export function parseOrigin(text: string): string {
  const url = URL.parse(text);
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    throw createInputError(`${text}: expected an origin such as http://127.0.0.1:4100`);
  return url.origin;
}

/** Parses where clients reach the host: paths of the protocol are put behind it. */
function parseBaseUrl(text: string): string {
  if (/^https?:\/\/[^?#\s]+$/iu.test(text) && URL.canParse(text)) return dropTrailingSlashes(text);
  throw createInputError(`--base-url: expected an address such as https://runs.example, got ${text}`);
}

function parsePeers({ peer = [], peerToken: tokens = [] }: HostOptions) {
  const peerTokens = new Map<string, string>();
  for (const [origin, token] of tokens.map(parsePeerToken)) {
    if (peerTokens.has(origin)) throw createInputError(`--peer-token: there are two tokens for ${origin}`);
    peerTokens.set(origin, token);
  }
  return { peers: peer.map(parsePeer), peerTokens: Object.fromEntries(peerTokens) };
}

/** Parses a peer with its path, which tells peers of one origin apart. */
function parsePeer(text: string): string {
  return `${parseOrigin(text)}${new URL(text).pathname}`;
}

function parsePeerToken(text: string): [origin: string, token: string] {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1) throw createInputError("--peer-token: expected <origin>=<token>");
  return [parseOrigin(text.slice(0, at)), text.slice(at + 1)];
}

function parseModelOptions({ modelUrl, model }: HostOptions) {
  if (modelUrl === undefined && model === undefined) return {};
  if (modelUrl === undefined || model === undefined)
    throw createInputError("--model-url and --model belong together");
  assertCalledUrl(modelUrl, {
    option: "--model-url",
    example: "http://127.0.0.1:11434/v1",
    instead: "give the key of the model in OPENAI_API_KEY",
  });
  const { OPENAI_API_KEY: key } = process.env;
  return { model: { baseUrl: modelUrl, model, ...(key !== undefined && { apiKey: key }) } };
}

async function loadAgentOptions({ agents, modelClass = [], mcpServer = [], toolScope = [] }: HostOptions) {
  const isConfigured = [agents, ...modelClass, ...mcpServer, ...toolScope].some((each) => each !== undefined);
  if (!isConfigured) return undefined;
  return {
    installed: agents === undefined ? [] : await readAgentFolder(agents),
    modelClasses: Object.fromEntries(
      modelClass.map((text) => parsePair(text, "--model-class", "<class>=<model>")),
    ),
    mcpServers: Object.fromEntries(mcpServer.map(parseMcpServer)),
    toolScopes: parseToolScopeOptions(toolScope, "--tool-scope"),
  };
}

/** Returns the values of an option that may be given several times, with one more. */
export function collectValues(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** Parses a name and a value with `=` between them, neither of them empty. */
function parsePair(text: string, option: string, form: string): [name: string, value: string] {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1) throw createInputError(`${option}: expected ${form}, got ${text}`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function parseMcpServer(text: string): [name: string, url: string] {
  const [name, url] = parsePair(text, "--mcp-server", "<name>=<url>");
  assertCalledUrl(url, {
    option: "--mcp-server",
    example: "https://tools.example/mcp",
    instead: "give a bearer token for its origin by --peer-token",
  });
  return [name, url];
}

interface CalledUrl {
  readonly option: string;
  readonly example: string;
  readonly instead: string;
}

/** Checks an address that requests are sent to. The error does not quote it, because it may hold a password. */
function assertCalledUrl(url: string, { option, example, instead }: CalledUrl): void {
  const { protocol } = URL.parse(url) ?? {};
  if (protocol !== "http:" && protocol !== "https:")
    throw createInputError(`${option}: expected a URL such as ${example}`);
  if (hasUserOrPassword(url))
    throw createInputError(
      `${option}: expected a URL without a user and password, because none with them is called; ${instead}`,
    );
}

/**
 * Returns for each tool the scopes that a token needs to call it, from texts like `mcp:pay=money`; of a tool that is
 * named twice, all of both. @throws CoordinationError `INPUT_INVALID` where a tool has none
 */
export function parseToolScopeOptions(
  texts: readonly string[],
  option: string,
): Readonly<Record<string, string[]>> {
  const toolScopes = new Map<string, string[]>();
  for (const text of texts) {
    const [tool, scopes] = parseToolScopes(text, option);
    toolScopes.set(tool, [...new Set([...(toolScopes.get(tool) ?? []), ...scopes])]);
  }
  return Object.fromEntries(toolScopes);
}

function parseToolScopes(text: string, option: string): [tool: string, scopes: string[]] {
  const form = "<tool>=<scope>,...";
  const [tool, listed] = parsePair(text, option, form);
  const scopes = listed
    .split(",")
    .map((scope) => scope.trim())
    .filter((scope) => scope !== "");
  if (scopes.length === 0) throw createInputError(`${option}: expected ${form}, got ${text}`);
  return [tool, scopes];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads where the protocol's conformance suite puts its own peers. */
function readSuiteTargets({ OPENWOP_MCP_REAL_SERVER_URL: mcp, OPENWOP_A2A_REAL_PEER_URL: a2a }: Environment) {
  return { ...(mcp && { mcpUrl: resolveMcpUrl(mcp) }), ...(a2a && { a2aUrl: a2a }) };
}

/**
 * Returns the URL of an MCP server as it is; for the root of a host the URL of that host's own MCP server, `/v1/mcp`.
 */
function resolveMcpUrl(text: string): string {
  return URL.parse(text)?.pathname === "/" ? `${parseOrigin(text)}/v1/mcp` : text;
}

function listSuiteOrigins({
  OPENWOP_MCP_REAL_SERVER_URL: mcp,
  OPENWOP_A2A_REAL_PEER_URL: a2a,
}: Environment): string[] {
  return [mcp, a2a].flatMap((url) => (url ? [parseOrigin(url)] : []));
}
