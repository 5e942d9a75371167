/** Owns: what other plugins and the Control UI see of coordinations: the host's agent event stream. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openLedgerForReading } from "../../src/plugins/ledger-reader.ts";
import { createHookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext, HookEvent, OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import plugin from "../../src/plugins/openclaw/index.ts";
import { waitFor } from "../support/wait-for.ts";
import { createFakeHost, type FakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

type Emit = OpenClawPluginApi["agent"]["events"]["emitAgentEvent"];
type EmittedEvent = Parameters<Emit>[0];

const OWNER = "agent:main:main";
const SECRET = "words that nobody else may read";

const folder = useStateFolder();

function createHostWith(emitAgentEvent: Emit | undefined): FakeHost {
  const host = createFakeHost({ stateDir: folder.path, phase1: { settleMs: 1 } });
  Object.assign(host.api, { agent: emitAgentEvent ? { events: { emitAgentEvent } } : undefined });
  return host;
}

/** A spawn that the host creates a child for, and the end of the child. */
async function coordinateOnce(host: FakeHost): Promise<void> {
  const handlers = createHookHandlers(host.api);
  folder.stopLater(handlers);
  await handlers.start();
  const context = {
    sessionKey: OWNER,
    agentId: "main",
    runId: "run-1",
    trace: { traceId: "t".repeat(32) },
  } as unknown as HookContext<"before_tool_call">;
  const event: HookEvent<"before_tool_call"> = {
    toolName: "sessions_spawn",
    toolCallId: "call-1",
    runId: "run-1",
    params: { task: SECRET, label: "helper" },
  };
  const before = (await handlers.beforeSpawn(event, context)) as { params: Record<string, unknown> };
  const childSessionKey = "agent:main:subagent:1";
  const details = { status: "accepted", childSessionKey, runId: "run-of-1" };
  await handlers.afterSpawn({ ...event, params: before.params, result: { details } }, context);
  await handlers.subagentEnded({
    targetSessionKey: childSessionKey,
    targetKind: "subagent",
    reason: SECRET,
    outcome: "error",
    error: SECRET,
  });
}

async function listRecorded(): Promise<{ type: string; eventId: string; runId: string; sequence: number }[]> {
  const reader = await openLedgerForReading(join(folder.path, "coordination", "ledger.sqlite"));
  try {
    const [entry] = await reader.list({ limit: 1 });
    return entry ? await reader.read(entry.runId, { from: 0, limit: 1_000 }) : [];
  } finally {
    await reader.close();
  }
}

const hasEnded = async (): Promise<boolean> =>
  (await listRecorded()).some(({ type }) => type === "run.completed" || type === "run.failed");

describe("the host's agent event stream", () => {
  it("has every event of a coordination, in its order, for the owner's session", async () => {
    const emitted: EmittedEvent[] = [];
    await coordinateOnce(
      createHostWith((event) => {
        emitted.push(event);
        return { emitted: true, stream: event.stream };
      }),
    );
    await waitFor(hasEnded, { what: "the coordination to end" });
    const events = await listRecorded();
    await waitFor(() => emitted.length >= events.length, { what: "the last event" });
    expect(emitted.map(({ data }) => data)).toEqual(
      events.map(({ type, eventId, runId, sequence, ...event }) => {
        const { nodeId, causationId } = event as { nodeId?: string; causationId?: string };
        return {
          type,
          eventId,
          coordinationId: runId,
          sequence,
          ...(nodeId !== undefined && { stepId: nodeId }),
          ...(causationId !== undefined && { causationId }),
        };
      }),
    );
    for (const { runId, stream, sessionKey } of emitted)
      expect({ runId, stream, sessionKey }).toEqual({
        runId: events[0]?.runId,
        stream: "coordination.events",
        sessionKey: OWNER,
      });
    expect(emitted.map(({ data }) => (data as { type: string }).type)).toEqual(
      expect.arrayContaining(["coordination.created", "step.dispatched"]),
    );
  });

  it("has ids and types, and no words", async () => {
    const emitted: EmittedEvent[] = [];
    await coordinateOnce(
      createHostWith((event) => {
        emitted.push(event);
        return { emitted: true, stream: event.stream };
      }),
    );
    await waitFor(hasEnded, { what: "the coordination to end" });
    await waitFor(() => emitted.length > 5, { what: "its events" });
    expect(JSON.stringify(emitted)).not.toContain("words");
    expect(JSON.stringify(emitted)).not.toContain("helper");
  });

  it.each<[string, Emit | undefined]>([
    [
      "throws",
      () => {
        throw new Error("no stream today");
      },
    ],
    ["refuses", () => ({ emitted: false, reason: "plugin is not loaded" })],
    ["is not there", undefined],
  ])("harms no coordination where it %s, and is told of once", async (_, emit) => {
    const host = createHostWith(emit);
    await coordinateOnce(host);
    await waitFor(hasEnded, { what: "the coordination to end" });
    const countTold = (): number =>
      host.lines.filter(({ text }) => text.includes("agent event stream")).length;
    await waitFor(() => countTold() > 0, { what: "the line in the log" });
    expect(countTold()).toBe(1);
  });

  it("is left alone with the flag off", () => {
    const touched: string[] = [];
    const api = new Proxy(
      { pluginConfig: { coordination: { phase1: { enabled: false } } } },
      {
        get: (target, name) => {
          touched.push(String(name));
          return name === "pluginConfig" ? target.pluginConfig : () => undefined;
        },
      },
    );
    plugin.register(api as unknown as OpenClawPluginApi);
    expect(touched).not.toContain("agent");
    expect(touched).not.toContain("on");
    expect(touched).not.toContain("registerService");
  });
});
