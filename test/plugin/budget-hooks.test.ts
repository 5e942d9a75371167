/** Owns: whom the hooks of the budget stop after the operator has changed the configuration. */
import { describe, expect, it } from "vitest";
import { createHookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext, OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { registerUsage } from "../../src/plugins/openclaw/register-usage.ts";
import type { UsageHandlers } from "../../src/plugins/openclaw/usage/usage-handlers.ts";
import { createFakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const OWNER = "agent:main:main";
const CHILD = "agent:main:subagent:1";
const BUDGET = { budget: { tokens: 100 } };
const TRACE = { traceId: "t".repeat(32) };

const folder = useStateFolder(() => {
  // The next test has another ledger, and runs of the same names.
  Reflect.deleteProperty(globalThis, Symbol.for("openclaw-coordination.usage-book"));
});

type Hook = (event: unknown, ctx: unknown) => unknown;

/** Registers the hooks of usage, and returns how the host calls them. */
function listenTo(api: OpenClawPluginApi, load: () => Promise<UsageHandlers>) {
  const hooks: { readonly name: string; readonly hook: Hook }[] = [];
  const on = (name: string, hook: Hook): void => void hooks.push({ name, hook });
  registerUsage({ ...api, on } as unknown as OpenClawPluginApi, load);
  return async (name: string, event: unknown, ctx: unknown): Promise<unknown> => {
    for (const registered of hooks.filter((each) => each.name === name)) {
      const answer = await registered.hook(event, ctx);
      if (answer !== undefined) return answer;
    }
    return undefined;
  };
}

/** Starts the gateway, or reloads it, with this configuration. */
async function start(phase1: Record<string, unknown>) {
  const { api, entries } = createFakeHost({ stateDir: folder.path, phase1 });
  const handlers = createHookHandlers(api);
  folder.stopLater(handlers);
  await handlers.start();
  const send = listenTo(api, () => Promise.resolve(handlers.usage));
  const contextOf = (sessionKey: string) =>
    ({
      sessionKey,
      agentId: "main",
      runId: `run-of-${sessionKey}`,
      trace: TRACE,
    }) as unknown as HookContext<"before_tool_call">;
  return {
    entries,
    spawn: (id: string) => {
      const event = { toolName: "sessions_spawn", toolCallId: id, runId: "run-1", params: { task: id } };
      return handlers.beforeSpawn(event, contextOf(OWNER));
    },
    confirm: (id: string, child: string) => {
      const details = { status: "accepted", childSessionKey: child, runId: `run-of-${child}` };
      const event = { toolName: "sessions_spawn", toolCallId: id, runId: "run-1", params: {} };
      return handlers.afterSpawn({ ...event, result: { details } }, contextOf(OWNER));
    },
    /** A model call of the session used 150 tokens. */
    use: async (sessionKey: string) => {
      await send("model_call_started", { runId: `run-of-${sessionKey}` }, { sessionKey, trace: TRACE });
      const message = { role: "assistant", usage: { input: 100, output: 50 }, provider: "p", model: "m" };
      await send("before_message_write", { message }, { sessionKey });
    },
    call: (sessionKey: string) =>
      send("before_tool_call", { toolName: "read" }, { sessionKey, abortSignal: AbortSignal.abort() }),
    begin: (sessionKey: string) => send("before_agent_run", {}, { sessionKey }),
  };
}

describe("a coordination that was opened under a budget which the operator has removed since", () => {
  const reload = async () => {
    const before = await start(BUDGET);
    for (const [id, child] of [
      ["call-1", CHILD],
      ["call-2", "agent:main:subagent:2"],
    ] as const) {
      expect(await before.spawn(id)).toHaveProperty("params.coordination");
      await before.confirm(id, child);
    }
    return start({});
  };

  it("has the calls and runs of its children stopped all the same", async () => {
    const after = await reload();
    expect(await after.call(CHILD)).toBeUndefined();
    await after.use(CHILD);
    expect(await after.begin("agent:main:subagent:2")).toMatchObject({
      outcome: "block",
      reason: expect.stringContaining("150 of 100 tokens are used") as string,
    });
    expect(await after.call(CHILD)).toMatchObject({
      block: true,
      blockReason: expect.stringContaining("150 of 100 tokens are used") as string,
    });
  });

  it("has spawns refused by what was used a moment ago", async () => {
    const after = await reload();
    await after.use(CHILD);
    expect(await after.spawn("call-3")).toMatchObject({
      block: true,
      blockReason: expect.stringContaining("150 of 100 tokens are used") as string,
    });
  });

  it("binds no coordination that is opened later", async () => {
    const after = await start({});
    await after.spawn("call-1");
    await after.confirm("call-1", CHILD);
    await after.use(CHILD);
    expect(await after.call(CHILD)).toBeUndefined();
    expect(await after.begin(CHILD)).toBeUndefined();
    expect(await after.spawn("call-2")).toHaveProperty("params.coordination");
  });
});

describe("a child that its spawn shows among the sessions of people", () => {
  it("has its calls and runs stopped as any other child", async () => {
    const visible = "agent:main:dashboard:6f9e1c1e";
    const gateway = await start(BUDGET);
    await gateway.spawn("call-1");
    await gateway.confirm("call-1", visible);
    gateway.entries.set(visible, { spawnedBy: OWNER, parentSessionKey: OWNER, spawnDepth: 1 });
    await gateway.use(visible);
    expect(await gateway.begin(visible)).toMatchObject({ outcome: "block" });
    expect(await gateway.call(visible)).toMatchObject({
      block: true,
      blockReason: expect.stringContaining("150 of 100 tokens are used") as string,
    });
  });
});

describe("a session that nobody spawned", () => {
  it.each([{}, BUDGET])("does not wait for the ledger with its calls and runs: %j", async (phase1) => {
    const { api, entries } = createFakeHost({ stateDir: folder.path, phase1 });
    const ofPerson = "agent:main:dashboard:0b7d2a44";
    entries.set(ofPerson, { parentSessionKey: OWNER, spawnDepth: 0 });
    const send = listenTo(api, () => Promise.reject(new Error("the ledger was asked")));
    for (const sessionKey of [OWNER, ofPerson]) {
      expect(await send("before_tool_call", { toolName: "read" }, { sessionKey })).toBeUndefined();
      expect(await send("before_agent_run", {}, { sessionKey })).toBeUndefined();
    }
  });
});
