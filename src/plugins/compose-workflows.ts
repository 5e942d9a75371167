/**
 * Owns: putting the host of workflow runs and its SQLite, HTTP client and model parts together. Beside compose.ts the only file
 * that imports both; load it lazily.
 */
import { hash, randomUUID } from "node:crypto";
import { dirname, join } from "node:path";
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../agents/coordination/contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { Quotas } from "../agents/coordination/contracts/workflows/quotas.ts";
import type { WorkflowDefinition } from "../agents/coordination/contracts/workflows/workflow-definition.ts";
import type { Logger } from "../agents/coordination/ports/logger.ts";
import type { ChatModel, PeerHosts, ToolCaller } from "../agents/coordination/ports/outbound.ts";
import { startDailyPruning } from "../agents/coordination/runtime/prune-regularly.ts";
import type { ExportCursors } from "../agents/coordination/ports/export-cursors.ts";
import type { OutputContract } from "../agents/coordination/ports/output-contract.ts";
import type { WorkflowStore } from "../agents/coordination/ports/workflow-store.ts";
import {
  createCoordinationRuns,
  type TenantCoordinations,
} from "../agents/coordination/runtime/workflow-host/coordination-runs.ts";
import {
  NO_AGENTS,
  type AgentHostDependencies,
} from "../agents/coordination/runtime/workflow-host/records/agent-dependencies.ts";
import type { ConformancePlay } from "../agents/coordination/runtime/workflow-host/records/conformance-play.ts";
import { createWorkflowHost } from "../agents/coordination/runtime/workflow-host/create-workflow-host.ts";
import {
  withOtherRuns,
  type OtherRuns,
} from "../agents/coordination/runtime/workflow-host/records/other-runs.ts";
import type { WorkflowHost } from "../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { steadyClock } from "../infra/clock/steady-clock.ts";
import { systemClock } from "../infra/clock/system-clock.ts";
import type { SafeFetch } from "../infra/http/safe-fetch.ts";
import { resolveTokens, type ResolvedTokens } from "../infra/http/tokens.ts";
import { createPinoLogger } from "../infra/log/pino-logger.ts";
import { createTokenSigner } from "../infra/tokens/interrupt-tokens.ts";
import { listKeyForms } from "./known-secrets.ts";
import { openLedgerStore } from "./open-ledger-store.ts";
import type { NoteAppend } from "./metrics/time-appends.ts";
import { WAIT_MS } from "./openwop/runs/run-access.ts";
import { readOrCreateKey } from "../infra/tokens/key-file.ts";
import { createMaskedHost } from "../agents/coordination/runtime/workflow-host/records/masked-host.ts";
import {
  createMaskedLogger,
  maskValue,
} from "../agents/coordination/runtime/workflow-host/records/mask-secrets.ts";
import { isProcessGone, readProcessName } from "../platform/process-name.ts";
import { describeError } from "../agents/coordination/std/describe-error.ts";
import { createOnceLoader } from "../agents/coordination/std/load-once.ts";

export { systemClock };

/** Returns a logger that writes structured JSON lines; debug ones where they were asked for. */
export function createServeLogger(write: (line: string) => void, isVerbose: boolean): Logger {
  return createPinoLogger({ level: isVerbose ? "debug" : "info", destination: { write } });
}

/** A model that answers like OpenAI's chat completions. */
export interface ModelOptions {
  readonly baseUrl: string;
  readonly model: string;
  /** `${VARIABLE}` stands for one of the environment. */
  readonly apiKey?: string;
}

/** An option that is absent is not there; a tool that asks for no scopes is everybody's. */
export type AgentOptions = Partial<AgentHostDependencies>;

/** Options of every process that serves runs of workflows by itself. */
export interface ServedOptions {
  readonly ledgerPath: string;
  /** Where keys lie; absent: beside the ledger. */
  readonly keyFolder?: string;
  /** The file of the key of interrupt tokens, which several hosts of one ledger share. Absent: one of its own, in `keyFolder`. */
  readonly interruptKeyFile?: string;
  /** How long this process may be silent until others take over its runs. Absent: the usual time. */
  readonly leaseMs?: number;
  /** Days after which runs that have ended are removed; absent: never. Only where the ledger is opened here. */
  readonly keepDays?: number;
  readonly definitions: readonly WorkflowDefinition[];
  /** Absent: the base URL. */
  readonly hostId?: string;
  /** Below it, an orchestrator's decision waits for people. */
  readonly confidenceFloor: number;
  readonly escalationThreshold: number;
  /** Events that each turn of a supervisor is told at most. */
  readonly transcriptWindow?: number;
  /** Replays ask live models again, to see whether they refuse now. */
  readonly replayReinvokesModels?: boolean;
  /** How long a run that ended can be forked. Absent: a week. */
  readonly retentionMs?: number;
  /** How much one tenant may take. Absent, or absent in it: the usual quotas. */
  readonly quotas?: Partial<Quotas>;
  readonly mcpUrl?: string;
  readonly a2aUrl?: string;
  /** Origins of peers, tools and models that may be private. */
  readonly privateOrigins: readonly string[];
  /** Roots of peers on which callers may let the children of their runs run, besides those with a token. */
  readonly peers?: readonly string[];
  /** Bearer tokens by the origin of a peer; `${VARIABLE}` stands for one of the environment. */
  readonly peerTokens: Readonly<Record<string, string>>;
  readonly model?: ModelOptions;
  /** Agents of manifests, and what they work with. */
  readonly agents?: AgentOptions;
}

