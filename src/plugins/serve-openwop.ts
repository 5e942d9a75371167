/** Owns: an OpenWOP host in a process of its own: the runs, the socket, and ending both in the right order. */
import { isIPv6 } from "node:net";
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import type { Logger } from "../agents/coordination/ports/logger.ts";
import type { InstalledAgent } from "../agents/coordination/contracts/workflows/agent-manifest.ts";
import { dropTrailingSlashes } from "../agents/coordination/std/foreign-text.ts";
import type { ConformancePlay } from "../agents/coordination/runtime/workflow-host/records/conformance-play.ts";
import {
  openWorkflowHost,
  createServeLogger,
  systemClock,
  type AgentOptions,
  type RunningWorkflows,
  type ServedOptions,
} from "./compose-workflows.ts";
import { createProtocolFaces, type FacesWanted } from "./compose-faces.ts";
import type { MetricsHost } from "./compose-metrics.ts";
import type { TelemetryHost } from "./compose-telemetry.ts";
import { createPageHost, type PageHost } from "./compose-page.ts";
import { loadConformance } from "./load-conformance.ts";
import { collectServedSecrets } from "./known-secrets.ts";
import { DEFAULTS, type AdvertisedHost } from "./openwop/http/advertised.ts";
import type { BearerToken } from "./openwop/http/bearer-tokens.ts";
import type { SuiteFace } from "./openwop/http/suite-face.ts";
import { SERVE_RIGHTS } from "./page/server/rights.ts";
import { RemoteAccessError, startOpenWopServer, type OpenWopServer } from "./openwop/serve.ts";
import { createWorkflowControls, type ControlledHost } from "./workflow-controls.ts";

/** The options of serving OpenWOP without a gateway. */
export interface ServingOptions extends FacesWanted, ServedOptions {
  readonly tokens: readonly BearerToken[];
  readonly port: number;
  readonly hostname: string;
  readonly allowRemote: boolean;
  readonly testSeams: boolean;
  /** Exports spans by OTLP; an empty text: where the environment says. */
  readonly otlp?: string;
  /** Lets Prometheus read `/metrics`. */
  readonly metrics?: boolean;
  readonly verbose: boolean;
  readonly baseUrl?: string;
  /** SR-1: what is never kept, shown or logged, by name, besides the secrets of these options. */
  readonly secrets?: ReadonlyMap<string, string>;
  readonly log: (line: string) => void;
}

/** The server as it runs, with the means to reach and to stop it. */
export interface RunningServer {
  readonly baseUrl: string;
  /** How many workflows it offers: without those that it would refuse to run. */
  readonly workflows: number;
  /** Returns the address of the operator's page, with a new link that signs in once. */
  createPageUrl(): string;
  stop(): Promise<void>;
}

/** Holds what the conformance suite adds to a host; nothing where it is not tested. */
interface SuiteDependencies {
  readonly secrets: ReadonlyMap<string, string>;
  readonly agents: readonly InstalledAgent[];
  readonly composed: { readonly conformance?: ConformancePlay };
  readonly served: { readonly suite?: SuiteFace };
}

async function loadSuiteDependencies({ testSeams }: ServingOptions): Promise<SuiteDependencies> {
  if (!testSeams) return { secrets: new Map(), agents: [], composed: {}, served: {} };
  const { secrets, agents, createPlay, face } = await loadConformance();
  return { secrets, agents, composed: { conformance: createPlay() }, served: { suite: face } };
}

/**
 * Starts an OpenWOP host with its page in a process of its own; returns its handle once it listens. @throws
 * CoordinationError as `openWorkflowHost` and `loadConformance` do, and `INPUT_INVALID` where the options are unsafe
 * or it cannot listen; what was opened is closed again
 */
