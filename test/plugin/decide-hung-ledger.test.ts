/** Owns: a spawn that plugins decide about while the server of the ledger takes connections and answers nothing. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { HookDecision } from "../../src/plugins/hooks/hook-types.ts";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import { findRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createFakeHost } from "./fake-host.ts";
import { createPlugin } from "./hooks-parts.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const sockets = new Set<Socket>();
const server = createServer((socket) => {
  sockets.add(socket);
  // A client that gives up may reset the connection.
  socket.on("error", () => undefined);
});
const folder = useStateFolder(() => {
  for (const socket of sockets) socket.destroy();
});
let handlers: HookHandlers;

beforeEach(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const url = `postgres://user@127.0.0.1:${port}/coordination`;
  const phase1 = { strict: false, ledger: { url } };
  handlers = createHookHandlers(createFakeHost({ stateDir: folder.path, phase1 }).api);
  folder.stopLater(handlers);
  // Nobody waits for the end of the start: it opens the ledger.
  void handlers.start();
  await vi.waitFor(() => expect(findRuntime()).toMatchObject({ closed: false }), 30_000);
});

afterEach(() => void server.close());

function spawn(): Promise<unknown> {
  const call = { toolName: "sessions_spawn", toolCallId: "call-1", runId: "run-1", params: { task: "work" } };
  const context = { sessionKey: "agent:main:main", agentId: "main", runId: "run-1" };
  return handlers.beforeSpawn(call, context as unknown as HookContext<"before_tool_call">);
}

test("it is denied in the words of a plugin, which is asked without the place of the spawn", async () => {
  const decisions: HookDecision[] = [];
  let answerMs = 0;
  createPlugin({
    decide: (decision, { deadlineAtMs }) => {
      decisions.push(decision);
      answerMs = deadlineAtMs - Date.now();
      return { action: "deny", reason: "No more helpers." };
    },
  });
  expect(await spawn()).toEqual({
    block: true,
    blockReason: "Coordination refused this spawn: the plugin guard denied it: No more helpers.",
  });
  expect(decisions).toEqual([
    { kind: "spawn", agentId: "main", sourceSession: "agent:main:main", runner: "subagent" },
  ]);
  // The privileges of the session were read before, which took the time of the hook until then.
  expect(answerMs).toBeGreaterThan(500);
});
