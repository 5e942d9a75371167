/** Owns: a spawn that names no session or agent that could be recorded: it goes on with a warning, or is refused without one. */
import { expect, it } from "vitest";
import { createHookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import { createFakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const folder = useStateFolder();

/** Spawns in a session without a key, and returns the answer and the warnings that a spawn goes on uncoordinated. */
async function spawnNameless(phase1: Record<string, unknown>) {
  const host = createFakeHost({ stateDir: folder.path, phase1 });
  const handlers = createHookHandlers(host.api);
  folder.stopLater(handlers);
  await handlers.start();
  const event = {
    toolName: "sessions_spawn",
    toolCallId: "call-1",
    runId: "run-1",
    params: { task: "work" },
  };
  const context = { sessionKey: "", agentId: "main", runId: "run-1", trace: { traceId: "t".repeat(32) } };
  const answer = await handlers.beforeSpawn(event, context as unknown as HookContext<"before_tool_call">);
  return { answer, warned: host.lines.filter(({ text }) => text.includes("goes on uncoordinated")) };
}

it("goes on, and the log says so", async () => {
  const { answer, warned } = await spawnNameless({});
  expect(answer).toBeUndefined();
  expect(warned).toHaveLength(1);
});

it("is refused in strict mode, and the log does not say that it goes on", async () => {
  const { answer, warned } = await spawnNameless({ strict: true });
  expect(answer).toMatchObject({
    block: true,
    blockReason: expect.stringContaining("names no session or agent") as string,
  });
  expect(warned).toEqual([]);
});
