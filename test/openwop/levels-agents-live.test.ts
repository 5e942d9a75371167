/** Owns: live manifest dispatch (RFC 0077), steps 1 to 5, over HTTP, with a model and an MCP server on sockets of their own. */
import { hash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatCanonicalJson } from "../../src/agents/coordination/std/canonical-json.ts";
import { TOLD } from "../support/mcp-tools.ts";
import { createAgent, openAgents, type Agents } from "./levels-agents-world.ts";
import { clientOf, filterByType, findOnly, OTHER_TOKEN, TOKEN } from "./levels-world.ts";

const SCOPED = "token-of-one-with-scopes";
const PROMPT = "You are CANARY-PROMPT. Do it.";

const createTooled = (toolAllowlist: readonly string[], more: object = {}) => ({
  manifest: { toolAllowlist, ...more },
});

const AGENTS = [
  createAgent("vendor.test.plain", { systemPrompt: PROMPT }),
  createAgent("vendor.test.writer", { manifest: { modelClass: "writing" } }),
  createAgent(
    "vendor.test.tooled",
    createTooled(["mcp:echo", "mcp:tools.broken", "mcp:huge", "mcp:tells", "mcp:nowhere", "openwop:shell"]),
  ),
  createAgent("vendor.test.paying", createTooled(["mcp:echo"])),
  createAgent(
    "vendor.test.keeper",
    createTooled(["openwop:memory.read", "openwop:memory.write"], { memoryShape: { longTerm: true } }),
  ),
  createAgent("vendor.test.forgetful", createTooled(["openwop:memory.read", "openwop:memory.write"])),
];

let world: Agents;
const modelClasses: Record<string, string> = { reasoning: "thinking-model" };
const toolScopes: Record<string, readonly string[]> = {};

beforeAll(async () => {
  world = await openAgents(AGENTS, {
    agents: { modelClasses, toolScopes, toolRate: { perMinute: 1, burst: 40 } },
    secrets: new Map([["operator", TOLD]]),
    tokens: [
      { tenant: "first", token: TOKEN },
      { tenant: "other", token: OTHER_TOKEN },
      { tenant: "first", token: SCOPED, principal: "payer", scopes: ["money"] },
    ],
  });
});
afterAll(() => world.close());

const echo = (text: string) => ({ call: [{ name: "mcp_echo", args: { text } }] });
const findLastRequest = () => world.model.requests.at(-1)?.body;
const listOffered = (): unknown[] => (findLastRequest()?.tools ?? []).map((tool) => tool.function?.name);

describe("the model of an agent", () => {
  it("LM-01 is what the host says of the class that its manifest names, and is told by the start of the invocation", async () => {
    const { events } = await world.run("vendor.test.plain", {}, [{ say: "done" }]);
    expect(findOnly(events, "agent.invocation.started").payload).toMatchObject({
      modelClass: "reasoning",
      resolvedModel: "thinking-model",
      resolvedProvider: new URL(world.model.baseUrl).host,
    });
    expect(findLastRequest()?.model).toBe("thinking-model");
  });

  it("LM-02 is the host's own where the class has none", async () => {
    await world.run("vendor.test.writer", {}, [{ say: "done" }]);
    expect(findLastRequest()?.model).toBe("plain-model");
  });

  it("LM-03 is that of the run's options where these name one", async () => {
    for (const configurable of [{ ai: { model: "asked-model" } }, { "ai.model": "asked-model" }]) {
      const { events } = await world.run("vendor.test.plain", {}, [{ say: "done" }], { configurable });
      expect(findLastRequest()?.model).toBe("asked-model");
      expect(findOnly(events, "agent.invocation.started").payload["resolvedModel"]).toBe("asked-model");
    }
  });

  it("LM-04 stays the same within the run, whatever the host says meanwhile and after a restart", async () => {
    const turns = [{ ...echo("hi"), delayMs: 400 }, { say: "done" }];
    const runId = await world.start("vendor.test.tooled", {}, turns);
    await world.until(async () =>
      (await world.client.events(runId)).some(({ type }) => type === "agent.promptResolved"),
    );
    await world.stop();
    modelClasses["reasoning"] = "newer-model";
    await world.restart();
    try {
      const { status } = await world.client.until(runId, "completed");
      expect(status).toBe("completed");
      expect(findLastRequest()?.model).toBe("thinking-model");
      const models = filterByType(await world.client.events(runId), "coordination.model_asked");
      expect(new Set(models.map(({ payload }) => payload["model"]))).toEqual(new Set(["thinking-model"]));
    } finally {
      modelClasses["reasoning"] = "thinking-model";
    }
  });

  it("LM-05 is part of what tells one request from another", async () => {
    const digests = [];
    for (const model of ["one", "other", "one"]) {
      const task = { same: "task" };
      const { events } = await world.run("vendor.test.plain", task, [{ say: "done" }], {
        configurable: { ai: { model } },
      });
      digests.push(findOnly(events, "coordination.model_asked").payload["requestDigest"]);
    }
    expect(new Set(digests).size).toBe(3);
    expect(digests[0]).toMatch(/^[0-9a-f]{64}$/);
  });

  it("LM-06 is none where no provider of the asked name is configured: the invocation fails and is closed", async () => {
    const configurable = { ai: { provider: "another-provider" } };
    const { events, snapshot } = await world.run("vendor.test.plain", {}, [{ say: "no" }], { configurable });
    const { host } = new URL(world.model.baseUrl);
    const message = `the run names the model provider "another-provider", and this host asks "${host}"`;
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "not_configured", message } });
    expect(findOnly(events, "agent.invocation.completed").payload["outcome"]).toBe("failed");
    expect(filterByType(events, "agent.reasoned")).toEqual([]);
  });
});

