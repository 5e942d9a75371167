/**
 * Owns: steps at work whose tool calls a real coordinator rules on, and what a host does around such a call. Files are real ones in
 * a folder of their own, or values where nothing but time matters.
 */
import { hash } from "node:crypto";
import { mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import type { ConflictsConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { AgentId, CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { ContentStore } from "../../src/agents/coordination/ports/content-store.ts";
import type { LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { ArbitrationDependencies } from "../../src/agents/coordination/runtime/arbiter/arbiter-dependencies.ts";
import type { GateDependencies } from "../../src/agents/coordination/runtime/environment/gate-dependencies.ts";
import type { SpawnRequest } from "../../src/agents/coordination/runtime/spawns/admit-spawn.ts";
import { createCoordinator, type Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { RuntimeSettings } from "../../src/agents/coordination/runtime/environment/runtime-dependencies.ts";
import { createSpawnGate } from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import type { WriteAnswer, WriteCall } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import type { ToolCall } from "./arbiter-calls.ts";
import { createArbitrationDependencies } from "../support/arbitration-dependencies.ts";
import { createFakeClock, waitUntilSettled, type FakeClock } from "../support/fake-clock.ts";
import {
  createFakeClockHost,
  openLanes,
  OWNER,
  SETTINGS,
  spawnOf,
  type FakeHost,
  type LogLine,
} from "../support/fake-clock-host.ts";
import { createGateDependencies } from "../support/gate-dependencies.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import { planDependencies } from "../support/plan-dependencies.ts";
import { createScriptedRunner, type Script, type ScriptedRunner } from "../support/scripted-runner.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createValueFiles, type SceneFiles } from "../support/value-files.ts";

export { createValueFiles, versionOf, type SceneFiles } from "../support/value-files.ts";

export type Store = LedgerStore & ContentStore;
export type Fields = Readonly<Record<string, unknown>>;

export const LEASE_MS = 60_000;
export const REVIEW_MS = 30_000;

export function createRealSceneFiles(): SceneFiles {
  const folder = createTempFolder();
  const path = realpathSync(folder.path);
  return {
    files: createArbitrationDependencies().files,
    folder: path,
    put: (name, content) => {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), content);
    },
    text: (name) => {
      try {
        return readFileSync(join(path, name), "utf8");
      } catch {
        return undefined;
      }
    },
    remove: (name) => rmSync(join(path, name), { recursive: true }),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

export interface Host {
  readonly clock: FakeClock;
  readonly observer: FakeHost;
  readonly plans: ScriptedRunner;
  readonly lines: LogLine[];
}

export function createHost(script: Script = () => "work"): Host {
  const clock = createFakeClock();
  return { clock, observer: createFakeClockHost(clock), plans: createScriptedRunner(script), lines: [] };
}

export interface Process {
  readonly store: Store;
  readonly host: Host;
  readonly files: SceneFiles;
  readonly conflicts?: Partial<ConflictsConfig>;
  readonly settings?: Partial<RuntimeSettings>;
  /** Tells the coordinations of several processes apart. */
  readonly name?: string;
  readonly dependencies?: Partial<ArbitrationDependencies & GateDependencies>;
}

export function startCoordinator(process: Process): Coordinator {
  const { store, conflicts = {}, settings = {}, files, name = "co" } = process;
  const { clock, observer, plans, lines } = process.host;
  const say = (level: LogLine["level"]) => (_: unknown, message: string) => {
    lines.push({ level, message });
  };
  let opened = 0;
  return createCoordinator({
    store,
    content: store,
    clock,
    runner: observer,
    ...planDependencies(plans),
    ...createArbitrationDependencies({ leaseMs: LEASE_MS, reviewMs: REVIEW_MS, ...conflicts }, files.folder),
    files: files.files,
    ...createGateDependencies(),
    ...process.dependencies,
    logger: { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") },
    lanes: openLanes(),
    gate: createSpawnGate({ clock, limits: { spawnsMax: 1_000 } }),
    settings: { ...SETTINGS, ...settings },
    newCoordinationId: () => `${name}-${(opened += 1)}` as CoordinationId,
  });
}

export type PayloadOf<T extends RunEvent["type"]> = Extract<RunEvent, { type: T }>["payload"];

export interface SceneOptions {
  readonly conflicts?: Partial<ConflictsConfig>;
  readonly settings?: Partial<RuntimeSettings>;
  readonly files?: SceneFiles;
  readonly dependencies?: Partial<ArbitrationDependencies & GateDependencies>;
  /** Acts of the steps of plans; absent: they work. */
  readonly script?: Script;
  /** Spoils the store. */
  readonly wrap?: (store: Store) => Store;
}

export interface Scene extends AsyncDisposable, Host, Omit<SceneFiles, "files" | typeof Symbol.dispose> {
  readonly coordinator: Coordinator;
  /** The store as nobody spoils it. */
  readonly store: Store;
  readonly resource: (name: string) => string;
  /** A spawned child at work, by its task. The same trace is the same coordination. */
  readonly child: (
    task: string,
    words?: { readonly trace?: string; readonly source?: SessionKey },
  ) => Promise<SessionKey>;
  /** Submits a plan; its steps go to work and stay there. */
  plan(steps: readonly Fields[], fields?: Fields): Promise<void>;
  /** The session of the newest attempt of a planned step. */
  readonly sessionOf: (stepId: string) => SessionKey;
  ends(session: SessionKey, outcome?: "completed" | "cancelled"): Promise<void>;
  ask(call: WriteCall): Promise<WriteAnswer>;
  /** Asks, and does what the tool would do where the call is allowed. */
  does(call: ToolCall): Promise<WriteAnswer>;
  /** As a host does after a call that was allowed: the tool writes, then its end is told. */
  runs(call: ToolCall, answer: WriteAnswer): Promise<void>;
  events<T extends RunEvent["type"]>(type: T): PayloadOf<T>[];
  /** The holders of a resource now, as `run/step`. */
  holders(name: string): Promise<string[]>;
  /** Another process takes over, with nothing in its memory. */
  restart(): Promise<void>;
}

export async function openScene(options: SceneOptions = {}): Promise<Scene> {
  const { files = createValueFiles(), wrap = (plain: Store): Store => plain, ...rest } = options;
  const host = createHost(options.script);
  const ledger = createMemoryLedger();
  const store = ledger.open(host.clock);
  const bootCoordinator = (): Coordinator =>
    startCoordinator({ ...rest, store: wrap(ledger.open(host.clock)), host: host, files });
  let coordinator = bootCoordinator();
  await coordinator.start();
  const ask = (call: WriteCall): Promise<WriteAnswer> => coordinator.arbiter.request(call);
  const runCall: Scene["runs"] = async ({ tools, callKey }, answer) => {
    tools(answer.kind === "granted" ? answer.params : undefined);
    await coordinator.arbiter.callEnded(callKey);
  };
  const { put, text, remove, folder } = files;
  return {
    ...host,
    put,
    text,
    remove,
    folder,
    store,
    ask,
    runs: runCall,
    get coordinator() {
      return coordinator;
    },
    resource: (name) => `file:${join(folder, name)}`,
    child: (task, words = {}) => spawnChild(coordinator, host.observer, { task, ...words }),
    plan: async (steps, fields = {}) => {
      const submitted = await coordinator.submitPlan({
        plan: planOf(steps, fields),
        ownerAgent: "main" as AgentId,
      });
      expect(submitted).toMatchObject({ kind: "accepted" });
      for (let turn = 0; turn < 10; turn += 1) await waitUntilSettled();
    },
    sessionOf: (stepId) => {
      const order = host.plans.orders.findLast(({ envelope }) => envelope.stepId === stepId);
      if (!order) throw new Error(`no attempt of ${stepId} began`);
      return order.childSessionKey;
    },
    ends: async (session, outcome = "completed") => {
      host.observer.end(session, { outcome });
      await coordinator.endChild(session, { outcome });
    },
    does: async (call) => {
      const answer = await ask(call);
      if (answer.kind === "granted" || answer.kind === "free") await runCall(call, answer);
      return answer;
    },
    events: (type) =>
      ledger
        .events()
        .flat()
        .flatMap((event) => (event.type === type ? [event.payload as PayloadOf<typeof type>] : [])),
    holders: async (name) => {
      const resource = `file:${join(folder, name)}`;
      const { claims } = await store.overlapping({ resource, atMs: host.clock.now(), limit: 1_000 });
      return claims.map(({ runId, stepId }) => `${runId}/${stepId}`);
    },
    restart: async () => {
      await coordinator.stop();
      coordinator = bootCoordinator();
      await coordinator.start();
    },
    [Symbol.asyncDispose]: async () => {
      await coordinator.stop();
      files[Symbol.dispose]();
      expect((await verifyLedger(store)).problems).toEqual([]);
      expect(host.lines.filter(({ level }) => level === "error")).toEqual([]);
    },
  };
}

export async function spawnChild(
  coordinator: Coordinator,
  observer: FakeHost,
  words: { readonly task: string; readonly trace?: string; readonly source?: SessionKey },
): Promise<SessionKey> {
  const request = hashRequest(spawnOf(words));
  const admission = await coordinator.admitSpawn(request);
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId, sourceSession } = admission.envelope;
  const { childSessionKey, childRunId } = observer.spawn(request);
  const claim = { coordinationId, stepId, sourceSession, toolCallId: words.task };
  await coordinator.confirmSpawn(claim, { childSessionKey, childRunId });
  return childSessionKey;
}

/** A ledger file proves the hash of what it keeps. */
export function hashRequest(request: SpawnRequest): SpawnRequest {
  const hashInput = ({ text }: SpawnRequest["input"]): SpawnRequest["input"] => ({
    ref: { sha256: hash("sha256", text), bytes: Buffer.byteLength(text) },
    text,
  });
  const { input, objective } = request;
  return { ...request, input: hashInput(input), objective: hashInput(objective) };
}

function planOf(steps: readonly Fields[], fields: Fields): Fields {
  return {
    coordinationId: "plan-1",
    objective: "try it",
    ownerSession: OWNER,
    conflictPolicy: {},
    failurePolicy: { retryBudget: 5, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    defaults: { retry: { budget: 0 } },
    steps: steps.map((step) => ({ agent: "main", task: "work", ...step })),
    ...fields,
  };
}
