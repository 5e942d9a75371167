/** Owns: how children are held where not all of the agents above them are coordinated. */
import { beforeAll, expect, it } from "vitest";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext, HookEvent, OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { readSessionAgent } from "../../src/plugins/openclaw/host/session-entry.ts";
import { createPlanTools } from "../../src/plugins/openclaw/plans/plan-tools.ts";
import { createSessionParents } from "../../src/plugins/openclaw/privileges/session-parents.ts";
import { loadToolNames } from "../../src/plugins/openclaw/privileges/tool-names.ts";
import { createPlanAccess } from "../../src/plugins/openclaw/runtime-access/plan-access.ts";
import { createFakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const OWNER = "agent:main:main";
const CODER = "agent:coder:subagent:1";
const GRANDCHILD = "agent:main:subagent:2";
const PHASE1 = { agents: ["main"], acpAgents: { program: { command: "none" } } };

const folder = useStateFolder();
let handlers: HookHandlers;
let api: OpenClawPluginApi;
let calls = 0;

// A gateway has loaded most of it with its first agent.
beforeAll(async () => {
  await loadToolNames();
}, 120_000);

const contextOf = (sessionKey: string): HookContext<"before_tool_call"> =>
  ({ sessionKey, agentId: readSessionAgent(sessionKey), trace: { traceId: "t".repeat(32) } }) as never;

async function spawn(by: string, child: string, params: object): Promise<string | undefined> {
  calls += 1;
  const call = { toolName: "sessions_spawn", toolCallId: `call-${calls}`, runId: "run" };
  const event: HookEvent<"before_tool_call"> = { ...call, params: { task: "work", ...params } };
  const context = contextOf(by);
  const before = await handlers.beforeSpawn(event, context);
  if (before?.block) return before.blockReason;
  const details = { status: "accepted", childSessionKey: child, runId: `run of ${child}` };
  await handlers.afterSpawn({ ...event, ...before, result: { details } }, context);
  return undefined;
}

/** A listed agent has a child which may not use `exec`, of an agent that is not listed. */
async function startHeldCoder(): Promise<void> {
  const tools = { deny: ["exec"] };
  const host = createFakeHost({ stateDir: folder.path, phase1: PHASE1 });
  ({ api } = host);
  handlers = createHookHandlers(api);
  folder.stopLater(handlers);
  await handlers.start();
  expect(await spawn(OWNER, CODER, { agentId: "coder", coordination: { tools } })).toBeUndefined();
  host.entries.set(GRANDCHILD, { spawnedBy: CODER });
}

it("begins no ACP agent, whose calls cannot be seen, for a held child of an agent that is not listed", async () => {
  await startHeldCoder();
  const spawnAcp = (by: string) => spawn(by, "agent:other:acp:1", { runtime: "acp", agentId: "other" });
  expect(await spawnAcp(CODER)).toMatch(/cannot be seen/u);
  expect(await spawnAcp(GRANDCHILD)).toMatch(/cannot be seen/u);
  expect(await spawnAcp("agent:coder:main")).toBeUndefined();
  expect(await spawn(CODER, GRANDCHILD, { agentId: "main" })).toBeUndefined();
});

it("begins none in a plan either of a session that comes from a held child on a way the ledger does not know", async () => {
  await startHeldCoder();
  const tools = createPlanTools(createPlanAccess(api), () => true, createSessionParents(api).parentOf);
  const submit = (sessionKey: string) =>
    tools(
      "coordination_plan",
      { sessionKey, agentId: "main" },
      { plan: { objective: "o", steps: [{ stepId: "a", agent: "program", task: "do a" }] } },
    );
  expect(await submit(GRANDCHILD)).toMatchObject({
    status: "refused",
    problems: [{ code: "PRIVILEGE_UNENFORCEABLE" }],
  });
});
