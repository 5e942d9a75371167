/** Owns: level 3 of one host: what it advertises, ancestry within it, and the trace that it hands on to tools and agents. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { replyJson, serve } from "../contract/outbound-scene.ts";
import { findSchemaProblems } from "./levels-schemas.ts";
import { end, createLoop, createNode, work, createWorkflow, WORKERS } from "./levels-workflows.ts";
import { childOf, filterByType, findOnly, openWorld, type World } from "./levels-world.ts";

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const TRACEPARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;
const SAME_TRACE = new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-01$`, "u");

const DEFINITIONS = [
  ...WORKERS,
  createLoop("hands-over", { plan: [work(["worker-good"]), end()] }),
  createWorkflow("calls", {
    nodes: [createNode("call", "core.subWorkflow", { config: { workflowId: "worker-good" } })],
  }),
];

let world: World;
beforeAll(async () => {
  world = await openWorld(DEFINITIONS);
});
afterAll(() => world.close());

async function readCrossHost({ client }: World): Promise<unknown> {
  const { body } = await client.get("/.well-known/openwop");
  const { executionModel } = body["multiAgent"] as { executionModel: Record<string, unknown> };
  return executionModel["crossHostCausation"];
}

/** An MCP server without sessions, which echoes. */
function startMcpServer() {
  return serve((response, { body }) => {
    const { id, method } = JSON.parse(body || "{}") as { id?: number; method?: string };
    const results: Readonly<Record<string, unknown>> = {
      initialize: {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "tools", version: "1" },
      },
      "tools/list": { tools: [{ name: "echo", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: "echo" }] },
    };
    if (id === undefined) {
      response.writeHead(202).end();
      return;
    }
    replyJson(200, { jsonrpc: "2.0", id, result: results[method ?? ""] ?? {} })(response, {
      method: "POST",
      path: "/",
      headers: {},
      body,
    });
  });
}

/** An agent of A2A 0.3 whose tasks are done at once. */
async function startA2aAgent() {
  const agent = await serve((response, request) => {
    const card = {
      name: "agent",
      description: "digs",
      version: "1",
      protocolVersion: "0.3.0",
      url: `http://${request.headers.host ?? ""}/rpc`,
      preferredTransport: "JSONRPC",
      capabilities: {},
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
      skills: [],
    };
    if (request.method === "GET") {
      replyJson(200, card)(response, request);
      return;
    }
    const { id } = JSON.parse(request.body) as { id: unknown };
    const status = { state: "completed" };
    const result = { kind: "task", id: "task-1", contextId: "context-1", status, history: [], artifacts: [] };
    replyJson(200, { jsonrpc: "2.0", id, result })(response, request);
  });
  return agent;
}

/** Headers of the request with this method of JSON-RPC. */
function findCalled(
  received: readonly { readonly headers: object; readonly body: string }[],
  method: string,
) {
  const request = received.find(({ body }) => body.includes(`"${method}"`));
  const { params } = JSON.parse(request?.body ?? "{}") as { params: Record<string, unknown> };
  return { headers: request?.headers as Record<string, unknown>, params };
}

describe("cross-host causation", () => {
  it("L3-20 is advertised with an id of the host, which is its address unless it was given another", async () => {
    const supported = { supported: true, ancestryEndpointSupported: true };
    expect(await readCrossHost(world)).toEqual({ ...supported, hostId: world.baseUrl });
    const named = await openWorld([], { hostId: "mine.example" });
    expect(await readCrossHost(named)).toEqual({ ...supported, hostId: "mine.example" });
    await named.close();
  });

  it("L3-21 puts no host into the events of runs whose causes are all here", async () => {
    for (const workflowId of ["hands-over", "calls"]) {
      const { events } = await world.client.run(workflowId);
      const child = await world.client.events(childOf(events));
      for (const { payload } of [...events, ...child]) expect(payload).not.toHaveProperty("causationHostId");
    }
  });
});

