/**
 * Owns: an OpenWOP host inside of another process, over a ledger that is open there. Load it lazily.
 *
 * O1 The runs go on from the start; the HTTP face is made with the first request. O2 An end closes the face first, so that
 * nobody asks runs that are being stopped.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isAbsolute, join } from "node:path";
import type { CoordinationAccess } from "../agents/coordination/runtime/workflow-host/coordination-runs.ts";
import type { InstalledAgent } from "../agents/coordination/contracts/workflows/agent-manifest.ts";
import type { Phase1Config } from "../agents/coordination/contracts/config/config.ts";
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import { DAY_MS, type OpenWopConfig } from "../agents/coordination/contracts/config/openwop-config.ts";
import type { WorkflowDefinition } from "../agents/coordination/contracts/workflows/workflow-definition.ts";
import type { AgentSource } from "../agents/coordination/contracts/workflows/agent-events.ts";
import type { Logger } from "../agents/coordination/ports/logger.ts";
import type { ChatModel } from "../agents/coordination/ports/outbound.ts";
import type { WorkflowStore } from "../agents/coordination/ports/workflow-store.ts";
import { dropTrailingSlashes } from "../agents/coordination/std/foreign-text.ts";
import {
  resolveSecret,
  resolveTokens,
  type ReadVariable,
  type TokensByOrigin,
} from "../infra/http/tokens.ts";
import { createChatAgents, type ChatAgents } from "./chat-agents.ts";
import { openWorkflowHost, systemClock, type RunningWorkflows } from "./compose-workflows.ts";
import { collectGatewaySecrets, type Environment } from "./known-secrets.ts";
import type { BearerToken } from "./openwop/http/bearer-tokens.ts";
import type { RateLimit } from "./openwop/http/rate-limit.ts";
import { createOpenOnce, type OpenOnce } from "./open-once.ts";
import type { WorkflowControls } from "./page/server/page-dependencies.ts";
import { createWorkflowControls } from "./workflow-controls.ts";

export interface OpenWopOptions {
  readonly config: Phase1Config;
  /** OpenClaw's own configuration: what is secret in it is masked. */
  readonly hostConfig: unknown;
  /** Its secrets are masked. */
  readonly environment: Environment;
  readonly ledgerPath: string;
  /** Where relative folders of workflows are. */
  readonly stateDir: string;
  readonly store: WorkflowStore;
  readonly coordinations: CoordinationAccess;
  readonly chat: ChatModel;
  readonly logger: Logger;
  readonly version: string;
  readonly baseUrl: string;
  readonly readVariable: ReadVariable;
}

export interface ServedOpenWop {
  /** The path of the request is one of the protocol. Resolves when the answer is on its way; a stream may go on. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** For people who talk with the process that this is in. */
  readonly chats: ChatAgents;
  /** For operators of the gateway. */
  readonly controls: WorkflowControls;
  /** A coordination has new events. */
  changed(runId: string): void;
  close(): Promise<void>;
}

/** Bounds the requests of each tenant: a gateway has other things to do, and may be reached by other machines. */
const RATE: RateLimit = { requestsPerSecond: 200, burst: 400 };

/**
 * Opens and starts a workflow host within the gateway and returns what serves it: its HTTP interface, which is made
 * with the first request, its agents for chats, and the function that stops it. @throws CoordinationError
 * `CONFIG_INVALID`, `INPUT_INVALID` for a folder of workflows
 */
