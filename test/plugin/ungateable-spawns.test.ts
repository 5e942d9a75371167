import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import { readHealthBeside } from "../../src/plugins/ledger-reader.ts";
import { findRuntime, type SharedRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
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

const nameLedger = (): string => join(folder.path, "coordination", "ledger.sqlite");

function breakLedger(): void {
  mkdirSync(join(folder.path, "coordination"), { recursive: true });
  writeFileSync(nameLedger(), "not a database");
}

function requireRuntime(): SharedRuntime {
  return findRuntime() ?? expect.fail("there is no runtime");
}

/** Returns the steps that the ledger has admitted, as it records them, in order. */
function readAdmitted(): string[] {
  const ledger = new Database(nameLedger(), { readonly: true });
  try {
    const query = "select payload from event where type = 'step.admitted' order by event_key";
    return ledger.prepare<[], string>(query).pluck().all();
  } finally {
    ledger.close();
  }
}

const listAgents = (): string[] =>
  readAdmitted().map((payload) => (JSON.parse(payload) as { readonly agentId: string }).agentId);

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

describe("a collector whose result has a form that its spawn asked for", () => {
  const COLLECTOR = { task: "t", collect: true, outputSchema: { type: "object" }, agentId: "helper" };
  const REFUSED_FORM = {
    block: true,
    blockReason: expect.stringContaining("without outputSchema") as string,
  };

  it.each([false, true])("is refused where its result must be checked (strict: %s)", async (strict) => {
    const handlers = await startHandlers({ gates: CHECKS, strict });
    expect(await spawn(handlers, COLLECTOR)).toMatchObject(REFUSED_FORM);
    expect(await spawn(handlers, { ...COLLECTOR, outputSchema: {} })).toMatchObject(REFUSED_FORM);
    const { outputSchema: _, ...inWords } = COLLECTOR;
    expect(await spawn(handlers, inWords)).toHaveProperty("params.coordination");
  });

  it("goes on where nothing but a stated doubt would hold its result, and the form is not recorded", async () => {
    const handlers = await startHandlers({ gates: CHECKS });
    expect(await spawn(handlers, { ...COLLECTOR, agentId: "other" })).toHaveProperty("params.coordination");
    expect(readAdmitted()).toEqual([expect.not.stringMatching(/schema/iu) as string]);
  });
});

describe("a collector whose spawn names no agent", () => {
  const COLLECTOR = { task: "t", collect: true };

  it("has the gate of the host's default agent for collectors", async () => {
    const handlers = await startHandlers(
      { gates: CHECKS },
      { tools: { swarm: { defaultAgentId: " Helper " } } },
    );
    expect(await spawn(handlers, { ...COLLECTOR, outputSchema: {} })).toHaveProperty("block", true);
    await spawn(handlers, COLLECTOR);
    await spawn(handlers, { ...COLLECTOR, agentId: "other" });
    await spawn(handlers, { task: "t" });
    expect(listAgents()).toEqual(["helper", "other", "main"]);
  });

  it.each([
    ["its own default agent", { tools: { swarm: { defaultAgentId: "writer" } } }, "writer"],
    ["its own empty default", { tools: { swarm: { defaultAgentId: "" } } }, "main"],
    ["other settings of its own", { tools: { swarm: { maxConcurrent: 2 } } }, "helper"],
    ["nothing but a switch of its own", { tools: { swarm: true } }, "helper"],
    ["no settings of its own", {}, "helper"],
  ])("runs the agent that the host takes where the requester has %s", async (_, entry, agent) => {
    const swarm = { defaultAgentId: "helper" };
    const handlers = await startHandlers({}, { tools: { swarm }, agents: { entries: { Main: entry } } });
    await spawn(handlers, COLLECTOR);
    expect(listAgents()).toEqual([agent]);
  });
});

describe("a spawn that cannot be recorded though its result must be checked", () => {
  const GATED = { task: "t", agentId: "helper" };
  const REFUSED_UNRECORDED = {
    block: true,
    blockReason: expect.stringMatching(/results of agent helper must be checked, and .*recorded/u) as string,
  };

  it("is refused while the ledger can be read and not written, which lets others go on", async () => {
    const handlers = await startHandlers({ gates: CHECKS });
    await spawn(handlers, { task: "t" });
    const other = new Database(nameLedger());
    other.exec("begin immediate");
    expect(await spawn(handlers, GATED)).toMatchObject(REFUSED_UNRECORDED);
    expect(readHealthBeside(nameLedger())).toMatchObject({
      state: "degraded",
      failure: { code: "LEDGER_BUSY" },
      uncoordinatedSpawns: 0,
    });
    expect(await spawn(handlers, { task: "t" })).toBeUndefined();
    other.exec("rollback");
    other.close();
    expect(await spawn(handlers, GATED)).toHaveProperty("params.coordination");
  });

  it("is refused while the ledger cannot be opened", async () => {
    breakLedger();
    const handlers = await startHandlers({ gates: CHECKS });
    expect(await spawn(handlers, GATED)).toMatchObject(REFUSED_UNRECORDED);
    expect(await spawn(handlers, { task: "t" })).toBeUndefined();
  });

  it("is refused where its coordination takes no more steps, which lets others go on", async () => {
    const handlers = await startHandlers({ gates: CHECKS });
    const runtime = requireRuntime();
    const coordinator = await runtime.coordinator();
    const refused = { kind: "refused", code: "TOO_MANY_STEPS", reason: "there are too many steps" } as const;
    const full = { ...coordinator, admitSpawn: () => Promise.resolve(refused) };
    const holder = globalThis as Record<symbol, unknown>;
    const fullRuntime = { ...runtime, coordinator: () => Promise.resolve(full) };
    holder[Symbol.for("openclaw-coordination.runtime")] = fullRuntime;
    expect(await spawn(handlers, GATED)).toMatchObject(REFUSED_UNRECORDED);
    expect(await spawn(handlers, { task: "t" })).toBeUndefined();
    holder[Symbol.for("openclaw-coordination.runtime")] = runtime;
  });

  it("goes on once a changed configuration is refused, but not where its child is to be held to privileges", async () => {
    const gates = { ...CHECKS, agents: { ...CHECKS.agents, reader: { checks: ["lint"] } } };
    const phase1 = { gates, privileges: { agents: { reader: { tools: { deny: ["exec"] } } } } };
    const handlers = await startHandlers(phase1);
    await handlers.stop();
    const changed = createFakeHost({ stateDir: folder.path, phase1: { ...phase1, leaseMs: "long" } });
    const next = createHookHandlers(changed.api);
    await expect(next.start()).rejects.toThrow("leaseMs");
    for (const params of [GATED, ACP, { ...GATED, collect: true, outputSchema: {} }])
      expect(await spawn(next, params)).toBeUndefined();
    expect(await spawn(next, { task: "t", agentId: "reader" })).toMatchObject({
      block: true,
      blockReason: expect.stringContaining("what its child may do is narrowed") as string,
    });
  });

  it("goes on where the spawns of the agent that asks are not coordinated", async () => {
    breakLedger();
    const handlers = await startHandlers({ gates: CHECKS, agents: ["writer"] });
    expect(await spawn(handlers, GATED)).toBeUndefined();
  });
});
