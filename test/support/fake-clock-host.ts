/**
 * Owns: a coordinator with everything outside of it made of values: time, ledger and a host that knows the truth about
 * the children it made.
 */
import type { CoordinationEnvelope } from "../../src/agents/coordination/contracts/envelope.ts";
import type { AgentId, CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { ChildEnding, Observation } from "../../src/agents/coordination/contracts/observation.ts";
import type { SpawnObserver, SpawnQuery } from "../../src/agents/coordination/ports/spawn-observer.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { LaneMetrics, LaneRunner } from "../../src/agents/coordination/ports/lane-runner.ts";
import type { LogFields, Logger } from "../../src/agents/coordination/ports/logger.ts";
import type { SpawnRequest } from "../../src/agents/coordination/runtime/spawns/admit-spawn.ts";
import {
  createWithheldTexts,
  type NameText,
  type WithheldTexts,
} from "../../src/agents/coordination/runtime/environment/withheld-texts.ts";
import type { PolicyBook } from "../../src/agents/coordination/runtime/environment/policy-rules.ts";
import {
  createCoordinator,
  type Coordinator,
  type CoordinatorDependencies,
} from "../../src/agents/coordination/runtime/coordinator.ts";
import type { RuntimeSettings } from "../../src/agents/coordination/runtime/environment/runtime-dependencies.ts";
import { createSpawnGate } from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { createFakeClock, type FakeClock } from "./fake-clock.ts";
import type { FakeWorktrees } from "./fake-worktrees.ts";
import { planDependencies } from "./plan-dependencies.ts";
import { createScriptedRunner, type ScriptedRunner } from "./scripted-runner.ts";
import { createMemoryLedger, type MemoryLedger, type MemoryStore } from "./memory-store.ts";
import { createArbitrationDependencies } from "./arbitration-dependencies.ts";
import { createGateDependencies, type GivenGates } from "./gate-dependencies.ts";

export const OWNER = "agent:main:main" as SessionKey;
export const SETTINGS: RuntimeSettings = {
  parentCharsMax: 16_000,
  stepTimeoutMs: 600_000,
  settleMs: 3_000,
  acknowledgeMs: 30_000,
  sweepMs: 60_000,
  contentMs: 86_400_000,
  escalateMs: 3_600_000,
  agingMs: 60_000,
};

interface HostChild {
  readonly childSessionKey: SessionKey;
  readonly childRunId: string;
  readonly sourceSession: SessionKey;
  readonly sha256: string;
  readonly createdAtMs: number;
  ending?: ChildEnding;
}

/** The host: it makes children, lets them end, and answers truly when asked. */
export interface FakeHost extends SpawnObserver {
  readonly children: Map<SessionKey, HostChild>;
  readonly bound: CoordinationEnvelope[];
  readonly asked: SpawnQuery[];
  spawn(request: Pick<SpawnRequest, "sourceSession" | "input">): HostChild;
  end(childSessionKey: SessionKey, ending: ChildEnding): void;
  /** Replaces what `observe` says. */
  says?: (query: SpawnQuery) => Promise<Observation>;
}

export function createFakeClockHost(clock: Clock): FakeHost {
  const children = new Map<SessionKey, HostChild>();
  const tellTruth = (query: SpawnQuery): Observation => {
    const child = query.childSessionKey
      ? children.get(query.childSessionKey)
      : [...children.values()].find(
          ({ childSessionKey, sourceSession, sha256, createdAtMs }) =>
            !query.taken.has(childSessionKey) &&
            sourceSession === query.sourceSession &&
            sha256 === query.input.sha256 &&
            createdAtMs >= query.dispatchedAtMs,
        );
    if (!child) return { kind: "absent" };
    const { childSessionKey, childRunId, ending } = child;
    return ending
      ? { kind: "ended", childSessionKey, childRunId, ...ending }
      : { kind: "running", childSessionKey, childRunId };
  };
  const host: FakeHost = {
    children,
    bound: [],
    asked: [],
    spawn: ({ sourceSession, input }) => {
      const name = children.size + 1;
      const child: HostChild = {
        childSessionKey: `agent:main:subagent:${name}` as SessionKey,
        childRunId: `child-run-${name}`,
        sourceSession,
        sha256: input.ref.sha256,
        createdAtMs: clock.now(),
      };
      children.set(child.childSessionKey, child);
      return child;
    },
    end: (childSessionKey, ending) => {
      const child = children.get(childSessionKey);
      if (child) child.ending = ending;
    },
    observe: (query) => {
      host.asked.push(query);
      return host.says ? host.says(query) : Promise.resolve(tellTruth(query));
    },
    bind: (envelope) => {
      host.bound.push(envelope);
      return Promise.resolve();
    },
    stop: ({ childSessionKey }) => {
      const child = childSessionKey && children.get(childSessionKey);
      if (!child || child.ending) return Promise.resolve("already_ended");
      child.ending = { outcome: "cancelled" };
      return Promise.resolve("stopped");
    },
  };
  return host;
}

/** Lanes without a limit that know what is under way. */
export function openLanes(): LaneRunner & { readonly underway: Set<Promise<unknown>> } {
  const underway = new Set<Promise<unknown>>();
  const trackWork = async <T>(work: () => Promise<T>): Promise<T> => {
    const running = work();
    underway.add(running);
    try {
      return await running;
    } finally {
      underway.delete(running);
    }
  };
  const none: LaneMetrics = {
    concurrency: 0,
    running: 0,
    waiting: 0,
    queueMax: 0,
    admitted: 0,
    refused: 0,
    waitedMs: { total: 0, max: 0 },
  };
  return {
    underway,
    run: async (_, work) => ({
      kind: "ran",
      value: await trackWork(() => work({ release: () => undefined })),
    }),
    room: () => Infinity,
    onRoom: () => () => undefined,
    heldBackAgents: () => new Set(),
    stopHoldingBack: () => undefined,
    operate: (_, work) => trackWork(work),
    metrics: () => ({ control: none, data: none, escalation: none }),
    idle: async () => {
      await Promise.allSettled(underway);
    },
  };
}

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
}