export interface WorkflowOptions extends ServedOptions {
  /** The store of that ledger, where somebody else has it open and closes it later. */
  readonly store?: WorkflowStore;
  /** Hears how long each append took; absent: nobody measures. */
  readonly noteAppend?: NoteAppend;
  readonly logger: Logger;
  /** Known when the host listens. */
  readonly baseUrl: () => string;
  /** Plays what the protocol's conformance suite scripts; absent: the host is not tested. */
  readonly conformance?: ConformancePlay;
  /** Serves also where a token of a peer cannot be used: calls to that peer fail. Absent: the host is not started. */
  readonly servesWithoutPeers?: true;
  /** In place of `model`. */
  readonly chat?: ChatModel;
  /** OpenClaw's coordinations in the same ledger, to be seen as runs. */
  readonly coordinations?: TenantCoordinations;
  /** SR-1: what is never kept, shown or logged, by name. */
  readonly secrets: ReadonlyMap<string, string>;
  readonly readVariable: (name: string) => string | undefined;
}

export interface RunningWorkflows {
  readonly host: WorkflowHost;
  /** The one that was given, without secrets. */
  readonly logger: Logger;
  /** How far exports of the ledger's events came. Absent where somebody else has the ledger open. */
  readonly exports?: ExportCursors;
  /** Reads the runs of every tenant. */
  readonly runs: WorkflowStore;
  /** Holds what a client sent against a schema; loaded when it is first needed. */
  readonly contract: () => Promise<OutputContract>;
  close(): Promise<void>;
}

/** A command of its own may wait for another one's lock. */
const BUSY_TIMEOUT_MS = 5_000;
/** Bounds one exchange: longer than a peer holds a poll. */
const EXCHANGE_TIMEOUT_MS = 30_000;
/** Bounds a call of a tool, which is one long exchange and some short ones: a server may hold it as long as ours does. */
const TOOL_TIMEOUT_MS = WAIT_MS + EXCHANGE_TIMEOUT_MS;
const CALL_BYTES_MAX = 4_000_000;

/** @throws CoordinationError `INPUT_INVALID` for a file that was named, and as `readOrCreateKey` does for another one */
function readInterruptKey({ interruptKeyFile, keyFolder, ledgerPath }: WorkflowOptions): Uint8Array {
  if (interruptKeyFile === undefined)
    return readOrCreateKey(join(keyFolder ?? dirname(ledgerPath), "interrupt-key"));
  try {
    return readOrCreateKey(interruptKeyFile);
  } catch (error) {
    throw new CoordinationError("INPUT_INVALID", `--interrupt-key: ${describeError(error)}`, {
      cause: error,
    });
  }
}

/** @throws CoordinationError `INPUT_INVALID` for a token that cannot be used, unless the host is to serve nevertheless */
function resolvePeerTokens(options: WorkflowOptions): ResolvedTokens {
  const resolved = resolveTokens(options.peerTokens, options.readVariable);
  for (const [peer, problem] of Object.entries(resolved.problems)) {
    if (!options.servesWithoutPeers)
      throw new CoordinationError("INPUT_INVALID", `The token for ${peer} ${problem}`);
    options.logger.warn({ peer }, `calls to a peer fail: its token ${problem}`);
  }
  return resolved;
}

/**
 * Opens the ledger of workflow runs and returns the host over it; closes the ledger again where that fails.
 * @throws CoordinationError as `openDatabase`, `readInterruptKey` and `resolvePeerTokens` do.
 */
export async function openWorkflowHost(options: WorkflowOptions): Promise<RunningWorkflows> {
  assertConfidenceSettings(options);
  const peerTokens = resolvePeerTokens(options);
  const ledger = await openOrShareLedger(options);
  try {
    return createRunningWorkflows(options, ledger, peerTokens);
  } catch (error) {
    await ledger.close();
    throw error;
  }
}

