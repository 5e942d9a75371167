/** H2: no hook that the plugin registers throws into the host, and each answers in time, whatever the ledger does. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WatchedChild } from "../../src/agents/coordination/runtime/spawns/child-watch.ts";
import plugin from "../../src/plugins/openclaw/index.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { findRuntime, type SharedRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { createFakeHost, type FakeHost } from "./fake-host.ts";

type Handler = (event: object, ctx: object) => unknown;

interface Hook {
  readonly name: string;
  readonly handler: Handler;
  readonly timeoutMs: number | undefined;
}

interface Service {
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface RegisteredPlugin {
  readonly hooks: readonly Hook[];
  readonly service: Service;
  readonly host: FakeHost;
}

const PARENT = "agent:main:main";
const CHILD = "agent:main:subagent:1";
/** Longer than the host waits for any hook. */
const SECONDS_MAX = 60;

/** As the host registers the plugin, whose hooks are kept. */
function registerAll(stateDir: string): RegisteredPlugin {
  const host = createFakeHost({ stateDir });
  const hooks: Hook[] = [];
  const services: Service[] = [];
  const keepHook = (
    name: string,
    handler: Handler,
    options: { matcher?: string[]; timeoutMs?: number } = {},
  ) =>
    void hooks.push({
      name: [name, ...(options.matcher ?? [])].join(" "),
      handler,
      timeoutMs: options.timeoutMs,
    });
  const ignore = (): void => undefined;
  const api = {
    ...host.api,
    on: keepHook,
    registerService: (service: Service) => void services.push(service),
    registerCli: ignore,
    registerTool: ignore,
    registerGatewayMethod: ignore,
    registerTextTransforms: ignore,
    registerHttpRoute: ignore,
    registerCommand: ignore,
    session: { controls: { registerControlUiDescriptor: ignore } },
  };
  plugin.register(api as unknown as OpenClawPluginApi);
  const [service] = services;
  if (!service) throw new Error("no service was registered");
  return { hooks, service, host };
}

/** All that the hooks read of an event and its context, in one. */
function callHook({ name, handler }: Hook, sessionKey: string): Promise<unknown> {
  const isSpawn = name.endsWith("sessions_spawn");
  const event = {
    toolName: isSpawn ? "sessions_spawn" : "write",
    toolCallId: "call-1",
    runId: "run-1",
    params: isSpawn ? { task: "work" } : { path: "a.md", content: "x" },
    result: { details: { status: "accepted", childSessionKey: CHILD, runId: "run-2" } },
    error: "it failed",
    targetSessionKey: CHILD,
    targetKind: "subagent",
    reason: "x",
    sessionKey,
    prompt: "x",
    provider: "mock",
    model: "scripted",
    messages: [],
    message: { role: "assistant", content: [{ type: "text", text: "x" }], usage: { input: 1, output: 1 } },
    success: true,
    compactedCount: 1,
    content: "x",
    payload: { text: "x" },
    tools: [],
    cwd: "/srv",
  };
  const ctx = {
    sessionKey,
    agentId: "main",
    runId: "run-1",
    channelId: "slack",
    trace: { spanId: "span-1" },
  };
  // A hook without a promise may throw at once.
  return new Promise((resolve) => {
    resolve(handler(event, ctx));
  });
}

/** With a spawn under way and a child at work, so that every hook has something to ask of the coordinator. */
function replaceCoordinator(coordinator: () => Promise<never>, session: string): void {
  const runtime = findRuntime();
  if (!runtime) throw new Error("no runtime");
  const step = { coordinationId: "co-1" as CoordinationId, stepId: "step-1" as StepId };
  runtime.pendingSpawns.set(JSON.stringify([session, "run-1", "call-1"]), [step]);
  runtime.children.set(session, { watched: { isHeldOnMismatch: false } as WatchedChild, ran: {} });
  const replaced: SharedRuntime = { ...runtime, coordinator };
  (globalThis as Record<symbol, unknown>)[Symbol.for("openclaw-coordination.runtime")] = replaced;
}

