/** Owns: how a contested write of a child is answered that was held back first, for the sake of its provider. */
import { setTimeout as waitForFiles } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import { noteModelCall } from "../../src/plugins/openclaw/runtime-access/provider-turns.ts";
import { findRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { createFakeHost } from "./fake-host.ts";
import { createPlugin, waitForever } from "./hooks-parts.ts";

const OWNER = "agent:main:main";
const [FIRST, SECOND] = ["agent:main:subagent:1", "agent:main:subagent:2"] as const;
/** After this the host blocks a call by itself. */
const HOST_WAIT_MS = 18_000;

let folder: TempFolder;
let handlers: HookHandlers;

beforeEach(async () => {
  folder = createTempFolder();
  const host = createFakeHost({ stateDir: folder.path });
  handlers = createHookHandlers(host.api);
  await handlers.start();
  for (const child of [FIRST, SECOND]) {
    host.entries.set(child, { spawnedBy: OWNER });
    await spawnChild(child);
  }
});

afterEach(async () => {
  vi.useRealTimers();
  await handlers.stop();
  folder[Symbol.dispose]();
});

const contextOf = (sessionKey: string) =>
  ({ sessionKey, agentId: "main", runId: `run of ${sessionKey}` }) as HookContext<"before_tool_call">;

async function spawnChild(child: string): Promise<void> {
  const event = { toolName: "sessions_spawn", toolCallId: child, runId: "run-1", params: { task: "work" } };
  const { params = event.params } = (await handlers.beforeSpawn(event, contextOf(OWNER))) ?? {};
  const details = { status: "accepted", childSessionKey: child, runId: `run of ${child}` };
  await handlers.afterSpawn({ ...event, params, result: { details } }, contextOf(OWNER));
}

const createWrite = (sessionKey: string) => ({
  toolName: "write",
  toolCallId: `write of ${sessionKey}`,
  runId: `run of ${sessionKey}`,
  params: { path: `${folder.path}/notes.md`, content: sessionKey },
});

/** The provider of a child tells it to call again in an hour. */
async function reportRefusedModelCall(sessionKey: string): Promise<void> {
  const provider = "mock";
  noteModelCall({ runId: "run-1", callId: "call-1", sessionKey, provider, model: "scripted" });
  const errorMessage = "429 slow down; Retry-After: 3600 seconds";
  const message = { role: "assistant", provider, stopReason: "error", errorCode: "429", errorMessage };
  const context = { sessionKey, modelProviderId: provider };
  await handlers.agentEnded({ messages: [message], success: false }, context);
}

/** Lets time go on until a hook has answered; real files and the ledger answer in between, in real time. */
async function measureAnswer<T>(
  answer: Promise<T>,
): Promise<{ readonly result: T; readonly tookMs: number }> {
  const beganAtMs = Date.now();
  const answeredAtMs: number[] = [];
  void answer.finally(() => answeredAtMs.push(Date.now()));
  for (let passedMs = 0; passedMs < 2 * HOST_WAIT_MS && answeredAtMs.length === 0; passedMs += 250) {
    await waitForFiles(20);
    await vi.advanceTimersByTimeAsync(250);
  }
  const [endedAtMs = Infinity] = answeredAtMs;
  return { result: await answer, tookMs: endedAtMs - beganAtMs };
}

it("is refused in the host's time where a plugin that rules on it is late, too", async () => {
  createPlugin({ arbitrate: { run: waitForever, budgetMs: 10_000 } });
  const holding = createWrite(FIRST);
  expect(await handlers.beforeCall(holding, contextOf(FIRST))).toBeUndefined();
  await handlers.afterCall({ ...holding, result: {} }, contextOf(FIRST));
  await reportRefusedModelCall(SECOND);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"] });
  const { result, tookMs } = await measureAnswer(handlers.beforeCall(createWrite(SECOND), contextOf(SECOND)));
  expect(tookMs).toBeGreaterThan(8_000);
  expect(tookMs).toBeLessThan(HOST_WAIT_MS);
  expect(result).toMatchObject({
    block: true,
    blockReason: expect.stringContaining("did not answer") as string,
  });
});

it("is not begun to be ruled on when the rules on privileges have used up its time", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const runtime = findRuntime() ?? expect.fail("there is no runtime");
  const uses: number[] = [];
  const openLate = () => {
    uses.push(Date.now());
    vi.setSystemTime(Date.now() + 13_000);
    return runtime.coordinator();
  };
  const holder = globalThis as Record<symbol, unknown>;
  holder[Symbol.for("openclaw-coordination.runtime")] = { ...runtime, coordinator: openLate };
  expect(await handlers.beforeCall(createWrite(SECOND), contextOf(SECOND))).toBeUndefined();
  expect(uses).toHaveLength(1);
});
