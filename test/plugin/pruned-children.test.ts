/** Owns: child sessions that still live after the record of their coordination was pruned from the ledger. */
import { join } from "node:path";
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { isOnlyPlaceholders } from "../../src/agents/coordination/gates/placeholder.ts";
import { pruneLedger } from "../../src/agents/coordination/runtime/prune-ledger.ts";
import { openLedgerStore } from "../../src/plugins/open-ledger-store.ts";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import { readSessionAgent } from "../../src/plugins/openclaw/host/session-entry.ts";
import { loadToolNames } from "../../src/plugins/openclaw/privileges/tool-names.ts";
import { createTextTransforms } from "../../src/plugins/openclaw/withholding/text-transforms.ts";
import { createFakeHost } from "./fake-host.ts";
import { createCallContext, createCallEvent } from "./hook-calls.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const OWNER = "agent:main:main";
const CHILD = "agent:main:subagent:child";
const GRANDCHILD = "agent:main:subagent:grandchild";
const PRUNED = /^Coordination refused this call: the record of what this session may do was pruned/u;
const READ_ONLY = { tools: { allow: ["read", "sessions_spawn"] } };
const GATES = {
  verifiers: { lint: { kind: "pattern", pattern: "lint" } },
  agents: { main: { checks: ["lint"] } },
};

const folder = useStateFolder(forgetProcess);
let host: ReturnType<typeof createFakeHost>;
let handlers: HookHandlers;

// A gateway has loaded most of it with its first agent.
beforeAll(async () => {
  await loadToolNames();
}, 120_000);

/** Forgets the memory of a process, as its end does. */
function forgetProcess(): void {
  for (const name of ["bounds-memory", "gate-memory.5", "runtime"])
    Reflect.deleteProperty(globalThis, Symbol.for(`openclaw-coordination.${name}`));
}

async function start(phase1: Record<string, unknown> = {}): Promise<void> {
  host = createFakeHost({ stateDir: folder.path, phase1 });
  handlers = createHookHandlers(host.api);
  folder.stopLater(handlers);
  await handlers.start();
}

/** Starts the gateway again in a new process. */
async function restart(): Promise<void> {
  await handlers.stop();
  forgetProcess();
  await start();
}

async function spawn(by: HookContext<"before_tool_call">, child: string, coordination: object = {}) {
  const event = createCallEvent("sessions_spawn", {
    task: `work of ${child}`,
    agentId: readSessionAgent(child),
    coordination,
  });
  const before = await handlers.beforeSpawn(event, by);
  const details = { status: "accepted", childSessionKey: child, runId: `run of ${child}` };
  await handlers.afterSpawn({ ...event, ...before, result: { details } }, by);
}

async function endChild(child: string): Promise<void> {
  await handlers.subagentEnded({
    targetSessionKey: child,
    targetKind: "subagent",
    reason: "it failed",
    outcome: "error",
    error: "it failed",
  });
}

async function call(by: string, tool: string): Promise<string | undefined> {
  const answer = await handlers.beforeCall(createCallEvent(tool, { command: "true" }), createCallContext(by));
  return answer?.block ? answer.blockReason : undefined;
}

/** Prunes everything that has ended, and returns how many runs that were. */
async function prune(): Promise<number> {
  const place = join(folder.path, "coordination", "ledger.sqlite");
  const store = await openLedgerStore({ place, mode: "write", busyTimeoutMs: 5_000 });
  try {
    const beforeMs = (Date.now() + 60_000) as EpochMs;
    return (await pruneLedger(store, { beforeMs, isDryRun: false })).runs;
  } finally {
    await store.close();
  }
}

/** Ends the children, and prunes their coordination once it has ended. The newest run of a file stays. */
async function endAndPrune(...children: string[]): Promise<void> {
  for (const child of children) await endChild(child);
  await spawn(createCallContext(OWNER, "u"), "agent:main:subagent:newest");
  await vi.waitFor(async () => {
    expect(await prune()).toBe(1);
  }, 10_000);
}

describe("a child whose coordination was pruned", () => {
  it("has every call refused where privileges held it, after a restart of the gateway too", async () => {
    await start();
    await spawn(createCallContext(OWNER), CHILD, READ_ONLY);
    expect(await call(CHILD, "exec")).toMatch(/may not use exec/u);
    await endAndPrune(CHILD);
    await restart();
    for (const tool of ["exec", "read"]) expect(await call(CHILD, tool)).toMatch(PRUNED);
  });

  it("has every call refused where privileges held the session that spawned it", async () => {
    await start();
    await spawn(createCallContext(OWNER), CHILD, READ_ONLY);
    await spawn(createCallContext(CHILD), GRANDCHILD);
    await endAndPrune(GRANDCHILD, CHILD);
    await restart();
    expect(await call(GRANDCHILD, "exec")).toMatch(PRUNED);
  });

  it("goes on where nothing but a gate held the session that spawned it", async () => {
    const ungated = "agent:helper:subagent:grandchild";
    await start({ gates: GATES });
    await spawn(createCallContext(OWNER), CHILD);
    await spawn(createCallContext(CHILD), ungated);
    await endAndPrune(ungated, CHILD);
    await restart();
    host.entries.set(ungated, { spawnedBy: CHILD });
    host.entries.set(CHILD, { spawnedBy: OWNER });
    expect(await call(CHILD, "exec")).toMatch(PRUNED);
    expect(await call(ungated, "exec")).toBeUndefined();
  });

  it("goes on where nothing held it", async () => {
    await start();
    await spawn(createCallContext(OWNER), CHILD);
    await endAndPrune(CHILD);
    await restart();
    expect(await call(CHILD, "exec")).toBeUndefined();
    expect(await call(OWNER, "exec")).toBeUndefined();
  });

  it("keeps a result to itself that its gate did not release", async () => {
    await start({ gates: GATES });
    await spawn(createCallContext(OWNER), CHILD);
    const span = "span of the child";
    const gates = handlers.gates(() => span);
    const say = async (): Promise<string> => {
      await gates.beforeRun({ sessionKey: CHILD, trace: { spanId: span } } as never);
      return "The code is 4711.".replace(createTextTransforms(() => span).fromModel, "");
    };
    expect(isOnlyPlaceholders(await say())).toBe(true);
    await endAndPrune(CHILD);
    expect(isOnlyPlaceholders(await say())).toBe(true);
  });
});