/** Lets everything happen that waits for no time. */
async function drain(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Calls all hooks at once, and tells in the order of their registration after how many seconds each has answered. */
async function measureAnswers(hooks: readonly Hook[], session: string): Promise<[string, number?][]> {
  const beganAtMs = Date.now();
  const answers = hooks.map(({ name }): [string, number?] => [name]);
  for (const [place, hook] of hooks.entries())
    void callHook(hook, session).finally(() => answers[place]?.push((Date.now() - beganAtMs) / 1_000));
  for (let second = 0; second < SECONDS_MAX; second += 1) {
    await drain();
    await vi.advanceTimersByTimeAsync(1_000);
  }
  return answers;
}

/** Seconds in which a hook answers where the ledger never does: at once where it waits for nothing. */
const listBudgets = (budgets: {
  readonly spawn: number;
  readonly usage: number;
  readonly call: number;
  readonly afterCall: number;
}): [string, number][] => [
  ["before_tool_call sessions_spawn", budgets.spawn],
  ["after_tool_call sessions_spawn", 5],
  ["before_tool_call", budgets.call],
  ["after_tool_call", budgets.afterCall],
  ["subagent_ended", 5],
  ["before_prompt_build", 5],
  ["after_compaction", 0],
  ["agent_end", 5],
  ["before_agent_run", 5],
  ["model_call_started", 0],
  ["before_message_write", 0],
  ["before_agent_run", 5],
  ["llm_input", 0],
  ["model_call_started", 0],
  ["before_agent_finalize", 5],
  ["model_call_started", 0],
  ["before_message_write", 0],
  ["before_agent_run", budgets.usage],
  ["before_tool_call", budgets.usage],
  // Whose words they are, and recording that they were stopped.
  ["message_sending", 5],
  ["reply_payload_sending", 5],
  ["message_received", 0],
];

const failAtOnce = (): Promise<never> => Promise.reject(new Error("the ledger is broken"));

let folder: TempFolder;
let registered: RegisteredPlugin;
beforeEach(async () => {
  folder = createTempFolder();
  registered = registerAll(folder.path);
  await registered.service.start();
});
afterEach(async () => {
  vi.useRealTimers();
  await registered.service.stop();
  folder[Symbol.dispose]();
});

describe("H2: every hook", () => {
  it.each([
    ["a session that nobody spawned", PARENT, { spawn: 8, usage: 0, call: 12, afterCall: 5 }],
    // Refused as soon as it cannot be told what a child may do.
    ["a child", CHILD, { spawn: 5, usage: 5, call: 5, afterCall: 10 }],
  ])("of %s answers in time where the ledger never does", async (_, session, budgets) => {
    const { hooks } = registered;
    // The code behind the hooks is loaded with the first call.
    replaceCoordinator(failAtOnce, session);
    await Promise.allSettled(hooks.map((hook) => callHook(hook, session)));
    replaceCoordinator(() => new Promise(() => undefined), session);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"] });
    const answers = await measureAnswers(hooks, session);
    expect(answers).toEqual(listBudgets(budgets));
    for (const [place, { timeoutMs = Infinity }] of hooks.entries())
      expect((answers[place]?.[1] ?? Infinity) * 1_000).toBeLessThan(timeoutMs);
  });

  it.each([PARENT, CHILD])("of %s answers where the ledger fails, and throws nothing", async (session) => {
    replaceCoordinator(failAtOnce, session);
    const answers = await Promise.allSettled(registered.hooks.map((hook) => callHook(hook, session)));
    expect(answers).toHaveLength(listBudgets({ spawn: 0, usage: 0, call: 0, afterCall: 0 }).length);
    expect(answers.filter(({ status }) => status === "rejected")).toEqual([]);
  });
});
