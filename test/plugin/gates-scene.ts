/**
 * Owns: the host as gated children meet it. The texts of a message pass its transforms piece by piece, each once more when it is
 * whole, and all of them twice when the message is; then the message is written.
 */
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { buildGate } from "../../src/agents/coordination/runtime/held-results/gate-of.ts";
import { createGateHandlers } from "../../src/plugins/openclaw/withholding/gate-handlers.ts";
import { accessGateMemory } from "../../src/plugins/openclaw/runtime-access/gate-memory.ts";
import { createTextTransforms } from "../../src/plugins/openclaw/withholding/text-transforms.ts";
import { createRunQuietly } from "../../src/plugins/openclaw/runtime-access/run-quietly.ts";
import type { SharedRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import type { GivenGates } from "../support/gate-dependencies.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { createSessionParents } from "../../src/plugins/openclaw/privileges/session-parents.ts";
import { createHostWithoutState, type FakeHost } from "./fake-host.ts";
import { createGatesWith, spawnChild, type SpawnedChild } from "../core/gates-world.ts";

export interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}

export const createText = (words: string): Part => ({ type: "text", text: words });
export const createThought = (words: string): Part => ({ type: "thinking", thinking: words });
export const call = (name: string, settings: object): Part => ({
  type: "toolCall",
  id: "call-1",
  name,
  arguments: settings,
});

/** How the text of a model arrives, and why the model stopped. */
export interface TextDelivery {
  readonly stopReason?: string;
  /** How the texts come while they are written; each of them alone. */
  readonly pieces?: readonly string[];
}

export interface GatedHost {
  /** The coordinator that hooks reach; a test may replace its answers. */
  readonly runtime: { coordinator: () => Promise<Coordinator>; pendingSpawns: { size: number } };
  /** Holds what the host records of its sessions. */
  readonly entries: FakeHost["entries"];
  begins(session: string): Promise<void>;
  /** The next call of the model of a run that goes on. */
  callsModel(session: string): Promise<void>;
  /** The text in the transcript, which is all that others get. */
  says(session: string, parts: readonly Part[], saying?: TextDelivery): Promise<readonly Part[]>;
  /** A text on its way from the model, and on its way to it. */
  fromModel(session: string, words: string): string;
  toModel(session: string, words: string): string;
  /** The parameters that a tool of the session is given. */
  argument(session: string, value: string): string;
}

export function createGatedHost(coordinator: Coordinator): GatedHost {
  let span: string | undefined;
  const runtime = { coordinator: () => Promise.resolve(coordinator), pendingSpawns: { size: 0 } };
  const hostRecords = createHostWithoutState();
  const handlers = createGateHandlers({
    quietly: createRunQuietly(hostRecords.api, (work) => work(runtime as unknown as SharedRuntime)),
    spanOf: () => span,
    isChild: createSessionParents(hostRecords.api).isChild,
  });
  const transforms = createTextTransforms(() => span);
  const enterSession = (session: string): void => {
    span = `span of ${session}`;
  };
  const fromModel = (session: string, words: string): string => {
    enterSession(session);
    return words.replace(transforms.fromModel, "");
  };
  const passPart = (session: string, part: Part): Part =>
    part.type === "text" ? createText(fromModel(session, String(part["text"]))) : part;
  const callModel = async (session: string): Promise<void> => {
    enterSession(session);
    handlers.modelCallStarted({ sessionKey: session });
    await waitUntilSettled();
  };
  return {
    runtime,
    entries: hostRecords.entries,
    callsModel: callModel,
    fromModel,
    begins: async (session) => {
      enterSession(session);
      await handlers.beforeRun({ sessionKey: session, trace: { spanId: span } } as never);
    },
    says: async (session, parts, { stopReason = "stop", pieces = [] } = {}) => {
      await callModel(session);
      for (const piece of pieces) fromModel(session, piece);
      for (let pass = 0; pass < 2; pass += 1) for (const part of parts) passPart(session, part);
      const content = parts.map((part) => passPart(session, part));
      const message = { role: "assistant", stopReason, content };
      const written = handlers.beforeMessageWrite({ message } as never, { sessionKey: session });
      await waitUntilSettled();
      return (written as { message: { content: readonly Part[] } } | undefined)?.message.content ?? content;
    },
    toModel: (session, words) => {
      enterSession(session);
      return words.replace(transforms.toModel, "");
    },
    argument: (session, value) => transformToolCallArgumentText(() => fromModel(session, value)),
  };
}

/** The host's own function has this name, and nothing else tells an argument from a text. */
function transformToolCallArgumentText(transform: () => string): string {
  return transform();
}

/** The key that lies beside the ledger, and so outlives a process. */
const WITHHELD_KEY = new Uint8Array(32).fill(7);

/** Forgets what a process remembers, as its end does. */
export function forgetAll(): void {
  const holder = globalThis as Record<symbol, unknown>;
  for (const name of ["gate-memory.5", "runtime"])
    Reflect.deleteProperty(holder, Symbol.for(`openclaw-coordination.${name}`));
  accessGateMemory().key = WITHHELD_KEY;
}

/** A world whose coordinators and hooks share what they remember, as those of one process do. */
export function createGatedWorld(gateSettings: GivenGates = {}, plans = createScriptedRunner()): World {
  const gates: GivenGates = { gates: createGatesWith([]), ...gateSettings };
  return createWorld({}, plans, {
    ...gates,
    get withheld() {
      return accessGateMemory().texts;
    },
  });
}

/** The runtime of this process, as far as it is asked what the operator demands of an agent. */
export function demandGates(gates: ReturnType<typeof createGatesWith>): void {
  const findGateOfAgent = (agentId: AgentId) =>
    buildGate(gates, { agentId, runner: "subagent", plugins: [] });
  const holder = globalThis as Record<symbol, unknown>;
  holder[Symbol.for("openclaw-coordination.runtime")] = { gateOfAgent: findGateOfAgent };
}

export interface OnStage {
  readonly world: World;
  readonly coordinator: Coordinator;
  readonly child: SpawnedChild;
  readonly host: GatedHost;
}

/** A child that a model spawned and that begins its run. */
export async function onStage(gateSettings: GivenGates = {}): Promise<OnStage> {
  const world = createGatedWorld(gateSettings);
  const coordinator = world.start();
  await coordinator.start();
  const child = await spawnChild(world, coordinator);
  const host = createGatedHost(coordinator);
  await host.begins(child.session);
  return { world: world, coordinator, child, host };
}
