/**
 * Owns: the one runtime of this process. Module instances of the plugin share nothing but `globalThis`, and hooks of one
 * coordination reach several of them, before and after reloads.
 *
 * The service owns the runtime: its start makes it, replacing what was there; its stop closes it and leaves a closed
 * runtime behind, so that a late hook of a disabled plugin opens nothing (H1). All truth is in the ledger.
 */
import type {
  AgentId,
  CoordinationId,
  SessionKey,
  StepId,
} from "../../../agents/coordination/contracts/ids.ts";
import type { ChildRun } from "../../../agents/coordination/contracts/fact-fields.ts";
import type { WatchedChild } from "../../../agents/coordination/runtime/spawns/child-watch.ts";
import type { Gate } from "../../../agents/coordination/contracts/verification.ts";
import type { GatesConfig } from "../../../agents/coordination/contracts/config/gates-config.ts";
import type { PrivilegesConfig } from "../../../agents/coordination/contracts/config/privileges-config.ts";
import type { Phase1Config } from "../../../agents/coordination/contracts/config/config.ts";
import { CoordinationError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { PolicyBook } from "../../../agents/coordination/runtime/environment/policy-rules.ts";
import type { SpawnObserver } from "../../../agents/coordination/ports/spawn-observer.ts";
import type { ProviderLanes } from "../../../agents/coordination/ports/provider-use.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { LedgerLocation, RunningCoordinator } from "../../compose.ts";
import type { HookHost } from "../../hooks/hook-host.ts";
import type { FindDefaultAgent, HostNames } from "../host/host-names.ts";
import type { TranscriptMessage } from "../host/host-runs.ts";
import type { HealthRecord } from "../host/health-record.ts";
import type { OpenWopFace } from "../openwop/openwop-face.ts";
import type { PageFace } from "../page/page-face.ts";
import type { MetricsFace } from "./create-metrics-face.ts";
import type { TelemetryFace } from "./create-telemetry-face.ts";
import { runOutsideCalls } from "../host/outside-calls.ts";
import type { CompactionRecords } from "../host/compactions.ts";
import type { RecentMap } from "../../../agents/coordination/std/recent.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import type { WorkingFolders } from "../host/working-folder.ts";

/** The ways by which others reach the runtime, or hear of it. */
export interface RuntimeFaces {
  /** Absent where the operator does not want OpenWOP served. */
  readonly openwop?: OpenWopFace;
  /** Absent where the operator does not want it. */
  readonly page?: PageFace;
  /** Absent where the operator does not want them. */
  readonly metrics?: MetricsFace;
  readonly telemetry?: TelemetryFace;
}

export interface SharedRuntime extends RuntimeFaces {
  readonly config: Phase1Config;
  readonly logger: Logger;
  /** The ledger that is used. Its place may have a password. */
  readonly ledger: LedgerLocation;
  readonly health: HealthRecord;
  readonly runner: SpawnObserver;
  /** Absent where the operator does not want calls held back. */
  readonly providers?: ProviderLanes;
  /** Hooks that other plugins registered. */
  readonly hooks: HookHost;
  /** Returns the gate of an agent that a model spawns, as far as the configuration tells: a strict one where any pack has it. */
  gateOfAgent(agentId: AgentId): Gate | undefined;
  /** The rules on gates: those of the gateway, and of each pack that holds for single sessions. */
  readonly gateRules: readonly GatesConfig[];
  /** The packs that hold for single sessions. Absent: there are none. */
  readonly policies?: PolicyBook;
  /** The operator's bounds on children: those of the gateway, and of each pack that holds for single sessions. */
  readonly privilegeRules: readonly PrivilegesConfig[];
  /** Finds whom the host takes for a spawn that names no agent. */
  readonly findDefaultAgent: FindDefaultAgent;
  /** Spawns between their two hooks, by tool call. */
  readonly pendingSpawns: RecentMap<readonly PendingSpawn[]>;
  /** The folder from which a session's tools take relative paths. */
  readonly folderOf: WorkingFolders;
  /** Reads the newest messages of a session, the oldest first, as the host has them. */
  readTranscript(session: SessionKey): Promise<readonly TranscriptMessage[]>;
  /** Which sessions had their history compacted. */
  readonly compactions: CompactionRecords;
  /** The host's names of models and folders, in one form. */
  readonly names: HostNames;
  /** Children at work, by session; what is forgotten is asked of the ledger before the next run. */
  readonly children: RecentMap<ChildAtWork>;
  /** The newest request to each session, the objective of a coordination that it opens. */
  readonly requests: RecentMap<string>;
  /** Opens the ledger at the first call and again after a failure. @throws CoordinationError */
  coordinator(): Promise<RunningCoordinator>;
  readonly closed: boolean;
  close(): Promise<void>;
}

/** A child at work, as far as it is known. */
export interface ChildAtWork {
  readonly watched: WatchedChild;
  readonly ran: ChildRun;
  /** Names of the tools that its model was offered. */
  readonly toolNames?: readonly string[];
  /** The part of it that is on disk. */
  readonly recorded?: ChildRun;
}

export interface PendingSpawn {
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
}

const KEY = Symbol.for("openclaw-coordination.runtime");

/** A reload replaces the runtime within this time; a hook in between waits for the new one. */
const RELOAD_WAIT_MS = 2_000;
const RELOAD_POLL_MS = 25;

/** Why the service could not start, where all its starts since the newest runtime failed. */
const FAILURE_KEY = Symbol.for("openclaw-coordination.failed-start");

interface StartFailure {
  readonly error: Error;
  /** Since when there is no runtime, over all starts that failed. Nothing that comes later has been recorded. */
  readonly sinceMs: number;
}

interface FailedStarts {
  /** Absent while another start is under way. */
  readonly error?: Error | undefined;
  readonly sinceMs: number;
}

/** The global object, where all instances of the plugin find the shared runtime. */
type RuntimeHolder = { [KEY]?: SharedRuntime; [FAILURE_KEY]?: FailedStarts | undefined };

/** Returns the runtime of this process, open or closed; `undefined` before there is one. */
export function findRuntime(): SharedRuntime | undefined {
  return (globalThis as RuntimeHolder)[KEY];
}

/**
 * Sets why the service could not start, or with `undefined` that it starts. Until it does, whoever needs a runtime is
 * told that.
 */
export function noteStartFailure(error: Error | undefined): void {
  const holder = globalThis as RuntimeHolder;
  const beforeMs = holder[FAILURE_KEY]?.sinceMs ?? Number.POSITIVE_INFINITY;
  const isUnserved = error !== undefined && findRuntime()?.closed !== false;
  holder[FAILURE_KEY] = { error, sinceMs: isUnserved ? Math.min(beforeMs, Date.now()) : beforeMs };
}

/**
 * Returns the error with which the service's newest start failed, and since when nothing is served; `undefined` where
 * it did not fail.
 */
export function findStartFailure(): StartFailure | undefined {
  const failed = (globalThis as RuntimeHolder)[FAILURE_KEY];
  return failed?.error && { error: failed.error, sinceMs: failed.sinceMs };
}

/**
 * Makes `next` the runtime of this process, forgets an earlier failure to start, closes the runtime before and returns
 * it; `undefined` where there was none.
 */
export async function replaceRuntime(next: SharedRuntime): Promise<SharedRuntime | undefined> {
  const previous = findRuntime();
  const holder = globalThis as RuntimeHolder;
  holder[KEY] = next;
  holder[FAILURE_KEY] = undefined;
  await previous?.close();
  return previous;
}

/**
 * Runs `work` on the open runtime, outside of the host's call, and returns its result; waits for a runtime during a
 * reload, and runs `work` once more where a reload closed its runtime meanwhile. In a process whose service never
 * starts, it makes a runtime from `api`. @throws CoordinationError what `work` throws, why the service could not
 * start, or `LEDGER_CLOSED` when the plugin is stopped.
 */
export function withRuntime<T>(
  api: OpenClawPluginApi,
  work: (runtime: SharedRuntime) => Promise<T>,
): Promise<T> {
  // Work that it begins goes on when the hook, tool or method that reached us is over.
  return runOutsideCalls(() => runOnOpenRuntime(api, work));
}

/** Runs `work` on the open runtime, and once more where a reload closed that meanwhile. */
async function runOnOpenRuntime<T>(
  api: OpenClawPluginApi,
  work: (runtime: SharedRuntime) => Promise<T>,
): Promise<T> {
  if (!findRuntime()) await replaceRuntime(await loadRuntime(api));
  const runtime = await waitForOpenRuntime();
  try {
    return await work(runtime);
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "LEDGER_CLOSED") throw error;
    // Closed under the call by a reload: once more on the runtime that replaced it.
    return await work(await waitForOpenRuntime());
  }
}

/**
 * Loads the code of the runtime and returns a new one; only the instance of the plugin that makes it loads the parts
 * it is made of.
 */
export async function loadRuntime(api: OpenClawPluginApi): Promise<SharedRuntime> {
  const { makeRuntime } = await import("./make-runtime.ts");
  return makeRuntime(api);
}

/**
 * Returns the open runtime; waits up to 2 seconds for one while a reload replaces it. @throws CoordinationError why
 * the service could not start, or `LEDGER_CLOSED`
 */
async function waitForOpenRuntime(): Promise<SharedRuntime> {
  // By the clock: a busy process polls rarely, and a hook that the host no longer waits for must begin nothing.
  const untilMs = performance.now() + RELOAD_WAIT_MS;
  for (;;) {
    const runtime = findRuntime();
    if (runtime && !runtime.closed) return runtime;
    const failure = findStartFailure();
    if (failure) throw failure.error;
    if (performance.now() >= untilMs) throw new CoordinationError("LEDGER_CLOSED", "coordination is stopped");
    await new Promise((resolve) => setTimeout(resolve, RELOAD_POLL_MS));
  }
}
