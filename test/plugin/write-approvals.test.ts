/** Contested writes that the host asks people about, through the hooks. */
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext, HookEvent, HookResult } from "../../src/plugins/openclaw/host/sdk.ts";
import { createFakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const folder = useStateFolder();
// Before the handlers are stopped: of several clean-ups the last one runs first.
afterEach(() => void vi.useRealTimers());

const OWNER = "agent:main:main";
const CHILD = "agent:main:subagent:1";

type Context = HookContext<"before_tool_call">;
type Answer = HookResult<"before_tool_call">;

const contextOf = (sessionKey: string): Context =>
  ({ sessionKey, agentId: "main", runId: "run-1", trace: { traceId: "t".repeat(32) } }) as unknown as Context;

/** The owner's child holds a file that the owner wants. Returns a call of the owner. */
async function startContested(): Promise<() => Promise<Answer>> {
  const phase1 = { conflicts: { strategy: "manual_review" } };
  const handlers = createHookHandlers(createFakeHost({ stateDir: folder.path, phase1 }).api);
  folder.stopLater(handlers);
  await handlers.start();
  const spawn = { toolName: "sessions_spawn", toolCallId: "spawn", runId: "run-1" };
  const before = await handlers.beforeSpawn({ ...spawn, params: { task: "work" } }, contextOf(OWNER));
  const params = (before as { params: Record<string, unknown> }).params;
  const result = { details: { status: "accepted", childSessionKey: CHILD, runId: "run-of-child" } };
  await handlers.afterSpawn({ ...spawn, params, result }, contextOf(OWNER));
  expect(await write(handlers, CHILD, "call-1")).toBeUndefined();
  await handlers.afterCall(createWrite(CHILD, "call-1"), contextOf(CHILD));
  let calls = 1;
  return () => write(handlers, OWNER, `call-${(calls += 1)}`);
}

function createWrite(session: string, toolCallId: string): HookEvent<"before_tool_call"> {
  const params = { path: join(folder.path, "notes.md"), content: `of ${session}\n` };
  return { toolName: "write", toolCallId, runId: "run-1", params };
}

function write(handlers: HookHandlers, session: string, toolCallId: string): Promise<Answer> {
  return handlers.beforeCall(createWrite(session, toolCallId), contextOf(session));
}

interface Approval {
  readonly onResolution: (decision: string) => Promise<void>;
}

function requireApproval(answer: Answer): Approval {
  const { requireApproval: approval } = (answer ?? {}) as { readonly requireApproval?: Approval };
  if (!approval) throw new Error(`not asked about, but ${JSON.stringify(answer)}`);
  return approval;
}

describe("an approval that the host cancels", () => {
  it("at once had nobody to ask: the next contested call is refused", async () => {
    const callAgain = await startContested();
    await requireApproval(await callAgain()).onResolution("cancelled");
    expect(await callAgain()).toMatchObject({ block: true });
  });

  it("after a while was stopped with its run: the next contested call is asked about, too", async () => {
    const callAgain = await startContested();
    vi.useFakeTimers({ toFake: ["performance"] });
    const approval = requireApproval(await callAgain());
    vi.advanceTimersByTime(10_000);
    await approval.onResolution("cancelled");
    requireApproval(await callAgain());
  });
});