describe("the prompt of an agent", () => {
  it("LM-10 is told of by the references that were looked at, and which of them applied", async () => {
    const { events } = await world.run("vendor.test.plain", {}, [{ say: "done" }]);
    const { payload, nodeId } = findOnly(events, "agent.promptResolved");
    expect(payload).toMatchObject({ nodeId, kind: "system", agentId: "vendor.test.plain" });
    const chain = payload["chain"] as { layer: string; applied: boolean; source?: string }[];
    expect(chain.filter(({ applied }) => applied)).toEqual([
      { layer: "agent-intrinsic", applied: true, source: payload["resolved"] },
    ]);
    expect(chain.map(({ layer }) => layer)).toContain("agent-overrides");
  });

  it("LM-11 reaches the model as its instructions, and no event", async () => {
    const { events } = await world.run("vendor.test.plain", {}, [{ say: "done" }]);
    const [system] = findLastRequest()?.messages ?? [];
    expect(system).toMatchObject({ role: "system", content: expect.stringContaining(PROMPT) as string });
    expect(JSON.stringify(events)).not.toContain("CANARY-PROMPT");
  });
});

describe("the tools of an agent", () => {
  it("LM-20 are those of its allowlist that the host has, and no others", async () => {
    const { events } = await world.run("vendor.test.tooled", {}, [{ say: "done" }]);
    expect(listOffered()).toEqual(["mcp_echo", "mcp_tools_broken", "mcp_huge", "mcp_tells"]);
    expect(findOnly(events, "agent.invocation.started").payload["toolSurfaceCount"]).toBe(4);
  });

  it("LM-21 are none without an allowlist", async () => {
    const { events } = await world.run("vendor.test.plain", {}, [{ ...echo("hi") }, { say: "done" }]);
    expect(findLastRequest()?.tools ?? []).toEqual([]);
    expect(findOnly(events, "agent.invocation.started").payload["toolSurfaceCount"]).toBe(0);
    expect(filterByType(events, "agent.toolCalled", "agent.toolReturned")).toEqual([]);
  });

  it("LM-22 cannot be called outside of the allowlist: that is on record, and nothing else happens", async () => {
    const names = ["mcp_slow", "slow", "mcp:slow", "mcp:tools.slow", "openwop:memory.write", "shell"];
    const before = world.mcp.calls.length;
    for (const name of names) {
      const turns = [{ call: [{ name, args: {} }] }, { say: "then not" }];
      const { snapshot, events } = await world.run("vendor.test.tooled", {}, turns);
      expect(snapshot.status).toBe("completed");
      expect(filterByType(events, "agent.toolCalled", "agent.toolReturned")).toEqual([]);
      const [turn] = filterByType(events, "coordination.agent_turned");
      expect(turn?.payload["calls"]).toMatchObject([{ toolName: name, problem: "forbidden" }]);
      expect(findLastRequest()?.messages.at(-1)?.content).toMatch(/^forbidden/);
    }
    expect(world.mcp.calls.length).toBe(before);
  });

  it("LM-23 are told of before and after each call, by a hash of the arguments, the caller, the way and the time", async () => {
    const { events, snapshot } = await world.run("vendor.test.tooled", {}, [echo("hi"), { say: "done" }]);
    const called = findOnly(events, "agent.toolCalled");
    const returned = findOnly(events, "agent.toolReturned");
    expect(called.payload).toEqual({
      agentId: "vendor.test.tooled",
      toolName: "mcp:echo",
      transport: "mcp",
      callId: returned.payload["callId"],
      argsHash: hash("sha256", formatCanonicalJson({ text: "hi" })),
      principal: (snapshot["owner"] as { principal: string }).principal,
    });
    expect(returned.payload).toMatchObject({ status: "ok", durationMs: expect.any(Number) as number });
    expect(returned.causationId).toBe(called.eventId);
    expect(world.mcp.calls.at(-1)).toMatchObject({ tool: "echo", args: { text: "hi" } });
  });

  it("LM-24 that ask for scopes are forbidden to whoever has none: the tool is not called", async () => {
    toolScopes["mcp:echo"] = ["money"];
    try {
      const before = world.mcp.calls.length;
      const { events, snapshot } = await world.run("vendor.test.paying", {}, [
        echo("pay"),
        { say: "no money" },
      ]);
      expect(snapshot.status).toBe("completed");
      expect(world.mcp.calls.length).toBe(before);
      const { payload } = findOnly(events, "agent.toolReturned");
      expect(payload).toMatchObject({
        status: "forbidden",
        error: {
          code: "forbidden",
          details: { scope: "tool", toolName: "mcp:echo", requiredScopes: ["money"] },
        },
      });
      expect(payload).not.toHaveProperty("durationMs");
      expect(payload).not.toHaveProperty("outcome");
    } finally {
      delete toolScopes["mcp:echo"];
    }
  });

  it("LM-25 that ask for scopes may be called for whoever has them", async () => {
    toolScopes["mcp:tools.echo"] = ["money"];
    try {
      const payer = { authorization: `Bearer ${SCOPED}` };
      const { events } = await world.run("vendor.test.paying", {}, [echo("pay"), { say: "paid" }], {
        headers: payer,
      });
      expect(findOnly(events, "agent.toolCalled").payload["principal"]).toBe("payer");
      expect(findOnly(events, "agent.toolReturned").payload["status"]).toBe("ok");
      const without = await world.run("vendor.test.paying", {}, [echo("pay"), { say: "paid" }]);
      expect(findOnly(without.events, "agent.toolReturned").payload["status"]).toBe("forbidden");
    } finally {
      delete toolScopes["mcp:tools.echo"];
    }
  });

  it("LM-26 are called by one principal as often as the host lets: then it is rate-limited, and not called", async () => {
    const many = { call: Array.from({ length: 25 }, () => ({ name: "mcp_echo", args: { text: "again" } })) };
    const headers = { authorization: `Bearer ${SCOPED}` };
    const before = world.mcp.calls.length;
    const { events, snapshot } = await world.run("vendor.test.tooled", {}, [many, many, { say: "done" }], {
      headers,
    });
    expect(snapshot.status).toBe("completed");
    const returned = filterByType(events, "agent.toolReturned").map(({ payload }) => payload);
    const limited = returned.filter(({ status }) => status === "rate_limited");
    expect(limited.length).toBeGreaterThan(0);
    expect(limited[0]).toMatchObject({ error: { code: "rate_limited" } });
    expect(limited[0]).not.toHaveProperty("durationMs");
    expect(world.mcp.calls.length - before).toBe(returned.length - limited.length);
  });

  it("LM-27 do not bring a secret into the log, whoever said it", async () => {
    const { events } = await world.run("vendor.test.tooled", {}, [
      { say: `I know ${TOLD}`, ...echo(`say ${TOLD}`) },
      { call: [{ name: "mcp_tells", args: {} }] },
      { say: `it is ${TOLD}` },
    ]);
    expect(JSON.stringify(events)).not.toContain(TOLD);
    const returned = filterByType(events, "agent.toolReturned").at(-1)?.payload["outcome"];
    expect(returned).toMatchObject({ text: "the key is [REDACTED:operator]" });
  });
});