export async function startServedOpenWop(options: ServingOptions): Promise<RunningServer> {
  const { tokens, port, hostname, allowRemote, allowedOrigins } = options;
  const suite = await loadSuiteDependencies(options);
  const secrets = new Map([
    ...suite.secrets,
    ...(options.secrets ?? []),
    ...collectServedSecrets({ ...options, environment: process.env }),
  ]);
  let listening = readBaseUrl(options);
  const agents = mergeSuiteAgents(options, suite);
  const measured = await createServedMetrics(options);
  const running = await openWorkflowHost({
    ...options,
    logger: createServeLogger(options.log, options.verbose),
    baseUrl: () => listening,
    agents,
    secrets,
    readVariable: (name) => process.env[name],
    ...suite.composed,
    ...measured.composed,
  });
  const services: HostServices = { running, metrics: measured.metrics };
  try {
    services.telemetry = await startServedTelemetry(options, running);
    const page = createServedPage(options, running);
    services.page = page;
    const server = await startOpenWopServer({
      page,
      host: running.host,
      clock: systemClock,
      logger: running.logger,
      tokens,
      port,
      hostname,
      allowRemote,
      ...(options.baseUrl !== undefined && { baseUrl: options.baseUrl }),
      pathPrefix: findPathPrefix(options),
      advertised: createAdvertised(agents, options),
      ...(options.quotas && { quotas: options.quotas }),
      ...(allowedOrigins && { allowedOrigins }),
      faces: await createProtocolFaces(options, running, () => listening),
      ...suite.served,
      ...measured.served,
    });
    services.server = server;
    listening ||= server.baseUrl;
    await running.host.start();
    return {
      baseUrl: listening,
      workflows: running.host.workflowIds().length,
      createPageUrl: () => `${server.baseUrl}/#link=${page.mintLink(SERVE_RIGHTS)}`,
      stop: () => closeServices(services),
    };
  } catch (error) {
    await closeServices(services);
    throw convertStartError(error, options);
  }
}

/** The addresses that stand for all of a machine, as URLs write them. */
const WILDCARDS: ReadonlySet<string | undefined> = new Set(["0.0.0.0", "[::]"]);

/**
 * Returns the address that the operator named; an empty text where it is the one that the host listens on. Throws
 * where that stands for all of a machine, because clients are told it.
 */
function readBaseUrl({ hostname, allowRemote, baseUrl }: ServingOptions): string {
  if (baseUrl !== undefined) return baseUrl;
  const listening = URL.parse(`http://${isIPv6(hostname) ? `[${hostname}]` : hostname}`);
  // Without `allowRemote` it does not listen on one, and says why.
  if (allowRemote && WILDCARDS.has(listening?.hostname))
    throw new CoordinationError(
      "INPUT_INVALID",
      `--host ${hostname}: no client can reach this host at an address that stands for all of this machine; name the one that clients use with --base-url`,
    );
  return "";
}

/** Finds the path below which clients reach the protocol. */
function findPathPrefix({ baseUrl }: ServingOptions): string {
  return baseUrl === undefined ? "" : dropTrailingSlashes(new URL(baseUrl).pathname);
}

/** Holds the socket and what runs behind it, as far as it was opened or is wanted. */
interface HostServices {
  readonly running: RunningWorkflows;
  readonly metrics: MetricsHost | undefined;
  telemetry?: TelemetryHost | undefined;
  page?: PageHost;
  server?: OpenWopServer;
}

/** Closes the socket first, so that nobody asks what is being closed, then readers of the ledger, then the ledger. */
async function closeServices(services: HostServices): Promise<void> {
  const { server, page, metrics, telemetry, running } = services;
  await server?.stop();
  await page?.end();
  await metrics?.close();
  await telemetry?.close();
  await running.close();
}

/** Holds what the metrics add to a host; nothing where they are not wanted. */
interface MetricsDependencies {
  readonly metrics?: MetricsHost;
  readonly composed: { readonly noteAppend?: MetricsHost["noteAppend"] };
  readonly served: { readonly metrics?: MetricsHost };
}

