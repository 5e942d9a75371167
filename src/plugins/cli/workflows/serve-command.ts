/** Owns: `serve`, which runs an OpenWOP host over a ledger until it is stopped. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { formatLedgerLocation } from "../ledger/open-ledger.ts";
import {
  parseWholeNumber,
  runCommand,
  withExamples,
  withJsonOption,
  writeJson,
  writeLines,
  type JsonOption,
} from "../terminal/run-command.ts";
import {
  addHostOptions,
  collectValues,
  parseOrigin,
  readHostOptions,
  parseToolScopeOptions,
  type HostOptions,
} from "./host-options.ts";
import { readTenantTokens } from "./serve-tokens.ts";

interface ServeOptions extends JsonOption, HostOptions {
  readonly port: string;
  readonly host: string;
  readonly token?: string;
  readonly tokens?: string;
  readonly allowRemote?: boolean;
  readonly allowOrigin?: string[];
  readonly testSeams?: boolean;
  readonly metrics?: boolean;
  readonly otlp?: string | true;
  readonly mcp?: boolean;
  readonly mcpScope?: string[];
  readonly a2a?: boolean;
}

/** Adds the command `serve`, which serves the ledger as an OpenWOP host over HTTP until it is stopped. */
export function addServeCommand(command: CommandGroup, host: CliHost): void {
  const serve = withJsonOption(command.command("serve"))
    .description("Serve the ledger as an OpenWOP host: run workflows, and let clients follow and answer them")
    .option("--port <port>", "listen on this port; 0 takes any that is free", "4096")
    .option("--host <address>", "listen on this address", "127.0.0.1")
    .option("--token <token>", "bearer token of the only tenant (default without --tokens: OPENWOP_API_KEY)")
    .option("--tokens <file>", 'bearer tokens of several tenants: JSON {"<tenant>": "<token>"}')
    .option("--allow-remote", "listen on an address that other machines reach")
    .option("--allow-origin <origin...>", "web pages of these origins may ask (CORS)");
  addHostOptions(serve);
  serve.option("--test-seams", "offer the routes of the protocol's conformance suite");
  addMonitoringOptions(serve);
  addProtocolOptions(serve);
  withExamples(serve, host, [
    "serve --token s3cret --workflows ./workflows",
    "serve --port 0 --ledger ./runs.sqlite --workflows ./workflows --json",
    "serve --ledger postgres://coordination@db.example/coordination",
    "serve --workflows ./workflows --mcp --mcp-scope answer=approver --tokens tokens.json",
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

/** Adds the other protocols by which agents reach the workflows. */
function addProtocolOptions(serve: ReturnType<CommandGroup["command"]>): void {
  serve
    .option("--mcp", "offer the workflows as tools to MCP clients, at /v1/mcp")
    .option(
      "--mcp-scope <tool=scope,...>",
      "scopes that a token needs for a tool of the MCP server, such as answer=approver",
      collectValues,
    )
    .option("--a2a", "offer the workflows as skills to A2A clients, at /v1/a2a");
}

function parseMonitoringOptions({ metrics, otlp }: ServeOptions): {
  readonly metrics: boolean;
  readonly otlp?: string;
} {
  return { metrics: metrics === true, ...(otlp !== undefined && { otlp: parseCollectorUrl(otlp) }) };
}

/** @throws CoordinationError `INPUT_INVALID` for what is no address */
function parseCollectorUrl(otlp: string | true): string {
  if (otlp === true) return "";
  if (/^https?:$/u.test(URL.parse(otlp)?.protocol ?? "")) return otlp;
  throw new CoordinationError(
    "INPUT_INVALID",
    `--otlp: expected an address that begins with http:// or https://, got ${JSON.stringify(otlp)}`,
  );
}

/** @throws CoordinationError `INPUT_INVALID` for scopes of a server that is not there */
function parseMcpOptions({ mcp, mcpScope = [] }: ServeOptions) {
  const toolScopes = parseToolScopeOptions(mcpScope, "--mcp-scope");
  if (mcp === true) return { mcp: { toolScopes } };
  if (mcpScope.length === 0) return {};
  throw new CoordinationError("INPUT_INVALID", "--mcp-scope: it is about the MCP server; add --mcp");
}

async function serveUntilStopped(host: CliHost, options: ServeOptions): Promise<void> {
  const { startServedOpenWop } = await import("../../serve-openwop.ts");
  const tokens = readTenantTokens(options, process.env);
  const hostOptions = await readHostOptions(host, options);
  const { ledgerPath } = hostOptions;
  const agents = "agents" in hostOptions ? hostOptions.agents : undefined;
  const served = await startServedOpenWop({
    ...hostOptions,
    tokens,
    port: parseWholeNumber(options.port, { option: "--port", min: 0, max: 65_535 }),
    hostname: options.host,
    allowRemote: options.allowRemote === true,
    testSeams: options.testSeams === true,
    ...parseMonitoringOptions(options),
    ...parseMcpOptions(options),
    a2a: options.a2a === true,
    ...(options.allowOrigin && { allowedOrigins: options.allowOrigin.map(parseOrigin) }),
  });
  const printLink = (): void => {
    const page = served.createPageUrl();
    void (options.json ? writeJson(host, { page }) : writeLines(host, [describePageLink(page)]));
  };
  process.on("SIGUSR2", printLink);
  const listening = {
    baseUrl: served.baseUrl,
    page: served.createPageUrl(),
    ledger: await formatLedgerLocation(ledgerPath),
    workflows: served.workflows,
    ...(agents && { agents: agents.installed.length }),
    tenants: new Set(tokens.map(({ tenant }) => tenant)).size,
    ...(options.mcp && { mcp: `${served.baseUrl}/v1/mcp` }),
    ...(options.a2a && { agentCard: `${served.baseUrl}/.well-known/agent-card.json` }),
  };
  if (options.json) await writeJson(host, listening);
  else await writeLines(host, describeListening(listening));
  await waitForStopSignal();
  process.removeListener("SIGUSR2", printLink);
  await served.stop();
}

/** The addresses that the program serves, and what it serves there. */
interface ServedAddresses {
  readonly baseUrl: string;
  readonly page: string;
  readonly ledger: string;
  readonly workflows: number;
  readonly mcp?: string;
  readonly agentCard?: string;
}

/** Lists the lines that say where the host, its other protocols and its page are, and how to stop it. */
function describeListening({ baseUrl, page, ledger, workflows, mcp, agentCard }: ServedAddresses): string[] {
  return [
    `OpenWOP host on ${baseUrl}, ${workflows} workflows, runs in ${ledger}`,
    ...(mcp === undefined ? [] : [`MCP server on ${mcp}, with the same bearer tokens`]),
    ...(agentCard === undefined ? [] : [`A2A agent, with the same bearer tokens: ${agentCard}`]),
    describePageLink(page),
    `A new link to the page: kill -USR2 ${process.pid}`,
    "Stop it with Ctrl-C; runs that are under way go on with the next start.",
  ];
}

function describePageLink(url: string): string {
  return `Operator's page: ${url} (the link signs in once, within five minutes)`;
}

/**
 * Resolves when the process is told to stop by SIGINT or SIGTERM; the first of each no longer ends the process by
 * itself.
 */
export function waitForStopSignal(): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => resolve();
    process.once("SIGINT", stop);
    process.once("SIGTERM", stop);
  });
}
