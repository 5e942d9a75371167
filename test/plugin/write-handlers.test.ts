import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { readHealthBeside } from "../../src/plugins/ledger-reader.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import { createFakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const folder = useStateFolder();

const inContext = {
  sessionKey: "agent:main:main",
  agentId: "main",
  runId: "run-1",
} as unknown as HookContext<"before_tool_call">;

/** Where the ledger is no ledger. */
async function startBroken(phase1: Record<string, unknown>): Promise<HookHandlers> {
  const path = join(folder.path, "coordination", "ledger.sqlite");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "not a database");
  const handlers = createHookHandlers(createFakeHost({ stateDir: folder.path, phase1 }).api);
  folder.stopLater(handlers);
  await handlers.start();
  return handlers;
}

function call(handlers: HookHandlers, toolName: string, params: Record<string, unknown>) {
  return handlers.beforeCall({ toolName, toolCallId: "call-1", runId: "run-1", params }, inContext);
}

describe("a tool call while the ledger cannot be opened", () => {
  const changes = [
    ["write", { path: "a", content: "x" }],
    ["edit", { path: "a", edits: [{ oldText: "a", newText: "b" }] }],
    ["exec", { command: "true" }],
  ] as const;

  it.each(changes)("is refused in strict mode where it may change something: %s", async (tool, params) => {
    const answer = await call(await startBroken({ strict: true }), tool, params);
    expect(answer).toMatchObject({
      block: true,
      blockReason: expect.stringMatching(/^Coordination refused this call: .+\.$/u) as string,
    });
  });

  it("goes on in strict mode where it only reads, so that somebody can look into what is wrong", async () => {
    expect(await call(await startBroken({ strict: true }), "read", { path: "a" })).toBeUndefined();
  });

  it.each(changes)("goes on where the operator is not strict: %s", async (tool, params) => {
    expect(await call(await startBroken({}), tool, params)).toBeUndefined();
  });

  it("is over without a word, also that of a tool that nobody watches", async () => {
    const handlers = await startBroken({ strict: true });
    for (const toolName of ["write", "unwatched"]) {
      const event = { toolName, toolCallId: "call-1", runId: "run-1", params: {} };
      await expect(handlers.afterCall(event, inContext)).resolves.toBeUndefined();
    }
  });
});

it("a call that only reads does not show that the ledger takes appends again", async () => {
  const handlers = createHookHandlers(createFakeHost({ stateDir: folder.path, phase1: {} }).api);
  folder.stopLater(handlers);
  await handlers.start();
  const spawn = (task: string) =>
    handlers.beforeSpawn(
      { toolName: "sessions_spawn", toolCallId: task, runId: "run-1", params: { task } },
      inContext,
    );
  await spawn("recorded");
  const ledger = join(folder.path, "coordination", "ledger.sqlite");
  const newer = new Database(ledger);
  newer.pragma("user_version = 9999");
  newer.close();
  await spawn("not recorded");
  const failed = { state: "degraded", failure: { code: "LEDGER_TOO_NEW" } };
  expect(readHealthBeside(ledger)).toMatchObject(failed);
  await call(handlers, "read", { path: "a" });
  expect(readHealthBeside(ledger)).toMatchObject(failed);
});