/** A line with what it is about. */
export interface LoggedLine extends LogLine {
  readonly fields: LogFields;
}

export interface World {
  readonly clock: FakeClock;
  readonly ledger: MemoryLedger;
  readonly host: FakeHost;
  readonly lines: LogLine[];
  /** The same, with what they are about. */
  readonly logged: LoggedLine[];
  readonly settings: RuntimeSettings;
  /** Runners of the steps of plans. */
  readonly plans: ScriptedRunner;
  /** Words of children that the newest process remembers. */
  readonly texts: WithheldTexts;
  /** The packs of single sessions, as the next process finds them. */
  policies: PolicyBook | undefined;
  /** A coordinator as a new process would make it, over a store that `wrap` may spoil. */
  start(
    wrap?: (store: MemoryStore) => MemoryStore,
    outside?: Pick<CoordinatorDependencies, "clock" | "runner" | "budget" | "usage"> & {
      readonly lanes?: LaneRunner;
    },
  ): Coordinator;
}

export function createWorld(
  settings: Partial<RuntimeSettings> = {},
  plans: ScriptedRunner = createScriptedRunner(),
  gates: GivenGates = {},
  worktrees?: FakeWorktrees,
): World {
  const clock = createFakeClock();
  const ledger = createMemoryLedger();
  const host = createFakeClockHost(clock);
  const lines: LogLine[] = [];
  const logged: LoggedLine[] = [];
  const say = (level: LogLine["level"]) => (fields: LogFields, message: string) => {
    lines.push({ level, message });
    logged.push({ level, message, fields });
  };
  const logger: Logger = { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") };
  let opened = 0;
  const all = { ...SETTINGS, ...settings };
  const nameText: NameText = (session, text) => planDependencies(plans).refOf(`${session}\0${text}`).sha256;
  let texts = createWithheldTexts(nameText);
  const world: World = {
    policies: undefined,
    clock,
    ledger,
    host,
    lines,
    logged,
    settings: all,
    plans,
    get texts() {
      return texts;
    },
    start: (wrap = (store) => store, outside = { clock, runner: host }) => {
      const store = wrap(ledger.open(clock));
      texts = createWithheldTexts(nameText);
      const { policies } = world;
      return createCoordinator({
        ...(policies && { policies }),
        store,
        withheld: texts,
        content: store,
        ...planDependencies(plans, worktrees),
        ...createArbitrationDependencies(),
        ...(worktrees && { files: worktrees.files }),
        ...createGateDependencies(gates),
        ...outside,
        logger,
        lanes: outside.lanes ?? openLanes(),
        gate: createSpawnGate({ clock, limits: { spawnsMax: 1_000 } }),
        settings: all,
        newCoordinationId: () => `co-${(opened += 1)}` as CoordinationId,
      });
    },
  };
  return world;
}

export interface SpawnWords {
  readonly task: string;
  readonly trace?: string;
  readonly source?: SessionKey;
  readonly call?: string;
}

export function spawnOf({ task, trace = "trace-1", source = OWNER, call = task }: SpawnWords): SpawnRequest {
  return {
    sourceSession: source,
    sourceAgent: "main" as AgentId,
    traceId: trace,
    spawn: {
      runner: "subagent",
      agentId: "main" as AgentId,
      collect: false,
      call: { toolCallId: call, runId: `run-${trace}` },
    },
    input: textOf(task),
    objective: textOf(`objective of ${trace}`),
  };
}

function textOf(text: string): SpawnRequest["input"] {
  const hex = Buffer.from(text).toString("hex");
  return { ref: { sha256: hex.padEnd(64, "0").slice(-64), bytes: text.length }, text };
}
