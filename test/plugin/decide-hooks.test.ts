import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { HookDecision } from "../../src/plugins/hooks/hook-types.ts";
import { createHookHost } from "../../src/plugins/hooks/hook-host.ts";
import { sampleContest, sampleDecision } from "../../src/plugins/hooks/testing.ts";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import {
  findRuntime,
  noteStartFailure,
  type SharedRuntime,
} from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { SPAWN_DECIDE_MS } from "../../src/plugins/openclaw/spawns/spawn-decision.ts";
import { SPAWN_BUDGET_MS } from "../../src/plugins/openclaw/spawns/spawn-handlers.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeHost } from "./fake-host.ts";
import { waitForever, createPlugin, throwSecret } from "./hooks-parts.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const folder = useStateFolder();
// Before the handlers are stopped: of several clean-ups the last one runs first.
afterEach(() => void vi.useRealTimers());

async function startHandlers(phase1: Record<string, unknown> = {}): Promise<HookHandlers> {
  const { api } = createFakeHost({ stateDir: folder.path, phase1 });
  const { agent } = api.runtime;
  // A host tells of the folders of its agents.
  const session = { ...agent.session, getSessionEntry: () => undefined };
  Object.assign(api.runtime, {
    config: { current: () => ({}) },
    agent: { ...agent, session, resolveAgentWorkspaceDir: () => folder.path },
  });
  const handlers = createHookHandlers(api);
  folder.stopLater(handlers);
  await handlers.start();
  return handlers;
}

interface SpawnFields {
  readonly params?: Record<string, unknown>;
  readonly sessionKey?: string;
  readonly agentId?: string;
  readonly runId?: string;
}

const quiet = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };

let calls = 0;

async function spawn(handlers: HookHandlers, spawning: SpawnFields = {}): Promise<object> {
  const { params = { task: "secret work" }, sessionKey = "agent:main:main" } = spawning;
  const { agentId = "main", runId = "run-1" } = spawning;
  calls += 1;
  const call = { toolName: "sessions_spawn", toolCallId: `call-${calls}`, runId, params };
  const context = { sessionKey, agentId, runId } as unknown as HookContext<"before_tool_call">;
  const answer = await handlers.beforeSpawn(call, context);
  if (answer && "params" in answer) {
    const result = { details: { status: "accepted", childSessionKey: childOf(calls), runId: "child" } };
    await handlers.afterSpawn({ ...call, params: answer.params ?? {}, result }, context);
  }
  return answer ?? {};
}

const childOf = (call: number): string => `agent:main:subagent:${call}`;
const REFUSED = "Coordination refused this spawn:";
/** The host blocks the spawn of a hook that takes longer. */
const HOST_LIMIT_MS = 10_000;

const wait = (ms: number): Promise<undefined> =>
  new Promise((resolve) => setTimeout(() => resolve(undefined), ms));

/** Puts another runtime into the place that all module instances share, without closing what was there. */
function replaceForTest(next: Partial<SharedRuntime>): SharedRuntime {
  const holder = globalThis as Record<symbol, unknown>;
  const previous = findRuntime()!;
  holder[Symbol.for("openclaw-coordination.runtime")] = next;
  return previous;
}

/** How many steps the ledger has, in whatever coordination. */
function countAdmitted(): number {
  const ledger = new Database(join(folder.path, "coordination", "ledger.sqlite"), { readonly: true });
  try {
    const row = ledger.prepare("select count(*) as count from event where type = 'step.admitted'").get();
    return (row as { count: number }).count;
  } finally {
    ledger.close();
  }
}

/** Nothing can open this as a ledger. */
function breakLedger(): void {
  mkdirSync(join(folder.path, "coordination"), { recursive: true });
  writeFileSync(join(folder.path, "coordination", "ledger.sqlite"), "not a database");
}

