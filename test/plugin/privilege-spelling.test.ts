/** Owns: that the operator's rules hold for an agent, however a model or an operator spells its id. */
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext, HookEvent } from "../../src/plugins/openclaw/host/sdk.ts";
import { loadToolNames } from "../../src/plugins/openclaw/privileges/tool-names.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { createFakeHost } from "./fake-host.ts";

const OWNER = "agent:main:main";
const CHILD = "agent:coder:subagent:1";
let folder: TempFolder;
let handlers: HookHandlers;
let calls = 0;

beforeAll(async () => {
  await loadToolNames();
}, 120_000);

beforeEach(() => {
  folder = createTempFolder();
});

afterEach(async () => {
  await handlers.stop();
  folder[Symbol.dispose]();
});

async function start(phase1: Record<string, unknown>): Promise<void> {
  handlers = createHookHandlers(createFakeHost({ stateDir: folder.path, phase1 }).api);
  await handlers.start();
}

function contextOf(sessionKey: string): HookContext<"before_tool_call"> {
  return { sessionKey, agentId: "main", runId: `run of ${sessionKey}` } as never;
}

function eventOf(toolName: string, params: Record<string, unknown>): HookEvent<"before_tool_call"> {
  calls += 1;
  return { toolName, toolCallId: `call-${calls}`, runId: "run", params };
}

async function spawn(params: Record<string, unknown>): Promise<string | undefined> {
  const event = eventOf("sessions_spawn", { task: "work", ...params });
  const before = await handlers.beforeSpawn(event, contextOf(OWNER));
  if (before?.block) return before.blockReason;
  const details = { status: "accepted", childSessionKey: CHILD, runId: "run of the child" };
  await handlers.afterSpawn({ ...event, ...before, result: { details } }, contextOf(OWNER));
  return undefined;
}

const SPELLINGS = ["coder", "Coder", " coder", "CODER "];

describe("the operator's rule for an agent", () => {
  it.each(SPELLINGS)("holds its children, which a model spawns as %j", async (agentId) => {
    await start({ privileges: { agents: { coder: { tools: { deny: ["exec"] } } } } });
    expect(await spawn({ agentId })).toBeUndefined();
    const answer = await handlers.beforeCall(eventOf("exec", { command: "true" }), contextOf(CHILD));
    expect(answer?.blockReason).toMatch(/may not use exec/u);
  });

  it("holds its children, which a model spawns by the name agent_id", async () => {
    await start({ privileges: { agents: { coder: { tools: { deny: ["exec"] } } } } });
    expect(await spawn({ agent_id: "coder" })).toBeUndefined();
    const answer = await handlers.beforeCall(eventOf("exec", { command: "true" }), contextOf(CHILD));
    expect(answer?.blockReason).toMatch(/may not use exec/u);
    expect(await spawn({ agent_id: "coder", runtime: "acp" })).toMatch(/cannot be seen/u);
  });

  it.each(SPELLINGS)("holds them where the operator writes %j", async (written) => {
    await start({ privileges: { agents: { [written]: { tools: { deny: ["exec"] } } } } });
    expect(await spawn({ agentId: "coder" })).toBeUndefined();
    const answer = await handlers.beforeCall(eventOf("exec", { command: "true" }), contextOf(CHILD));
    expect(answer?.blockReason).toMatch(/may not use exec/u);
  });

  it.each(SPELLINGS)(
    "lets no agent over ACP begin that it could not hold, spawned as %j",
    async (agentId) => {
      await start({ privileges: { agents: { coder: { tools: { deny: ["exec"] } } } } });
      expect(await spawn({ agentId, runtime: "acp" })).toMatch(/cannot be seen/u);
    },
  );

  it.each(["main", "Main", " MAIN"])(
    "bounds how much %j may spend, as the operator writes it",
    async (written) => {
      await start({ budget: { agents: { [written]: { spawns: 1 } } } });
      expect(await spawn({ agentId: "coder" })).toBeUndefined();
      expect(await spawn({ agentId: "coder", task: "other work" })).toMatch(/budget/u);
    },
  );
});
