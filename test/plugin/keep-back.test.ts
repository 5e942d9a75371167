/** Words of a child between a call that may change something and the record of the change. */
import { beforeEach, describe, expect, it } from "vitest";
import type {
  AgentId,
  CoordinationId,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { WriteAnswer } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import type { GatedSession } from "../../src/agents/coordination/runtime/held-results/withhold-text.ts";
import type { WatchedChild } from "../../src/agents/coordination/runtime/spawns/child-watch.ts";
import { createRecentMap } from "../../src/agents/coordination/std/recent.ts";
import { accessGateMemory, isKeptBack } from "../../src/plugins/openclaw/runtime-access/gate-memory.ts";
import { beginChangingCall, endChangingCall } from "../../src/plugins/openclaw/runtime-access/keep-back.ts";
import {
  replaceRuntime,
  type ChildAtWork,
  type SharedRuntime,
} from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createWriteHandlers, type WriteHandlers } from "../../src/plugins/openclaw/writes/write-handlers.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { forgetAll } from "./gates-scene.ts";

const SESSION = "agent:main:subagent:stray" as SessionKey;
const GATED: GatedSession = {
  session: SESSION,
  coordinationId: "run" as CoordinationId,
  stepId: "step-1" as StepId,
  gate: { threshold: 7_000, holdMismatch: true },
  isStrict: false,
};
const WATCHED: WatchedChild = {
  coordinationId: GATED.coordinationId,
  stepId: GATED.stepId,
  attempt: 1,
  asked: { agentId: "main" as AgentId, folder: "/srv/work" },
  ran: {},
  isHeldOnMismatch: true,
};

/** The ledger's word once a change is recorded. */
let isStrictThen: boolean;

function createRuntime(watched: WatchedChild): SharedRuntime {
  const children = createRecentMap<ChildAtWork>(10);
  children.set(SESSION, { watched, ran: {} });
  const heldSessions = { gated: () => Promise.resolve({ ...GATED, isStrict: isStrictThen }) };
  return { children, coordinator: () => Promise.resolve({ heldSessions }) } as unknown as SharedRuntime;
}

function isKeptBackNow(): boolean {
  const gated = accessGateMemory().gated.get(SESSION);
  if (!gated) throw new Error("the session is not gated");
  return isKeptBack(gated);
}

beforeEach(() => {
  forgetAll();
  isStrictThen = false;
  accessGateMemory().gated.set(SESSION, GATED);
});

describe("what a child says after a call that may change something", () => {
  it("is kept back until its changes are recorded, and no longer where they are no difference", async () => {
    const runtime = createRuntime(WATCHED);
    beginChangingCall(runtime, SESSION, "call-1");
    expect(isKeptBackNow()).toBe(true);
    await endChangingCall(runtime, SESSION, "call-1");
    expect(isKeptBackNow()).toBe(false);
  });

  it("stays kept back where the ledger has a difference then", async () => {
    const runtime = createRuntime(WATCHED);
    beginChangingCall(runtime, SESSION, "call-1");
    isStrictThen = true;
    await endChangingCall(runtime, SESSION, "call-1");
    expect(isKeptBackNow()).toBe(true);
  });

  it("is kept back until the last of several calls is recorded", async () => {
    const runtime = createRuntime(WATCHED);
    for (const key of ["call-1", "call-2"]) beginChangingCall(runtime, SESSION, key);
    const first = endChangingCall(runtime, SESSION, "call-1");
    beginChangingCall(runtime, SESSION, "call-3");
    await Promise.all([first, endChangingCall(runtime, SESSION, "call-2")]);
    expect(isKeptBackNow()).toBe(true);
    await endChangingCall(runtime, SESSION, "call-3");
    expect(isKeptBackNow()).toBe(false);
  });

  it("stays kept back where its record fails", async () => {
    const runtime = createRuntime(WATCHED);
    beginChangingCall(runtime, SESSION, "call-1");
    const broken = { ...runtime, coordinator: () => Promise.reject(new Error("closed")) };
    await expect(endChangingCall(broken, SESSION, "call-1")).rejects.toThrow("closed");
    expect(isKeptBackNow()).toBe(true);
  });

  it.each([
    ["nobody asked for a folder", { asked: { agentId: "main" as AgentId } }],
    ["a difference is recorded only", { isHeldOnMismatch: false }],
  ])("goes on to its parent where %s", (_, change) => {
    beginChangingCall(createRuntime({ ...WATCHED, ...change }), SESSION, "call-1");
    expect(isKeptBackNow()).toBe(false);
  });
});

describe("the hooks around a call of a child", () => {
  const context = { sessionKey: SESSION, agentId: "main", runId: "run-1" } as never;
  const createEvent = (toolName: string) =>
    ({ toolName, toolCallId: "call-1", runId: "run-1", params: { path: "a.md", content: "a" } }) as never;

  async function createHandlers(
    answer: WriteAnswer,
    callEnded = () => Promise.resolve(),
  ): Promise<WriteHandlers> {
    const base = createRuntime(WATCHED);
    const arbiter = {
      concerns: () => Promise.resolve(true),
      request: () => Promise.resolve(answer),
      callEnded,
    };
    const openCoordinator = async () => ({ ...(await base.coordinator()), arbiter });
    const runtime = {
      children: base.children,
      coordinator: openCoordinator,
      config: parsePluginConfig({}),
      folderOf: () => "/srv/work",
      health: { succeeded: () => undefined },
      close: () => Promise.resolve(),
    } as unknown as SharedRuntime;
    await replaceRuntime(runtime);
    const api = { runtime: { config: { current: () => ({}) } } } as never;
    return createWriteHandlers({ api, use: (work) => work(runtime), quietly: (_, work) => work(runtime) });
  }

  it("keep back what it says from a write on, and its end waits for the record", async () => {
    const recording = Promise.withResolvers<undefined>();
    const handlers = await createHandlers({ kind: "granted" }, () => recording.promise);
    await handlers.beforeCall(createEvent("write"), context);
    const ended = handlers.afterCall(createEvent("write"), context);
    let isSettled = false;
    const settled = accessGateMemory()
      .texts.settled(SESSION)
      .then(() => (isSettled = true));
    await waitUntilSettled();
    expect([isKeptBackNow(), isSettled]).toEqual([true, false]);
    recording.resolve(undefined);
    await Promise.all([ended, settled]);
    expect(isKeptBackNow()).toBe(false);
  });

  it.each([
    ["reads only", "read", { kind: "granted" }],
    ["is refused", "write", { kind: "refused", sentence: "held" }],
  ] as const)("let it speak after a call that %s", async (_, tool, answer) => {
    await (await createHandlers(answer)).beforeCall(createEvent(tool), context);
    expect(isKeptBackNow()).toBe(false);
  });
});