function createRunningWorkflows(
  options: WorkflowOptions,
  ledger: UsedLedger,
  peerTokens: ResolvedTokens,
): RunningWorkflows {
  const { baseUrl, conformance } = options;
  const key = readInterruptKey(options);
  const processName = readProcessName();
  const secrets = new Map([...options.secrets, ...listKeyForms(key)]);
  const logger = createMaskedLogger(options.logger, secrets);
  const outbound = createOutbound({ ...options, logger }, peerTokens);
  const contract = createOnceLoader(async () =>
    (await import("../infra/json-schema/ajv-output-contract.ts")).createAjvOutputContract(),
  );
  const settings = createHostSettings(options);
  const otherRuns = createRunsOfCoordinations(options, settings);
  const host = createWorkflowHost({
    definitions: maskValue(options.definitions, secrets),
    logger,
    baseUrl,
    secrets,
    ...outbound,
    agents: createAgentDependencies(options),
    retentionMs: options.retentionMs ?? WORKFLOW_BOUNDS.replayRetentionMs,
    ...(options.quotas && { quotas: options.quotas }),
    ...(conformance && { conformance }),
    store: ledger.workflows,
    ...(otherRuns && { otherRuns }),
    clock: systemClock,
    settings,
    newRunId: () => `run-${randomUUID()}` as CoordinationId,
    steady: steadyClock,
    owner: { id: randomUUID(), ...(processName !== undefined && { process: processName }) },
    isProcessGone,
    leaseMs: options.leaseMs ?? WORKFLOW_BOUNDS.leaseMs,
    sha256: (text) => hash("sha256", text),
    tokens: createTokenSigner(key),
    contract,
    verifier: async (critic) => {
      const { createVerifier } = await import("../infra/verify/create-verifier.ts");
      const { createChatCritic: chatCritic } = await import("../infra/verify/chat-critic.ts");
      return createVerifier({
        contract,
        logger,
        clock: systemClock,
        model: chatCritic(outbound.chat, critic),
        // Callers over a network name no files.
        workspaceOf: () => "",
      });
    },
  });
  return {
    host: createMaskedHost(otherRuns ? withOtherRuns(host, otherRuns) : host, secrets),
    logger,
    runs: ledger.workflows,
    contract,
    ...(ledger.exports && { exports: ledger.exports }),
    close: () => closeHostAndLedger(host, ledger),
  };
}

async function closeHostAndLedger(host: WorkflowHost, ledger: UsedLedger): Promise<void> {
  try {
    await host.stop();
  } finally {
    await ledger.close();
  }
}

/** Returns what agents work with. The server that nodes call without naming one is one of theirs, too. */
function createAgentDependencies({ agents = {}, mcpUrl }: WorkflowOptions): AgentHostDependencies {
  const mcpServers = { ...agents.mcpServers, ...(mcpUrl !== undefined && { default: mcpUrl }) };
  return { ...NO_AGENTS, ...agents, mcpServers };
}

interface UsedLedger {
  readonly workflows: WorkflowStore;
  readonly exports?: ExportCursors;
  close(): Promise<void>;
}

/** Returns the store that somebody else has open, or opens the ledger and begins to prune it. */
async function openOrShareLedger(options: WorkflowOptions): Promise<UsedLedger> {
  const { ledgerPath, store, noteAppend, keepDays, logger } = options;
  if (store) return { workflows: store, close: () => Promise.resolve() };
  const ledger = await openLedgerStore({ place: ledgerPath, mode: "write", busyTimeoutMs: BUSY_TIMEOUT_MS });
  const pruning = startDailyPruning({ ledger, keepDays, clock: systemClock, logger });
  const close = async (): Promise<void> => {
    await pruning?.stop();
    await ledger.close();
  };
  const { exports } = ledger;
  if (!noteAppend) return { workflows: ledger.workflows, exports, close };
  const { timeAppends } = await import("./metrics/time-appends.ts");
  return { workflows: timeAppends(ledger.workflows, noteAppend), exports, close };
}

function createRunsOfCoordinations(
  { coordinations }: WorkflowOptions,
  settings: { readonly hostId: string },
): OtherRuns | undefined {
  return coordinations && createCoordinationRuns({ ...coordinations, hostId: () => settings.hostId });
}

/** RFC 0039: no host lets a decision pass that is worse than a coin's. */
const FLOOR_MIN = 0.5;

function assertConfidenceSettings({ confidenceFloor, escalationThreshold }: WorkflowOptions): void {
  if (!(confidenceFloor >= FLOOR_MIN && confidenceFloor <= 1))
    throw new CoordinationError("INPUT_INVALID", `the confidence floor is a number from ${FLOOR_MIN} to 1`);
  if (!(escalationThreshold >= 0 && escalationThreshold <= 1))
    throw new CoordinationError("INPUT_INVALID", "the escalation threshold is a number from 0 to 1");
}

