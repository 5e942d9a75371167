/** Owns: reads that the host did not run: they show nothing to their session, also not that a file is gone. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { createFakeHost } from "./fake-host.ts";
import { createCallContext } from "./hook-calls.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const folder = useStateFolder();

const OWNER = "agent:main:main";
const CHILD = "agent:main:subagent:1";

async function startWithChild(): Promise<HookHandlers> {
  const handlers = createHookHandlers(createFakeHost({ stateDir: folder.path, phase1: {} }).api);
  folder.stopLater(handlers);
  await handlers.start();
  const spawn = { toolName: "sessions_spawn", toolCallId: "spawn", runId: "run-1" };
  const before = await handlers.beforeSpawn({ ...spawn, params: { task: "work" } }, createCallContext(OWNER));
  const params = (before as { params: Record<string, unknown> }).params;
  const result = { details: { status: "accepted", childSessionKey: CHILD, runId: "run-of-child" } };
  await handlers.afterSpawn({ ...spawn, params, result }, createCallContext(OWNER));
  return handlers;
}

interface Call {
  readonly session: string;
  readonly toolName: string;
  readonly params: Record<string, unknown>;
  readonly runTool?: () => void;
  readonly ending?: { readonly error?: string; readonly result?: unknown };
}

/** Makes a call as the host does. Returns the answer to it. */
async function makeCall(handlers: HookHandlers, call: Call): Promise<unknown> {
  const { session, toolName, params, runTool, ending = {} } = call;
  const event = { toolName, toolCallId: `${session} ${toolName}`, runId: "run-1", params };
  const answer = await handlers.beforeCall(event, createCallContext(session));
  runTool?.();
  await handlers.afterCall({ ...event, ...ending }, createCallContext(session));
  return answer;
}

/** As the host tells of calls that it did not run, with and without a status. */
const NOT_RUN: [string, Call["ending"]][] = [
  ["blocked", { error: "not run", result: { details: { status: "blocked" } } }],
  ["skipped", { error: "not run", result: { details: { status: "skipped" } } }],
  ["aborted", { error: "Operation aborted", result: { details: {} } }],
  ["aborted with a signal's reason", { error: "This operation was aborted", result: { details: {} } }],
  ["aborted by its wrapper", { error: "Aborted", result: { details: {} } }],
];

it.each(NOT_RUN)("a read that was %s does not show that the file is gone", async (_, ending) => {
  const handlers = await startWithChild();
  const path = join(folder.path, "notes.md");
  writeFileSync(path, "v0\n");
  const look = { session: CHILD, toolName: "read", params: { path } };
  const change = { session: CHILD, toolName: "write", params: { path, content: "of the child\n" } };
  await makeCall(handlers, look);
  const input = `*** Begin Patch\n*** Delete File: ${path}\n*** End Patch`;
  const runTool = (): void => rmSync(path);
  await makeCall(handlers, { session: OWNER, toolName: "apply_patch", params: { input }, runTool });
  await makeCall(handlers, { ...look, ...(ending && { ending }) });
  expect(await makeCall(handlers, change)).toMatchObject({ block: true });
  await makeCall(handlers, { ...look, ending: { error: "ENOENT" } });
  expect(await makeCall(handlers, change)).toBeUndefined();
});
