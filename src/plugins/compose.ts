/**
 * Owns: putting the runtime and its SQLite, p-queue and pino parts together. The only file that imports both; load it
 * lazily, because it pulls in the native database driver.
 */
import { hash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { BOUNDS } from "../agents/coordination/contracts/bounds.ts";
import type { Phase1Config } from "../agents/coordination/contracts/config/config.ts";
import type { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import type { GatewayPlace } from "../agents/coordination/contracts/coordination-summary.ts";
import { createTreeBudget } from "../agents/coordination/contracts/config/tree-budget.ts";
import type { AgentId, CoordinationId, SessionKey } from "../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../agents/coordination/contracts/run-event.ts";
import type { AgentRunner } from "../agents/coordination/ports/agent-runner.ts";
import type { ProviderLanes } from "../agents/coordination/ports/provider-use.ts";
import type { SpawnObserver } from "../agents/coordination/ports/spawn-observer.ts";
import type { Logger } from "../agents/coordination/ports/logger.ts";
import type { LaneMetrics } from "../agents/coordination/ports/lane-runner.ts";
import type { Lane } from "../agents/coordination/contracts/envelope.ts";
import type { HumanChannel } from "../agents/coordination/ports/human-channel.ts";
import type { ModelClient } from "../agents/coordination/ports/model-client.ts";
import type { Worktrees } from "../agents/coordination/ports/worktrees.ts";
import type { ExportCursors } from "../agents/coordination/ports/export-cursors.ts";
import type { WorkflowStore } from "../agents/coordination/ports/workflow-store.ts";
import type { OutputContract } from "../agents/coordination/ports/output-contract.ts";
import type { OwnerTurns } from "../agents/coordination/runtime/environment/owner-turns.ts";
import type { WithheldTexts } from "../agents/coordination/runtime/environment/withheld-texts.ts";
import type { GateDependencies } from "../agents/coordination/runtime/environment/gate-dependencies.ts";
import type { AnswerCheck } from "../infra/webhook/answer-check.ts";
import { createChannelFinder, createWebhookAnswerCheck, type TakeChannelAnswer } from "./channels.ts";
import type { HookHost } from "./hooks/hook-host.ts";
import type { CoordinationView } from "../agents/coordination/runtime/log/coordination-view.ts";
import {
  createCoordinator,
  type Coordinator,
  type CoordinatorDependencies,
} from "../agents/coordination/runtime/coordinator.ts";
import { startDailyPruning } from "../agents/coordination/runtime/prune-regularly.ts";
import type { PolicyBook } from "../agents/coordination/runtime/environment/policy-rules.ts";
import type { PlanSnapshot } from "../agents/coordination/runtime/log/plan-snapshot.ts";
import type { UsageBook } from "../agents/coordination/runtime/usage/usage-book.ts";
import { maskText, type Secrets } from "../agents/coordination/runtime/workflow-host/records/mask-secrets.ts";
import { createSpawnGate } from "../agents/coordination/runtime/spawns/spawn-gate.ts";
import { steadyClock } from "../infra/clock/steady-clock.ts";
import { systemClock, unshiftedClock } from "../infra/clock/system-clock.ts";
import { createRealFiles } from "../infra/files/real-files.ts";
import { createPQueueLanes } from "../infra/lanes/p-queue-lanes.ts";
import { createPinoLogger } from "../infra/log/pino-logger.ts";
import { readOrCreateKey } from "../infra/tokens/key-file.ts";
import { openGatewayLedger, type GatewayLedger } from "./gateway-ledger.ts";
import type { LedgerReader } from "./ledger-reader.ts";
import { nameMachineOfFiles } from "./ledger-setting.ts";
import type { NoteAppend } from "./metrics/time-appends.ts";
import { createOnceLoader } from "../agents/coordination/std/load-once.ts";
import { createRuntimeSettings } from "./runtime-settings.ts";
import { readPackageVersion } from "../platform/package-files.ts";

export { systemClock, unshiftedClock };

export interface RunningCoordinator extends Coordinator {
  /** Whether an answer that came by webhook is one. */
  readonly signedAnswers: () => Promise<AnswerCheck>;
  /** Reading what the ledger says, without changing it. */
  readonly reads: Pick<
    LedgerReader,
    "list" | "entry" | "findUnproven" | "get" | "getMany" | "claims" | "holders" | "read" | "findRuns"
  > &
    Pick<LedgerReader, "pruned" | "newestPosition"> &
    GatewayPlace & {
      /** `undefined` for a coordination that the ledger does not know. */
      view(coordinationId: CoordinationId): Promise<CoordinationView | undefined>;
    };
  /** The runs of workflows in the same ledger, until it closes. One connection has one queue of writes and no locks against itself. */
  readonly workflows: WorkflowStore;
  /** How far exports of the ledger's events came, until it closes. */
  readonly exports: ExportCursors;
  /** The load of each lane of this process. */
  readonly laneMetrics: () => Readonly<Record<Lane, LaneMetrics>>;
  /** Stops the loop, waits for what is under way and closes the ledger. */
  close(): Promise<void>;
}

/** The ledger of a gateway, and what the gateway is called there. */
export interface LedgerLocation {
  /** The ledger in the state folder, whether it is used or not: keys and worktrees lie beside it. */
  readonly ledgerPath: string;
  /** The path or the URL of the ledger that is used. */
  readonly place: string;
  /** The name of this gateway in a ledger that others use, too. */
  readonly gateway: string;
}

export interface ComposeOptions extends LedgerLocation, Pick<CoordinatorDependencies, "beganAtMs"> {
  readonly config: Phase1Config;
  /** Taken out of what agents write for people. */
  readonly secrets: Secrets;
  /** Packs that hold for single agents, channels or sessions. Absent: there are none. */
  readonly policies?: PolicyBook;
  readonly observer: SpawnObserver;
  /** Runners of the host. Programs that speak ACP over stdio are run from here. */
  readonly runners: Readonly<Record<"subagent" | "owner", AgentRunner>>;
  /** Hears of everything that is appended to a coordination. */
  readonly onAppended?: (runId: CoordinationId) => void;
  /** Hears of the events themselves, and whose coordination they are of. */
  readonly onEvents?: (events: readonly RunEvent[], ownerSession: SessionKey) => void;
  /** Hears how long each append took; absent: nobody measures. */
  readonly noteAppend?: NoteAppend;
  /** Hears once why nothing is coordinated here any more: another process is this gateway now, or a newer release has the ledger. */
  readonly onReplaced: (failure: CoordinationError) => void;
  /** Aborted when the gateway stops: then the ledger is not waited for any more. */
  readonly signal?: AbortSignal;
  /** Hears of every change of a plan. */
  readonly onPlan: (snapshot: PlanSnapshot) => void;
  readonly workspaceOf: (agent: AgentId) => string;
  /** The folder from which an agent of the host takes relative paths. */
  readonly workingFolderOf: (agent: AgentId) => string;
  readonly logger: Logger;
  /** Hooks that other plugins registered. */
  readonly hooks: HookHost;
  /** Absent: steps begin whatever their providers answer. */
  readonly providers?: ProviderLanes;
  /** For critics. */
  readonly model: ModelClient;
  /** Texts that were kept back, over reloads. */
  readonly withheld: WithheldTexts;
  /** Keeps what model calls used, over reloads. */
  readonly usage: UsageBook;
  /** The turns that are under way, over reloads. */
  readonly turns: OwnerTurns;
  /** The host's own ways to people. */
  readonly channels: Readonly<Record<"host" | "chat", HumanChannel>>;
  /** Takes the answers that come through channels, also when this coordinator is closed: people answer later. */
  readonly takeAnswer: TakeChannelAnswer;
  /** Ends what shows coordinations elsewhere, before the coordinator stops and the ledger closes. */
  readonly stopShowing: () => Promise<void>;
}

/** @throws CoordinationError as `openGatewayLedger` does. */
export async function composeCoordinator(options: ComposeOptions): Promise<RunningCoordinator> {
  const { ledgerPath, config, observer, logger } = options;
  const clocks = { clock: systemClock, steady: steadyClock };
  const { store, shared } = await openGatewayLedger({ ...options, ...clocks, settings: config.gateway });
  const acp = createLazyAcpRunner(options);
  const lanes = createPQueueLanes(config.lanes, systemClock, options.providers);
  const contract = createOnceLoader(loadOutputContract);
  const onReplaced = (failure: CoordinationError): void => {
    options.onReplaced(failure);
    // Nobody drives the agents any more, however long it takes to stop the rest.
    void Promise.allSettled([coordinator.stop(), acp.close()]);
  };
  const coordinator: Coordinator = createCoordinator({
    ...composeGates(options, contract),
    store,
    contract,
    logger,
    lanes,
    withheld: options.withheld,
    usage: options.usage,
    turns: options.turns,
    ...createLimits(options),
    ...(options.beganAtMs && { beganAtMs: options.beganAtMs }),
    hooks: options.hooks,
    content: store,
    ...(shared && { shared: { ...shared, onReplaced } }),
    runner: observer,
    runners: { ...options.runners, acp_stdio: acp.runner },
    onPlan: options.onPlan,
    runnerOf: createRunnerChooser(config),
    worktrees: createLazyWorktrees(`${dirname(ledgerPath)}-worktrees`),
    folderOf: createFolderFinder(options),
    files: createRealFiles(undefined, nameMachineOfFiles(options.place, config.gateway)),
    textMerge: createOnceLoader(loadTextMerge),
    conflicts: config.conflicts,
    privileges: config.privileges,
    refOf: createContentRef,
    clock: systemClock,
    gate: createSpawnGate({ clock: systemClock, limits: config.lanes }),
    settings: createRuntimeSettings(config, shared),
    newCoordinationId: () => `co-${randomUUID()}` as CoordinationId,
  });
  const { keepDays } = config.ledger;
  const pruning = startDailyPruning({ ledger: store, keepDays, clock: systemClock, logger });
  const close = async (): Promise<void> => {
    await options.stopShowing();
    await pruning?.stop();
    await stopAndCloseLedger(coordinator, acp, store);
  };
  const { gateway, movedFrom } = shared ?? {};
  return {
    ...coordinator,
    ...maskAgentWords(coordinator, options.secrets),
    reads: { ...createLedgerReads(store, coordinator), gateway, movedFrom },
    workflows: store.workflows,
    exports: store.exports,
    laneMetrics: () => lanes.metrics(),
    signedAnswers: createOnceLoader(() => createAnswerCheck(config)),
    close,
  };
}

function createAnswerCheck({ escalations }: ComposeOptions["config"]): Promise<AnswerCheck> {
  return createWebhookAnswerCheck(escalations.webhooks, SURROUNDINGS);
}

const loadTextMerge = async () => (await import("../infra/merge/format-merge.ts")).createFormatMerge();

function maskAgentWords(coordinator: Coordinator, secrets: Secrets): Pick<Coordinator, "ask" | "admitSpawn"> {
  // A mask may be longer than its secret.
  const maskQuestion = (text: string): string => maskText(text, secrets).slice(0, BOUNDS.questionCharsMax);
  return {
    ask: ({ question, options, otherwise, ...rest }) =>
      coordinator.ask({
        ...rest,
        question: maskQuestion(question),
        ...(options && { options: options.map(maskQuestion) }),
        ...(otherwise !== undefined && { otherwise: maskQuestion(otherwise) }),
      }),
    admitSpawn: ({ spawn, ...rest }) => {
      const { name } = spawn;
      if (name === undefined) return coordinator.admitSpawn({ ...rest, spawn });
      const masked = maskText(name, secrets).slice(0, BOUNDS.nameCharsMax);
      return coordinator.admitSpawn({ ...rest, spawn: { ...spawn, name: masked } });
    },
  };
}

/** Stops the loop, ends the ACP agents, which nobody drives then, and closes the ledger. */
async function stopAndCloseLedger(
  coordinator: Coordinator,
  acp: ReturnType<typeof createLazyAcpRunner>,
  store: GatewayLedger["store"],
): Promise<void> {
  try {
    await coordinator.stop();
  } finally {
    try {
      await acp.close();
    } finally {
      await store.close();
    }
  }
}

async function loadOutputContract(): Promise<OutputContract> {
  return (await import("../infra/json-schema/ajv-output-contract.ts")).createAjvOutputContract();
}

function createRunnerChooser({ acpAgents }: Phase1Config): CoordinatorDependencies["runnerOf"] {
  const programs = new Set(Object.keys(acpAgents).map((id) => id.trim().toLowerCase()));
  return (agent) => (programs.has(agent) ? "acp_stdio" : "subagent");
}

function createContentRef(text: string): ReturnType<CoordinatorDependencies["refOf"]> {
  return { sha256: hash("sha256", text), bytes: Buffer.byteLength(text) };
}

function createLimits({ config, policies }: ComposeOptions): Partial<CoordinatorDependencies> {
  const budget = createTreeBudget(config.budget);
  return { ...(budget && { budget }), ...(policies && { policies }) };
}

function createLedgerReads(store: LedgerReader, coordinator: Coordinator): RunningCoordinator["reads"] {
  return {
    list: (query) => store.list(query),
    entry: (runId) => store.entry(runId),
    findUnproven: (runId) => store.findUnproven(runId),
    get: (sha256) => store.get(sha256),
    getMany: (sha256s) => store.getMany(sha256s),
    claims: (query) => store.claims(query),
    holders: (name, limit) => store.holders(name, limit),
    read: (runId, range) => store.read(runId, range),
    findRuns: (query) => store.findRuns(query),
    newestPosition: () => store.newestPosition(),
    pruned: store.pruned,
    view: (coordinationId) => coordinator.view(coordinationId),
  };
}

const SURROUNDINGS = { clock: systemClock, readVariable: (name: string) => process.env[name] };

/** Composes what gates and questions need, and the listeners for every event. */
function composeGates(
  options: ComposeOptions,
  contract: () => Promise<OutputContract>,
): GateDependencies & Pick<CoordinatorDependencies, "onAppended"> {
  const { config, hooks, model, logger, channels, takeAnswer, onAppended, onEvents } = options;
  const { gates, escalations, truth } = config;
  return {
    gates,
    escalations,
    truth,
    verifier: createOnceLoader(async () =>
      (await import("../infra/verify/create-verifier.ts")).createVerifier({
        contract,
        logger,
        model,
        workspaceOf: createFolderFinder(options),
        clock: systemClock,
      }),
    ),
    pluginGates: {
      verifiersFor: (agentId) => hooks.verifiersFor(agentId),
      verify: (request) => hooks.verify(request, request.key),
      channels: () => hooks.channels(),
    },
    channelOf: createChannelFinder({
      ...SURROUNDINGS,
      escalations,
      hooks,
      logger,
      takeAnswer,
      ofHost: channels,
    }),
    onAppended: (events, ownerSession) => {
      onEvents?.(events, ownerSession);
      if (hooks.hasAny("observe")) hooks.observe(events);
      const [first] = events;
      if (first) onAppended?.(first.runId);
    },
  };
}

function createFolderFinder({
  config: { acpAgents },
  workspaceOf,
  workingFolderOf,
}: ComposeOptions): (agent: AgentId) => string {
  const programs = new Map(Object.entries(acpAgents).map(([id, agent]) => [id.trim().toLowerCase(), agent]));
  return (agent) => {
    const program = programs.get(agent);
    return program ? resolve(program.cwd ?? workspaceOf(agent)) : workingFolderOf(agent);
  };
}

function createLazyWorktrees(root: string): Worktrees {
  const load = createOnceLoader(async () =>
    (await import("../infra/git/git-worktrees.ts")).createGitWorktrees({ root, clock: systemClock }),
  );
  return {
    findObstacle: async (folder) => (await load()).findObstacle(folder),
    open: async (name, folder, attempt, merged) => (await load()).open(name, folder, attempt, merged),
    list: async () => (existsSync(root) ? (await load()).list() : []),
    forget: async (name) => (await load()).forget(name),
    compare: async (worktree) => (await load()).compare(worktree),
    texts: async (worktree, path) => (await load()).texts(worktree, path),
    versionOf: async (worktree, file) => (await load()).versionOf(worktree, file),
    write: async (worktree, write) => (await load()).write(worktree, write),
    keep: async (worktree) => (await load()).keep(worktree),
    remove: async (name) => (await load()).remove(name),
  };
}

/** The protocol's library is loaded with the first step that needs it, or to end what an earlier process left running. */
function createLazyAcpRunner({ config, workspaceOf, logger, ledgerPath }: ComposeOptions): {
  readonly runner: AgentRunner;
  close(): Promise<void>;
} {
  let made: ReturnType<typeof make> | undefined;
  const notesFolder = join(dirname(ledgerPath), "acp-agents");
  const make = async () => {
    const { createAcpRunner: acpRunner } = await import("../infra/acp/acp-runner.ts");
    return acpRunner({
      agents: Object.fromEntries(
        Object.entries(config.acpAgents).map(([id, agent]) => [id.trim().toLowerCase(), agent]),
      ),
      defaultCwd: workspaceOf,
      clock: systemClock,
      logger,
      programVersion: readPackageVersion(),
      notesFolder,
    });
  };
  const loadRunner = createOnceLoader(() => (made = make()));
  // Whoever needs the runner hears why it cannot be loaded.
  if (existsSync(notesFolder)) void loadRunner().catch(() => undefined);
  let closed = false;
  return {
    runner: {
      start: async (order) =>
        closed ? { kind: "refused", message: "the gateway is stopping" } : (await loadRunner()).start(order),
      observe: async (attempt) => (await loadRunner()).observe(attempt),
      follow: async (attempt, signal) => (await loadRunner()).follow(attempt, signal),
      cancel: async (attempt) => (await loadRunner()).cancel(attempt),
    },
    close: async () => {
      closed = true;
      await (await made?.catch(() => undefined))?.close();
    },
  };
}

export function createDebugLogger(destination: { write(line: string): void }): Logger {
  return createPinoLogger({ level: "debug", destination });
}

/** Returns the key that makes the names of texts that are kept back. @throws CoordinationError as `readOrCreateKey` does */
export function readOrCreateWithheldKey(ledgerPath: string): Uint8Array {
  return readOrCreateKey(join(dirname(ledgerPath), "withheld-key"));
}
