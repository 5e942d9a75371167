/**
 * Owns: valid appends, made by the real core, and a coordinator over a store with a host that is not there.
 */
import { hash } from "node:crypto";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type {
  AgentId,
  CoordinationId,
  EpochMs,
  SessionKey,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Observation } from "../../src/agents/coordination/contracts/observation.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import { listClaimChanges } from "../../src/agents/coordination/ledger/claim-changes.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { createUnopenedCoordination, type Coordination } from "../../src/agents/coordination/ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../../src/agents/coordination/ledger/summary.ts";
import type { SpawnObserver } from "../../src/agents/coordination/ports/spawn-observer.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { ContentInput, ContentStore } from "../../src/agents/coordination/ports/content-store.ts";
import type { AppendRequest, LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { Logger } from "../../src/agents/coordination/ports/logger.ts";
import type { SpawnRequest } from "../../src/agents/coordination/runtime/spawns/admit-spawn.ts";
import type { AgentRunner } from "../../src/agents/coordination/ports/agent-runner.ts";
import { createCoordinator, type Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { TreeBudget } from "../../src/agents/coordination/contracts/usage.ts";
import type { UsageBook } from "../../src/agents/coordination/runtime/usage/usage-book.ts";
import type { RuntimeSettings } from "../../src/agents/coordination/runtime/environment/runtime-dependencies.ts";
import { createSpawnGate } from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { createPQueueLanes, type LaneLimits } from "../../src/infra/lanes/p-queue-lanes.ts";
import { planDependencies } from "./plan-dependencies.ts";
import { createScriptedRunner } from "./scripted-runner.ts";
import { TEST_EPOCH_MS } from "./temp-ledger.ts";
import { createArbitrationDependencies } from "./arbitration-dependencies.ts";
import { createGateDependencies, type GivenGates } from "./gate-dependencies.ts";
import type { ConflictsConfig } from "../../src/agents/coordination/contracts/config/config.ts";

export const OWNER = "agent:main:main" as SessionKey;
export const AGENT = "main" as AgentId;

export function runIdOf(name: string | number): CoordinationId {
  return `co-${name}` as CoordinationId;
}

export function contentOf(text: string): ContentInput {
  return { ref: { sha256: hash("sha256", text), bytes: Buffer.byteLength(text) }, text };
}

export function openingOf(traceId: string, ownerSession: SessionKey = OWNER): Command {
  return {
    type: "openCoordination",
    origin: "observed",
    ownerSession,
    ownerAgent: AGENT,
    objective: contentOf(`objective of ${traceId}`).ref,
    trace: { traceId },
    failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    settleMs: 1_000,
    acknowledgeMs: 30_000,
  };
}

export function spawnOf(call: string): Command {
  return {
    type: "admitSpawn",
    runner: "subagent",
    agentId: AGENT,
    collect: false,
    sourceSession: OWNER,
    input: contentOf(`task of ${call}`).ref,
    timeoutMs: 600_000,
    call: { toolCallId: call, runId: "host-run" },
  };
}

export function nameChildSession(name: string | number): SessionKey {
  return `agent:main:subagent:${name}` as SessionKey;
}

/** One coordination's log as it grows; each call yields the append of what the core decided. */
export interface Author {
  readonly runId: CoordinationId;
  readonly state: Coordination;
  /** The newest state: a writer that lost a race starts again from here. */
  append(...commands: Command[]): AppendRequest;
  /** As `append`, but the author forgets it: what a writer that loses a race has prepared. */
  propose(...commands: Command[]): AppendRequest;
}

export function createAuthor(name: string | number, { from }: { readonly from?: Coordination } = {}): Author {
  const runId = runIdOf(name);
  const atMs = TEST_EPOCH_MS as EpochMs;
  let state: Coordination = from ?? createUnopenedCoordination(runId);
  const write = (commands: readonly Command[]): { request: AppendRequest; after: Coordination } => {
    const events: RunEvent[] = [];
    let after = state;
    for (const command of commands) {
      const decision = decide(after, command, atMs);
      if (decision.kind !== "accepted") throw new Error(`the fixture's ${command.type} was ${decision.kind}`);
      const recorded = recordFacts(after, decision.facts, atMs);
      events.push(...recorded.events);
      after = recorded.state;
    }
    if (after.kind === "unopened") throw new Error("open the coordination first");
    const references = events.flatMap(listEventReferences);
    const claims = events.flatMap(listClaimChanges);
    const summary = summarizeCoordination(after);
    return { request: { runId, events, summary, references, contents: [], claims }, after };
  };
  return {
    runId,
    get state() {
      return state;
    },
    append: (...commands) => {
      const { request, after } = write(commands);
      state = after;
      return request;
    },
    propose: (...commands) => write(commands).request,
  };
}

/** An author whose first append opens the coordination and admits one spawn. */
export function openRun(name: string | number): { author: Author; request: AppendRequest } {
  const writer = createAuthor(name);
  return { author: writer, request: writer.append(openingOf(`trace-${name}`), spawnOf(`call-${name}`)) };
}

export const quietLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** A host that cannot be asked, unless told otherwise. */
export function createSilentRunner(observation: Observation = { kind: "unknown" }): SpawnObserver {
  return {
    observe: () => Promise.resolve(observation),
    bind: () => Promise.resolve(),
    stop: () => Promise.resolve("unreachable"),
  };
}

export const TEST_SETTINGS: RuntimeSettings = {
  escalateMs: 3_600_000,
  agingMs: 60_000,
  stepTimeoutMs: 600_000,
  settleMs: 1_000,
  acknowledgeMs: 30_000,
  sweepMs: 60_000,
  parentCharsMax: 16_000,
  contentMs: 7 * 24 * 3_600_000,
};

export interface TestCoordinatorDependencies {
  readonly store: LedgerStore & ContentStore;
  readonly clock: Clock;
  readonly newCoordinationId: () => CoordinationId;
  readonly runner?: SpawnObserver;
  readonly settings?: Partial<RuntimeSettings>;
  /** Runners of the steps of plans. */
  readonly plans?: AgentRunner;
  readonly conflicts?: Partial<ConflictsConfig>;
  /** The folder in which all agents work. */
  readonly workspace?: string;
  readonly gates?: GivenGates;
  readonly usage?: UsageBook;
  readonly budget?: TreeBudget;
}

const LANES: LaneLimits = { control: 4, data: 8, escalation: 1, queueMax: 256, agingMs: 60_000 };

export function testCoordinator(dependencies: TestCoordinatorDependencies): Coordinator {
  const { store, clock, newCoordinationId, runner = createSilentRunner(), settings } = dependencies;
  const { plans = createScriptedRunner(), conflicts, workspace, gates, usage, budget } = dependencies;
  return createCoordinator({
    store,
    content: store,
    runner,
    clock,
    newCoordinationId,
    logger: quietLogger,
    ...planDependencies(plans),
    ...createArbitrationDependencies(conflicts, workspace),
    ...createGateDependencies(gates),
    lanes: createPQueueLanes(LANES, clock),
    gate: createSpawnGate({ clock, limits: { spawnsMax: 10_000 } }),
    settings: { ...TEST_SETTINGS, ...settings },
    ...(usage && { usage }),
    ...(budget && { budget }),
  });
}

export interface SpawnOptions {
  readonly call: string;
  readonly trace: string;
  readonly source?: SessionKey;
}

/** A spawn as the host's hook hands it over. */
export function spawnRequest({ call, trace, source = OWNER }: SpawnOptions): SpawnRequest {
  return {
    sourceSession: source,
    sourceAgent: AGENT,
    traceId: trace,
    spawn: {
      runner: "subagent",
      agentId: AGENT,
      collect: false,
      call: { toolCallId: call, runId: `run-${trace}`, spanId: "00f067aa0ba902b7" },
    },
    input: contentOf(`task of ${call}`),
    objective: contentOf(`objective of ${trace}`),
  };
}
