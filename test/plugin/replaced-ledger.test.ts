/** Owns: children at work and open coordinations under a gateway whose ledger is suddenly another one. */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext, HookEvent } from "../../src/plugins/openclaw/host/sdk.ts";
import { loadToolNames } from "../../src/plugins/openclaw/privileges/tool-names.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { createFakeHost, type FakeHost } from "./fake-host.ts";

const OWNER = "agent:main:main";

let folder: TempFolder;
let host: FakeHost;
let handlers: HookHandlers;
let ledgerFolder: string;
let calls = 0;

// A gateway has loaded most of it with its first agent.
beforeAll(async () => {
  await loadToolNames();
}, 120_000);

beforeEach(async () => {
  folder = createTempFolder();
  ledgerFolder = "before";
  host = createFakeHost({ stateDir: () => join(folder.path, ledgerFolder) });
  await start();
});

afterEach(async () => {
  await handlers.stop();
  folder[Symbol.dispose]();
});

async function start(): Promise<void> {
  handlers = createHookHandlers(host.api);
  await handlers.start();
}

/** Reloads the plugin, with its ledger in that folder. */
async function reload(ledgerIn: string): Promise<void> {
  await handlers.stop();
  ledgerFolder = ledgerIn;
  await start();
}

const contextOf = (sessionKey: string): HookContext<"before_tool_call"> =>
  ({
    sessionKey,
    agentId: "main",
    runId: `run of ${sessionKey}`,
    trace: { traceId: "t".repeat(32) },
  }) as never;

function eventOf(toolName: string, params: Record<string, unknown>): HookEvent<"before_tool_call"> {
  calls += 1;
  return { toolName, toolCallId: `call-${calls}`, runId: "run", params };
}

async function spawn(child: string, coordination: object = {}): Promise<void> {
  const event = eventOf("sessions_spawn", { task: `work of ${child}`, coordination });
  const before = await handlers.beforeSpawn(event, contextOf(OWNER));
  const details = { status: "accepted", childSessionKey: child, runId: `run of ${child}` };
  await handlers.afterSpawn({ ...event, ...before, result: { details } }, contextOf(OWNER));
  // The host builds a child's prompt before its model is called.
  await handlers.beforePromptBuild({ prompt: "x", messages: [] }, contextOf(child));
}

async function call(by: string, tool: string, through = handlers): Promise<string | undefined> {
  const answer = await through.beforeCall(eventOf(tool, { command: "true" }), contextOf(by));
  return answer?.block ? answer.blockReason : undefined;
}

const READ_ONLY = { tools: { allow: ["read", "sessions_spawn"] } };

let children = 0;

function nameChild(): string {
  children += 1;
  return `agent:main:subagent:${children}`;
}

const listErrors = (): string[] =>
  host.lines.filter(({ level }) => level === "error").map(({ text }) => text);

describe("a child that is held to something, when the gateway's ledger becomes another one", () => {
  const LEFT = /^Coordination refused this call: the gateway's ledger was changed while this session worked/u;

  it("has every call refused, through handlers of before too, and others go on", async () => {
    const [bounded, free] = [nameChild(), nameChild()];
    await spawn(bounded, READ_ONLY);
    await spawn(free);
    const before = handlers;
    await reload("after");
    for (const through of [handlers, before])
      for (const tool of ["exec", "read"]) expect(await call(bounded, tool, through)).toMatch(LEFT);
    const spawned = await handlers.beforeSpawn(eventOf("sessions_spawn", { task: "x" }), contextOf(bounded));
    expect(spawned?.blockReason).toMatch(LEFT);
    expect(await call(free, "exec")).toBeUndefined();
    expect(await call(OWNER, "exec")).toBeUndefined();
  });

  it("is held as before where the ledger is the one of before again, or was taken along", async () => {
    const bounded = nameChild();
    await spawn(bounded, READ_ONLY);
    const expectHeld = async (): Promise<void> => {
      expect(await call(bounded, "read")).toBeUndefined();
      expect(await call(bounded, "exec")).toMatch(/may not use exec/u);
    };
    await reload("after");
    expect(await call(bounded, "read")).toMatch(LEFT);
    await reload("before");
    await expectHeld();
    await handlers.stop();
    cpSync(join(folder.path, "before"), join(folder.path, "copy"), { recursive: true });
    ledgerFolder = "copy";
    await start();
    await expectHeld();
    // The last one, so that whatever would have been logged before is there.
    await reload("other");
    await vi.waitFor(() => {
      expect(listErrors()).toEqual([
        expect.stringContaining("before/coordination/ledger.sqlite"),
        expect.stringContaining("copy/coordination/ledger.sqlite"),
      ]);
    }, 10_000);
  });
});

describe("coordinations that are open when the gateway's ledger becomes another one", () => {
  it("are told of in the log, with their ledger and what to do", async () => {
    await spawn(nameChild());
    await reload("after");
    await vi.waitFor(() => {
      expect(listErrors()).toEqual([
        expect.stringMatching(
          /1 open coordination left in .*before.coordination.ledger\.sqlite, and nobody/u,
        ),
      ]);
    }, 10_000);
    expect(listErrors()[0]).toContain("Set it back");
  });

  it("are not told of by a reload with the same ledger, nor where there are none", async () => {
    await reload("after");
    await spawn(nameChild());
    await reload("after");
    // Told of last, so that whatever would have been told of before is there.
    await reload("other");
    await vi.waitFor(() => {
      expect(listErrors()).toHaveLength(1);
    }, 10_000);
    expect(listErrors()[0]).toContain("after");
  });
});
