/** Owns: a scripted model and the real gateway with the runners as methods, for the end-to-end tests of the runners. */
import { join } from "node:path";
import type { CoordinationEnvelope } from "../../src/agents/coordination/contracts/envelope.ts";
import type { Observation } from "../../src/agents/coordination/contracts/observation.ts";
import type { AttemptOrder, Start } from "../../src/agents/coordination/ports/agent-runner.ts";
import type { FlowSnapshot } from "../../src/plugins/openclaw/runners/flow-mirror.ts";
import type { Json } from "../support/gateway.ts";
import { answerOnce } from "../support/answer-once.ts";
import {
  isAnnounce,
  type RecordedRequest,
  type Rule,
  type ScriptedModel,
} from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { createPluginConfig, openStage, type Stage } from "./stage.ts";

/** The machine may be busy with other things. */
export const ASKED_MS = 90_000;
const FOLLOW_MS = 120_000;

/** Says what an owner is told in a turn that the gateway does not outlive. */
export const TOLD_UNTIL_KILLED = "telling-then";

const createRules = (): readonly Rule[] => [
  // Lets a child speak in the turn that the host makes when the child's own agents have ended.
  {
    when: (text) => isAnnounce(text) && text.includes("Every subagent spawned"),
    turns: [{ say: "after-the-yield" }],
  },
  answerOnce((text) => text.includes(TOLD_UNTIL_KILLED), { delayMs: 120_000, say: "never said" }),
];

const OWNER_OF_PLANS = "agent:main:flows";

export type RunnerName = "subagent" | "owner";
type Row = { readonly childSessionKey: string; readonly status: string };
type Message = { readonly role: string; readonly content: unknown; readonly idempotencyKey?: string };
type FixtureNotes = { readonly reports: readonly Json[]; readonly cancels: readonly string[] };
export type FlowRow = {
  readonly flowId: string;
  readonly status: string;
  readonly currentStep?: string;
  readonly goal: string;
  readonly stateJson?: { readonly coordinationId?: string };
};

export interface RunsStage {
  readonly host: Stage;
  readonly start: (order: AttemptOrder, runner?: RunnerName) => Promise<Start>;
  readonly observe: (order: AttemptOrder, runner?: RunnerName) => Promise<Observation>;
  readonly follow: (order: AttemptOrder, runner?: RunnerName, timeoutMs?: number) => Promise<Observation>;
  readonly cancel: (order: AttemptOrder) => Promise<string>;
  readonly show: (snapshot: FlowSnapshot) => Promise<unknown>;
  readonly stopShowing: () => Promise<unknown>;
  /** Returns the notes that the fixture took since the gateway started. */
  readonly seen: () => Promise<FixtureNotes>;
  readonly rowsUnder: (sessionKey: string) => Promise<readonly Row[]>;
  readonly messagesOf: (sessionKey: string) => Promise<readonly Message[]>;
  /** The requests to the model whose script says this word. */
  readonly requestsThatSay: (word: string) => RecordedRequest[];
  readonly untilAsked: (word: string, times?: number) => Promise<void>;
  /** A plan's flows, as the host lists them. */
  readonly flowsOf: (coordinationId: string) => Promise<readonly FlowRow[]>;
  readonly untilFlow: (coordinationId: string, condition: (flow: FlowRow) => boolean) => Promise<FlowRow>;
  readonly killAndRestart: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export async function openRunsStage(): Promise<RunsStage> {
  const host = await openStage(
    {
      pluginConfig: createPluginConfig({ enabled: false }),
      extraPluginPaths: [join(import.meta.dirname, "fixtures", "host-runs")],
      configPatch: {
        agents: { ownership: "explicit", entries: { main: {}, coder: { tools: { profile: "coding" } } } },
      },
    },
    createRules(),
  );
  const call = async <T>(method: string, params: object = {}): Promise<T> =>
    (await host.gateway.call(`host-runs.${method}`, params as Json, FOLLOW_MS + 5_000)) as T;
  const stage: RunsStage = {
    host,
    start: (order, runner = "subagent") => call("start", { runner, order }),
    observe: (order, runner = "subagent") => call("observe", { runner, order }),
    follow: (order, runner = "subagent", timeoutMs = FOLLOW_MS) =>
      call("follow", { runner, order, timeoutMs }),
    cancel: async (order) => (await call<{ answer: string }>("cancel", { runner: "subagent", order })).answer,
    show: (snapshot) => call("show", { snapshot }),
    stopShowing: () => call("stop-showing"),
    seen: () => call("seen"),
    rowsUnder: async (sessionKey) => (await call<{ rows: Row[] }>("rows", { sessionKey })).rows,
    messagesOf: async (sessionKey) =>
      (await call<{ messages: Message[] }>("messages", { sessionKey })).messages,
    ...requestsOf(host.model),
    flowsOf: async (coordinationId) => {
      const { flows } = await call<{ flows: FlowRow[] }>("flows", { sessionKey: OWNER_OF_PLANS });
      return flows.filter(({ stateJson }) => stateJson?.coordinationId === coordinationId);
    },
    untilFlow: (coordinationId, condition) =>
      waitFor(async () => (await stage.flowsOf(coordinationId)).find(condition), {
        what: `the flow of ${coordinationId}`,
        timeoutMs: ASKED_MS,
        everyMs: 500,
      }),
    killAndRestart: async () => {
      await host.gateway.kill9();
      await host.restart();
    },
    close: () => host.close(),
  };
  return stage;
}

function requestsOf(model: ScriptedModel): Pick<RunsStage, "requestsThatSay" | "untilAsked"> {
  const listRequestsThatSay = (word: string) => model.requests.filter(({ text }) => text.includes(word));
  return {
    requestsThatSay: listRequestsThatSay,
    untilAsked: async (word, times = 1) => {
      await waitFor(() => listRequestsThatSay(word).length >= times, {
        what: `${times} model requests about ${word}`,
        timeoutMs: ASKED_MS,
      });
    },
  };
}

let orders = 0;

/** An attempt of its own for every call. */
export function orderOf(message: string, more: Partial<AttemptOrder> = {}): AttemptOrder {
  orders += 1;
  const name = `${orders}`;
  const agentId = more.agentId ?? "main";
  const childSessionKey = more.childSessionKey ?? `agent:${agentId}:subagent:coord-${name}`;
  const envelope = {
    coordinationId: "co-Runs",
    stepId: `Step ${name}`,
    sourceSession: "agent:main:main",
    targetSession: childSessionKey,
    intent: "execute",
    priority: "normal",
    deliveryMode: "at_least_once",
    createdAtMs: Date.now(),
    trace: {},
  } as unknown as CoordinationEnvelope;
  return {
    idempotencyKey: `co-Runs:Step ${name}:1`,
    agentId,
    childSessionKey,
    dispatchedAtMs: Date.now(),
    envelope,
    lane: "data",
    message,
    deadlineAtMs: Date.now() + 600_000,
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ...more,
  } as AttemptOrder;
}

/** The telling of an owner. */
export function createOwnerOrder(session: string, message: string): AttemptOrder {
  return orderOf(message, { childSessionKey: session as AttemptOrder["childSessionKey"] });
}

export function snapshotOf(coordinationId: string, more: Partial<FlowSnapshot> = {}): FlowSnapshot {
  return {
    coordinationId,
    ownerSession: OWNER_OF_PLANS,
    objective: "Find the\nanswer",
    status: "running",
    stepsTotal: 3,
    stepsEnded: 1,
    running: ["draft"],
    ...more,
  } as FlowSnapshot;
}
