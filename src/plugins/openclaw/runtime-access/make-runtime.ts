/** Owns: building the shared runtime from the host's API and the operator's config. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { TakeChannelAnswer } from "../../channels.ts";
import { createOpenOnce } from "../../open-once.ts";
import { createPolicyBook } from "../../policy-book.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { ProviderLanes } from "../../../agents/coordination/ports/provider-use.ts";
import {
  parsePluginConfig,
  parseRuledConfigs,
  type Phase1Config,
} from "../../../agents/coordination/contracts/config/config.ts";
import {
  composeCoordinator,
  readOrCreateWithheldKey,
  systemClock,
  unshiftedClock,
  type ComposeOptions,
  type LedgerLocation,
  type RunningCoordinator,
} from "../../compose.ts";
import { collectGatewaySecrets } from "../../known-secrets.ts";
import { createHealthSink, isReportedByAnother, readHealthBeside } from "../../ledger-reader.ts";
import { findLedgerPlace, joinLedgerPath, nameGateway } from "../../ledger-setting.ts";
import { readPackageVersion } from "../../../platform/package-files.ts";
import { createFlowMirror } from "../runners/flow-mirror.ts";
import { createChatChannel } from "../runners/chat-channel.ts";
import { createProviderLanes } from "../../../agents/coordination/runtime/providers/provider-lanes.ts";
import { isStrictGate } from "../../../agents/coordination/ledger/withheld-words.ts";
import { buildGate } from "../../../agents/coordination/runtime/held-results/gate-of.ts";
import { waitWithin } from "../../../agents/coordination/std/wait-for.ts";
import { createHookHost, type HookHost } from "../../hooks/hook-host.ts";
import { accessObserverQueues } from "../../hooks/observers.ts";
import { accessGateMemory } from "./gate-memory.ts";
import { createCompactions } from "../host/compactions.ts";
import { accessOwnerTurns } from "./turns-memory.ts";
import { accessUsageBook } from "./usage-memory.ts";
import { createEventTeller } from "../host/host-event-stream.ts";
import { createApprovalChannel } from "../host/host-approval.ts";
import { createHostModel } from "../host/host-model.ts";
import { createHealthRecord } from "../host/health-record.ts";
import { createDefaultAgentFinder, createHostNames } from "../host/host-names.ts";
import { hashConfig } from "../host/operator-config.ts";
import { createHostLogger } from "../host/host-logger.ts";
import { readTranscript } from "../host/host-runs.ts";
import { createOpenWopFace } from "../openwop/openwop-face.ts";
import { createPageFace } from "../page/page-face.ts";
import { createMetricsFace } from "./create-metrics-face.ts";
import { createTelemetryFace } from "./create-telemetry-face.ts";
import { createSpawnObserver } from "../runners/host-runner.ts";
import { createOwnerRunner } from "../runners/owner-runner.ts";
import { createRecentMap } from "../../../agents/coordination/std/recent.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { accessNarrowedSince } from "./narrowed-spawns.ts";
import {
  withRuntime,
  type ChildAtWork,
  type RuntimeFaces,
  type PendingSpawn,
  type SharedRuntime,
} from "./shared-runtime.ts";
import { createShowPlan } from "../runners/show-plan.ts";
import { createSubagentRunner } from "../runners/subagent-runner.ts";
import { CHILD_TOOLS } from "../declarations/tool-declarations.ts";
import {
  createAssignedFolderMap,
  createWorkingFolderFinder,
  findAgentFolder,
  findAgentWorkspace,
  type AssignedFolders,
} from "../host/working-folder.ts";

/** Spawns between their two hooks at once, and sessions whose newest request is remembered. */
const PENDING_SPAWNS_MAX = 10_000;
const REQUESTS_MAX = 1_000;
const CHILDREN_MAX = 1_000;