describe("a spawn that plugins decide about", () => {
  it("is refused in words for its model, and nothing of it is recorded", async () => {
    createPlugin({ decide: () => ({ action: "deny", reason: "No more helpers." }) });
    const handlers = await startHandlers();
    expect(await spawn(handlers)).toEqual({
      block: true,
      blockReason: `${REFUSED} the plugin guard denied it: No more helpers.`,
    });
    expect(countAdmitted()).toBe(0);
  });

  it("is asked about by who, for whom and how deep, and not by what", async () => {
    const decisions: HookDecision[] = [];
    createPlugin({ decide: (decision) => void decisions.push(decision) });
    const handlers = await startHandlers();
    await spawn(handlers, { params: { task: "secret work", agentId: "writer" } });
    const child = childOf(calls);
    await spawn(handlers, { sessionKey: child, params: { task: "secret work", runtime: "acp" } });
    await spawn(handlers, { sessionKey: child });
    const grandchild = childOf(calls);
    await spawn(handlers, { sessionKey: grandchild });
    const coordinationId = expect.stringMatching(/^co-/u) as string;
    expect(decisions).toEqual([
      { kind: "spawn", agentId: "writer", sourceSession: "agent:main:main", runner: "subagent", depth: 1 },
      { kind: "spawn", agentId: "main", sourceSession: child, runner: "acp", depth: 2, coordinationId },
      { kind: "spawn", agentId: "main", sourceSession: child, runner: "subagent", depth: 2, coordinationId },
      {
        kind: "spawn",
        agentId: "main",
        sourceSession: grandchild,
        runner: "subagent",
        depth: 3,
        coordinationId,
      },
    ]);
    expect(countAdmitted()).toBe(4);
  });

  it("is refused where a plugin is less sure than the operator's floor, because it cannot wait for people", async () => {
    createPlugin({ decide: () => ({ action: "allow", confidence: 0.59 }) });
    const handlers = await startHandlers({ gates: { decisionFloor: 0.6 } });
    const { blockReason } = (await spawn(handlers)) as { blockReason: string };
    expect(blockReason).toContain(
      "the plugin guard is not sure enough of it (0.59, and the operator's floor is 0.6)",
    );
    expect(blockReason).toContain("coordination_plan");
    expect(countAdmitted()).toBe(0);
  });

  it("goes on where plugins are as sure as the floor, or have no opinion", async () => {
    createPlugin({ decide: () => ({ action: "allow", confidence: 0.6 }) });
    createPlugin({ decide: () => undefined }, "other");
    const handlers = await startHandlers({ gates: { decisionFloor: 0.6 } });
    expect(await spawn(handlers)).toHaveProperty("params.coordination");
  });

  describe("under policy packs", () => {
    const createPack = (gates: object) => ({ version: "1.0.0", settings: { gates } });
    const phase1 = {
      policies: {
        packs: { careful: createPack({ decisionFloor: 0.9 }), fast: createPack({ enabled: false }) },
        rules: [
          { session: "agent:main:main", pack: "careful" },
          { session: "agent:main:quick", pack: "fast" },
        ],
      },
    };
    const describeDoubt = (confidence: number, floor: number): unknown => ({
      block: true,
      blockReason: expect.stringContaining(`(${confidence}, and the operator's floor is ${floor})`) as string,
    });
    const admitted: unknown = {
      params: expect.objectContaining({ coordination: expect.anything() as unknown }) as unknown,
    };
    let confidence = 1;

    beforeEach(() => {
      createPlugin({ decide: () => ({ action: "allow", confidence }) });
    });

    it("is refused by the floor of the pack that holds for its session", async () => {
      const handlers = await startHandlers(phase1);
      confidence = 0.7;
      expect(await spawn(handlers)).toEqual(describeDoubt(0.7, 0.9));
      expect(await spawn(handlers, { sessionKey: "agent:main:other" })).toEqual(admitted);
      confidence = 0.3;
      expect(await spawn(handlers, { sessionKey: "agent:main:quick" })).toEqual(admitted);
      expect(await spawn(handlers, { sessionKey: "agent:main:other" })).toEqual(describeDoubt(0.3, 0.5));
    });

    it("is refused by the floor of its owner's pack where a child spawns", async () => {
      const handlers = await startHandlers(phase1);
      confidence = 1;
      await spawn(handlers);
      const child = childOf(calls);
      confidence = 0.7;
      expect(await spawn(handlers, { sessionKey: child })).toEqual(describeDoubt(0.7, 0.9));
      confidence = 0.9;
      expect(await spawn(handlers, { sessionKey: child })).toEqual(admitted);
    });

    it("is refused by the floor of the open coordination's pack after the rules have changed", async () => {
      const decisions: HookDecision[] = [];
      createPlugin({ decide: (decision) => void decisions.push(decision) }, "watcher");
      const handlers = await startHandlers(phase1);
      confidence = 1;
      await spawn(handlers);
      const { policies } = findRuntime()!;
      replaceForTest({ ...findRuntime()!, policies: { ...policies!, choose: () => undefined } });
      confidence = 0.7;
      expect(await spawn(handlers)).toEqual(describeDoubt(0.7, 0.9));
      const coordinationId = expect.stringMatching(/^co-/u) as string;
      expect(decisions.at(-1)).toMatchObject({ coordinationId, depth: 1 });
      expect(await spawn(handlers, { runId: "run-2" })).toEqual(admitted);
    });

    it("of a child whose coordination has ended is in its own, under the pack of the one that has ended", async () => {
      const decisions: HookDecision[] = [];
      createPlugin({ decide: (decision) => void decisions.push(decision) }, "watcher");
      const handlers = await startHandlers({ ...phase1, settleMs: 0 });
      confidence = 1;
      await spawn(handlers);
      const child = childOf(calls) as SessionKey;
      const coordinator = await findRuntime()!.coordinator();
      const { coordinationId } = (await coordinator.envelopeForChild(child))!;
      await coordinator.endChild(child, { outcome: "completed" });
      await vi.waitFor(async () => {
        expect(await coordinator.view(coordinationId)).toMatchObject({ status: "success" });
      }, 30_000);
      await spawn(handlers, { sessionKey: child, runId: "late" });
      const opened = await coordinator.envelopeForChild(childOf(calls) as SessionKey);
      confidence = 0.7;
      expect(await spawn(handlers, { sessionKey: child, runId: "late" })).toEqual(describeDoubt(0.7, 0.9));
      const described = {
        kind: "spawn",
        agentId: "main",
        sourceSession: child,
        runner: "subagent",
        depth: 1,
      };
      expect(decisions.slice(1)).toEqual([
        described,
        { ...described, coordinationId: opened!.coordinationId },
      ]);
    });

    it("is refused by the highest floor of all where the ledger cannot tell whose it is", async () => {
      breakLedger();
      const handlers = await startHandlers(phase1);
      confidence = 0.7;
      expect(await spawn(handlers, { sessionKey: "agent:main:quick" })).toEqual(describeDoubt(0.7, 0.9));
      confidence = 0.95;
      expect(await spawn(handlers, { sessionKey: "agent:main:quick" })).toEqual({});
    });
  });

  it("is refused where a plugin fails, also where nothing else is strict", async () => {
    createPlugin({ decide: throwSecret });
    const handlers = await startHandlers({ strict: false });
    expect(await spawn(handlers)).toEqual({
      block: true,
      blockReason: `${REFUSED} the hook decide of the plugin guard threw an error`,
    });
  });

  it("is refused where nobody can tell who would work", async () => {
    createPlugin({ decide: () => ({ action: "allow" }) });
    const handlers = await startHandlers();
    expect(await spawn(handlers, { agentId: "a".repeat(600) })).toMatchObject({ block: true });
  });

  it("is refused by the plugin's name before the host gives up", async () => {
    createPlugin({ decide: { run: waitForever, budgetMs: 10_000 } });
    const handlers = await startHandlers();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    const answer = spawn(handlers);
    await vi.advanceTimersByTimeAsync(SPAWN_DECIDE_MS);
    vi.useRealTimers();
    expect(await answer).toEqual({
      block: true,
      blockReason: `${REFUSED} the hook decide of the plugin guard did not answer within ${SPAWN_DECIDE_MS} ms`,
    });
  });

  it("is answered within one budget, also where a reload, a plugin and the ledger are slow together", async () => {
    createPlugin({ decide: { run: () => wait(2_000), budgetMs: 10_000 } });
    const handlers = await startHandlers();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "Date", "performance"] });
    const runtime = replaceForTest({ closed: true });
    const startedAtMs = Date.now();
    let answeredAfterMs: number | undefined;
    void spawn(handlers).then(() => (answeredAfterMs = Date.now() - startedAtMs));
    await vi.advanceTimersByTimeAsync(1_900);
    const coordinator = { ...(await runtime.coordinator()), admitSpawn: waitForever };
    replaceForTest({ ...runtime, coordinator: () => Promise.resolve(coordinator) });
    await vi.advanceTimersByTimeAsync(HOST_LIMIT_MS);
    replaceForTest(runtime);
    expect(answeredAfterMs).toBeLessThanOrEqual(SPAWN_BUDGET_MS);
    expect(SPAWN_BUDGET_MS).toBeLessThan(HOST_LIMIT_MS);
  });

  it("is denied also while the ledger cannot be opened, which lets others go on", async () => {
    breakLedger();
    let action: "allow" | "deny" = "allow";
    createPlugin({ decide: () => ({ action }) });
    const handlers = await startHandlers();
    expect(await spawn(handlers)).toEqual({});
    action = "deny";
    expect(await spawn(handlers)).toMatchObject({ block: true });
  });

  it.each([
    ["of another runner", false, { task: "secret work", runtime: "acp" }],
    ["of a session with a compacted history", true, { task: "secret work" }],
  ])("is denied while the ledger cannot be opened, also one %s", async (_which, isCompacted, params) => {
    breakLedger();
    createPlugin({ decide: () => ({ action: "deny", reason: "No more helpers." }) });
    const handlers = await startHandlers();
    const compactions = { ...findRuntime()!.compactions, find: () => ({ atMs: 1 as EpochMs }) };
    if (isCompacted) replaceForTest({ ...findRuntime()!, compactions });
    expect(await spawn(handlers, { params })).toEqual({
      block: true,
      blockReason: `${REFUSED} the plugin guard denied it: No more helpers.`,
    });
  });

  it("is refused where no plugin could be asked, because coordination could not start", async () => {
    const handlers = await startHandlers({ agents: ["main"] });
    const runtime = replaceForTest({ closed: true });
    noteStartFailure(new Error("no"));
    expect(await spawn(handlers)).toEqual({});
    createPlugin({ decide: () => ({ action: "allow" }) });
    const refused = await spawn(handlers);
    const unlisted = await spawn(handlers, { agentId: "writer" });
    replaceForTest(runtime);
    noteStartFailure(undefined);
    expect(refused).toEqual({
      block: true,
      blockReason: `${REFUSED} the plugins that decide about spawns could not be asked`,
    });
    expect(unlisted).toEqual({});
  });

  it("is not asked about where its agent is not coordinated", async () => {
    createPlugin({ decide: throwSecret });
    const handlers = await startHandlers({ agents: ["writer"] });
    expect(await spawn(handlers)).toEqual({});
  });
});