function createHostSettings(options: WorkflowOptions) {
  const { baseUrl, hostId, conformance, confidenceFloor, escalationThreshold, mcpUrl, a2aUrl } = options;
  return {
    get hostId() {
      return hostId ?? baseUrl();
    },
    confidenceFloor,
    escalationThreshold,
    sha256: (text: string) => hash("sha256", text),
    nodeExecutionsMax: WORKFLOW_BOUNDS.nodeExecutionsMax,
    loopIterationsMax: WORKFLOW_BOUNDS.loopIterationsMax,
    runDurationMsMax: WORKFLOW_BOUNDS.runDurationMsMax,
    replayReinvokesModels: options.replayReinvokesModels ?? false,
    ...(conformance && { play: conformance.nodes }),
    ...(options.transcriptWindow !== undefined && { transcriptWindow: options.transcriptWindow }),
    ...(mcpUrl !== undefined && { mcpUrl }),
    ...(a2aUrl !== undefined && { a2aUrl }),
  };
}

/** The callers by which workflows reach other hosts, tools and models. */
interface OutboundCallers {
  readonly peers: () => Promise<PeerHosts>;
  readonly tools: () => Promise<ToolCaller>;
  readonly chat: () => Promise<ChatModel>;
}

/** Creates the calls to peers, tools and models. Each library is loaded with the first node that needs it. */
function createOutbound(
  { readVariable, ...options }: WorkflowOptions,
  peerTokens: ResolvedTokens,
): OutboundCallers {
  const clock = systemClock;
  const allowPrivate = options.privateOrigins.map((written) => new URL(written).origin);
  const openFetch = async (timeoutMs: number): Promise<SafeFetch> => {
    const { createSafeFetch } = await import("../infra/http/safe-fetch.ts");
    return createSafeFetch({ clock, allowPrivate, timeoutMs, bytesMax: CALL_BYTES_MAX });
  };
  const openSignedFetch = async (timeoutMs: number): Promise<SafeFetch> => {
    const { withTokens } = await import("../infra/http/tokens.ts");
    return withTokens(await openFetch(timeoutMs), peerTokens.tokens, peerTokens.problems);
  };
  return {
    peers: createOnceLoader(async () => {
      const { createPeerHosts } = await import("../infra/peer/peer-hosts.ts");
      const { createNamedPeers: namedPeers } = await import("../infra/peer/named-peers.ts");
      const fetch = await openSignedFetch(EXCHANGE_TIMEOUT_MS);
      return namedPeers(createPeerHosts({ fetch, clock, charsMax: CALL_BYTES_MAX }), listNamedPeers(options));
    }),
    tools: createOnceLoader(async () => {
      const { createMcpCaller, createMcpLister } = await import("../infra/mcp/mcp-caller.ts");
      const { createA2aCaller } = await import("../infra/a2a/a2a-caller.ts");
      const { createNamedTools } = await import("../infra/peer/named-peers.ts");
      const fetch = await openSignedFetch(EXCHANGE_TIMEOUT_MS);
      const toolFetch = await openSignedFetch(TOOL_TIMEOUT_MS);
      const tools = {
        callMcp: createMcpCaller({ clock, fetch: toolFetch, timeoutMs: TOOL_TIMEOUT_MS }),
        listMcp: createMcpLister({ clock, fetch, timeoutMs: EXCHANGE_TIMEOUT_MS }),
        // No run works for longer.
        sendA2a: createA2aCaller({ clock, fetch, timeoutMs: WORKFLOW_BOUNDS.runDurationMsMax }),
      };
      return createNamedTools(tools, listNamedPeers(options));
    }),
    chat: createOnceLoader(async () => {
      const { chat, model } = options;
      if (chat) return chat;
      if (!model) return noModel;
      const { createChatModel } = await import("../infra/model/chat-model.ts");
      // A long answer takes minutes, and no run works for longer.
      const fetch = await openFetch(WORKFLOW_BOUNDS.runDurationMsMax);
      return createChatModel({ config: model, fetch, clock, readVariable });
    }),
  };
}

/** Lists the peers that the operator named: as a peer, by a token for it, or in a workflow. */
function listNamedPeers({
  peers = [],
  peerTokens,
  definitions,
}: Pick<WorkflowOptions, "peers" | "peerTokens" | "definitions">): readonly string[] {
  const inWorkflows = definitions.flatMap(({ nodes }) => nodes.map(({ config }) => config["peerUrl"]));
  const urls = inWorkflows.filter((url) => typeof url === "string");
  return [...peers, ...Object.keys(peerTokens), ...urls];
}

const noModel: ChatModel = {
  complete: () =>
    Promise.resolve({
      kind: "refused",
      code: "not_configured",
      message: "no model is configured; name one with --model-url and --model",
    }),
};