/**
 * Creates the plugin's runtime from its configuration; the ledger is opened when the coordinator is first asked for.
 * @throws CoordinationError `CONFIG_INVALID`
 */
export function makeRuntime(api: OpenClawPluginApi): SharedRuntime {
  const config = parsePluginConfig(api.pluginConfig);
  const ruled = parseRuledConfigs(api.pluginConfig);
  const policies = ruled.size > 0 ? createPolicyBook(config, ruled) : undefined;
  const logger = createHostLogger(api.logger);
  const ledger = locateLedger(api, config);
  const runner = createSpawnObserver(api.runtime, logger);
  const hooks = createHookHost({ clock: systemClock, logger, observerQueues: accessObserverQueues() });
  const assignedFolders = createAssignedFolderMap();
  const providers = createProvidersIfEnabled(config, logger);
  const stopping = new AbortController();
  const start = async (): Promise<RunningCoordinator> => {
    const coordinator = await composeForHost(api, {
      ...ledger,
      config,
      ...(policies && { policies }),
      logger,
      hooks,
      ...(providers && { providers }),
      observer: runner,
      assignedFolders,
      onEvents: createEventTeller(api, logger),
      onReplaced: (failure) => opened.refuse(health.replaced(failure)),
      signal: stopping.signal,
      ...(faces.openwop && { onAppended: faces.openwop.appended }),
      metrics: faces.metrics,
    });
    // Recovery asks the host about every open step; spawns need not wait for it.
    void coordinator.start();
    return coordinator;
  };
  const opened = createOpenOnce(start, createStoppedError);
  const health = createGatewayHealth(api, () => (opened.isClosed() ? undefined : hashConfig(config)));
  const faces = createFaces(api, { ...ledger, config, logger, coordinator: opened.get });
  return {
    hooks,
    ...collectRules([config, ...ruled.values()], hooks),
    ...(policies && { policies }),
    findDefaultAgent: createDefaultAgentFinder(api),
    config,
    logger,
    ledger,
    runner,
    ...(providers && { providers }),
    health,
    ...createHookMemory(),
    folderOf: createWorkingFolderFinder(api.runtime, assignedFolders),
    ...createHostReads(api, logger),
    coordinator: opened.get,
    get closed() {
      return opened.isClosed();
    },
    ...faces,
    close: async () => {
      // First, because faces that were asked for something wait for the ledger, too.
      stopping.abort();
      await closeFaces(faces);
      providers?.stop();
      await opened.close();
    },
  };
}

/** Creates the reading of the host's transcripts, compactions and names. */
function createHostReads(
  api: OpenClawPluginApi,
  logger: Logger,
): Pick<SharedRuntime, "readTranscript" | "compactions" | "names"> {
  return {
    readTranscript: (session) => readTranscript(api.runtime, session),
    compactions: createCompactions(api.runtime.agent.session, logger),
    names: createHostNames(api),
  };
}

/** Creates the memory in which hooks leave for later ones what they know of spawns, children and requests. */
function createHookMemory(): Pick<SharedRuntime, "pendingSpawns" | "children" | "requests"> {
  return {
    pendingSpawns: createRecentMap<readonly PendingSpawn[]>(PENDING_SPAWNS_MAX),
    children: createRecentMap<ChildAtWork>(CHILDREN_MAX),
    requests: createRecentMap<string>(REQUESTS_MAX),
  };
}

/**
 * Creates the health record of this gateway, which goes on from what was last written beside the ledger. It needs no
 * valid configuration; without one there is no hash of it to tell.
 */
export function createGatewayHealth(
  api: OpenClawPluginApi,
  readConfigHash: () => string | undefined = () => undefined,
): SharedRuntime["health"] {
  const ledgerPath = joinLedgerPath(api.runtime.state.resolveStateDir());
  return createHealthRecord({
    logger: createHostLogger(api.logger),
    sink: createHealthSink(ledgerPath, readConfigHash),
    ledgerPath,
    before: readHealthBeside(ledgerPath),
    isReportedByAnother: () => isReportedByAnother(ledgerPath),
    now: Date.now,
  });
}

