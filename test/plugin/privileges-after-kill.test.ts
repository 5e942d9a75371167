/**
 * Owns: a child whose gateway was killed before it had recorded whose child that is: the next one holds it all the same, and lets
 * others go on that nothing holds.
 */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { readHealthBeside } from "../../src/plugins/ledger-reader.ts";
import { joinLedgerPath } from "../../src/plugins/ledger-setting.ts";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { accessBoundsMemory } from "../../src/plugins/openclaw/privileges/bounds-memory.ts";
import { loadToolNames } from "../../src/plugins/openclaw/privileges/tool-names.ts";
import { accessNarrowedSpawns } from "../../src/plugins/openclaw/runtime-access/narrowed-spawns.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createFakeHost, type FakeHost } from "./fake-host.ts";
import { createCallContext, createCallEvent } from "./hook-calls.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const OWNER = "agent:main:main";
const CHILD = "agent:main:subagent:child";
const TASK = "Look around.";
const READ_ONLY = { coordination: { tools: { allow: ["read"] } } };
/** A spawn that the host does not know is looked at again after this time. */
const PHASE1 = { acknowledgeMs: 1_000 };
const folder = useStateFolder(() => {
  accessBoundsMemory().delete(CHILD);
});

// A gateway has loaded most of it with its first agent.
beforeAll(async () => {
  await loadToolNames();
}, 120_000);

async function startGateway(host: FakeHost): Promise<HookHandlers> {
  const handlers = createHookHandlers(host.api);
  folder.stopLater(handlers);
  await handlers.start();
  return handlers;
}

/** Has what the host was asked about its children answered only when the test says so. */
function holdRows(host: FakeHost): { readonly asking: Promise<true>; readonly answer: () => void } {
  const asking = Promise.withResolvers<true>();
  const answering = Promise.withResolvers<true>();
  setRows(host, async () => {
    asking.resolve(true);
    await answering.promise;
    return [createRow()];
  });
  return { asking: asking.promise, answer: () => answering.resolve(true) };
}

function setRows(host: FakeHost, list: () => Promise<readonly unknown[]>): void {
  Object.assign(host.api.runtime.tasks.async.runs, { bindSession: () => ({ list }) });
}

const createRow = () => ({
  id: "row",
  title: TASK,
  childSessionKey: CHILD,
  status: "running",
  createdAt: Date.now(),
});

/**
 * Leaves in the folder what the disk has of a gateway that dies between the two hooks of a spawn, when its host has made
 * the child.
 */
async function killAmidSpawn(stateDir: string, words: Record<string, unknown> = READ_ONLY): Promise<void> {
  const host = createFakeHost({ stateDir: folder.path, phase1: PHASE1 });
  const handlers = await startGateway(host);
  const before = await handlers.beforeSpawn(
    createCallEvent("sessions_spawn", { task: TASK, ...words }),
    createCallContext(OWNER),
  );
  expect(before?.block).toBeUndefined();
  cpSync(join(folder.path, "coordination"), join(stateDir, "coordination"), { recursive: true });
  accessNarrowedSpawns().clear();
  Reflect.deleteProperty(globalThis, Symbol.for("openclaw-coordination.narrowed-since"));
}

/** Returns the host of the next gateway, which knows the child. */
function createNextHost(stateDir: string): FakeHost {
  const host = createFakeHost({ stateDir, phase1: PHASE1 });
  host.entries.set(CHILD, { spawnedBy: OWNER });
  return host;
}

const createExecCall = () => createCallEvent("exec", { command: "true" });

const callExec = (handlers: HookHandlers) => handlers.beforeCall(createExecCall(), createCallContext(CHILD));

afterEach(() => {
  vi.useRealTimers();
});

