/** Owns: the messages of an MCP session over HTTP: when the stream of their answers ends, and how they are counted. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMcpFace } from "../../src/plugins/mcp/mcp-routes.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { createFakeFace, createFakeHost, createPost, createRecordingLogger } from "./http-fake-host.ts";
import { waitFor } from "../support/wait-for.ts";
import { callTool, openMcpWorld, TOKEN, type McpWorld } from "./mcp-world.ts";

let world: McpWorld;
beforeAll(async () => {
  world = await openMcpWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

interface Session {
  readonly send: (message: unknown) => Promise<Response>;
}

async function openSession(mcp: McpWorld): Promise<Session> {
  const { transport } = await mcp.connect();
  return {
    send: (message) =>
      fetch(mcp.mcpUrl, {
        method: "POST",
        headers: {
          authorization: `Bearer ${TOKEN}`,
          accept: "application/json, text/event-stream",
          "content-type": "application/json",
          "mcp-session-id": transport.sessionId ?? "",
        },
        body: JSON.stringify(message),
      }),
  };
}

const createCall = (id: string) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name: "slow", arguments: {} },
});
const createPing = (id: string) => ({ jsonrpc: "2.0", id, method: "ping" });
const createCancel = (requestId: string) => ({
  jsonrpc: "2.0",
  method: "notifications/cancelled",
  params: { requestId },
});

describe("the stream of an answer", { timeout: 20_000 }, () => {
  it("ends when its request is cancelled", async () => {
    const { send } = await openSession(world);
    const calling = await send(createCall("one"));
    expect((await send(createCancel("one"))).status).toBe(202);
    expect(await calling.text()).toBe("");
  });

  it("ends with the last of its requests, whichever of them is cancelled", async () => {
    const { send } = await openSession(world);
    const first = await send([createCall("one"), createPing("two")]);
    await send(createCancel("one"));
    expect(await first.text()).toContain('"id":"two"');
    const both = await send([createCall("three"), createCall("four")]);
    await send(createCancel("three"));
    expect((await send(createPing("five"))).status).toBe(200);
    await send(createCancel("four"));
    expect(await both.text()).toBe("");
  });

  it("stays open where a request is cancelled that is none", async () => {
    const { send } = await openSession(world);
    const calling = await send(createCall("one"));
    expect((await send(createCancel("none"))).status).toBe(202);
    expect(await (await send([createPing("one")])).json()).toMatchObject({
      error: "state_conflict",
    });
    await send([createCancel("one"), createCancel("one")]);
    expect(await calling.text()).toBe("");
  });
});

describe("a call that its client gives up", () => {
  it("leaves its run going on where the time of the client's library was over, and else cancels it", async () => {
    const client = await world.connect();
    const listRuns = async (): Promise<readonly SlowRun[]> => {
      const { data } = await callTool(client, "status", { limit: 100 });
      return (data["runs"] as readonly SlowRun[]).filter(({ workflowId }) => workflowId === "slow");
    };
    const before = (await listRuns()).length;
    await expect(callTool(client, "slow", {}, { timeout: 50 })).rejects.toThrow("Request timed out");
    const timedOut = await waitFor(async () => (await listRuns()).at(-1 - before), { what: "the run" });
    const abort = new AbortController();
    const cancelled = callTool(client, "slow", {}, { signal: abort.signal, onprogress: () => abort.abort() });
    await expect(cancelled).rejects.toThrow("abort");
    await waitFor(async () => (await listRuns())[0]?.status === "cancelled", {
      what: "the second run's end",
    });
    expect((await listRuns()).find(({ runId }) => runId === timedOut.runId)?.status).toBe("running");
    await world.ask(`/v1/runs/${timedOut.runId}/cancel`, { method: "POST", body: {} });
  }, 20_000);
});

interface SlowRun {
  readonly runId: string;
  readonly workflowId: string;
  readonly status: string;
}

const ACCEPT = { accept: "application/json, text/event-stream" };
const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: { name: "x", version: "1" } },
};

/** Creates a server whose tenants may make 20 requests. */
function createLimitedFace() {
  const host = createFakeHost();
  const clock = createFakeClock();
  const { logger } = createRecordingLogger();
  const mcp = createMcpFace({
    host,
    clock,
    logger,
    runs: createMemoryWorkflowLedger().open(),
    contract: () => expect.fail("no call is made"),
    version: "0.0.0",
    toolScopes: {},
    mayAnswer: false,
    allowedOrigins: [],
  });
  return createFakeFace({ host, clock, faces: [mcp], rateLimit: { requestsPerSecond: 1, burst: 20 } });
}

describe("messages that are sent together", () => {
  it("each count for the limit of rate", async () => {
    const { app } = createLimitedFace();
    const initialized = await app.request("/v1/mcp", createPost(INITIALIZE, ACCEPT));
    const sessionId = initialized.headers.get("mcp-session-id") ?? "";
    const sendPings = (count: number) => {
      const pings = Array.from({ length: count }, (_, at) => createPing(`ping-${at}`));
      return app.request("/v1/mcp", createPost(pings, { ...ACCEPT, "mcp-session-id": sessionId }));
    };
    expect((await (await sendPings(10)).text()).match(/"result"/gu)).toHaveLength(10);
    const refused = await sendPings(10);
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ error: "rate_limited" });
  });
});