export async function serveOpenWop(options: OpenWopOptions): Promise<ServedOpenWop> {
  const { config, ledgerPath, store, coordinations, chat, logger, baseUrl, readVariable } = options;
  const { openwop, gates } = config;
  const tokens = readBearerTokens(openwop, readVariable);
  const definitions = await readWorkflowDefinitions(openwop, options.stateDir);
  const installed = await readInstalledAgents(openwop, options.stateDir);
  const { modelClasses, mcpServers, toolScopes } = openwop;
  const running = await openWorkflowHost({
    ledgerPath,
    store,
    definitions,
    chat,
    logger,
    readVariable,
    baseUrl: () => baseUrl,
    ...(openwop.hostId !== undefined && { hostId: openwop.hostId }),
    confidenceFloor: gates.decisionFloor,
    escalationThreshold: gates.confidenceThreshold,
    replayReinvokesModels: openwop.replayReinvokesModels,
    retentionMs: openwop.replayRetentionDays * DAY_MS,
    quotas: openwop.quotas,
    privateOrigins: openwop.allowPrivate,
    peers: openwop.peers,
    peerTokens: openwop.peerTokens,
    servesWithoutPeers: true,
    secrets: collectGatewaySecrets(options),
    agents: { installed, modelClasses, mcpServers, toolScopes },
    coordinations: { ...coordinations, tenant: openwop.coordinationsTenant },
  });
  await running.host.start();
  const served = { baseUrl, workflows: running.host.workflowIds().length, tenants: countTenants(tokens) };
  running.logger.info(served, "serves OpenWOP");
  return createServedOpenWop(
    { running, chats: createChatAgents({ host: running.host, tenant: openwop.coordinationsTenant }) },
    createOpenOnce(
      () => createHttpFace(options, { running, tokens }),
      () => new CoordinationError("LEDGER_CLOSED", "OpenWOP is closed"),
    ),
  );
}

/** The app that serves OpenWOP over HTTP. */
interface HttpFace {
  readonly listen: (request: IncomingMessage, response: ServerResponse) => void;
  /** Ends the streams of those who follow runs. */
  close(): Promise<void>;
}

/** Workflows that can run, and the agents of chats that begin such runs. */
interface ServedWorkflows {
  readonly running: RunningWorkflows;
  readonly chats: ChatAgents;
}

function createServedOpenWop({ running, chats }: ServedWorkflows, face: OpenOnce<HttpFace>): ServedOpenWop {
  return {
    chats,
    controls: createWorkflowControls(running.host),
    handle: async (request, response) => {
      (await face.get()).listen(request, response);
    },
    changed: (runId) => running.host.changed(runId),
    close: async () => {
      chats.close();
      await face.close();
      await running.close();
    },
  };
}

async function createHttpFace(
  { config, version, baseUrl }: OpenWopOptions,
  { running, tokens }: { readonly running: RunningWorkflows; readonly tokens: readonly BearerToken[] },
): Promise<HttpFace> {
  const [{ createOpenWopApp }, { createOpenWopListener }, { DEFAULTS }] = await Promise.all([
    import("./openwop/app.ts"),
    import("./openwop/serve.ts"),
    import("./openwop/http/advertised.ts"),
  ]);
  const app = createOpenWopApp({
    host: running.host,
    clock: systemClock,
    logger: running.logger,
    tokens,
    rateLimit: RATE,
    quotas: config.openwop.quotas,
    pathPrefix: dropTrailingSlashes(new URL(baseUrl).pathname),
    advertised: {
      ...DEFAULTS,
      confidenceEscalationFloor: config.gates.decisionFloor,
      retentionMs: config.openwop.replayRetentionDays * DAY_MS,
      ...(running.host.agents().length > 0 && {
        agentInventory: true,
        liveAgents: listLiveSources(config.openwop),
      }),
      implementation: { name: "openclaw-coordination", version },
    },
  });
  return {
    listen: createOpenWopListener(app),
    close: () => {
      app.closeStreams();
      return Promise.resolve();
    },
  };
}

/** Lists from where agents may be invoked; an empty list of senders lets nobody call one in a chat. */
function listLiveSources({ mentions: { senders } }: OpenWopConfig): AgentSource[] {
  const inChats: AgentSource[] = senders?.length === 0 ? [] : ["chat-mention"];
  return ["workflow-node", "run-api", ...inChats];
}

