/** Owns: the inventory of agents (RFC 0070, 0072, 0092), and the seams through which the protocol's suite drives them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAgent, openAgents, type Agents } from "./levels-agents-world.ts";
import { findSchemaProblems } from "./levels-schemas.ts";
import { filterByType, openWorld, type Event, type Reply } from "./levels-world.ts";

const AGENTS = [
  createAgent("vendor.test.zeta", {
    systemPrompt: "CANARY-PROMPT",
    returnSchema: { description: "CANARY-SCHEMA" },
    manifest: {
      label: "Z",
      description: "The last.",
      toolAllowlist: ["mcp:echo"],
      memoryShape: { longTerm: true },
      confidence: { defaultThreshold: 0.8 },
      handoff: { returnSchemaRef: "r.json" },
      requiresCapabilities: ["memory", "host.workspace.sync", "agents.liveRuntime", "no.such.thing"],
    },
  }),
  createAgent("community.test.alpha", {
    taskSchema: { type: "object", required: ["depth"] },
    manifest: { memoryShape: { scratchpad: true }, handoff: { taskSchemaRef: "t.json" } },
  }),
  createAgent("vendor.test.plain"),
];

let world: Agents;
beforeAll(async () => {
  world = await openAgents(AGENTS);
});
afterAll(() => world.close());

const readDiscovery = async (): Promise<Reply["body"]> =>
  (await world.client.get("/.well-known/openwop")).body;

describe("the inventory of agents", () => {
  it("LM-12 lists those that are installed by their ids, as the official schema has it", async () => {
    const { status, body } = await world.client.get("/v1/agents");
    expect(status).toBe(200);
    expect(findSchemaProblems("agent-inventory-response", body)).toEqual([]);
    const agents = body["agents"] as { agentId: string }[];
    const ids = agents.map(({ agentId }) => agentId);
    expect(ids).toEqual(ids.toSorted());
    expect(body["total"]).toBe(agents.length);
    expect(agents.find(({ agentId }) => agentId === "vendor.test.zeta")).toMatchObject({
      persona: "Tester",
      label: "Z",
      description: "The last.",
      modelClass: "reasoning",
      packName: "vendor.test",
      packVersion: "1.2.3",
      toolAllowlist: ["mcp:echo"],
      hasHandoffSchemas: true,
      memoryShape: { longTerm: true },
      confidenceThreshold: 0.8,
    });
  });

  it("LM-13 shows no prompt and no schema", async () => {
    const all = JSON.stringify((await world.client.get("/v1/agents")).body);
    const one = JSON.stringify((await world.client.get("/v1/agents/vendor.test.zeta")).body);
    for (const canary of ["CANARY-PROMPT", "CANARY-SCHEMA"]) expect(all + one).not.toContain(canary);
  });

  it("LM-14 shows one by its id, and nothing of one that is not there", async () => {
    const all = (await world.client.get("/v1/agents")).body["agents"] as { agentId: string }[];
    const one = await world.client.get("/v1/agents/community.test.alpha");
    expect(one.body).toEqual(all.find(({ agentId }) => agentId === "community.test.alpha"));
    expect(one.body).toMatchObject({ label: "Tester" });
    const none = await world.client.get("/v1/agents/vendor.test.nobody");
    expect(none).toMatchObject({ status: 404, body: { error: "not_found" } });
    expect(none.headers["www-authenticate"]).toBeUndefined();
  });

  it("LM-15 says what an agent needs and this host does not offer", async () => {
    const { body } = await world.client.get("/v1/agents/vendor.test.zeta");
    expect(body["degraded"]).toEqual(["host.workspace.sync", "no.such.thing"]);
    const { body: other } = await world.client.get("/v1/agents/community.test.alpha");
    expect(other).not.toHaveProperty("degraded");
    expect(other).toMatchObject({ memoryDegraded: true, degradedMemoryDimensions: ["read", "write"] });
  });

  it("LM-16 is advertised with what live agents are held to", async () => {
    const document = await readDiscovery();
    expect(findSchemaProblems("capabilities", document)).toEqual([]);
    expect(document["agents"]).toMatchObject({
      manifestRuntime: { supported: true, handoffValidation: true, installScope: "host" },
      liveRuntime: { supported: true, structuredOutput: true, confidenceEscalation: true },
    });
    expect(document["toolHooks"]).toEqual({
      supported: true,
      prePostEvents: true,
      perToolAuthorization: true,
      perToolRateLimit: true,
    });
  });

  it("LM-17 is neither there nor advertised on a host without agents", async () => {
    const bare = await openWorld([], { testSeams: false });
    try {
      expect((await bare.client.get("/v1/agents")).status).toBe(404);
      const { agents } = (await bare.client.get("/.well-known/openwop")).body as { agents: object };
      expect(agents).not.toHaveProperty("manifestRuntime");
      expect(agents).not.toHaveProperty("liveRuntime");
      expect((await bare.client.post("/v1/host/sample/agents/live-invoke", {})).status).toBe(404);
      const refused = await bare.client.post("/v1/runs", { agentId: "core.conformance.agent" });
      expect(refused.status).toBe(400);
    } finally {
      await bare.close();
    }
  });
});

const postSeam = (path: string, body: object) => world.client.post(`/v1/host/sample/${path}`, body);
const eventsOf = async (runId: unknown): Promise<Event[]> =>
  (await world.client.get(`/v1/host/sample/test/runs/${String(runId)}/events`)).body["events"] as Event[];

describe("the seam for live agents", () => {
  it("LM-34 has no events of a run that is not there", async () => {
    expect(await eventsOf("__probe__")).toEqual([]);
  });

  it("LM-35 runs an agent of its own choice to its end, however it is begun", async () => {
    for (const source of ["run-api", "workflow-node", "chat-mention"]) {
      const { status, body } = await postSeam("agents/live-invoke", { source });
      expect(status).toBe(200);
      const { invocationId, outcome } = body;
      expect(outcome).toBe("completed");
      const agentEvents = (await eventsOf(body["runId"])).filter(({ type }) => type.startsWith("agent."));
      expect(agentEvents[0]).toMatchObject({
        type: "agent.invocation.started",
        payload: { invocationId, source },
      });
      expect(agentEvents.at(-1)).toMatchObject({
        type: "agent.invocation.completed",
        payload: { invocationId },
      });
    }
  });

  it("LM-36 lets an agent try a tool that it may not call", async () => {
    const attemptTool = "conformance-disallowed-tool";
    const { body } = await postSeam("agents/live-invoke", { source: "run-api", attemptTool });
    const events = await eventsOf(body["runId"]);
    expect(filterByType(events, "agent.toolCalled")).toEqual([]);
    const [turn] = filterByType(events, "coordination.agent_turned");
    expect(turn?.payload["calls"]).toMatchObject([{ toolName: attemptTool, problem: "forbidden" }]);
  });

  it("LM-37 fails a result that breaks the return schema", async () => {
    const { body } = await postSeam("agents/live-invoke", {
      source: "run-api",
      returnSchemaRef: "conformance-strict-handoff",
      forceInvalidResult: true,
    });
    const [completed] = filterByType(await eventsOf(body["runId"]), "agent.invocation.completed");
    expect(completed?.payload["outcome"]).toBe("failed");
    expect(completed?.payload["schemaValidated"]).not.toBe(true);
    const valid = await postSeam("agents/live-invoke", { returnSchemaRef: "conformance-strict-handoff" });
    expect(valid.body["outcome"]).toBe("completed");
  });

  it("LM-38 lets the host's own model play where that is asked for", async () => {
    const before = world.model.requests.length;
    const { body } = await postSeam("agents/live-invoke", { agentId: "vendor.test.plain", live: true });
    expect(world.model.requests.length).toBe(before + 1);
    expect(body["outcome"]).toBe("completed");
  });

  it("LM-39 knows no agent that is not installed", async () => {
    expect((await postSeam("agents/live-invoke", { agentId: "vendor.test.nobody" })).status).toBe(404);
    expect((await postSeam("agents/vendor.test.nobody/dispatch", { task: {} })).status).toBe(404);
  });
});

describe("the seam that dispatches an agent", () => {
  it("LM-44 brings the events of the agent that is listed first, each with its name", async () => {
    const [first] = (await world.client.get("/v1/agents")).body["agents"] as { agentId: string }[];
    const agentId = first?.agentId ?? "";
    const task = { task: {}, validateHandoff: false, availableTools: [] };
    const { body } = await postSeam(`agents/${encodeURIComponent(agentId)}/dispatch`, task);
    expect(body).toMatchObject({ agentId, status: "completed", toolSurface: [], confidence: 0.9 });
    const events = body["events"] as { type: string; agentId: string }[];
    expect(events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(["agent.reasoned", "agent.decided"]),
    );
    expect(new Set(events.map((event) => event.agentId))).toEqual(new Set([agentId]));
  });

  it("LM-45 holds the task against its schema, the tools against the allowlist, the confidence against a threshold", async () => {
    const failed = await postSeam("agents/community.test.alpha/dispatch", { task: {} });
    expect(failed.body).toMatchObject({ status: "failed", error: { code: "task_schema_violation" } });
    const request = { availableTools: ["mcp:echo", "mcp:slow"], simulateConfidence: 0.75 };
    const doubted = await postSeam("agents/vendor.test.zeta/dispatch", request);
    expect(doubted.body).toMatchObject({
      status: "escalated",
      toolSurface: ["mcp:echo"],
      threshold: 0.8,
      confidence: 0.75,
    });
    const sureReply = await postSeam("agents/vendor.test.zeta/dispatch", {
      ...request,
      confidenceThreshold: 0.5,
    });
    expect(sureReply.body).toMatchObject({ status: "completed", threshold: 0.5 });
  });
});

describe("the seam for tool hooks", () => {
  const postHook = async (body: object) =>
    (await postSeam("toolhooks/invoke", { principal: "core.system", toolName: "web.search", ...body }))
      .body as Readonly<Record<"toolCalled" | "toolReturned", Readonly<Record<string, unknown>>>>;

  it("LM-46 tells of a call by its hash, and of its end by its status and time", async () => {
    const { toolCalled, toolReturned } = await postHook({ args: { q: "openwop" } });
    expect(toolCalled).toMatchObject({
      toolName: "web.search",
      principal: "core.system",
      transport: "native",
    });
    expect(toolCalled["argsHash"]).toMatch(/^[0-9a-f]{64}$/);
    expect(toolReturned).toMatchObject({ status: "ok", durationMs: expect.any(Number) as number });
  });

  it("LM-47 denies a principal what it has no scope for", async () => {
    const request = {
      principal: "conformance-unprivileged",
      toolName: "db.delete",
      requiredScopes: ["db:write"],
    };
    const { toolReturned } = await postHook(request);
    expect(toolReturned).toMatchObject({ status: "forbidden", error: { code: "forbidden" } });
    expect(toolReturned).not.toHaveProperty("durationMs");
  });

  it("LM-48 denies a call that comes too often", async () => {
    const { toolReturned } = await postHook({ simulateRateLimitExhausted: true });
    expect(toolReturned).toMatchObject({ status: "rate_limited", error: { code: "rate_limited" } });
    const next = await postHook({});
    expect(next.toolReturned["status"]).toBe("ok");
  });

  it("LM-49 repeats no argument, whose secret does not change the hash either", async () => {
    const canary = "sk-canary-rfc0064-do-not-leak-xyz789";
    const one = await postHook({ args: { apiKey: canary, q: "openwop" } });
    expect(JSON.stringify(one)).not.toContain(canary);
    const other = await postHook({ args: { apiKey: "another", q: "openwop" } });
    expect(other.toolCalled["argsHash"]).toBe(one.toolCalled["argsHash"]);
  });

  it("LM-55 is honest about a tool that failed", async () => {
    const { toolReturned } = await postHook({ simulateToolError: true });
    expect(toolReturned).toMatchObject({
      status: "error",
      error: { code: "tool_failed", message: expect.any(String) as string },
    });
    expect(toolReturned).not.toHaveProperty("outcome");
  });
});
