import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import { LINT } from "../core/gates-world.ts";
import { createFakeHost } from "./fake-host.ts";
import { createPlugin } from "./hooks-parts.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const folder = useStateFolder();

const CHECKS = { verifiers: { lint: LINT }, agents: { helper: { checks: ["lint"] } } };
const ACP = { task: "t", runtime: "acp", agentId: "helper" };

async function startHandlers(phase1: Record<string, unknown>, config: object = {}): Promise<HookHandlers> {
  const { api } = createFakeHost({ stateDir: folder.path, phase1 });
  Object.assign(api.runtime, { config: { current: () => config } });
  const handlers = createHookHandlers(api);
  folder.stopLater(handlers);
  await handlers.start();
  return handlers;
}

let calls = 0;

function spawn(handlers: HookHandlers, params: Record<string, unknown>): Promise<unknown> {
  calls += 1;
  const context = { sessionKey: "agent:main:main", agentId: "main", runId: "run-1" };
  return handlers.beforeSpawn(
    { toolName: "sessions_spawn", toolCallId: `call-${calls}`, runId: "run-1", params },
    context as unknown as HookContext<"before_tool_call">,
  );
}

const REFUSED = { block: true, blockReason: expect.stringContaining('runtime "subagent"') as string };

function breakLedger(): void {
  mkdirSync(join(folder.path, "coordination"), { recursive: true });
  writeFileSync(join(folder.path, "coordination", "ledger.sqlite"), "not a database");
}

describe("a spawn over ACP, whose result cannot be held back", () => {
  it.each([
    ["checks of its agent are demanded", CHECKS],
    ["its agent must state a confidence", { agents: { helper: { requireConfidence: true } } }],
    [
      "every agent must state a confidence",
      { requireConfidence: true, agents: { other: { requireConfidence: false } } },
    ],
  ])("is refused in words for its model where %s, strict or not", async (_, gates) => {
    for (const strict of [false, true]) {
      const handlers = await startHandlers({ gates, strict });
      expect(await spawn(handlers, ACP)).toMatchObject(REFUSED);
      expect(await spawn(handlers, { ...ACP, agentId: " HELPER" })).toMatchObject(REFUSED);
      const { agentId, ...unnamed } = ACP;
      expect(await spawn(handlers, { ...unnamed, agent_id: agentId })).toMatchObject(REFUSED);
      expect(await spawn(handlers, { ...ACP, agentId: "other" })).toHaveProperty("params.coordination");
      expect(await spawn(handlers, { ...ACP, runtime: "subagent" })).toHaveProperty("params.coordination");
    }
  });

  it("is refused where a plugin verifies results of its agent", async () => {
    createPlugin({ verify: { run: () => ({ verdict: "pass" }), agents: ["helper"] } });
    const handlers = await startHandlers({});
    expect(await spawn(handlers, ACP)).toMatchObject(REFUSED);
    expect(await spawn(handlers, { ...ACP, agentId: "other" })).toHaveProperty("params.coordination");
  });

  it.each([false, true])(
    "is refused also while the ledger cannot be opened, which lets others go on (strict: %s)",
    async (strict) => {
      breakLedger();
      const handlers = await startHandlers({ gates: CHECKS, strict });
      expect(await spawn(handlers, ACP)).toMatchObject(REFUSED);
      const other = await spawn(handlers, { ...ACP, agentId: "other" });
      expect(other).toEqual(strict ? { block: true, blockReason: expect.any(String) as string } : undefined);
    },
  );

  it("without an agent is of the host's default agent for ACP, and never of the caller's", async () => {
    const handlers = await startHandlers({ gates: CHECKS }, { acp: { defaultAgent: "Helper" } });
    const { agentId: _, ...unnamed } = ACP;
    expect(await spawn(handlers, unnamed)).toMatchObject(REFUSED);
    for (const noName of [{ agentId: " " }, { agentId: " ", agent_id: "other" }, { agent_id: 7 }])
      expect(await spawn(handlers, { ...unnamed, ...noName })).toMatchObject(REFUSED);
    expect(await spawn(handlers, { ...unnamed, runtime: "subagent" })).toHaveProperty("params.coordination");
  });

  it("goes on where its agent is not coordinated, or gates are off", async () => {
    expect(await spawn(await startHandlers({ gates: CHECKS, agents: ["writer"] }), ACP)).toBeUndefined();
    const off = await startHandlers({ gates: { ...CHECKS, enabled: false } });
    expect(await spawn(off, ACP)).toHaveProperty("params.coordination");
  });

  it("goes on where only a stated doubt would hold its result", async () => {
    const handlers = await startHandlers({ gates: { confidenceThreshold: 0.9 } });
    expect(await spawn(handlers, ACP)).toHaveProperty("params.coordination");
  });
});