describe("the child of a spawn with privileges that a gateway did not record before it was killed", () => {
  it("is refused what its spawn took from it, however late the host says that it is there", async () => {
    using state = createTempFolder();
    await killAmidSpawn(state.path);
    const host = createNextHost(state.path);
    const rows = holdRows(host);
    const handlers = await startGateway(host);
    await rows.asking;
    const call = callExec(handlers);
    const early = await Promise.race([call, new Promise((resolve) => setImmediate(resolve, "waits"))]);
    rows.answer();
    expect(early).toBe("waits");
    expect((await call)?.blockReason).toMatch(/may not use exec/u);
    await handlers.stop();
  });

  it("is refused it also where the host fails when it is asked for the first time", async () => {
    using state = createTempFolder();
    await killAmidSpawn(state.path);
    const host = createNextHost(state.path);
    let looks = 0;
    setRows(host, () => {
      looks += 1;
      return looks === 1 ? Promise.reject(new Error("busy")) : Promise.resolve([createRow()]);
    });
    const handlers = await startGateway(host);
    await vi.waitFor(() => {
      expect(looks).toBeGreaterThan(0);
    });
    expect((await callExec(handlers))?.blockReason).toMatch(/may not use exec/u);
    expect(looks).toBeGreaterThan(1);
    await handlers.stop();
  });

  it("is refused everything while the host does not say, in words of its own, and the gateway is well", async () => {
    using state = createTempFolder();
    await killAmidSpawn(state.path);
    const host = createNextHost(state.path);
    const rows = holdRows(host);
    const handlers = await startGateway(host);
    await rows.asking;
    vi.useFakeTimers({ toFake: ["performance"] });
    const call = callExec(handlers);
    await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(60_000);
    expect((await call)?.blockReason).toMatch(
      /^Coordination refused this call: a spawn is not recorded yet/u,
    );
    expect(readHealthBeside(joinLedgerPath(state.path))).toMatchObject({ state: "ok" });
    expect(host.lines.filter(({ level }) => level === "error")).toEqual([]);
    rows.answer();
    await handlers.stop();
  });

  it("is waited for once: not again when the host says that the call was refused", async () => {
    using state = createTempFolder();
    await killAmidSpawn(state.path);
    const host = createNextHost(state.path);
    const rows = holdRows(host);
    const handlers = await startGateway(host);
    await rows.asking;
    vi.useFakeTimers({ toFake: ["performance"] });
    /** Lets what waits run into its bound. */
    const endWait = async <T>(work: Promise<T>): Promise<T> => {
      await new Promise((resolve) => setImmediate(resolve));
      vi.advanceTimersByTime(60_000);
      return work;
    };
    const call = createExecCall();
    const refused = await endWait(handlers.beforeCall(call, createCallContext(CHILD)));
    const error = refused?.blockReason ?? expect.fail("the call went on");
    await endWait(handlers.afterCall({ ...call, error }, createCallContext(CHILD)));
    expect(host.lines.filter(({ text }) => text.includes("a spawn is not recorded yet"))).toHaveLength(1);
    rows.answer();
    await handlers.stop();
  });
});

describe("a child that the ledger does not know goes on at once", () => {
  it("while a spawn without privileges of the process before has no child yet", async () => {
    using state = createTempFolder();
    await killAmidSpawn(state.path, {});
    const host = createNextHost(state.path);
    const rows = holdRows(host);
    const handlers = await startGateway(host);
    await rows.asking;
    expect(await callExec(handlers)).toBeUndefined();
    rows.answer();
    await handlers.stop();
  });

  it("after a reload, while the host is asked about the children that there are", async () => {
    const host = createNextHost(folder.path);
    const first = await startGateway(host);
    const spawn = createCallEvent("sessions_spawn", { task: TASK });
    const before = await first.beforeSpawn(spawn, createCallContext(OWNER));
    const details = { status: "accepted", childSessionKey: "agent:main:subagent:known", runId: "child-run" };
    await first.afterSpawn({ ...spawn, ...before, result: { details } }, createCallContext(OWNER));
    // The reload comes before this one's child is recorded, and the host has told it.
    const bounded = createCallEvent("sessions_spawn", { task: "Look closer.", ...READ_ONLY });
    await first.beforeSpawn(bounded, createCallContext(OWNER));
    const narrowed = accessNarrowedSpawns();
    expect([...narrowed.values()]).toMatchObject([{ parent: OWNER }]);
    for (const [call, spawned] of narrowed)
      narrowed.set(call, { ...spawned, child: "agent:main:subagent:next" as SessionKey });
    const rows = holdRows(host);
    const second = await startGateway(host);
    await rows.asking;
    expect(await callExec(second)).toBeUndefined();
    rows.answer();
    await second.stop();
    narrowed.clear();
  });
});
