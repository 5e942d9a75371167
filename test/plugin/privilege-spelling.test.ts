/** Owns: that the operator's rules hold for an agent, however a model or an operator spells its id. */
import { beforeAll, describe, expect, it } from "vitest";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { loadToolNames } from "../../src/plugins/openclaw/privileges/tool-names.ts";
import { createFakeHost } from "./fake-host.ts";
import { createCallContext, createCallEvent } from "./hook-calls.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const OWNER = "agent:main:main";
const CHILD = "agent:coder:subagent:1";
const folder = useStateFolder();
let handlers: HookHandlers;

beforeAll(async () => {
  await loadToolNames();
}, 120_000);

async function start(phase1: Record<string, unknown>): Promise<void> {
  handlers = createHookHandlers(createFakeHost({ stateDir: folder.path, phase1 }).api);
  folder.stopLater(handlers);
  await handlers.start();
}

async function spawn(params: Record<string, unknown>): Promise<string | undefined> {
  const event = createCallEvent("sessions_spawn", { task: "work", ...params });
  const before = await handlers.beforeSpawn(event, createCallContext(OWNER));
  if (before?.block) return before.blockReason;
  const details = { status: "accepted", childSessionKey: CHILD, runId: "run of the child" };
  await handlers.afterSpawn({ ...event, ...before, result: { details } }, createCallContext(OWNER));
  return undefined;
}

const SPELLINGS = ["coder", "Coder", " coder", "CODER "];

describe("the operator's rule for an agent", () => {
  it.each(SPELLINGS)("holds its children, which a model spawns as %j", async (agentId) => {
    await start({ privileges: { agents: { coder: { tools: { deny: ["exec"] } } } } });
    expect(await spawn({ agentId })).toBeUndefined();
    const answer = await handlers.beforeCall(
      createCallEvent("exec", { command: "true" }),
      createCallContext(CHILD),
    );
    expect(answer?.blockReason).toMatch(/may not use exec/u);
  });

  it("holds its children, which a model spawns by the name agent_id", async () => {
    await start({ privileges: { agents: { coder: { tools: { deny: ["exec"] } } } } });
    expect(await spawn({ agent_id: "coder" })).toBeUndefined();
    const answer = await handlers.beforeCall(
      createCallEvent("exec", { command: "true" }),
      createCallContext(CHILD),
    );
    expect(answer?.blockReason).toMatch(/may not use exec/u);
    expect(await spawn({ agent_id: "coder", runtime: "acp" })).toMatch(/cannot be seen/u);
  });

  it.each(SPELLINGS)("holds them where the operator writes %j", async (written) => {
    await start({ privileges: { agents: { [written]: { tools: { deny: ["exec"] } } } } });
    expect(await spawn({ agentId: "coder" })).toBeUndefined();
    const answer = await handlers.beforeCall(
      createCallEvent("exec", { command: "true" }),
      createCallContext(CHILD),
    );
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