/** Returns which ledger is used, the one in the state folder, beside which keys lie, and the gateway's name. */
function locateLedger({ runtime }: OpenClawPluginApi, config: Phase1Config): LedgerLocation {
  const stateDir = runtime.state.resolveStateDir();
  return {
    ledgerPath: joinLedgerPath(stateDir),
    place: findLedgerPlace(config.ledger, { stateDir, readVariable: (name) => process.env[name] }),
    gateway: nameGateway(config.gateway.id, stateDir),
  };
}

interface FaceDependencies extends LedgerLocation {
  readonly config: Phase1Config;
  readonly logger: Logger;
  readonly coordinator: () => Promise<RunningCoordinator>;
}

function createOpenWopIfEnabled(
  { runtime }: OpenClawPluginApi,
  dependencies: FaceDependencies,
): SharedRuntime["openwop"] {
  if (!dependencies.config.openwop.enabled) return undefined;
  return createOpenWopFace({ ...dependencies, runtime, version: readPackageVersion() });
}

function createPageIfEnabled(
  { runtime }: OpenClawPluginApi,
  dependencies: FaceDependencies,
  openwop: SharedRuntime["openwop"],
): SharedRuntime["page"] {
  if (!dependencies.config.page.enabled) return undefined;
  return createPageFace({
    ...dependencies,
    ...(openwop && { workflows: openwop.controls }),
    hostConfig: () => runtime.config.current(),
    version: readPackageVersion(),
  });
}

function createMetricsIfEnabled({ config, ...dependencies }: FaceDependencies): SharedRuntime["metrics"] {
  return config.metrics.enabled ? createMetricsFace(dependencies) : undefined;
}

function createTelemetryIfEnabled({ config, ...dependencies }: FaceDependencies): SharedRuntime["telemetry"] {
  const { telemetry: settings } = config;
  return settings.enabled ? createTelemetryFace({ ...dependencies, settings }) : undefined;
}

function createFaces(api: OpenClawPluginApi, dependencies: FaceDependencies): RuntimeFaces {
  const openwop = createOpenWopIfEnabled(api, dependencies);
  const page = createPageIfEnabled(api, dependencies, openwop);
  const metrics = createMetricsIfEnabled(dependencies);
  const telemetry = createTelemetryIfEnabled(dependencies);
  return {
    ...(openwop && { openwop }),
    ...(page && { page }),
    ...(metrics && { metrics }),
    ...(telemetry && { telemetry }),
  };
}

/** Closes what reads the ledger or has runs in it: telemetry, OpenWOP, the page and metrics. */
async function closeFaces({ openwop, page, metrics, telemetry }: RuntimeFaces): Promise<void> {
  await telemetry?.close();
  await openwop?.close();
  await page?.close();
  await metrics?.close();
}

function createProvidersIfEnabled(
  { lanes: { providers: rules } }: Phase1Config,
  logger: Logger,
): ProviderLanes | undefined {
  if (!rules.enabled) return undefined;
  // A refusal lasts for a span of time, which a clock that is put back must not make hours.
  return createProviderLanes({ clock: unshiftedClock, logger, rules, drawFraction: Math.random });
}

/** Collects the rules of the gateway and of each pack, for where nobody can tell which of them holds. */
function collectRules(
  configs: readonly Phase1Config[],
  hooks: HookHost,
): Pick<SharedRuntime, "gateOfAgent" | "gateRules" | "privilegeRules"> {
  return {
    gateOfAgent: createGateFinder(configs, hooks),
    gateRules: configs.map(({ gates }) => gates),
    privilegeRules: configs.map(({ privileges }) => privileges),
  };
}

/**
 * Creates the function that finds an agent's gate: a strict one under any of the configurations, else that of the
 * first configuration, which may have none.
 */
