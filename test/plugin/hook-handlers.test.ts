import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  coordinationEnvelopeSchema,
  type CoordinationEnvelope,
} from "../../src/agents/coordination/contracts/envelope.ts";
import type { EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { readHealthBeside } from "../../src/plugins/ledger-reader.ts";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext, HookEvent } from "../../src/plugins/openclaw/host/sdk.ts";
import { accessNarrowedSpawns } from "../../src/plugins/openclaw/runtime-access/narrowed-spawns.ts";
import { findRuntime, type SharedRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { accessOwnerTurns } from "../../src/plugins/openclaw/runtime-access/turns-memory.ts";
import { SPAWN_BUDGET_MS } from "../../src/plugins/openclaw/spawns/spawn-handlers.ts";
import { createFakeHost, type FakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const folder = useStateFolder();
// Before the handlers are stopped: of several clean-ups the last one runs first.
afterEach(() => void vi.useRealTimers());

async function startHandlers(host: FakeHost): Promise<HookHandlers> {
  const handlers = createHookHandlers(host.api);
  folder.stopLater(handlers);
  await handlers.start();
  return handlers;
}

const nameLedger = (): string => join(folder.path, "coordination", "ledger.sqlite");

const context = {
  sessionKey: "agent:main:main",
  agentId: "main",
  runId: "run-1",
  trace: { traceId: "t".repeat(32) },
};
const inContext = context as unknown as HookContext<"before_tool_call">;

function spawnEvent(toolCallId: string, params: Record<string, unknown>): HookEvent<"before_tool_call"> {
  return { toolName: "sessions_spawn", toolCallId, runId: "run-1", params };
}

async function spawn(handlers: HookHandlers, id: string, params: Record<string, unknown> = { task: "work" }) {
  return handlers.beforeSpawn(spawnEvent(id, params), inContext);
}

const createAccepted = (child: string) => ({
  details: { status: "accepted", childSessionKey: child, runId: `run-of-${child}` },
});

describe("a spawn through the hooks", () => {
  it("gets the ledger's envelope in its params, and the child's session entry the bound one", async () => {
    const host = createFakeHost({ stateDir: folder.path });
    const handlers = await startHandlers(host);
    const before = await spawn(handlers, "call-1", { task: "work", label: "helper" });
    const minted = coordinationEnvelopeSchema.parse(
      (before as { params: { coordination: unknown } }).params.coordination,
    );
    expect(minted).toMatchObject({
      stepId: "step-1",
      sourceSession: "agent:main:main",
      targetSession: "unbound",
    });
    const event = {
      ...spawnEvent("call-1", { task: "work", coordination: minted }),
      result: createAccepted("agent:main:subagent:1"),
    };
    await handlers.afterSpawn(event, inContext);
    const entry = host.entries.get("agent:main:subagent:1") as {
      pluginExtensions: { coordination: { envelope: unknown } };
    };
    expect(coordinationEnvelopeSchema.parse(entry.pluginExtensions.coordination.envelope)).toMatchObject({
      coordinationId: minted.coordinationId,
      targetSession: "agent:main:subagent:1",
    });
  });

  it("tells two calls with one id apart by their envelopes", async () => {
    const handlers = await startHandlers(createFakeHost({ stateDir: folder.path }));
    const one = (await spawn(handlers, "same", { task: "one" })) as {
      params: { coordination: { stepId: string } };
    };
    const two = (await spawn(handlers, "same", { task: "two" })) as {
      params: { coordination: { stepId: string } };
    };
    const finish = (params: Record<string, unknown>, child: string) =>
      handlers.afterSpawn({ ...spawnEvent("same", params), result: createAccepted(child) }, inContext);
    await finish(two.params, "agent:main:subagent:two");
    await finish(one.params, "agent:main:subagent:one");
    const prompt = await handlers.beforePromptBuild(
      { prompt: "x", messages: [] },
      {
        ...context,
        sessionKey: "agent:main:subagent:two",
      },
    );
    expect(prompt?.appendSystemContext).toContain(`"stepId":"${two.params.coordination.stepId}"`);
  });

  it("leaves the session entry of an ACP child alone", async () => {
    const host = createFakeHost({ stateDir: folder.path });
    const handlers = await startHandlers(host);
    await spawn(handlers, "call-1", { task: "work", runtime: "acp", agentId: "helper" });
    await handlers.afterSpawn(
      { ...spawnEvent("call-1", {}), result: createAccepted("agent:helper:acp:1") },
      inContext,
    );
    expect(host.entries.size).toBe(0);
  });

  it.each(["Main", " MAIN ", "main"])(
    "is coordinated where its agent is among those to coordinate, in the spelling %j",
    async (spelling) => {
      const host = createFakeHost({ stateDir: folder.path, phase1: { agents: ["research", spelling] } });
      const handlers = await startHandlers(host);
      expect(await spawn(handlers, "call-1")).toHaveProperty("params.coordination.stepId", "step-1");
    },
  );

  it("is let go untouched when its agent is not among those to coordinate", async () => {
    const handlers = await startHandlers(
      createFakeHost({ stateDir: folder.path, phase1: { agents: ["research"] } }),
    );
    expect(await spawn(handlers, "call-1")).toBeUndefined();
  });

  it.each([
    ["no task", {}],
    ["a task of a megabyte", { task: "x".repeat(1_000_000) }],
    ["NUL and lone surrogates", { task: "a\0b\ud800c", label: "\u0000\ud800" }],
    [
      "values of every wrong type",
      { task: 5, label: {}, taskName: [], agentId: 7, runTimeoutSeconds: "soon", collect: "yes", runtime: 3 },
    ],
    ["a label that is a paragraph", { task: "x", label: "word ".repeat(400) }],
    ["an endless time limit", { task: "x", runTimeoutSeconds: Number.MAX_VALUE }],
  ])("with %s goes on and leaves a sound record", async (_, params) => {
    const handlers = await startHandlers(createFakeHost({ stateDir: folder.path }));
    expect(await spawn(handlers, "call-1", params)).toHaveProperty("params.coordination.stepId", "step-1");
  });
});

describe("H2: whatever breaks, a hook answers", () => {
  const listEveryHook = (handlers: HookHandlers) => [
    spawn(handlers, "call-1"),
    handlers.afterSpawn(
      { ...spawnEvent("call-1", {}), result: createAccepted("agent:main:subagent:1") },
      inContext,
    ),
    handlers.subagentEnded({
      targetSessionKey: "agent:main:subagent:1",
      targetKind: "subagent",
      reason: "x",
    }),
    handlers.beforePromptBuild({ prompt: "x", messages: [] }, context),
    handlers.agentEnded({ messages: [], success: true }, context),
  ];

  it("a ledger folder that is a file", async () => {
    writeFileSync(join(folder.path, "coordination"), "in the way");
    const host = createFakeHost({ stateDir: folder.path });
    const handlers = await startHandlers(host);
    expect(await Promise.all(listEveryHook(handlers))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(
      host.lines
        .filter(({ level }) => level === "error")
        .map(({ text }) => text)
        .join("\n"),
    ).toMatch(/A SPAWN GOES ON UNCOORDINATED/u);
  });

  it("a host that cannot name its state folder", async () => {
    const handlers = createHookHandlers(
      createFakeHost({
        stateDir: () => {
          throw new Error("no state folder");
        },
      }).api,
    );
    expect(await Promise.all(listEveryHook(handlers))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it("in strict mode the spawn is refused with a sentence, the other hooks still answer nothing", async () => {
    mkdirSync(dirname(nameLedger()), { recursive: true });
    writeFileSync(nameLedger(), "not a database");
    const handlers = await startHandlers(createFakeHost({ stateDir: folder.path, phase1: { strict: true } }));
    const [before, ...others] = await Promise.all(listEveryHook(handlers));
    expect(before).toMatchObject({
      block: true,
      blockReason: expect.stringMatching(/^Coordination refused this spawn: .+\. .+\.$/u) as string,
    });
    expect(others).toEqual([undefined, undefined, undefined, undefined]);
  });
});

describe("a spawn that the ledger takes only after its hook has answered", () => {
  const CHILD = "agent:main:subagent:late";
  const NARROWED = { task: "work", coordination: { tools: { allow: ["read"] } } };

  const startLate = async (phase1: Record<string, unknown> = {}) => {
    const handlers = await startHandlers(createFakeHost({ stateDir: folder.path, phase1 }));
    const runtime = findRuntime();
    if (!runtime) throw new Error("no runtime");
    const coordinator = await runtime.coordinator();
    const ledger = Promise.withResolvers<undefined>();
    const begun = Promise.withResolvers<undefined>();
    const admitted = Promise.withResolvers<undefined>();
    const admitSpawn: typeof coordinator.admitSpawn = async (request) => {
      begun.resolve(undefined);
      await ledger.promise;
      const admission = await coordinator.admitSpawn(request);
      admitted.resolve(undefined);
      return admission;
    };
    const late: SharedRuntime = {
      ...runtime,
      coordinator: () => Promise.resolve({ ...coordinator, admitSpawn }),
    };
    const holder = globalThis as Record<symbol, unknown>;
    holder[Symbol.for("openclaw-coordination.runtime")] = late;
    return {
      handlers,
      runtime: late,
      coordinator,
      /** Calls the hook before the spawn, which gives up. */
      giveUp: async (params: Record<string, unknown>) => {
        vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
        const answer = spawn(handlers, "call-1", params);
        await begun.promise;
        await vi.advanceTimersByTimeAsync(SPAWN_BUDGET_MS);
        vi.useRealTimers();
        return answer;
      },
      admit: async () => {
        ledger.resolve(undefined);
        await admitted.promise;
        await new Promise((resolve) => setImmediate(resolve));
      },
      settle: (child: string) =>
        handlers.afterSpawn({ ...spawnEvent("call-1", {}), result: createAccepted(child) }, inContext),
    };
  };

  const expectNothingPending = ({ pendingSpawns }: SharedRuntime): void => {
    expect(pendingSpawns.size).toBe(0);
    expect(accessNarrowedSpawns().size).toBe(0);
  };

  it("is no longer under way once the host has told what came of it", async () => {
    const stage = await startLate();
    expect(await stage.giveUp({ task: "work" })).toBeUndefined();
    await stage.settle(CHILD);
    await stage.admit();
    expectNothingPending(stage.runtime);
  });

  it("knows its child where the host tells of that later", async () => {
    const stage = await startLate();
    expect(await stage.giveUp({ task: "work" })).toBeUndefined();
    await stage.admit();
    await stage.settle(CHILD);
    expectNothingPending(stage.runtime);
    expect(await stage.coordinator.envelopeForChild(CHILD as SessionKey)).toMatchObject({ stepId: "step-1" });
  });

  it.each([
    ["it is to be held to something", NARROWED, {}],
    ["nothing goes on unrecorded", { task: "work" }, { strict: true }],
  ])(
    "and was refused, because %s, is over in the ledger, and holds up no other",
    async (_, params, phase1) => {
      const stage = await startLate(phase1);
      expect(await stage.giveUp(params)).toMatchObject({ block: true });
      await stage.admit();
      await vi.waitFor(() => {
        expect(readSteps()).toEqual(["step.admitted", "step.failed"]);
      }, 10_000);
      expectNothingPending(stage.runtime);
      const write = { toolName: "write", toolCallId: "call-2", params: { path: "a", content: "x" } };
      const childContext = { ...context, sessionKey: "agent:main:subagent:unrecorded" };
      const answer = await stage.handlers.beforeCall(
        write,
        childContext as unknown as HookContext<"before_tool_call">,
      );
      expect(answer).toBeUndefined();
    },
  );
});

/** Returns what is recorded of steps, in order. */
function readSteps(): unknown[] {
  const ledger = new Database(nameLedger(), { readonly: true });
  try {
    const query = "select type from event where type in ('step.admitted', 'step.failed') order by rowid";
    return ledger.prepare(query).pluck().all();
  } finally {
    ledger.close();
  }
}

describe("health", () => {
  it("counts what went on uncoordinated, and recovers with the next spawn", async () => {
    const handlers = await startHandlers(createFakeHost({ stateDir: folder.path }));
    await spawn(handlers, "call-0");
    const other = new Database(nameLedger());
    other.exec("begin immediate");
    await spawn(handlers, "call-1");
    await spawn(handlers, "call-2");
    expect(readHealthBeside(nameLedger())).toMatchObject({
      state: "degraded",
      failure: { code: "LEDGER_BUSY" },
      uncoordinatedSpawns: 2,
    });
    other.exec("rollback");
    other.close();
    await spawn(handlers, "call-3");
    expect(readHealthBeside(nameLedger())).toMatchObject({ state: "ok", uncoordinatedSpawns: 2 });
    expect(statSync(join(dirname(nameLedger()), "health.json")).mode & 0o777).toBe(0o600);
  });
});

describe("one runtime per process", () => {
  it("is shared by all instances, replaced by the next start, and not reopened by a late hook", async () => {
    const host = createFakeHost({ stateDir: folder.path });
    const full = await startHandlers(host);
    const discovery = createHookHandlers(host.api);
    expect(await spawn(discovery, "call-1")).toHaveProperty("params.coordination.stepId", "step-1");
    expect(await spawn(full, "call-2")).toHaveProperty("params.coordination.stepId", "step-2");
    const reloaded = await startHandlers(host);
    expect(await spawn(discovery, "call-3")).toHaveProperty("params.coordination.stepId", "step-3");
    await reloaded.stop();
    const bytes = readFileSync(nameLedger());
    expect(await spawn(discovery, "call-4")).toBeUndefined();
    expect(readFileSync(nameLedger()).equals(bytes)).toBe(true);
    expect(existsSync(`${nameLedger()}-wal`)).toBe(false);
  });

  it("knows which turns go on over a reload: what a woken child reads is not its end", async () => {
    const rows: object[] = [];
    const host = createFakeHost({ stateDir: folder.path, rows });
    const handlers = await startHandlers(host);
    const spawnChild = async (callId: string, child: string): Promise<CoordinationEnvelope> => {
      const before = (await spawn(handlers, callId)) as { params: { coordination: CoordinationEnvelope } };
      const accepted = { ...spawnEvent(callId, before.params), result: createAccepted(child) };
      await handlers.afterSpawn(accepted, inContext);
      return before.params.coordination;
    };
    const { coordinationId } = await spawnChild("call-1", "agent:main:subagent:woken");
    await spawnChild("call-2", "agent:main:subagent:ended");
    const inTurn = { ...context, sessionKey: "agent:main:subagent:woken" as SessionKey, runId: "woken" };
    await handlers.beforePromptBuild({ prompt: "x", messages: [] }, inTurn);
    // Its first turn ended long ago, and what it says at last is not delivered yet.
    const row = { status: "succeeded", endedAt: Date.now() - 600_000 };
    rows.push(
      { ...row, id: "row-1", childSessionKey: inTurn.sessionKey, deliveryStatus: "pending" },
      { ...row, id: "row-2", childSessionKey: "agent:main:subagent:ended", deliveryStatus: "delivered" },
    );
    const reloaded = await startHandlers(host);
    const coordinator = await findRuntime()!.coordinator();
    const readStatuses = async () =>
      (await coordinator.view(coordinationId))?.steps.map(({ status }) => status);
    await expect.poll(readStatuses).toEqual(["running", "completed"]);
    await reloaded.stop();
    const ending = reloaded.agentEnded({ messages: [], success: true }, inTurn);
    expect(accessOwnerTurns().quietSince(inTurn.sessionKey, Date.now() as EpochMs)).toBeGreaterThan(0);
    await startHandlers(host);
    await ending;
  });

  it("a hook in the middle of a reload waits for the next runtime", async () => {
    const host = createFakeHost({ stateDir: folder.path });
    const before = await startHandlers(host);
    await before.stop();
    const waiting = spawn(before, "call-1");
    await startHandlers(host);
    expect(await waiting).toHaveProperty("params.coordination.stepId", "step-1");
  });
});