/**
 * Returns the bearer tokens of the configuration with their tenants, their values read from variables. A variable that
 * is not set must not become a token that everybody knows. @throws CoordinationError `CONFIG_INVALID` for one that is
 * not usable, and for two that are the same
 */
export function readBearerTokens({ tokens }: OpenWopConfig, readVariable: ReadVariable): BearerToken[] {
  const knownTokens = tokens.map(({ token: value, tenant, principal, scopes }) => {
    const token = resolveSecret(value, readVariable) ?? "";
    if (!USABLE.test(token))
      throw createTokenConfigError(`the variable for a token of tenant ${tenant} ${UNUSABLE}`);
    return { token, tenant, ...(principal !== undefined && { principal }), ...(scopes && { scopes }) };
  });
  if (new Set(knownTokens.map(({ token }) => token)).size < knownTokens.length)
    throw createTokenConfigError("two tokens are the same, so that nobody could tell their holders apart");
  return knownTokens;
}

/**
 * Returns the tokens for calling peers by the peers' addresses, their values read from variables. @throws
 * CoordinationError `CONFIG_INVALID` with each peer that is not called because of its token
 */
export function readPeerTokens({ peerTokens }: OpenWopConfig, readVariable: ReadVariable): TokensByOrigin {
  const { tokens, problems } = resolveTokens(peerTokens, readVariable);
  const sentences = Object.entries(problems).map(([peer, problem]) => `The token for ${peer} ${problem}`);
  if (sentences.length > 0) throw new CoordinationError("CONFIG_INVALID", sentences.join(" "));
  return tokens;
}

const USABLE = /^[\x21-\x7e]{16,4096}$/;
const UNUSABLE = "is not set, or is not a word of at least 16 visible ASCII characters";

function createTokenConfigError(problem: string): CoordinationError {
  return new CoordinationError("CONFIG_INVALID", `coordination.phase1.openwop.tokens: ${problem}`);
}

/**
 * Returns the workflows of all folders that the configuration names; empty without any. @throws CoordinationError
 * `INPUT_INVALID` with every file that is no workflow, and why, and for two workflows of one id
 */
export async function readWorkflowDefinitions(
  { workflows }: OpenWopConfig,
  stateDir: string,
): Promise<WorkflowDefinition[]> {
  if (workflows.length === 0) return [];
  const { readWorkflowFolder } = await import("./cli/files/workflow-folder.ts");
  const definitionsById = new Map<string, WorkflowDefinition>();
  for (const workflowFolder of workflows) {
    const folder = isAbsolute(workflowFolder) ? workflowFolder : join(stateDir, workflowFolder);
    for (const definition of await readWorkflowFolder(folder)) {
      if (definitionsById.has(definition.id))
        throw new CoordinationError("INPUT_INVALID", `${folder}: there is another workflow ${definition.id}`);
      definitionsById.set(definition.id, definition);
    }
  }
  return [...definitionsById.values()];
}

/**
 * Returns the agents of all folders that the configuration names; empty without any. @throws CoordinationError
 * `INPUT_INVALID` with every pack that cannot be installed, and why, and for two agents of one id
 */
export async function readInstalledAgents(
  { agents }: OpenWopConfig,
  stateDir: string,
): Promise<InstalledAgent[]> {
  if (agents.length === 0) return [];
  const { readAgentFolder } = await import("./cli/files/agent-folder.ts");
  const agentsById = new Map<string, InstalledAgent>();
  for (const agentFolder of agents) {
    const folder = isAbsolute(agentFolder) ? agentFolder : join(stateDir, agentFolder);
    for (const agent of await readAgentFolder(folder)) {
      const { agentId } = agent.manifest;
      if (agentsById.has(agentId))
        throw new CoordinationError("INPUT_INVALID", `${folder}: there is another agent ${agentId}`);
      agentsById.set(agentId, agent);
    }
  }
  return [...agentsById.values()];
}

function countTenants(tokens: readonly BearerToken[]): number {
  return new Set(tokens.map(({ tenant }) => tenant)).size;
}
