/**
 * Owns: children that a spawn with `visible: true` shows among the sessions of people: the host names them as those, and its own
 * record says who spawned them.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createHookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext, HookEvent } from "../../src/plugins/openclaw/host/sdk.ts";
import { createPrivilegeHandlers } from "../../src/plugins/openclaw/privileges/privilege-handlers.ts";
import { createSessionParents } from "../../src/plugins/openclaw/privileges/session-parents.ts";
import { loadToolNames } from "../../src/plugins/openclaw/privileges/tool-names.ts";
import { noteModelCall } from "../../src/plugins/openclaw/runtime-access/provider-turns.ts";
import { findRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createFakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const OWNER = "agent:main:main";
const CHILD = "agent:main:dashboard:6f9e1c1e" as SessionKey;
/** A session that a person opened in the dashboard; the host names the agent's main session as its parent. */
const OF_PERSON = "agent:main:dashboard:0b7d2a44" as SessionKey;

const folder = useStateFolder();

// A gateway has loaded most of it with its first agent.
beforeAll(async () => {
  await loadToolNames();
}, 120_000);

function createHost() {
  const host = createFakeHost({ stateDir: folder.path });
  host.entries.set(CHILD, { spawnedBy: OWNER, parentSessionKey: OWNER, spawnDepth: 1 });
  host.entries.set(OF_PERSON, { parentSessionKey: OWNER, spawnDepth: 0 });
  return host;
}

async function start({ api } = createHost()) {
  const handlers = createHookHandlers(api);
  folder.stopLater(handlers);
  await handlers.start();
  return handlers;
}

/** The host cannot read its record of sessions until this is undone. */
function breakRecord({ entries }: ReturnType<typeof createHost>): { readonly restore: () => void } {
  const readEntry = entries.get.bind(entries);
  entries.get = () => {
    throw new Error("database is locked");
  };
  return {
    restore: () => {
      entries.get = readEntry;
    },
  };
}

const contextOf = (sessionKey: string): HookContext<"before_tool_call"> =>
  ({ sessionKey, agentId: "main", trace: { traceId: "t".repeat(32) } }) as never;

const eventOf = (toolName: string, params: object = {}): HookEvent<"before_tool_call"> =>
  ({ toolName, toolCallId: `call of ${toolName}`, runId: "run", params }) as never;

describe("a visible child", () => {
  it("is refused its calls where the ledger does not say what it may do; a person's session goes on", async () => {
    const { api } = createHost();
    const use = (): Promise<never> => Promise.reject(new CoordinationError("LEDGER_BUSY", "locked"));
    const privileges = createPrivilegeHandlers({
      api,
      use,
      quietly: use,
      parents: createSessionParents(api),
    });
    await (await start()).stop();
    expect(await privileges.refuseCall(eventOf("exec"), contextOf(CHILD))).toMatchObject({
      block: true,
      blockReason: expect.stringContaining("cannot be told now") as string,
    });
    expect(await privileges.refuseCall(eventOf("exec"), contextOf(OF_PERSON))).toBeUndefined();
  });

  it("is held before the hook behind its spawn has recorded who it is", async () => {
    const handlers = await start();
    const params = { task: "x", visible: true, coordination: { tools: { allow: ["read"] } } };
    const event = eventOf("sessions_spawn", params);
    const before = await handlers.beforeSpawn(event, contextOf(OWNER));
    const early = handlers.beforeCall(eventOf("exec", { command: "true" }), contextOf(CHILD));
    const details = { status: "accepted", childSessionKey: CHILD, runId: "run of the child" };
    await handlers.afterSpawn({ ...event, ...before, result: { details } }, contextOf(OWNER));
    expect((await early)?.blockReason).toMatch(/may not use exec/u);
  });

  it("waits for its turn while its provider refuses calls; a person's session does not", async () => {
    const handlers = await start();
    const refused = { runId: "run-1", callId: "call-1", provider: "mock", model: "scripted" };
    noteModelCall({ ...refused, sessionKey: CHILD });
    findRuntime()?.providers?.callRefused({ provider: "mock", session: CHILD }, 3_600_000);
    const ended: string[] = [];
    const begin = async (sessionKey: string): Promise<void> => {
      const context = { sessionKey, modelProviderId: "mock" };
      await handlers.beforePromptBuild({ prompt: "work", messages: [] }, context);
      ended.push(sessionKey);
    };
    const ofChild = begin(CHILD);
    await begin(OF_PERSON);
    expect(ended).toEqual([OF_PERSON]);
    await handlers.stop();
    await ofChild;
  });
});

describe("where the host cannot read its record of sessions", () => {
  it("no hook fails, and a person's session goes on", async () => {
    const host = createHost();
    const handlers = await start(host);
    breakRecord(host);
    const event = eventOf("exec", { command: "true" });
    const context = contextOf(OF_PERSON);
    const turn = { sessionKey: OF_PERSON, modelProviderId: "mock" };
    await handlers.beforePromptBuild({ prompt: "work", messages: [] }, turn);
    expect(await handlers.beforeCall(event, context)).toBeUndefined();
    await handlers.afterCall({ ...event, error: "it failed" }, context);
  });

  it("a child that was found stays one, and one that was not found is looked up again", () => {
    const host = createHost();
    const other = CHILD.replace("6f9e", "7a0f");
    host.entries.set(other, { spawnedBy: OWNER });
    const { isChild } = createSessionParents(host.api);
    expect(isChild(CHILD)).toBe(true);
    const { restore } = breakRecord(host);
    expect([isChild(CHILD), isChild(other)]).toEqual([true, false]);
    restore();
    expect(isChild(other)).toBe(true);
  });
});