describe("a contested write that plugins rule on", () => {
  const write = (handlers: HookHandlers, sessionKey: string): Promise<unknown> => {
    calls += 1;
    const params = { path: join(folder.path, "notes.md"), content: "x" };
    const call = { toolName: "write", toolCallId: `call-${calls}`, runId: "run-1", params };
    const context = { sessionKey, agentId: "main", runId: "run-1" };
    return handlers.beforeCall(call, context as unknown as HookContext<"before_tool_call">);
  };

  it.each([
    ["refused in its words", "holder", "the plugin guard ruled so: Mine."],
    ["let happen, once the other call has ended", "requester", "is being changed just now"],
  ] as const)("is %s where it rules for the %s", async (_what, award, words) => {
    createPlugin({ arbitrate: () => ({ award, reason: "Mine." }) });
    const handlers = await startHandlers();
    await spawn(handlers);
    const first = childOf(calls);
    await spawn(handlers);
    const second = childOf(calls);
    expect(await write(handlers, first)).toBeUndefined();
    expect(await write(handlers, second)).toMatchObject({
      block: true,
      blockReason: expect.stringContaining(words) as string,
    });
  });
});

describe("the time that a caller gives the plugins", () => {
  const describeProblem = (kind: string, ms: number): string =>
    `the hook ${kind} of the plugin guard did not answer within ${ms} ms`;

  it("ends what a plugin may take, and never makes it more", async () => {
    createPlugin({
      arbitrate: { run: waitForever, budgetMs: 10_000 },
      decide: { run: waitForever, budgetMs: 10_000 },
    });
    const clock = createFakeClock();
    const hooks = createHookHost({ clock, logger: quiet });
    for (const [givenMs, takenMs] of [
      [700, 700],
      [60_000, 10_000],
    ] as const) {
      const untilMs = clock.now() + givenMs;
      const ruling = hooks.arbitrate(sampleContest(), untilMs);
      const decision = hooks.decide(sampleDecision(), untilMs);
      await clock.advance(takenMs);
      expect(await ruling).toEqual({ failed: "guard", message: describeProblem("arbitrate", takenMs) });
      expect(await decision).toMatchObject({ action: "deny", reason: describeProblem("decide", takenMs) });
    }
  });
});
