/**
 * Owns: a host of workflow runs over a ledger in memory and a clock that the test moves, with everything else scripted. Every
 * event that a host appends, and every snapshot that a test sees, is held against the official schemas where they are there.
 */
import { hash } from "node:crypto";
import { afterEach, expect } from "vitest";
import { loadOpenWopSchemas } from "../core/openwop-schemas.ts";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Quotas } from "../../src/agents/coordination/contracts/workflows/quotas.ts";
import { WORKFLOW_BOUNDS } from "../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type {
  WorkflowEvent,
  WorkflowPayloads,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { Clock, SteadyClock } from "../../src/agents/coordination/ports/clock.ts";
import type {
  ChatAnswer,
  ChatModel,
  PeerHosts,
  ToolCaller,
} from "../../src/agents/coordination/ports/outbound.ts";
import type { Verifier } from "../../src/agents/coordination/ports/verifier.ts";
import type { WorkflowAppend, WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import {
  NO_AGENTS,
  type AgentHostDependencies,
} from "../../src/agents/coordination/runtime/workflow-host/records/agent-dependencies.ts";
import { createWorkflowHost } from "../../src/agents/coordination/runtime/workflow-host/create-workflow-host.ts";
import type {
  HostAnswer,
  Caller,
  CreateRun,
  RunSnapshot,
  WorkflowHost,
} from "../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import type { WorkflowSettings } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";
import { createChatCritic, type CriticModel } from "../../src/infra/verify/chat-critic.ts";
import { createVerifier } from "../../src/infra/verify/create-verifier.ts";
import { createTokenSigner } from "../../src/infra/tokens/interrupt-tokens.ts";
import { createConformancePlay } from "../../src/plugins/openwop/conformance/create-conformance-play.ts";
import { createFakeClock, waitUntilSettled, type FakeClock } from "./fake-clock.ts";
import { createMemoryWorkflowLedger, type MemoryWorkflowLedger } from "./memory-workflow-store.ts";
import { SETTINGS } from "./workflow-settings.ts";

/** A model's answer without anything special. */
export const SAID: ChatAnswer = {
  kind: "answered",
  text: "said",
  finishReason: "stop",
  model: "m",
  provider: "p",
  usage: {},
};

export const ALICE: Caller = { tenant: "acme", principal: "alice" };
export const BOB: Caller = { tenant: "acme", principal: "bob" };
export const MALLORY: Caller = { tenant: "other", principal: "mallory" };

const KEY = new Uint8Array(32).fill(7);
const READ_MAX = 10_000;
const schemas = loadOpenWopSchemas();
const problems: string[] = [];

afterEach(() => {
  expect(problems.splice(0), "what breaks the official schemas").toEqual([]);
});

/** The fate of an append: asked before it is made, and told when it is on disk. `throw` there is a fault. */
export interface AppendFaults {
  before?(request: WorkflowAppend): void;
  after?(request: WorkflowAppend): void;
  /** Asked before the row of a run is read. */
  entry?(runId: string): void;
  /** The append waits for it, or its answer does. */
  hold?(request: WorkflowAppend, place: "append" | "answer"): Promise<undefined> | undefined;
}

export interface SceneOptions {
  readonly definitions?: readonly WorkflowDefinition[];
  readonly ledger?: MemoryWorkflowLedger;
  readonly clock?: FakeClock;
  /** The process; those in `alive` are there. */
  readonly pid?: number;
  readonly alive?: ReadonlySet<number>;
  /** Absent: that of `clock`. */
  readonly steady?: SteadyClock;
  readonly leaseMs?: number;
  readonly settings?: Partial<WorkflowSettings>;
  /** False: the host has no conformance play. */
  readonly isTested?: boolean;
  readonly secrets?: ReadonlyMap<string, string>;
  readonly quotas?: Partial<Quotas>;
  /** How long a run that ended can be forked. */
  readonly retentionMs?: number;
  readonly chat?: Partial<ChatModel>;
  readonly tools?: Partial<ToolCaller>;
  readonly peers?: Partial<PeerHosts>;
  readonly faults?: AppendFaults;
  readonly agents?: Partial<AgentHostDependencies>;
  /** In place of the host's own, which asks `chat`. */
  readonly verifier?: Verifier;
}

export interface WorkflowScene {
  readonly host: WorkflowHost;
  readonly clock: FakeClock;
  readonly ledger: MemoryWorkflowLedger;
  readonly isAlive: boolean;
  /** Lines that the host logged above `debug`. */
  readonly said: string[];
  /** Creates a run, lets everything that needs no time happen, and returns its id. */
  run(workflowId: string, request?: Partial<CreateRun>, caller?: Caller): Promise<string>;
  events(runId: string): WorkflowEvent[];
  types(runId: string): string[];
  payloads<T extends WorkflowEvent["type"]>(runId: string, type: T): WorkflowPayloads[T][];
  snapshot(runId: string, caller?: Caller): Promise<RunSnapshot>;
  status(runId: string): Promise<string>;
  /** Answers an open interrupt; the answer of the host, everything settled. */
  answer(runId: string, nodeId: string, value: unknown, caller?: Caller): Promise<HostAnswer<unknown>>;
  /** Lets everything that needs no time happen. */
  settle(): Promise<void>;
  /** The process dies: nothing of it reaches the ledger any more, and nothing wakes it. */
  die(): void;
}

let scenes = 0;

export function createWorkflowScene(options: SceneOptions = {}): WorkflowScene {
  const { ledger = createMemoryWorkflowLedger(), clock = createFakeClock() } = options;
  const played = createPlayed(options);
  const sentences: string[] = [];
  const life = { isOver: false };
  const log = (fields: unknown, message: string): void =>
    void sentences.push(`${message} ${JSON.stringify(fields)}`);
  let runs = 0;
  const scene = (scenes += 1);
  const host = createWorkflowHost({
    store: createMortal(checkAppends(ledger.open(), options.faults ?? {}), life),
    clock: createMortalClock(clock, life),
    logger: { debug: () => undefined, info: log, warn: log, error: log },
    settings: { ...SETTINGS, ...played.settings, ...options.settings },
    definitions: options.definitions ?? [],
    newRunId: () => `run-${scene}-${(runs += 1)}` as CoordinationId,
    owner: { id: `driver-${scene}`, process: String(options.pid ?? 1) },
    ...createOwnerDependencies(options, clock),
    sha256: (text) => hash("sha256", text),
    tokens: createTokenSigner(KEY),
    baseUrl: () => "http://127.0.0.1:1",
    contract: () => Promise.resolve(createAjvOutputContract()),
    peers: () => Promise.resolve({ discover: discoverOtherHost, ...options.peers } as PeerHosts),
    ...createScripted(options),
    verifier: (critic) => Promise.resolve(verifierOf(options, clock, critic)),
    agents: { ...NO_AGENTS, ...options.agents },
    secrets: options.secrets ?? new Map(),
    retentionMs: options.retentionMs ?? WORKFLOW_BOUNDS.replayRetentionMs,
    ...played.host,
  });
  const eventsOf = (runId: string): WorkflowEvent[] => listEvents(ledger, runId);
  return {
    host,
    clock,
    ledger,
    said: sentences,
    get isAlive() {
      return !life.isOver;
    },
    run: async (workflowId, request = {}, caller = ALICE) => {
      const created = await host.create(caller, { workflowId, inputs: {}, transport: "rest", ...request });
      await waitUntilSettled();
      return valueOf(created).runId;
    },
    events: eventsOf,
    types: (runId) => eventsOf(runId).map(({ type }) => type),
    payloads: <T extends WorkflowEvent["type"]>(runId: string, type: T) =>
      eventsOf(runId).flatMap((event) => (event.type === type ? [event.payload as WorkflowPayloads[T]] : [])),
    snapshot: (runId, caller = ALICE) => snapshotOf(host, runId, caller),
    status: async (runId) => (await snapshotOf(host, runId, ALICE)).status,
    answer: async (runId, nodeId, value, caller = ALICE) => {
      const answered = await host.resolve(caller, runId, { nodeId }, value);
      await waitUntilSettled();
      return answered;
    },
    settle: waitUntilSettled,
    die: () => {
      life.isOver = true;
    },
  };
}

/** A process believes of itself that it is there. */
function createOwnerDependencies(
  { pid = 1, alive = new Set([pid]), steady, leaseMs }: SceneOptions,
  clock: FakeClock,
) {
  return {
    isProcessGone: (other: string) => !alive.has(Number(other)),
    steady: steady ?? clock.steady,
    leaseMs: leaseMs ?? WORKFLOW_BOUNDS.leaseMs,
  };
}

/** The conformance play, as far as the host has one. */
function createPlayed({ isTested = true }: SceneOptions) {
  if (!isTested) return { host: {}, settings: {} };
  const conformance = createConformancePlay();
  return { host: { conformance }, settings: { play: conformance.nodes } };
}

function createScripted({ tools = {}, chat = {}, quotas = {} }: SceneOptions) {
  return {
    quotas,
    tools: () => Promise.resolve(tools as ToolCaller),
    chat: () => Promise.resolve(chat as ChatModel),
  };
}

function verifierOf({ verifier, chat = {} }: SceneOptions, clock: Clock, critic: CriticModel): Verifier {
  if (verifier) return verifier;
  return createVerifier({
    clock,
    workspaceOf: () => "",
    contract: () => Promise.resolve(createAjvOutputContract()),
    logger: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
    model: createChatCritic(() => Promise.resolve(chat as ChatModel), critic),
  });
}

const discoverOtherHost: PeerHosts["discover"] = (peerUrl) =>
  Promise.resolve({ kind: "host", hostId: "host-b", wellKnownUrl: `${peerUrl}/.well-known/openwop` });

/** @throws Error where the host refused. */
export function valueOf<T>(answered: HostAnswer<T>): T {
  if (answered.kind === "refused") throw new Error(`${answered.code}: ${answered.message}`);
  return answered.value;
}

/** The code of a refusal. */
export function codeOf(answered: HostAnswer<unknown>): string {
  return answered.kind === "refused" ? answered.code : answered.kind;
}

/** The whole log of a run, as it lies in the ledger. */
export function listEvents(ledger: MemoryWorkflowLedger, runId: string): WorkflowEvent[] {
  const texts = ledger.runs.get(runId as CoordinationId)?.events ?? [];
  return texts.slice(0, READ_MAX).map((text) => JSON.parse(text) as WorkflowEvent);
}

async function snapshotOf(host: WorkflowHost, runId: string, caller: Caller): Promise<RunSnapshot> {
  const snapshot = valueOf(await host.snapshot(caller, runId));
  problems.push(...schemas.problemsOfSnapshot(snapshot));
  return snapshot;
}

function checkAppends(store: WorkflowStore, faults: AppendFaults): WorkflowStore {
  return {
    ...store,
    entry: async (runId) => {
      faults.entry?.(runId);
      return store.entry(runId);
    },
    append: async (request) => {
      faults.before?.(request);
      await faults.hold?.(request, "append");
      await store.append(request);
      problems.push(...request.events.flatMap((event) => schemas.problemsOfWorkflow(event)));
      faults.after?.(request);
      await faults.hold?.(request, "answer");
    },
  };
}

interface Life {
  isOver: boolean;
}

/** A process that is dead writes nothing, and nothing comes back to it. */
function createMortal<T extends object>(part: T, life: Life): T {
  return new Proxy(part, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key);
      if (typeof value === "object" && value !== null) return createMortal(value, life);
      if (typeof value !== "function") return value;
      return async (...args: unknown[]): Promise<unknown> => {
        requireAlive(life);
        const answer: unknown = await Reflect.apply(value, target, args);
        requireAlive(life);
        return answer;
      };
    },
  });
}

function requireAlive({ isOver }: Life): void {
  if (isOver) throw new CoordinationError("LEDGER_CLOSED", "the process is dead");
}

function createMortalClock(clock: Clock, life: Life): Clock {
  return {
    now: () => clock.now(),
    wakeAt: (atMs, run) =>
      life.isOver
        ? () => undefined
        : clock.wakeAt(atMs, () => {
            if (!life.isOver) run();
          }),
  };
}
