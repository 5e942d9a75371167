/** Files of which the host's tool `read` shows a part, through the hooks. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createHookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import { createFakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const folder = useStateFolder();
const OWNER = "agent:main:main";
const CHILD = "agent:main:subagent:1";

type Context = HookContext<"before_tool_call">;

const contextOf = (sessionKey: string): Context =>
  ({ sessionKey, agentId: "main", runId: "run-1", trace: { traceId: "t".repeat(32) } }) as unknown as Context;

it("a page of a file lets nobody replace the whole, until all pages are read", async () => {
  const handlers = createHookHandlers(createFakeHost({ stateDir: folder.path, phase1: {} }).api);
  folder.stopLater(handlers);
  await handlers.start();
  const spawn = { toolName: "sessions_spawn", toolCallId: "spawn", runId: "run-1" };
  const before = await handlers.beforeSpawn({ ...spawn, params: { task: "work" } }, contextOf(OWNER));
  const { params } = before as { params: Record<string, unknown> };
  const accepted = { details: { status: "accepted", childSessionKey: CHILD, runId: "run-of-child" } };
  await handlers.afterSpawn({ ...spawn, params, result: accepted }, contextOf(OWNER));

  const path = join(folder.path, "notes.md");
  let calls = 0;
  const readPage = async (page: object, details: object): Promise<void> => {
    const event = { toolName: "read", toolCallId: `call-${(calls += 1)}`, runId: "run-1" };
    await handlers.beforeCall({ ...event, params: { path, ...page } }, contextOf(CHILD));
    await handlers.afterCall({ ...event, params: {}, result: { details } }, contextOf(CHILD));
  };
  const write = () =>
    handlers.beforeCall(
      {
        toolName: "write",
        toolCallId: `call-${(calls += 1)}`,
        runId: "run-1",
        params: { path, content: "x\n" },
      },
      contextOf(CHILD),
    );
  const continuation = { kind: "cursor", offset: 2, cursor: 1 };

  writeFileSync(path, "old\n");
  await readPage({}, { kind: "text" });
  writeFileSync(path, "by\na person\n");
  await readPage({}, { kind: "truncated", continuation });
  expect(await write()).toMatchObject({ block: true });
  await readPage({ offset: 2, cursor: 2 }, { kind: "text" });
  expect(await write()).toMatchObject({ block: true });
  await readPage({ offset: 2, cursor: 1 }, { kind: "text" });
  expect(await write()).toBeUndefined();
});