describe("the memory of an agent", () => {
  const keep = (content: string) => ({
    call: [{ name: "openwop_memory_write", args: { content, tags: ["well"] } }],
  });
  const recall = { call: [{ name: "openwop_memory_read", args: {} }] };

  it("LM-30 is bound where its manifest says long-term: what it keeps is there in later runs", async () => {
    const { events } = await world.run("vendor.test.keeper", {}, [keep("the well is dry"), { say: "kept" }]);
    const { payload } = findOnly(events, "memory.written");
    expect(payload).toMatchObject({
      memoryRef: "agent:vendor.test.keeper",
      agentId: "vendor.test.keeper",
      tags: ["well"],
    });
    expect(JSON.stringify(payload)).not.toContain("dry");
    expect(findOnly(events, "agent.invocation.started").payload["memoryBound"]).toBe(true);
    await world.run("vendor.test.keeper", {}, [keep("the river too"), { say: "kept" }]);
    const later = await world.run("vendor.test.keeper", {}, [recall, { say: "recalled" }]);
    const read = findOnly(later.events, "agent.toolReturned").payload["outcome"] as { text: string };
    expect(read.text).toContain("the well is dry");
    expect(read.text).toContain("the river too");
  });

  it("LM-31 is redacted before it is written", async () => {
    await world.run("vendor.test.keeper", {}, [keep(`the key is ${TOLD}`), { say: "kept" }]);
    const { events } = await world.run("vendor.test.keeper", {}, [recall, { say: "recalled" }]);
    const read = JSON.stringify(findOnly(events, "agent.toolReturned").payload);
    expect(read).toContain("[REDACTED:operator]");
    expect(read).not.toContain(TOLD);
  });

  it("LM-32 is the tenant's: the same agent of another one knows nothing of it", async () => {
    await world.run("vendor.test.keeper", {}, [keep("only ours"), { say: "kept" }]);
    const other = { headers: { authorization: `Bearer ${OTHER_TOKEN}` } };
    const theirs = clientOf(world.baseUrl, OTHER_TOKEN);
    const runId = await world.start("vendor.test.keeper", {}, [recall, { say: "nothing" }], other);
    await theirs.until(runId, "completed");
    expect(findOnly(await theirs.events(runId), "agent.toolReturned").payload["outcome"]).toMatchObject({
      text: "[]",
    });
  });

  it("LM-33 is none where its manifest has none, whatever is on its allowlist", async () => {
    const { events } = await world.run("vendor.test.forgetful", {}, [keep("lost"), { say: "done" }]);
    expect(findOnly(events, "agent.invocation.started").payload).toMatchObject({
      memoryBound: false,
      toolSurfaceCount: 0,
    });
    expect(filterByType(events, "memory.written")).toEqual([]);
  });
});