function createGateFinder(configs: readonly Phase1Config[], hooks: HookHost): SharedRuntime["gateOfAgent"] {
  return (agentId) => {
    const plugins = hooks.verifiersFor(agentId);
    const gates = configs.map(({ gates: rules, truth: { onMismatch } }) =>
      buildGate(rules, { agentId, runner: "subagent", onMismatch, plugins }),
    );
    return gates.find((gate) => gate && isStrictGate(gate)) ?? gates[0];
  };
}

const MIRROR_STOP_MS_MAX = 5_000;

interface HostOptions extends Pick<
  ComposeOptions,
  | "ledgerPath"
  | "place"
  | "gateway"
  | "config"
  | "policies"
  | "logger"
  | "hooks"
  | "providers"
  | "observer"
  | "onAppended"
  | "onEvents"
  | "onReplaced"
  | "signal"
> {
  readonly assignedFolders: AssignedFolders;
  readonly metrics: SharedRuntime["metrics"];
}

/** Composes the coordinator with the host's agents behind it, shown in the host's own list of flows. */
async function composeForHost(
  api: OpenClawPluginApi,
  { assignedFolders, metrics, ...options }: HostOptions,
): Promise<RunningCoordinator> {
  const { runtime } = api;
  const { logger } = options;
  const gateMemory = accessGateMemory();
  gateMemory.key = readOrCreateWithheldKey(options.ledgerPath);
  gateMemory.parentCharsMax = options.config.results.parentCharsMax;
  const mirror = createFlowMirror({
    runtime,
    logger,
    clock: systemClock,
    cancel: async (coordinationId) => {
      await coordinator.cancel({ coordinationId, by: "task_flow" });
    },
  });
  const show = createShowPlan(mirror, (sha256) => coordinator.reads.get(sha256));
  const owner = createOwnerRunner(runtime, { clock: systemClock, logger });
  const hostConfig = runtime.config.current();
  const take = createAnswerTaker(api);
  const coordinator: RunningCoordinator = await composeCoordinator({
    ...options,
    ...(metrics && { noteAppend: await metrics.noteAppend() }),
    secrets: collectGatewaySecrets({ config: options.config, hostConfig, environment: process.env }),
    runners: {
      subagent: createSubagentRunner(runtime, {
        clock: systemClock,
        logger,
        tools: CHILD_TOOLS,
        assignedFolders,
      }),
      owner,
    },
    model: createHostModel(runtime),
    withheld: gateMemory.texts,
    usage: accessUsageBook(),
    turns: accessOwnerTurns(),
    beganAtMs: accessNarrowedSince(),
    channels: {
      host: createApprovalChannel({ pluginId: "coordination", logger, now: () => systemClock.now(), take }),
      chat: createChatChannel(owner, () => systemClock.now()),
    },
    takeAnswer: take,
    workspaceOf: (agent) => findAgentWorkspace(runtime, agent),
    workingFolderOf: (agent) => findAgentFolder(runtime, agent),
    onPlan: show,
    // A host that does not answer about flows must not keep the ledger open.
    stopShowing: () => waitWithin(systemClock, MIRROR_STOP_MS_MAX, mirror.stop(), undefined),
  });
  await metrics?.countFromNow(coordinator.reads);
  return coordinator;
}

/**
 * Creates the function that gives an answer to the runtime that is open then, and returns its refusal if any. A reload
 * may have closed the one that told people of the question.
 */
function createAnswerTaker(api: OpenClawPluginApi): TakeChannelAnswer {
  return async (request, through) => {
    const answered = await withRuntime(api, async (runtime) =>
      (await runtime.coordinator()).answer({ ...request, through }),
    );
    return answered.kind === "refused" ? answered : undefined;
  };
}

function createStoppedError(): CoordinationError {
  return new CoordinationError("LEDGER_CLOSED", "coordination is stopped");
}