/** Creates the metrics of the host where they are wanted, and loads their code only then. */
async function createServedMetrics(options: ServingOptions): Promise<MetricsDependencies> {
  if (options.metrics !== true) return { composed: {}, served: {} };
  const { ledgerPath, log, verbose } = options;
  const { createMetricsHost } = await import("./compose-metrics.ts");
  const metrics = createMetricsHost({ ledgerPath, logger: createServeLogger(log, verbose) });
  return { metrics, composed: { noteAppend: metrics.noteAppend }, served: { metrics } };
}

/**
 * Starts the export of spans and returns its handle, whose code is loaded only then; `undefined` where it is not
 * wanted.
 */
async function startServedTelemetry(
  { otlp, ledgerPath, version }: ServingOptions,
  { exports, logger }: RunningWorkflows,
): Promise<TelemetryHost | undefined> {
  if (otlp === undefined || !exports) return undefined;
  const { startTelemetry } = await import("./compose-telemetry.ts");
  return startTelemetry({
    place: ledgerPath,
    logger,
    cursors: () => Promise.resolve(exports),
    ...(otlp !== "" && { endpoint: otlp }),
    version,
  });
}

interface PageBehind {
  readonly logger: Logger;
  readonly host: ControlledHost;
}

function createServedPage(options: ServingOptions, { logger, host }: PageBehind): PageHost {
  const { version, ledgerPath } = options;
  return createPageHost({
    home: "serve",
    version,
    ledgerPath,
    logger,
    hosts: listPageHosts(options),
    workflows: createWorkflowControls(host),
  });
}

/** Lists the names under which the page may be asked for besides the loopback's. */
function listPageHosts({ hostname, baseUrl }: ServingOptions): string[] {
  const host = baseUrl === undefined ? undefined : URL.parse(baseUrl)?.host;
  return [hostname, ...(host === undefined ? [] : [host])];
}

function createAdvertised(agents: AgentOptions, options: ServingOptions): AdvertisedHost {
  const { version, confidenceFloor, transcriptWindow, retentionMs } = options;
  return {
    ...DEFAULTS,
    confidenceEscalationFloor: confidenceFloor,
    ...(transcriptWindow !== undefined && { transcriptWindow }),
    ...(retentionMs !== undefined && { retentionMs }),
    ...describeAgentFeatures(agents, options),
    implementation: { name: "openclaw-coordination", version },
  };
}

/** Returns what the host advertises of agents: without a model they are listed and cannot be invoked. */
function describeAgentFeatures(
  { installed = [] }: AgentOptions,
  { model, testSeams }: ServingOptions,
): Partial<AdvertisedHost> {
  if (installed.length === 0) return {};
  const isLive = model !== undefined || testSeams;
  return { agentInventory: true, ...(isLive && { liveAgents: ["workflow-node", "run-api"] }) };
}

function mergeSuiteAgents(
  { agents = {} }: ServingOptions,
  { agents: suiteAgents }: SuiteDependencies,
): AgentOptions & { readonly installed: readonly InstalledAgent[] } {
  const installedAgents = agents.installed ?? [];
  const takenIds = new Set(installedAgents.map(({ manifest }) => manifest.agentId));
  const more = suiteAgents.filter(({ manifest }) => !takenIds.has(manifest.agentId));
  return { ...agents, installed: [...installedAgents, ...more] };
}

/** Turns an error of starting that a person can mend into one with words that they know. */
function convertStartError(error: unknown, { hostname, port }: ServingOptions): unknown {
  if (error instanceof RangeError) {
    const options = error instanceof RemoteAccessError ? " (--allow-remote, --token)" : "";
    return new CoordinationError("INPUT_INVALID", `${error.message}${options}`, { cause: error });
  }
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === "listen" || syscall === "getaddrinfo")
    return new CoordinationError(
      "INPUT_INVALID",
      `cannot listen on ${hostname}:${port} (${code ?? syscall}); take another --host or --port`,
      { cause: error },
    );
  return error;
}
