/** Owns: what a spawn is told whose `coordination` cannot be understood, wherever its bounds could not be held either. */
import { describe, expect, it } from "vitest";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import { createFakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const folder = useStateFolder(() => {
  // The next test is a gateway that starts.
  Reflect.deleteProperty(globalThis, Symbol.for("openclaw-coordination.runtime"));
});

function createHandlers(phase1: Record<string, unknown>): HookHandlers {
  const handlers = createHookHandlers(createFakeHost({ stateDir: folder.path, phase1 }).api);
  folder.stopLater(handlers);
  return handlers;
}

const contextOf = (sessionKey: string): HookContext<"before_tool_call"> =>
  ({ sessionKey, agentId: "main", runId: "run-1" }) as HookContext<"before_tool_call">;

const spawn = async (handlers: HookHandlers, by: string, coordination: unknown, callId = "call-1") => {
  const event = { toolName: "sessions_spawn", toolCallId: callId, runId: "run-1" };
  const params = { task: "work", coordination };
  const answer = await handlers.beforeSpawn({ ...event, params }, contextOf(by));
  return { event: { ...event, params }, answer, refusal: answer?.blockReason };
};

const OWNER = "agent:main:main";
const CHILD = "agent:main:subagent:child";
const UNKNOWN_FIELD =
  /^Coordination refused this spawn: what the child may do cannot be understood \(coordination: unknown field "reason"\); .* and spawn again$/u;

describe("a spawn with a field that nobody knows", () => {
  it("is told of the field where the spawns of its agent are not coordinated", async () => {
    const handlers = createHandlers({ agents: ["other"] });
    await handlers.start();
    const { refusal } = await spawn(handlers, OWNER, { reason: "x" });
    expect(refusal).toMatch(UNKNOWN_FIELD);
  });

  it("is told of the field where the plugin does not start", async () => {
    const handlers = createHandlers({ gates: { agents: { writer: { checks: ["tests"] } } } });
    await expect(handlers.start()).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    const { refusal } = await spawn(handlers, OWNER, { reason: "x" });
    expect(refusal).toMatch(UNKNOWN_FIELD);
  });
});

describe("a child that gives its own child what its prompt shows about its place", () => {
  it("is not refused", async () => {
    const handlers = createHandlers({ stepTimeoutMs: 60_000 });
    await handlers.start();
    const { event, answer } = await spawn(handlers, OWNER, undefined);
    const details = { status: "accepted", childSessionKey: CHILD, runId: "run of the child" };
    await handlers.afterSpawn({ ...event, ...answer, result: { details } }, contextOf(OWNER));
    const prompt = await handlers.beforePromptBuild({ prompt: "x", messages: [] }, contextOf(CHILD));
    const shown = /^\{.*\}$/mu.exec(prompt?.appendSystemContext ?? "")?.[0];
    expect(JSON.parse(shown ?? "{}")).toHaveProperty("deadline");
    expect((await spawn(handlers, CHILD, shown, "call-2")).refusal).toBeUndefined();
  });
});
