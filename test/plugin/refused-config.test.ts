/** Owns: what spawns and writes come to where the plugin refuses a configuration that the host's JSON schema takes. */
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { readHealthBeside } from "../../src/plugins/ledger-reader.ts";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { findRuntime, withRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import { createFakeHost, type FakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

/** A gate names a verifier that does not exist. */
const REFUSED_CONFIG = { gates: { agents: { writer: { checks: ["tests"] } } } };

const folder = useStateFolder(() => {
  // The next test is a gateway that starts.
  Reflect.deleteProperty(globalThis, Symbol.for("openclaw-coordination.runtime"));
  Reflect.deleteProperty(globalThis, Symbol.for("openclaw-coordination.narrowed-spawns"));
});

function createHandlers(phase1: Record<string, unknown>): { handlers: HookHandlers; host: FakeHost } {
  const host = createFakeHost({ stateDir: folder.path, phase1 });
  const handlers = createHookHandlers(host.api);
  folder.stopLater(handlers);
  return { handlers, host };
}

/** Starts the gateway, whose host goes on with the hooks of a plugin whose service failed. */
async function startRefused(phase1: Record<string, unknown>) {
  const started = createHandlers({ ...REFUSED_CONFIG, ...phase1 });
  await expect(started.handlers.start()).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  return started;
}

const contextOf = (agentId: string): HookContext<"before_tool_call"> =>
  ({ sessionKey: `agent:${agentId}:main`, agentId, runId: "run-1" }) as HookContext<"before_tool_call">;

const call = (handlers: HookHandlers, toolName: string, params: Record<string, unknown> = {}) =>
  handlers.beforeCall({ toolName, toolCallId: "call-1", runId: "run-1", params }, contextOf("main"));

const spawn = (handlers: HookHandlers, agentId = "main") =>
  handlers.beforeSpawn(
    { toolName: "sessions_spawn", toolCallId: "call-1", runId: "run-1", params: { task: "work" } },
    contextOf(agentId),
  );

const readGatewayHealth = () => readHealthBeside(join(folder.path, "coordination", "ledger.sqlite"));

const createRefusedAnswer = (act: string) => ({
  block: true,
  blockReason: expect.stringMatching(
    new RegExp(`^Coordination refused this ${act}: .*verifier.*\\. Correct plugins\\.entries`, "su"),
  ) as string,
});

describe("a gateway that starts with a configuration which only the plugin refuses", () => {
  it("refuses spawns and writes in strict mode, and lets an agent read", async () => {
    const { handlers } = await startRefused({ strict: true });
    expect(await spawn(handlers)).toMatchObject(createRefusedAnswer("spawn"));
    expect(await call(handlers, "write", { path: "a", content: "x" })).toMatchObject(
      createRefusedAnswer("call"),
    );
    expect(await call(handlers, "read", { path: "a" })).toBeUndefined();
    expect(await call(handlers, "web_search", { query: "a" })).toBeUndefined();
    expect(readGatewayHealth()).toMatchObject({ state: "degraded", uncoordinatedSpawns: 0 });
  });

  it("refuses in strict mode a call of a tool that the configuration describes, and none where it rules on no writes", async () => {
    const tools = { deploy: { kind: "write", resource: "service:{params.name}" } };
    const described = await startRefused({ strict: true, conflicts: { tools } });
    expect(await call(described.handlers, "deploy")).toMatchObject({ block: true });
    const unruled = await startRefused({ strict: true, conflicts: { enabled: false } });
    expect(await call(unruled.handlers, "write", { path: "a", content: "x" })).toBeUndefined();
  });

  it("lets spawns of an agent go on that is not to be coordinated, strict or not", async () => {
    const { handlers } = await startRefused({ strict: true, agents: ["Research"] });
    expect(await spawn(handlers, "main")).toBeUndefined();
    expect(readGatewayHealth()).toMatchObject({ uncoordinatedSpawns: 0 });
    expect(await spawn(handlers, "research")).toMatchObject(createRefusedAnswer("spawn"));
  });

  it("by default lets spawns go on, says so loudly for each, and counts them", async () => {
    const { handlers, host } = await startRefused({});
    expect(readGatewayHealth()).toMatchObject({ state: "degraded", failure: { code: "CONFIG_INVALID" } });
    expect(await spawn(handlers)).toBeUndefined();
    expect(await spawn(handlers)).toBeUndefined();
    expect(await call(handlers, "write", { path: "a", content: "x" })).toBeUndefined();
    expect(host.lines.filter(({ text }) => text.includes("A SPAWN GOES ON UNCOORDINATED"))).toHaveLength(2);
    expect(readGatewayHealth()).toMatchObject({ state: "degraded", uncoordinatedSpawns: 2 });
  });

  it("is well again when the configuration is corrected, and keeps the count", async () => {
    const { handlers } = await startRefused({});
    await spawn(handlers);
    const corrected = createHandlers({});
    await corrected.handlers.start();
    expect(readGatewayHealth()).toMatchObject({ state: "ok", uncoordinatedSpawns: 1 });
    expect(await spawn(corrected.handlers)).toHaveProperty("params.coordination.stepId", "step-1");
  });
});

/** Loads the plugin again under a gateway that works. */
async function reloadRefused(phase1: Record<string, unknown>): Promise<HookHandlers> {
  const before = createHandlers({});
  await before.handlers.start();
  await before.handlers.stop();
  return (await startRefused(phase1)).handlers;
}

describe("a reload to a configuration which only the plugin refuses", () => {
  it("refuses spawns and writes where that configuration is strict, and counts none as gone on", async () => {
    const handlers = await reloadRefused({ strict: true });
    expect(await spawn(handlers)).toMatchObject(createRefusedAnswer("spawn"));
    expect(await call(handlers, "write", { path: "a", content: "x" })).toMatchObject(
      createRefusedAnswer("call"),
    );
    expect(readGatewayHealth()).toMatchObject({
      state: "degraded",
      failure: { code: "CONFIG_INVALID" },
      uncoordinatedSpawns: 0,
    });
  });

  it("still says that the configuration is why, when spawns have gone on without coordination", async () => {
    const handlers = await reloadRefused({});
    expect(await spawn(handlers)).toBeUndefined();
    expect(readGatewayHealth()).toMatchObject({
      state: "degraded",
      failure: { code: "CONFIG_INVALID" },
      uncoordinatedSpawns: 1,
    });
  });

  it("is forgotten with the next start", async () => {
    await reloadRefused({ strict: true });
    const corrected = createHandlers({ strict: true });
    await corrected.handlers.start();
    expect(await spawn(corrected.handlers)).toHaveProperty("params.coordination.stepId", "step-1");
    await corrected.handlers.stop();
    await expect(withRuntime(corrected.host.api, () => Promise.resolve())).rejects.toMatchObject({
      code: "LEDGER_CLOSED",
    });
  });
});

const CHILD = "agent:main:subagent:child";

const callAsChild = async (handlers: HookHandlers, sessionKey = CHILD): Promise<string | undefined> => {
  const event = { toolName: "read", toolCallId: "call-2", runId: "run-2", params: { path: "a" } };
  const context = { sessionKey, agentId: "main", runId: "run-2" } as HookContext<"before_tool_call">;
  return (await handlers.beforeCall(event, context))?.blockReason;
};

const spawnWith = async (handlers: HookHandlers, params: Record<string, unknown>) => {
  const event = { toolName: "sessions_spawn", toolCallId: "call-1", runId: "run-1" };
  const answer = await handlers.beforeSpawn(
    { ...event, params: { task: "work", ...params } },
    contextOf("main"),
  );
  return answer?.blockReason;
};

describe("what a child may do where a configuration is refused", () => {
  it("begins no child that is to be held, whoever says so, and any other", async () => {
    const narrowing = { coordination: { tools: { allow: ["read"] } } };
    const { handlers } = await startRefused({ privileges: { agents: { Coder: { write: [] } } } });
    expect(await spawnWith(handlers, { ...narrowing, runtime: "acp", agentId: "writer" })).toMatch(
      /nothing would hold it/u,
    );
    expect(await spawnWith(handlers, narrowing)).toMatch(/nothing would hold it/u);
    expect(await spawnWith(handlers, { agentId: "coder" })).toMatch(/nothing would hold it/u);
    expect(await spawnWith(handlers, { agentId: "writer", model: "small" })).toBeUndefined();
  });

  it("begins no child that a pack would hold, and none where the bounds cannot be read", async () => {
    const settings = { privileges: { default: { tools: { deny: ["exec"] } } } };
    const policies = { packs: { careful: { version: "1", settings } }, rules: [{ pack: "careful" }] };
    const packed = await startRefused({ policies });
    expect(await spawnWith(packed.handlers, {})).toMatch(/nothing would hold it/u);
    const misspelt = await startRefused({ privileges: { agents: { coder: { tool: [] } } } });
    expect(await spawnWith(misspelt.handlers, {})).toMatch(
      /: nobody can tell what its child may do, because the rules in `privileges` are not valid, and it could not be recorded, so nothing would hold it$/u,
    );
  });

  it("lets a child that began since then work, and tells one that may be held what is wrong", async () => {
    const { handlers, host } = await startRefused({});
    host.entries.set(CHILD, { spawnedBy: "agent:main:main", createdAt: Date.now() + 1 });
    expect(await callAsChild(handlers)).toBeUndefined();
    const older = "agent:main:subagent:older";
    host.entries.set(older, { spawnedBy: "agent:main:main", createdAt: Date.now() - 60_000 });
    expect(await callAsChild(handlers, older)).toMatch(/does not start: .*verifier/su);
    expect(await callAsChild(handlers, "agent:main:subagent:unknown")).toMatch(/does not start/u);
  });

  it("lets no child work whose spawn was taken before a reload, and that is to be held", async () => {
    const before = createHandlers({});
    await before.handlers.start();
    expect(await spawnWith(before.handlers, { coordination: { tools: { deny: ["read"] } } })).toBeUndefined();
    await before.handlers.stop();
    const { handlers, host } = await startRefused({});
    host.entries.set(CHILD, { spawnedBy: "agent:main:main", createdAt: Date.now() + 1 });
    expect(await callAsChild(handlers)).toMatch(/does not start/u);
  });
});

describe("a child that began while a configuration is refused", () => {
  const OLDER = "agent:main:subagent:older";
  const OWNER = "agent:main:main";

  afterEach(() => {
    vi.useRealTimers();
  });

  const beginChild = ({ entries }: FakeHost, child: string, spawnedBy?: string): void => {
    entries.set(child, { ...(spawnedBy && { spawnedBy }), createdAt: Date.now() + 1 });
  };

  it("does not work where a session above it began before, however far above", async () => {
    const { handlers, host } = await startRefused({});
    host.entries.set(OLDER, { spawnedBy: OWNER, createdAt: Date.now() - 60_000 });
    beginChild(host, CHILD, OLDER);
    beginChild(host, "agent:main:subagent:below", CHILD);
    expect(await callAsChild(handlers)).toMatch(/does not start/u);
    expect(await callAsChild(handlers, "agent:main:subagent:below")).toMatch(/does not start/u);
  });

  it("works where all sessions above it that were spawned began since then, too", async () => {
    const { handlers, host } = await startRefused({});
    beginChild(host, CHILD, OWNER);
    beginChild(host, "agent:main:subagent:below", CHILD);
    expect(await callAsChild(handlers, "agent:main:subagent:below")).toBeUndefined();
  });

  it("does not work where nobody can tell who spawned it, or the way up has no end", async () => {
    const { handlers, host } = await startRefused({});
    beginChild(host, CHILD);
    expect(await callAsChild(handlers)).toMatch(/does not start/u);
    beginChild(host, "agent:main:subagent:one", "agent:main:subagent:two");
    beginChild(host, "agent:main:subagent:two", "agent:main:subagent:one");
    expect(await callAsChild(handlers, "agent:main:subagent:one")).toMatch(/does not start/u);
  });

  it("works on after another start that fails, and not after one that succeeds", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const first = await startRefused({});
    beginChild(first.host, CHILD, OWNER);
    vi.setSystemTime(Date.now() + 60_000);
    const second = await startRefused({});
    beginChild(second.host, "agent:main:subagent:later", OWNER);
    second.host.entries.set(CHILD, first.host.entries.get(CHILD) ?? {});
    expect(await callAsChild(second.handlers)).toBeUndefined();
    const corrected = createHandlers({});
    await corrected.handlers.start();
    await corrected.handlers.stop();
    vi.setSystemTime(Date.now() + 60_000);
    const third = await startRefused({});
    third.host.entries.set(CHILD, first.host.entries.get(CHILD) ?? {});
    expect(await callAsChild(third.handlers)).toMatch(/does not start/u);
  });

  /** Spawns a child that is to be held, and loads a configuration that is refused before the hook behind the spawn. */
  const reloadWithinSpawn = async () => {
    const before = createHandlers({});
    await before.handlers.start();
    const coordination = { tools: { deny: ["read"] } };
    expect(await spawnWith(before.handlers, { coordination })).toBeUndefined();
    await before.handlers.stop();
    const { handlers, host } = await startRefused({});
    const event = { toolName: "sessions_spawn", toolCallId: "call-1", runId: "run-1", params: {} };
    const endSpawn = (details: object) =>
      handlers.afterSpawn({ ...event, result: { details } }, contextOf("main"));
    return { handlers, host, endSpawn };
  };

  it("works where the spawn that is to be held and not recorded yet is that of another session", async () => {
    const { handlers, host } = await reloadWithinSpawn();
    beginChild(host, CHILD, "agent:other:main");
    expect(await callAsChild(handlers)).toBeUndefined();
  });

  it("works once the host has told which child that spawn has; this one and what it spawns do not", async () => {
    const { handlers, host, endSpawn } = await reloadWithinSpawn();
    beginChild(host, CHILD, OWNER);
    beginChild(host, "agent:main:subagent:below", CHILD);
    beginChild(host, "agent:main:subagent:sibling", OWNER);
    expect(await callAsChild(handlers, "agent:main:subagent:sibling")).toMatch(/does not start/u);
    await endSpawn({ status: "accepted", childSessionKey: CHILD, runId: "run of the child" });
    expect(await callAsChild(handlers, "agent:main:subagent:sibling")).toBeUndefined();
    expect(await callAsChild(handlers)).toMatch(/does not start/u);
    expect(await callAsChild(handlers, "agent:main:subagent:below")).toMatch(/does not start/u);
  });

  it("works once the host has refused that spawn", async () => {
    const { handlers, host, endSpawn } = await reloadWithinSpawn();
    beginChild(host, CHILD, OWNER);
    await endSpawn({ status: "forbidden", error: "too many children" });
    expect(await callAsChild(handlers)).toBeUndefined();
  });
});

describe("a child that is to be held and whose spawn could not be recorded", () => {
  const NARROWING = { coordination: { tools: { deny: ["read"] } } };
  const SIBLING = "agent:main:subagent:sibling";

  const endSpawn = async (handlers: HookHandlers): Promise<void> => {
    const details = { status: "accepted", childSessionKey: CHILD, runId: "run of the child" };
    const event = { toolName: "sessions_spawn", toolCallId: "call-1", runId: "run-1", params: {} };
    await handlers.afterSpawn({ ...event, result: { details } }, contextOf("main"));
  };

  const expectHeld = async ({ handlers, host }: ReturnType<typeof createHandlers>): Promise<void> => {
    for (const child of [CHILD, SIBLING]) host.entries.set(child, { spawnedBy: "agent:main:main" });
    expect(await callAsChild(handlers, SIBLING)).toBeUndefined();
    expect(await callAsChild(handlers)).toMatch(
      /a spawn is not recorded yet, and this session may be its child/u,
    );
  };

  /** Loads the plugin again, with a configuration that is valid. */
  const reload = async ({ handlers }: ReturnType<typeof createHandlers>) => {
    await handlers.stop();
    const next = createHandlers({});
    await next.handlers.start();
    return next;
  };

  it("does not work when the ledger answers again, nor after a reload, and other children of the same session do", async () => {
    const started = createHandlers({});
    const { handlers } = started;
    await handlers.start();
    const holder = globalThis as Record<symbol, unknown>;
    const key = Symbol.for("openclaw-coordination.runtime");
    const runtime = findRuntime() ?? expect.fail("there is no runtime");
    expect(await spawnWith(handlers, NARROWING)).toBeUndefined();
    const refuse = () => Promise.reject(new CoordinationError("LEDGER_BUSY", "another process writes"));
    holder[key] = { ...runtime, coordinator: refuse };
    await endSpawn(handlers);
    holder[key] = runtime;
    await expectHeld(started);
    await expectHeld(await reload(started));
  });

  it("does not work either where a reload came between the two hooks of its spawn", async () => {
    const started = createHandlers({});
    await started.handlers.start();
    expect(await spawnWith(started.handlers, NARROWING)).toBeUndefined();
    const reloaded = await reload(started);
    await endSpawn(reloaded.handlers);
    await expectHeld(reloaded);
  });
});

describe("a strict gateway that is just starting", () => {
  it("refuses neither a write nor a spawn that comes before its service has started", async () => {
    const { handlers } = createHandlers({ strict: true });
    expect(await call(handlers, "write", { path: "a", content: "x" })).toBeUndefined();
    expect(await spawn(handlers)).toHaveProperty("params.coordination.stepId", "step-1");
  });

  it("refuses neither while its service starts", async () => {
    const { handlers } = createHandlers({ strict: true });
    const [written, spawned] = await Promise.all([
      call(handlers, "write", { path: "a", content: "x" }),
      spawn(handlers),
      handlers.start(),
    ]);
    expect(written).toBeUndefined();
    expect(spawned).toHaveProperty("params.coordination.stepId", "step-1");
  });
});