describe("the ancestry", () => {
  it("L3-30 of a run that nobody started from a run has no parent, also while the run is under way", async () => {
    const runId = await world.client.start("worker-gated");
    const { status, body } = await world.client.get(`/v1/runs/${runId}/ancestry`);
    expect(status).toBe(200);
    expect(body).toEqual({ runId, hostId: world.baseUrl, parent: null });
    expect(findSchemaProblems("run-ancestry-response", body)).toEqual([]);
  });

  it("L3-31 of a child names the parent and what it did, and no address within one host", async () => {
    for (const [workflowId, cause] of [
      ["hands-over", "core.dispatch"],
      ["calls", "core.subWorkflow"],
    ] as const) {
      const { runId, events } = await world.client.run(workflowId);
      const childRunId = childOf(events);
      const { body } = await world.client.get(`/v1/runs/${childRunId}/ancestry`);
      expect(body).toEqual({
        runId: childRunId,
        hostId: world.baseUrl,
        parent: { runId, hostId: world.baseUrl, cause },
      });
      expect(findSchemaProblems("run-ancestry-response", body)).toEqual([]);
    }
  });

  it("L3-32 of a run that is not there, or of another tenant, is not found", async () => {
    const runId = await world.client.start("worker-good");
    for (const reply of [
      await world.client.get("/v1/runs/run-nobody/ancestry"),
      await world.other.get(`/v1/runs/${runId}/ancestry`),
    ]) {
      expect(reply.status).toBe(404);
      expect(reply.body).toMatchObject({ error: "not_found" });
    }
  });
});

describe("trace context", () => {
  it("L3-40 of the request that starts a run is kept with the run, and goes on in its children", async () => {
    const { events } = await world.client.run("hands-over", { headers: { traceparent: TRACEPARENT } });
    expect(findOnly(events, "run.started").payload["traceparent"]).toBe(TRACEPARENT);
    const child = await world.client.events(childOf(events));
    expect(findOnly(child, "run.started").payload["traceparent"]).toMatch(SAME_TRACE);
  });

  it("L3-41 goes with every call of an MCP tool, in params._meta and in the header", async () => {
    const { url, received } = await startMcpServer();
    const tools = await openWorld(
      [
        createWorkflow("uses-a-tool", {
          nodes: [
            createNode("call", "core.ai.callPrompt", {
              config: { mcp: { tool: "echo", arguments: { text: "hi" } } },
            }),
          ],
        }),
      ],
      { mcpUrl: url, privateOrigins: [url] },
    );
    const { snapshot, events } = await tools.client.run("uses-a-tool", {
      headers: { traceparent: TRACEPARENT },
    });
    expect(snapshot.status).toBe("completed");
    const { params, headers } = findCalled(received, "tools/call");
    expect(headers["traceparent"]).toMatch(SAME_TRACE);
    expect(params["_meta"]).toMatchObject({ traceparent: headers["traceparent"] });
    const [toolCalled, returned] = filterByType(events, "agent.toolCalled", "agent.toolReturned");
    expect(returned?.causationId).toBe(toolCalled?.eventId);
    await tools.close();
  });

  it("L3-42 goes with every message to an agent over A2A, in its metadata and in the header", async () => {
    const { url, received } = await startA2aAgent();
    const agents = await openWorld(
      [
        createWorkflow("asks-an-agent", {
          nodes: [createNode("ask", "core.a2a.invoke", { config: { skill: "dig" } })],
        }),
      ],
      { a2aUrl: url, privateOrigins: [url] },
    );
    const { snapshot } = await agents.client.run("asks-an-agent", { headers: { traceparent: TRACEPARENT } });
    expect(snapshot.error).toBeUndefined();
    const { params, headers } = findCalled(received, "message/send");
    expect(headers["traceparent"]).toMatch(SAME_TRACE);
    const { metadata } = params["message"] as { metadata: { openwop: { traceparent: string } } };
    expect(metadata.openwop.traceparent).toMatch(SAME_TRACE);
    await agents.close();
  });

  it("L3-43 that is malformed starts no trace and is no error", async () => {
    for (const traceparent of ["nonsense", `00-${"0".repeat(32)}-b7ad6b7169203331-01`]) {
      const { snapshot, events } = await world.client.run("worker-good", { headers: { traceparent } });
      expect(snapshot.status).toBe("completed");
      expect(findOnly(events, "run.started").payload).not.toHaveProperty("traceparent");
    }
  });
});
