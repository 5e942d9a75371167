/**
 * Owns: a process that runs plans and dies, stops, or meets one error, at a given call to one of its ports. A dead process
 * hears no answer and calls nothing.
 */
import { hash } from "node:crypto";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { AgentRunner } from "../../src/agents/coordination/ports/agent-runner.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { OutputContract } from "../../src/agents/coordination/ports/output-contract.ts";
import { createCoordinator, type Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { RuntimeSettings } from "../../src/agents/coordination/runtime/environment/runtime-dependencies.ts";
import { createSpawnGate } from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";
import { createPQueueLanes, type LaneLimits } from "../../src/infra/lanes/p-queue-lanes.ts";
import { waitUntilSettled, type FakeClock } from "../support/fake-clock.ts";
import { createFakeClockHost } from "../support/fake-clock-host.ts";
import type { MemoryLedger, MemoryStore } from "../support/memory-store.ts";
import { createArbitrationDependencies } from "../support/arbitration-dependencies.ts";
import { createNoWorktrees } from "../support/plan-dependencies.ts";
import { createGateDependencies } from "../support/gate-dependencies.ts";
import { VERIFY_MS, type Ruler } from "./plan-gates.ts";

/** Kinds of calls, so that a crash can be aimed at the rare ones. */
export const GROUPS = ["all", "append", "read", "runner", "clock"] as const;
export type Group = (typeof GROUPS)[number];

export interface Crash {
  readonly kind: "dies before" | "dies after" | "fails" | "stops";
  readonly group: Group;
  /** Which call of the group since the process began. */
  readonly atCall: number;
  /** How long nobody runs then. */
  readonly downMs: number;
}

export interface PlanProcess {
  readonly coordinator: Coordinator;
  readonly over: Promise<"over">;
  readonly isOver: () => boolean;
  readonly isStopping: () => boolean;
  readonly calls: Readonly<Record<Group, number>>;
  /** Timers of the process that are still to come. */
  readonly timers: () => number;
}

export interface PlanProcessDependencies {
  readonly clock: FakeClock;
  readonly ledger: MemoryLedger;
  readonly runner: AgentRunner;
  /** The verdicts of the checks of results. */
  readonly ruler: Ruler;
  readonly settings: RuntimeSettings;
  readonly lanes: LaneLimits;
  readonly problem: (subject: string) => void;
}

let contract: OutputContract | undefined;

interface Life {
  readonly dependencies: PlanProcessDependencies;
  readonly crash: Crash | undefined;
  readonly calls: Record<Group, number>;
  readonly timers: Set<() => void>;
  readonly end: PromiseWithResolvers<"over">;
  isOver: boolean;
  isStopping: boolean;
  coordinator?: Coordinator;
}

export function startPlanProcess(
  dependencies: PlanProcessDependencies,
  crash: Crash | undefined,
): PlanProcess {
  const calls = Object.fromEntries(GROUPS.map((group) => [group, 0])) as Record<Group, number>;
  const life: Life = {
    dependencies,
    crash,
    calls,
    timers: new Set(),
    end: Promise.withResolvers(),
    isOver: false,
    isStopping: false,
  };
  const { ledger, settings, lanes } = dependencies;
  const clock = clockOf(life);
  const store = storeOf(life, ledger.open(dependencies.clock));
  const runner = runnerOf(life);
  const doNothing = (): void => undefined;
  const coordinator = createCoordinator({
    store,
    content: store,
    clock,
    settings,
    ...createArbitrationDependencies(),
    ...createGateDependencies({
      gates: { verifyMs: VERIFY_MS },
      verifier: () =>
        Promise.resolve({ check: (request) => call(life, "runner", () => dependencies.ruler(request)) }),
    }),
    logger: { debug: doNothing, info: doNothing, warn: doNothing, error: doNothing },
    runner: createFakeClockHost(dependencies.clock),
    runners: { subagent: runner, acp_stdio: runner, owner: runner },
    contract: () => Promise.resolve((contract ??= createAjvOutputContract())),
    refOf: (text) => ({ sha256: hash("sha256", text), bytes: Buffer.byteLength(text) }),
    runnerOf: (agent) => (agent === "acp" ? "acp_stdio" : "subagent"),
    worktrees: createNoWorktrees(),
    folderOf: () => "/nowhere",
    lanes: createPQueueLanes(lanes, clock),
    gate: createSpawnGate({ clock: dependencies.clock, limits: { spawnsMax: 1_000 } }),
    newCoordinationId: () => "observed" as CoordinationId,
  });
  life.coordinator = coordinator;
  return {
    coordinator,
    calls,
    over: life.end.promise,
    isOver: () => life.isOver,
    isStopping: () => life.isStopping,
    timers: () => life.timers.size,
  };
}

function endLife(life: Life): void {
  life.isOver = true;
  for (const cancel of life.timers) cancel();
  life.timers.clear();
  life.end.resolve("over");
}

/** Whether it stops without time that passes. */
export async function isStoppedSoon(coordinator: Coordinator | undefined): Promise<boolean> {
  const stopping = { isDone: coordinator === undefined };
  void coordinator?.stop().then(() => (stopping.isDone = true));
  for (let turn = 0; turn < 5 && !stopping.isDone; turn += 1) await waitUntilSettled();
  return stopping.isDone;
}

/** A call, because it may have changed at every `await`. */
function hasEnded({ isOver }: Life): boolean {
  return isOver;
}

/** Stopping waits for no agent and no time, and leaves nothing behind. */
async function stop(life: Life): Promise<void> {
  life.isStopping = true;
  const isStopped = await isStoppedSoon(life.coordinator);
  if (hasEnded(life)) return;
  if (!isStopped) life.dependencies.problem("stop() waits for something");
  else if (life.timers.size > 0)
    life.dependencies.problem(`${life.timers.size} timers are left after stop()`);
  endLife(life);
}

/** Counts the call; answers with what goes wrong at it. */
function meetCrash(life: Life, group: Group): Crash["kind"] | undefined {
  const { calls, crash } = life;
  calls.all += 1;
  calls[group] += 1;
  const isHit =
    crash && (crash.group === "all" || crash.group === group) && calls[crash.group] === crash.atCall;
  return isHit ? crash.kind : undefined;
}

const waitForever = <T>(): Promise<T> => new Promise(() => undefined);

/** A disk takes a moment to say no. */
async function fail(): Promise<never> {
  await waitUntilSettled();
  throw new CoordinationError("LEDGER_FULL", "the disk is full for a moment");
}

async function call<T>(life: Life, group: Group, work: () => Promise<T>): Promise<T> {
  if (life.isOver) return waitForever();
  const kind = meetCrash(life, group);
  if (kind === "dies before") endLife(life);
  if (kind === "stops") void stop(life);
  if (kind === "fails") await fail();
  if (hasEnded(life)) return waitForever();
  const working = work();
  if (kind === "dies after") {
    working.catch(() => undefined);
    endLife(life);
    return waitForever();
  }
  try {
    const answer = await working;
    return hasEnded(life) ? await waitForever() : answer;
  } catch (error) {
    if (hasEnded(life)) return waitForever();
    throw error;
  }
}

function clockOf(life: Life): Clock {
  const { clock } = life.dependencies;
  const touch = (): void => {
    if (life.isOver) return;
    const kind = meetCrash(life, "clock");
    if (kind === "dies before" || kind === "dies after") endLife(life);
    // Nobody calls in between what happens at once.
    if (kind === "stops") queueMicrotask(() => void stop(life));
  };
  return {
    now: () => {
      touch();
      return clock.now();
    },
    wakeAt: (atMs, run) => {
      touch();
      if (life.isOver) return () => undefined;
      const wake = (): void => {
        life.timers.delete(cancel);
        run();
      };
      const unset = clock.wakeAt(atMs, wake);
      const cancel = (): void => {
        life.timers.delete(cancel);
        unset();
      };
      life.timers.add(cancel);
      return cancel;
    },
  };
}

function storeOf(life: Life, store: MemoryStore): MemoryStore {
  return {
    ...store,
    append: (request) => call(life, "append", () => store.append(request)),
    read: (runId, range) => call(life, "read", () => store.read(runId, range)),
    list: (query) => call(life, "read", () => store.list(query)),
    find: (name) => call(life, "read", () => store.find(name)),
    get: (sha256) => call(life, "read", () => store.get(sha256)),
    getMany: (sha256s) => call(life, "read", () => store.getMany(sha256s)),
    deleteBefore: (time) => call(life, "read", () => store.deleteBefore(time)),
  };
}

function runnerOf(life: Life): AgentRunner {
  const { runner } = life.dependencies;
  return {
    start: (order) => call(life, "runner", () => runner.start(order)),
    observe: (attempt) => call(life, "runner", () => runner.observe(attempt)),
    follow: (attempt, signal) => call(life, "runner", () => runner.follow(attempt, signal)),
    cancel: (attempt) => call(life, "runner", () => runner.cancel(attempt)),
  };
}