describe("the turns of an agent", () => {
  it("LM-40 go on until it answers: it is told what it said and what came back", async () => {
    const { snapshot } = await world.run("vendor.test.tooled", { question: "deep?" }, [
      { say: "let me see", ...echo("one") },
      { call: [{ name: "mcp_tools_broken", args: {} }, ...echo("two").call] },
      { say: "it is deep" },
    ]);
    expect(snapshot["outputs"]).toMatchObject({ result: "it is deep", contentTrust: "untrusted" });
    const report = findLastRequest()
      ?.messages.slice(1)
      .map(({ role, content }) => [role, content]);
    expect(report).toEqual([
      ["user", expect.stringContaining("deep?")],
      ["assistant", "let me see"],
      ["tool", "echo: one"],
      ["assistant", null],
      ["tool", "error: no water in the well"],
      ["tool", "echo: two"],
    ]);
  });

  it("LM-41 end where it comes to no end, with what its bound is", async () => {
    const turns = Array.from({ length: 40 }, () => echo("again"));
    const headers = { authorization: `Bearer ${OTHER_TOKEN}` };
    const theirs = clientOf(world.baseUrl, OTHER_TOKEN);
    const runId = await world.start("vendor.test.tooled", {}, turns, { headers });
    const { error } = await theirs.until(runId, "failed");
    expect(error).toMatchObject({
      code: "agent_limit_exceeded",
      message: expect.stringMatching(/16 turns/) as string,
    });
    expect(findOnly(await theirs.events(runId), "agent.invocation.completed").payload["outcome"]).toBe(
      "failed",
    );
  });

  it("LM-42 fail the run where they bring nothing, half of something or too much, and say why", async () => {
    const wrong = {
      agent_answer_empty: { say: "" },
      agent_answer_incomplete: { say: "half of", finish: "length" },
      agent_answer_too_large: { say: "x".repeat(200_000) },
      too_large: { say: "x".repeat(10_000_000) },
    };
    for (const [code, turn] of Object.entries(wrong)) {
      const { snapshot, events } = await world.run("vendor.test.plain", {}, [turn]);
      expect(snapshot).toMatchObject({ status: "failed", error: { code } });
      expect(findOnly(events, "agent.invocation.completed").payload["outcome"]).toBe("failed");
      expect(JSON.stringify(events).length).toBeLessThan(50_000);
    }
  });

  it("LM-43 go on where the arguments of a call are no JSON, or a tool brings ten million characters", async () => {
    const { snapshot, events } = await world.run("vendor.test.tooled", {}, [
      { callRaw: { name: "mcp_echo", args: "{not json" } },
      { call: [{ name: "mcp_huge", args: {} }] },
      { say: "neither" },
    ]);
    expect(snapshot["outputs"]).toMatchObject({ result: "neither" });
    const [first] = filterByType(events, "coordination.agent_turned");
    expect(first?.payload["calls"]).toMatchObject([{ toolName: "mcp:echo", problem: "malformed" }]);
    expect(findOnly(events, "agent.toolReturned").payload).toMatchObject({
      status: "error",
      error: { code: "too_large" },
    });
  });
});
