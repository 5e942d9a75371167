import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookEvent } from "../../src/plugins/openclaw/host/sdk.ts";
import {
  noteModelAnswer,
  noteModelCall,
  waitForProviderTurn,
} from "../../src/plugins/openclaw/runtime-access/provider-turns.ts";
import { findRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { createFakeHost } from "./fake-host.ts";

let folder: TempFolder;
let handlers: HookHandlers;

beforeEach(() => {
  folder = createTempFolder();
});

afterEach(async () => {
  await handlers.stop();
  folder[Symbol.dispose]();
});

async function startHandlers(providers: object = {}): Promise<void> {
  const host = createFakeHost({ stateDir: folder.path, phase1: { lanes: { providers } } });
  handlers = createHookHandlers(host.api);
  await handlers.start();
}

const CHILD = "agent:main:subagent:1" as SessionKey;
const CALL = { runId: "run-1", callId: "call-1", sessionKey: CHILD, provider: "mock", model: "scripted" };
const contextOf = (sessionKey: string) => ({ sessionKey, modelProviderId: "mock" });

/** The host's events about a call, and about its end by an error. */
async function callAndFail(errorMessage: string): Promise<void> {
  noteModelCall(CALL);
  const message = {
    role: "assistant",
    provider: "mock",
    stopReason: "error",
    errorCode: "429",
    errorMessage,
  };
  await handlers.agentEnded({ messages: [message], success: false }, contextOf(CHILD));
}

async function callTool(sessionKey: string): Promise<void> {
  const event = { toolName: "read", toolCallId: `call of ${sessionKey}`, params: { path: "a" } };
  await handlers.beforeCall(event, { ...contextOf(sessionKey), toolName: event.toolName });
}

/** Tells whether work is still under way after a call of a session that talks to a person. */
async function isOvertaken(work: Promise<unknown>): Promise<boolean> {
  const over = new Set<string>();
  void work.then(() => over.add("work"));
  await callTool("agent:main:main");
  return over.size === 0;
}

const RETRY_IN_AN_HOUR = "429 slow down; Retry-After: 3600 seconds";

describe("a child whose provider refused a call", () => {
  it("waits before its next call of a tool, and whoever talks to a person does not", async () => {
    await startHandlers();
    await callTool(CHILD);
    await callAndFail(RETRY_IN_AN_HOUR);
    const call = callTool(CHILD);
    expect(await isOvertaken(call)).toBe(true);
    await handlers.stop();
    await call;
  });

  it("waits while its prompt is built, also before its first call", async () => {
    await startHandlers();
    await callAndFail(RETRY_IN_AN_HOUR);
    const prompt = handlers.beforePromptBuild(
      { prompt: "work", messages: [] },
      contextOf("agent:main:subagent:2"),
    );
    expect(await isOvertaken(prompt)).toBe(true);
    await handlers.stop();
    await prompt;
  });

  it("does not wait after an answer, nor after an error that is no refusal", async () => {
    await startHandlers();
    noteModelCall(CALL);
    const message = { role: "assistant", content: [], stopReason: "error", errorCode: "500" };
    noteModelAnswer({ message } as unknown as HookEvent<"before_message_write">, contextOf(CHILD));
    await handlers.agentEnded({ messages: [message], success: false }, contextOf(CHILD));
    expect(findRuntime()?.providers?.takeTurn(CHILD)).toBeUndefined();
    await waitForProviderTurn(CHILD);
  });

  it("does not wait where the operator does not want it", async () => {
    await startHandlers({ enabled: false });
    await callAndFail(RETRY_IN_AN_HOUR);
    expect(findRuntime()).toMatchObject({ closed: false });
    expect(findRuntime()?.providers).toBeUndefined();
    await callTool(CHILD);
  });
});
