/** Owns: one process of a gateway, made of the real coordinator and lanes over ports that can fail. */
import { hash } from "node:crypto";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Worktrees } from "../../src/agents/coordination/ports/worktrees.ts";
import type { AgentRunner } from "../../src/agents/coordination/ports/agent-runner.ts";
import type { AppendRequest } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { HumanChannel } from "../../src/agents/coordination/ports/human-channel.ts";
import type { OutputContract } from "../../src/agents/coordination/ports/output-contract.ts";
import { createCoordinator, type Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { GateDependencies } from "../../src/agents/coordination/runtime/environment/gate-dependencies.ts";
import {
  createWithheldTexts,
  type WithheldTexts,
} from "../../src/agents/coordination/runtime/environment/withheld-texts.ts";
import { createGatewayOwnerId } from "../../src/agents/coordination/runtime/ownership/gateway-owner.ts";
import { createSpawnGate } from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";
import { createPQueueLanes } from "../../src/infra/lanes/p-queue-lanes.ts";
import type { Ruler } from "../crash/plan-gates.ts";
import { createArbitrationDependencies } from "../support/arbitration-dependencies.ts";
import type { FakeClock } from "../support/fake-clock.ts";
import { SETTINGS } from "../support/fake-clock-host.ts";
import { createGateDependencies } from "../support/gate-dependencies.ts";
import type { MemoryLedger } from "../support/memory-store.ts";
import type { SceneFiles } from "../support/value-files.ts";
import type { Configuration, Setup } from "./moves.ts";
import { callPort, wrapClock, wrapPort, type Life } from "./process-life.ts";
import { findForeignWrite } from "./simulated-processes.ts";
import { slowDown } from "./simulated-worktrees.ts";
import type { SpawnHost } from "./spawn-host.ts";

export const LEASE_MS = 20_000;
export const ORPHAN_MS = 90_000;
export const ESCALATE_MS = 45_000;
export const STEP_TIMEOUT_MS = 60_000;
export const CLAIM_LEASE_MS = 60_000;
export const REVIEW_MS = 30_000;
export const VERIFY_MS = 20_000;
export const NOTICES_AFTER_MS = [0, 20_000];

/** The limits where the schedule says nothing else. */
const LIMITS: NonNullable<Configuration["limits"]> = {
  stepTimeoutMs: STEP_TIMEOUT_MS,
  escalateMs: ESCALATE_MS,
  acknowledgeMs: 5_000,
  settleMs: SETTINGS.settleMs,
  parentCharsMax: SETTINGS.parentCharsMax,
  claimLeaseMs: CLAIM_LEASE_MS,
  reviewMs: REVIEW_MS,
  waitMs: 5_000,
};

export function limitsOf({ limits = LIMITS }: Configuration): NonNullable<Configuration["limits"]> {
  return limits;
}

export interface GatewayInput {
  readonly setup: Setup;
  readonly seed: number;
  readonly name: string;
  /** Tells the processes of a gateway apart. */
  readonly process: string;
  readonly clock: FakeClock;
  readonly ledger: MemoryLedger;
  readonly files: SceneFiles;
  readonly worktrees: Worktrees;
  readonly spawns: SpawnHost;
  readonly agents: AgentRunner;
  readonly ruler: Ruler;
  readonly channel: HumanChannel;
  /** Words that outlived the plugin's parts before; absent: those of a new process. */
  readonly texts?: WithheldTexts | undefined;
  readonly isProcessGone: (process: string) => boolean;
  readonly say: (line: string) => void;
  /** Hears of a broken promise. */
  readonly report: (problem: string) => void;
}

export interface GatewayProcess {
  readonly coordinator: Coordinator;
  /** Words of children that the process remembers. */
  readonly texts: WithheldTexts;
}

let contract: OutputContract | undefined;

export function composeGateway(input: GatewayInput, life: Life): GatewayProcess {
  const { setup, clock, ledger, name, process } = input;
  const store = ledger.open(clock);
  const wrapped = {
    ...wrapPort(life, "read", store),
    append: (request: AppendRequest) =>
      callPort(
        life,
        "append",
        async () => {
          const head = ledger.runs.get(request.runId)?.owner;
          await store.append(request);
          const problem = findForeignWrite(request, head);
          if (problem !== undefined) input.report(problem);
        },
        // As the stores do, which take appends one after the other (S1).
        () => {
          if (request.basis) request.basis.isVoid = true;
        },
      ),
    owners: wrapPort(life, "owners", store.owners),
  };
  const runner = wrapPort(life, "runner", input.agents);
  const heldClock = wrapClock(life);
  const say = (_: unknown, message: string): void => input.say(`${process}: ${message}`);
  const refOf = (text: string) => ({ sha256: hash("sha256", text), bytes: Buffer.byteLength(text) });
  const { perAgentMax } = setup.lanes;
  const limits = limitsOf(setup);
  const texts = input.texts ?? createWithheldTexts((session, text) => refOf(`${session}\0${text}`).sha256);
  let opened = 0;
  const coordinator = createCoordinator({
    store: wrapped,
    content: wrapped,
    clock: heldClock,
    withheld: texts,
    logger: { debug: () => undefined, info: say, warn: say, error: say },
    runner: wrapPort(life, "runner", input.spawns),
    runners: { subagent: runner, acp_stdio: runner, owner: runner },
    contract: () => Promise.resolve((contract ??= createAjvOutputContract())),
    refOf,
    runnerOf: (agent) => (agent === "acp" ? "acp_stdio" : "subagent"),
    worktrees: slowDown(wrapPort(life, "runner", input.worktrees), { ...input, life }),
    ...createArbitration(input),
    ...createGates(input, life),
    lanes: createPQueueLanes(
      {
        control: 1,
        data: setup.lanes.concurrency,
        escalation: 1,
        queueMax: setup.lanes.queueMax,
        agingMs: 60_000,
        ...(perAgentMax !== undefined && { perAgentMax }),
      },
      heldClock,
    ),
    gate: createSpawnGate({ clock, limits: { spawnsMax: 1_000 } }),
    settings: {
      ...SETTINGS,
      stepTimeoutMs: limits.stepTimeoutMs,
      acknowledgeMs: limits.acknowledgeMs,
      escalateMs: limits.escalateMs,
      settleMs: limits.settleMs,
      parentCharsMax: limits.parentCharsMax,
      ...(perAgentMax !== undefined && { perAgentMax }),
      ...(setup.gateways > 1 && { gateway: name }),
    },
    newCoordinationId: () => `co-${process}-${(opened += 1)}` as CoordinationId,
    ...(setup.spawnsMax !== undefined && { budget: { spawns: setup.spawnsMax } }),
    ...(setup.gateways > 1 && { shared: createShared(input) }),
  });
  return { coordinator, texts };
}

function createShared({ name, process, clock, say, isProcessGone }: GatewayInput) {
  return {
    gateway: name,
    owner: { id: createGatewayOwnerId(name, process), process },
    steady: clock.steady,
    leaseMs: LEASE_MS,
    orphanMs: ORPHAN_MS,
    onReplaced: () => say(`${process} was replaced`),
    isProcessGone,
  };
}

function createArbitration({ setup, files }: GatewayInput) {
  const { conflicts } = setup;
  const { claimLeaseMs, reviewMs, waitMs } = limitsOf(setup);
  return {
    ...createArbitrationDependencies(
      {
        leaseMs: claimLeaseMs,
        reviewMs,
        waitMs,
        ...conflicts,
        highRisk: ["**/risky.md"],
        overrides: [{ resource: "**/merge.md", strategy: "merge_if_safe" }],
      },
      files.folder,
    ),
    files: files.files,
  };
}

const LINT = { kind: "pattern", pattern: "n" };

/** Reads a configuration once: every process of every play is given one of a few. */
const readConfig = (() => {
  const read = new Map<string, ReturnType<typeof parsePluginConfig>>();
  return (phase1: object) => {
    const key = JSON.stringify(phase1);
    const config = read.get(key) ?? parsePluginConfig({ coordination: { phase1 } });
    read.set(key, config);
    return config;
  };
})();

/** The settings below `gates`, as an operator writes them. */
export function describeGates({ gates, isGated }: Configuration) {
  const { hasLint = true, ...stated } = gates ?? { verifyMs: VERIFY_MS, revisionsMax: 1 };
  return {
    verifiers: hasLint ? { lint: LINT } : {},
    agents: {
      ...(isGated && hasLint && { checked: { checks: ["lint"] } }),
      ...(isGated && { careful: { requireConfidence: true } }),
    },
    ...stated,
  };
}

function createGates({ setup, ruler, channel }: GatewayInput, life: Life): GateDependencies {
  const { gates } = readConfig({ gates: describeGates(setup) });
  const { noticesAfterMs = NOTICES_AFTER_MS } = setup;
  const { escalations } = readConfig({
    escalations: {
      notify: noticesAfterMs.map((afterMs) => ({ channel: "chat", afterMs })),
      ...(setup.requireDifferentApprover && { requireDifferentApprover: true }),
    },
  });
  return createGateDependencies({
    gates,
    escalations,
    verifier: () => Promise.resolve({ check: (request) => callPort(life, "runner", () => ruler(request)) }),
    channelOf: (name) => (name === "chat" ? wrapPort(life, "runner", channel) : undefined),
  });
}
