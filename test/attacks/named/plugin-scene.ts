/** Owns: the plugin's real hook handlers over a real ledger, as children of the plain host would attack them. */
import { join } from "node:path";
import type { RunEvent } from "../../../src/agents/coordination/contracts/run-event.ts";
import { openLedgerForReading } from "../../../src/plugins/ledger-reader.ts";
import { createHookHandlers, type HookHandlers } from "../../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext, HookEvent } from "../../../src/plugins/openclaw/host/sdk.ts";
import { createFakeHost, type FakeHost } from "../../plugin/fake-host.ts";
import { createTempFolder } from "../../support/temp-ledger.ts";

export const OWNER = "agent:main:main";
export const CHILD = "agent:main:subagent:child";
export const GRANDCHILD = "agent:main:subagent:grandchild";

export interface AttackedPlugin extends AsyncDisposable {
  readonly folder: string;
  readonly ledgerPath: string;
  readonly handlers: HookHandlers;
  readonly host: FakeHost;
  /** Plays both hooks around a spawn, as the host calls them; answers with the refusal where there is one. */
  spawn(by: string, child: string, params?: Record<string, unknown>): Promise<string | undefined>;
  /** Returns the words that the model reads about a refused call; `undefined` for one that happens. */
  call(by: string, tool: string, params?: Record<string, unknown>): Promise<string | undefined>;
  readEvents(type?: string): Promise<readonly RunEvent[]>;
  /** Ends the process and starts the next one over the same ledger, with another configuration where one is named. */
  restart(phase1?: Record<string, unknown>): Promise<void>;
  stop(): Promise<void>;
}

let calls = 0;

export async function openAttackedPlugin(phase1: Record<string, unknown> = {}): Promise<AttackedPlugin> {
  const folder = createTempFolder();
  const ledgerPath = join(folder.path, "coordination", "ledger.sqlite");
  let host = createFakeHost({ stateDir: folder.path, phase1 });
  let handlers = createHookHandlers(host.api);
  await handlers.start();
  const createEvent = (toolName: string, params: Record<string, unknown>): HookEvent<"before_tool_call"> => {
    calls += 1;
    return { toolName, toolCallId: `attack-${calls}`, runId: "run", params };
  };
  return {
    folder: folder.path,
    ledgerPath,
    get handlers() {
      return handlers;
    },
    get host() {
      return host;
    },
    spawn: async (by, child, params = {}) => {
      const event = createEvent("sessions_spawn", { task: `work of ${child}`, ...params });
      const before = await handlers.beforeSpawn(event, createContext(by));
      if (before?.block) return before.blockReason;
      const details = { status: "accepted", childSessionKey: child, runId: `run of ${child}` };
      await handlers.afterSpawn({ ...event, ...before, result: { details } }, createContext(by));
      return undefined;
    },
    call: async (by, tool, params = {}) => {
      const answer = await handlers.beforeCall(createEvent(tool, params), createContext(by));
      return answer?.block ? answer.blockReason : undefined;
    },
    readEvents: (type) => readEvents(ledgerPath, type),
    restart: async (next = phase1) => {
      await handlers.stop();
      host = createFakeHost({ stateDir: folder.path, phase1: next });
      handlers = createHookHandlers(host.api);
      await handlers.start();
    },
    stop: () => handlers.stop(),
    [Symbol.asyncDispose]: async () => {
      await handlers.stop();
      folder[Symbol.dispose]();
    },
  };
}

export function createContext(sessionKey: string): HookContext<"before_tool_call"> {
  const trace = { traceId: "t".repeat(32) };
  return { sessionKey, agentId: "main", runId: `run of ${sessionKey}`, trace } as never;
}

async function readEvents(path: string, type?: string): Promise<readonly RunEvent[]> {
  const ledger = await openLedgerForReading(path);
  try {
    const runs = await ledger.list({ limit: 100 });
    const logs = await Promise.all(runs.map(({ runId }) => ledger.read(runId, { from: 0, limit: 1_000 })));
    return logs.flat().filter((event) => type === undefined || event.type === type);
  } finally {
    await ledger.close();
  }
}
