/** Owns: that a replay of an agent's run has the same invocation, and asks and calls nobody (RFC 0077, recorded facts). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Turn } from "../support/scripted-model.ts";
import { createAgent, openAgents, type Agents } from "./levels-agents-world.ts";
import { findOnly, type Event } from "./levels-world.ts";

const tools = ["mcp:echo", "openwop:memory.write", "openwop:memory.read"];
const AGENTS = [
  createAgent("vendor.test.tooled", { manifest: { toolAllowlist: tools, memoryShape: { longTerm: true } } }),
  createAgent("vendor.test.doubter", { manifest: { confidence: { defaultThreshold: 0.9 } } }),
  createAgent("vendor.test.plain"),
];

let world: Agents;
beforeAll(async () => {
  world = await openAgents(AGENTS);
});
afterAll(() => world.close());

const VOLATILE = new Set(["eventId", "runId", "observedAt", "timestamp", "occurredAt", "emittedAt", "id"]);
const strip = (events: readonly Event[]): unknown =>
  JSON.parse(JSON.stringify(events), (key, value: unknown) => (VOLATILE.has(key) ? undefined : value));

async function replayOf(runId: string): Promise<readonly Event[]> {
  const { status, body } = await world.client.post(`/v1/runs/${runId}:fork`, { mode: "replay", fromSeq: 0 });
  expect(status).toBe(201);
  const fork = String(body["runId"]);
  await world.client.until(fork, "completed", "failed");
  return world.client.events(fork);
}

const SCENES: readonly (readonly [what: string, agentId: string, turns: readonly Turn[]])[] = [
  [
    "called tools and kept something",
    "vendor.test.tooled",
    [
      { say: "let me see", call: [{ name: "mcp_echo", args: { text: "hi" } }] },
      { call: [{ name: "openwop_memory_write", args: { content: "deep" } }] },
      { say: "done" },
    ],
  ],
  ["was refused", "vendor.test.plain", [{ say: "", refuse: "no" }]],
  ["could not reach its model", "vendor.test.plain", [{ httpError: 400 }]],
];

describe.each(SCENES)("the replay of an invocation that %s", (_what, agentId, turns) => {
  it("LM-85 is the same log, its bracket included, and nobody is asked and nothing called", async () => {
    const { runId, events } = await world.run(agentId, {}, turns);
    const [requestCount, called] = [world.model.requests.length, world.mcp.calls.length];
    const replayed = await replayOf(runId);
    expect(strip(replayed)).toEqual(strip(events));
    expect(findOnly(replayed, "agent.invocation.started").payload["invocationId"]).toBe(
      findOnly(events, "agent.invocation.started").payload["invocationId"],
    );
    expect(findOnly(replayed, "agent.invocation.started").timestamp).toBe(
      findOnly(events, "agent.invocation.started").timestamp,
    );
    expect([world.model.requests.length, world.mcp.calls.length]).toEqual([requestCount, called]);
  });
});

it("LM-86 the replay of an invocation that people agreed to is the same log", async () => {
  const runId = await world.start("vendor.test.doubter", {}, [
    { say: '{"result":"maybe","confidence":0.1}' },
  ]);
  await world.client.until(runId, "waiting-approval");
  await world.client.resolve(runId, "agent", { action: "accept" });
  await world.client.until(runId, "completed");
  expect(strip(await replayOf(runId))).toEqual(strip(await world.client.events(runId)));
});
