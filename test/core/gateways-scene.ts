/** Owns: several gateways on one ledger in memory, each with a host and agents of its own, that can be paused and killed. */
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { AgentId, CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { LogFields, Logger } from "../../src/agents/coordination/ports/logger.ts";
import { createCoordinator, type Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import {
  createWithheldTexts,
  type WithheldTexts,
} from "../../src/agents/coordination/runtime/environment/withheld-texts.ts";
import {
  readCoordinationView,
  type CoordinationView,
} from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import {
  createGatewayOwnerId,
  parseGatewayOwnerId,
} from "../../src/agents/coordination/runtime/ownership/gateway-owner.ts";
import { createSpawnGate, type SpawnGate } from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { createArbitrationDependencies } from "../support/arbitration-dependencies.ts";
import { createFakeClock, waitUntilSettled, type FakeClock } from "../support/fake-clock.ts";
import { createFakeClockHost, openLanes, SETTINGS, type FakeHost } from "../support/fake-clock-host.ts";
import { createGateDependencies, type GivenGates } from "../support/gate-dependencies.ts";
import { createMemoryLedger, type MemoryLedger, type MemoryStore } from "../support/memory-store.ts";
import { planDependencies } from "../support/plan-dependencies.ts";
import { createScriptedRunner, type Script, type ScriptedRunner } from "../support/scripted-runner.ts";

export const LEASE_MS = 10_000;
export const ORPHAN_MS = 600_000;
export const AGENT = "main" as AgentId;

export interface TestGateway {
  readonly name: string;
  readonly coordinator: Coordinator;
  /** Children that models spawned, over restarts of the gateway. */
  readonly host: FakeHost;
  /** Agents of plans, and deliveries to owners. */
  readonly plans: ScriptedRunner;
  /** The words of children that are kept back from others. */
  readonly texts: WithheldTexts;
  /** Nothing that it asks the ledger for, and no time that it waits for, comes. */
  pause(): void;
  resume(): Promise<void>;
  /** Its process ends at once. Others of its machine find that out, where `isOnMachine`. */
  kill(how?: { readonly isOnMachine: boolean }): void;
  /** The next take of runs is done, and its answer is lost. */
  loseTake(): void;
}

export interface Gateways extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly ledger: MemoryLedger;
  readonly lines: string[];
  /** Starts a process of a gateway; a second one of the same name has the host of the first. */
  start(name: string, script?: Script, gates?: GivenGates): Promise<TestGateway>;
  /** Starts the one gateway of a ledger that nobody shares yet: it names itself nowhere. Its host is that of the gateway of the name. */
  startAlone(name: string, script?: Script): Promise<TestGateway>;
  view(runId: CoordinationId): Promise<CoordinationView>;
  /** Which gateway drives a coordination. */
  driverOf(runId: CoordinationId): Promise<string | undefined>;
  eventsOf(runId: CoordinationId): readonly RunEvent[];
}

/** Lets calls through while the process is at work. */
interface Switch {
  state: "on" | "paused" | "dead";
  readonly held: (() => void)[];
  isTakeLost: boolean;
  readonly pass: <T>(work: () => T | Promise<T>) => Promise<T>;
}

function createSwitch(): Switch {
  const control: Switch = {
    state: "on",
    held: [],
    isTakeLost: false,
    pass: async (work) => {
      while (control.state !== "on") await new Promise<void>((resolve) => control.held.push(resolve));
      return work();
    },
  };
  return control;
}

function holdCalls<T extends object>(parts: T, { pass }: Switch): T {
  const entries = Object.entries(parts).map(([name, value]: [string, unknown]) => {
    if (typeof value === "function")
      return [name, (...args: unknown[]) => pass(() => Reflect.apply(value, parts, args) as unknown)];
    return [name, name === "owners" ? holdCalls(value as object, { pass } as Switch) : value];
  });
  return Object.fromEntries(entries) as T;
}

function wrapTakes(store: MemoryStore, control: Switch): MemoryStore {
  const take: MemoryStore["owners"]["take"] = async (request) => {
    const batch = await store.owners.take(request);
    if (!control.isTakeLost || batch.length === 0) return batch;
    control.isTakeLost = false;
    throw new CoordinationError("LEDGER_BUSY", "the answer was lost");
  };
  return { ...store, owners: { ...store.owners, take } };
}

export interface GatewaysOptions {
  /** The spawns that each of them lets run at once. */
  readonly spawnsMax?: number;
  /** The gateway whose own ledger this one was. */
  readonly movedFrom?: string;
}

export function createGateways({ spawnsMax = 1_000, movedFrom }: GatewaysOptions = {}): Gateways {
  const clock = createFakeClock();
  const ledger = createMemoryLedger();
  const lines: string[] = [];
  const hosts = new Map<string, FakeHost>();
  const endedProcesses = new Set<string>();
  const running: Coordinator[] = [];
  const reading = ledger.open(clock);
  let processes = 0;
  const start = async (
    name: string,
    script?: Script,
    gates: GivenGates = {},
    isAlone = false,
  ): Promise<TestGateway> => {
    const control = createSwitch();
    const host = hosts.get(name) ?? createFakeClockHost(clock);
    hosts.set(name, host);
    const plans = createScriptedRunner(script);
    const texts = createWithheldTexts(
      (session, text) => planDependencies(plans).refOf(`${session}\0${text}`).sha256,
    );
    const process = `${name}-${(processes += 1)}`;
    const heldClock: Clock = {
      now: () => clock.now(),
      wakeAt: (atMs, run) => clock.wakeAt(atMs, () => void control.pass(run)),
    };
    const coordinator = composeGateway({
      name,
      process,
      clock: heldClock,
      steady: clock.steady,
      store: holdCalls(wrapTakes(ledger.open(clock), control), control),
      host,
      plans,
      texts,
      gates,
      gate: createSpawnGate({ clock: heldClock, limits: { spawnsMax }, delayMs: 0 }),
      lines,
      isProcessGone: (each) => endedProcesses.has(each),
      isAlone,
      movedFrom,
    });
    running.push(coordinator);
    await coordinator.start();
    await waitUntilSettled();
    return {
      name,
      coordinator,
      host,
      plans,
      texts,
      pause: () => {
        control.state = "paused";
      },
      resume: async () => {
        control.state = "on";
        for (const go of control.held.splice(0)) go();
        await waitUntilSettled();
      },
      loseTake: () => {
        control.isTakeLost = true;
      },
      kill: ({ isOnMachine } = { isOnMachine: true }) => {
        control.state = "dead";
        running.splice(running.indexOf(coordinator), 1);
        if (isOnMachine) endedProcesses.add(process);
      },
    };
  };
  return {
    clock,
    ledger,
    lines,
    start,
    startAlone: (name, script) => start(name, script, {}, true),
    view: async (runId) => {
      const found = await readCoordinationView(reading, runId);
      if (!found) throw new Error(`there is no ${runId}`);
      return found;
    },
    driverOf: async (runId) => {
      const owner = (await reading.owners.ownersOf([runId])).get(runId);
      return owner && parseGatewayOwnerId(owner.id);
    },
    eventsOf: (runId) =>
      ledger
        .events()
        .flat()
        .filter((event): event is RunEvent => event.runId === runId),
    [Symbol.asyncDispose]: async () => {
      for (const coordinator of running) await coordinator.stop();
      const { problems } = await verifyLedger(ledger.open(clock));
      if (problems.length > 0) throw new Error(`the ledger has problems: ${JSON.stringify(problems)}`);
    },
  };
}

interface GatewayComposition {
  readonly name: string;
  readonly process: string;
  readonly clock: Clock;
  readonly steady: FakeClock["steady"];
  readonly store: MemoryStore;
  readonly host: FakeHost;
  readonly plans: ScriptedRunner;
  readonly texts: WithheldTexts;
  readonly gates: GivenGates;
  readonly gate: SpawnGate;
  readonly lines: string[];
  readonly isProcessGone: (process: string) => boolean;
  readonly isAlone: boolean;
  readonly movedFrom: string | undefined;
}

function composeGateway({
  name,
  process,
  clock,
  steady,
  store,
  host,
  plans,
  texts,
  gates,
  gate,
  lines,
  isAlone,
  movedFrom,
  ...rest
}: GatewayComposition) {
  const say = (fields: LogFields, message: string): void => {
    lines.push(`${name}: ${message} ${JSON.stringify(fields)}`);
  };
  const logger: Logger = { debug: () => undefined, info: say, warn: say, error: say };
  let opened = 0;
  const owner = { id: createGatewayOwnerId(name, process), process };
  const place = { gateway: name, ...(movedFrom !== undefined && { movedFrom }) };
  return createCoordinator({
    store,
    content: store,
    withheld: texts,
    ...planDependencies(plans),
    ...createArbitrationDependencies(),
    ...createGateDependencies(gates),
    clock,
    runner: host,
    logger,
    lanes: openLanes(),
    gate,
    settings: isAlone ? SETTINGS : { ...SETTINGS, ...place },
    newCoordinationId: () => `co-${process}-${(opened += 1)}` as CoordinationId,
    ...(!isAlone && {
      shared: {
        ...place,
        owner,
        steady,
        leaseMs: LEASE_MS,
        orphanMs: ORPHAN_MS,
        onReplaced: () => say({}, "was replaced"),
        ...rest,
      },
    }),
  });
}

export const OWNER_SESSION = "agent:main:main" as SessionKey;
