/** Owns: the MCP server of `serve`, as an unmodified client of the official library sees it. */
import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { waitFor } from "../support/wait-for.ts";
import { callTool, openMcpWorld, OTHER_TOKEN, TOKEN, type McpWorld } from "./mcp-world.ts";

let world: McpWorld;
beforeAll(async () => {
  world = await openMcpWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

describe("the tools of the MCP server", () => {
  it("are the workflows with their inputs, and those about runs", async () => {
    const { client } = await world.connect();
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    expect(names).toEqual([
      "status",
      "questions",
      "answer",
      "verify",
      "echo",
      "gated",
      "slow",
      expect.stringMatching(/^status_[0-9a-f]{8}$/),
    ]);
    expect(tools.find(({ name }) => name === "echo")?.inputSchema).toEqual({
      type: "object",
      properties: { word: { type: "string", default: "none" }, times: { type: "string" } },
    });
    expect(tools.filter(({ annotations }) => annotations?.readOnlyHint).map(({ name }) => name)).toEqual([
      "status",
      "questions",
      "verify",
    ]);
  });

  it("run a workflow and answer with its outputs", async () => {
    const client = await world.connect();
    const { isError, data, text } = await callTool(client, "echo", { word: "hello" });
    expect(isError).toBe(false);
    expect(data).toMatchObject({ workflowId: "echo", status: "completed" });
    expect(text).toContain(`Run ${String(data["runId"])} of echo is completed.`);
    const snapshot = await world.ask(`/v1/runs/${String(data["runId"])}`);
    expect(snapshot).toMatchObject({ inputs: { word: "hello" }, status: "completed" });
  });

  it("name everything that is wrong with the arguments, and begin nothing then", async () => {
    const client = await world.connect();
    const before = await callTool(client, "status", { limit: 100 });
    const wrong = await callTool(client, "echo", { word: 7, times: false });
    expect(wrong.isError).toBe(true);
    expect(wrong.text).toBe("word: expected string, got number; times: expected string, got boolean");
    const unknown = await callTool(client, "status", { run: "x", limit: 1_000 });
    expect(unknown.isError).toBe(true);
    expect(unknown.text).toContain("limit: expected");
    expect(unknown.text).toContain("run");
    expect((await callTool(client, "status", { limit: 100 })).data).toEqual(before.data);
    await expect(client.client.callTool({ name: "no-such" })).rejects.toThrow('there is no tool "no-such"');
  });

  it.each([
    ["tools/call", { name: "echo", arguments: [] }, '"arguments"'],
    ["tools/call", { arguments: {} }, '"name"'],
    ["tools/list", { cursor: 7 }, "params.cursor: "],
    ["resources/read", { uri: null }, "params.uri: "],
  ])("name the place of a request of another form: %s with %j", async (method, params, place) => {
    const { client } = await world.connect();
    const call = client.request({ method, params }, z.unknown());
    await expect(call).rejects.toMatchObject({
      code: ErrorCode.InvalidParams,
      message: expect.stringContaining(place) as string,
    });
  });

  it("let a person answer what a run asks, and the run goes on", async () => {
    const client = await world.connect();
    const waiting = await callTool(client, "gated");
    const runId = String(waiting.data["runId"]);
    expect(waiting.data).toMatchObject({
      status: "waiting-approval",
      question: { nodeId: "gate", kind: "approval" },
    });
    expect(waiting.text).toContain("waits at gate for an answer");
    expect(JSON.stringify(waiting)).not.toContain("interruptToken");
    const { data } = await callTool(client, "questions");
    expect(data["questions"]).toEqual([expect.objectContaining({ runId, nodeId: "gate" })]);
    for (const [args, text] of [
      [{}, "runId: expected string, got nothing"],
      [{ runId }, "value: expected the person's decision, got nothing"],
      [{ runId, node: "gate", value: 1 }, "node"],
      [{ questionId: "q", answer: "approve" }, "This host has no coordinations of OpenClaw"],
    ] as const)
      expect(await callTool(client, "answer", args)).toMatchObject({
        isError: true,
        text: expect.stringContaining(text) as string,
      });
    const wrong = await callTool(client, "answer", { runId, value: { action: "perhaps" } });
    expect(wrong).toMatchObject({ isError: true, data: { error: "validation_error" } });
    const answered = await callTool(client, "answer", { runId, value: { action: "accept" } });
    expect(answered).toMatchObject({ isError: false, data: { nodeId: "gate" } });
    const ended = await callTool(client, "status", { runId, waitSeconds: 20 });
    expect(ended.data).toMatchObject({ status: "completed" });
    expect((await callTool(client, "questions")).data["questions"]).toEqual([]);
    const twice = await callTool(client, "answer", { runId, nodeId: "gate", value: { action: "accept" } });
    expect(twice).toMatchObject({ isError: true, data: { error: "interrupt_already_resolved" } });
    expect((await callTool(client, "verify", { runId })).data).toMatchObject({ ok: true, problems: [] });
  });

  it("tell the progress of a run to a client that wants it, and cancel the run when the client cancels", async () => {
    const client = await world.connect();
    const heard: { readonly progress: number; readonly total?: number | undefined }[] = [];
    const abort = new AbortController();
    const call = callTool(
      client,
      "slow",
      {},
      { signal: abort.signal, onprogress: (progress) => heard.push(progress) },
    );
    const outcome = call.then(
      () => "answered",
      () => "cancelled",
    );
    await waitFor(() => heard.some(({ progress }) => progress === 1), { what: "progress" });
    expect(heard.at(-1)).toMatchObject({ progress: 1, total: 2 });
    abort.abort("no longer wanted");
    expect(await outcome).toBe("cancelled");
    await waitFor(async () => (await newestOf("slow"))?.status === "cancelled", {
      what: "the end of the run",
    });
  });

  it("begin one run for the same call made twice, by its id", async () => {
    const { client } = await world.connect();
    const request = { name: "echo", arguments: { word: "once" }, _meta: { "openclaw/callId": "call-1" } };
    const first = await client.callTool(request);
    const second = await client.callTool(request);
    expect(second.structuredContent).toEqual(first.structuredContent);
    const other = await client.callTool({ ...request, arguments: { word: "twice" } });
    expect(other.structuredContent).not.toEqual(first.structuredContent);
  });
});

async function newestOf(workflowId: string) {
  const client = await world.connect();
  const { data } = await callTool(client, "status", { limit: 100 });
  const runs = data["runs"] as {
    readonly runId: string;
    readonly workflowId: string;
    readonly status: string;
  }[];
  return runs.find((run) => run.workflowId === workflowId);
}

describe("a run as a resource", () => {
  it("is listed and read, with its log a page at a time", async () => {
    const { client } = await world.connect();
    const { data } = await callTool({ client }, "echo", { word: "read" });
    const { resources } = await client.listResources();
    const uri = `openwop://runs/${String(data["runId"])}`;
    expect(resources.map((resource) => resource.uri)).toContain(uri);
    expect(data["resource"]).toBe(uri);
    expect(await readJson(client, uri)).toEqual(data);
    const first = await readJson(client, `${uri}/events?limit=2`);
    expect(first).toMatchObject({
      events: [{ sequence: 0, type: "run.started" }, { sequence: 1 }],
      next: `${uri}/events?from=2&limit=2`,
    });
    let next = first["next"];
    const sequences: number[] = [0, 1];
    while (typeof next === "string") {
      const page = await readJson(client, next);
      sequences.push(...(page["events"] as { readonly sequence: number }[]).map(({ sequence }) => sequence));
      ({ next } = page);
    }
    const all = await world.ask(`/v1/runs/${String(data["runId"])}/events/poll?lastSequence=0`);
    expect(sequences).toEqual(
      (all["events"] as { readonly sequence: number }[]).map(({ sequence }) => sequence),
    );
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ name }) => name)).toEqual(["run", "events"]);
  });

  it.each([
    "openwop://runs/no-such",
    "openwop://runs/",
    "openwop://runs/%E0%A4%A",
    "openwop://runs/a?b=1",
    "openwop://runs/a/events?from=x",
    "file:///etc/passwd",
  ])("is not there: %s", async (uri) => {
    const { client } = await world.connect();
    await expect(client.readResource({ uri })).rejects.toMatchObject({ code: -32_002 });
  });
});

async function readJson(
  client: Awaited<ReturnType<McpWorld["connect"]>>["client"],
  uri: string,
): Promise<Record<string, unknown>> {
  const { contents } = await client.readResource({ uri });
  const [first] = contents as { readonly text: string }[];
  return JSON.parse(first?.text ?? "null") as Record<string, unknown>;
}

describe("whoever asks the MCP server", () => {
  it("sees the runs of the own tenant only", async () => {
    const ours = await world.connect();
    const theirs = await world.connect(OTHER_TOKEN);
    const { data } = await callTool(ours, "gated");
    const runId = String(data["runId"]);
    expect((await callTool(theirs, "status", { limit: 100 })).data["runs"]).toEqual([]);
    expect((await callTool(theirs, "questions")).data["questions"]).toEqual([]);
    for (const [tool, args] of [
      ["status", { runId }],
      ["verify", { runId }],
      ["answer", { runId, value: { action: "accept" } }],
      ["answer", { runId, nodeId: "gate", value: { action: "accept" } }],
    ] as const) {
      const refused = await callTool(theirs, tool, args);
      expect([tool, refused.isError, refused.text]).toEqual([
        tool,
        true,
        expect.stringContaining("not_found"),
      ]);
    }
    expect((await theirs.client.listResources()).resources).toEqual([]);
    await expect(theirs.client.readResource({ uri: `openwop://runs/${runId}` })).rejects.toMatchObject({
      code: -32_002,
    });
  });

  it("needs a token that is known, and uses no session of anybody else", async () => {
    const { transport } = await world.connect();
    const id = transport.sessionId ?? "";
    await expect(world.connect("wrong")).rejects.toMatchObject({ code: 401 });
    for (const [token, session, status] of [
      [TOKEN, id, 200],
      [OTHER_TOKEN, id, 404],
      [TOKEN, "no-such-session", 404],
      [TOKEN, undefined, 400],
      ["wrong", id, 401],
    ] as const)
      expect((await send({ jsonrpc: "2.0", id: 1, method: "tools/list" }, { token, session })).status).toBe(
        status,
      );
  });

  it("is no web page of an origin that nobody allowed", async () => {
    const initialize = {
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "page", version: "1" } },
    };
    expect((await send(initialize, { origin: "https://evil.example" })).status).toBe(403);
    await using allowing = await openMcpWorld({ allowedOrigins: ["https://good.example"] });
    const url = allowing.mcpUrl;
    expect((await send(initialize, { origin: "https://good.example", url })).status).toBe(200);
    expect((await send(initialize, { origin: "https://evil.example", url })).status).toBe(403);
  });

  it("gets an answer to what is too large, no JSON, or no message", async () => {
    const { transport } = await world.connect();
    const session = transport.sessionId ?? "";
    const huge = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "echo", arguments: { word: "x".repeat(10_000_000) } },
    };
    expect((await send(huge, { session })).status).toBe(413);
    expect((await send("{", { session })).status).toBe(400);
    expect((await send({ hello: "there" }, { session })).status).toBe(400);
    const listening = await fetch(world.mcpUrl, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect([listening.status, listening.headers.get("allow")]).toEqual([405, "DELETE, POST"]);
  });

  it("refuses a request whose id another one has that is not answered yet", async () => {
    const { transport } = await world.connect();
    const session = transport.sessionId ?? "";
    const callSlow = (id: unknown) =>
      send(
        { jsonrpc: "2.0", id, method: "tools/call", params: { name: "slow", arguments: {} } },
        { session },
      );
    const cancel = (requestId: unknown) =>
      send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } }, { session });
    const askPing = (...ids: readonly unknown[]) =>
      send(
        ids.map((id) => ({ jsonrpc: "2.0", id, method: "ping" })),
        { session },
      );
    const first = await callSlow("one");
    expect(first.status).toBe(200);
    const again = await askPing("two", "one");
    expect(again.status).toBe(409);
    expect(await again.json()).toMatchObject({
      error: "state_conflict",
      message: 'A request with the id "one" is not answered yet in this session; choose another id.',
    });
    expect((await askPing("three", "three")).status).toBe(409);
    expect(await (await askPing("two", 1)).text()).toContain('"id":1');
    expect(await (await askPing("two", 1)).text()).toContain('"id":"two"');
    expect((await cancel("one")).status).toBe(202);
    expect(await (await askPing("one")).text()).toContain('"id":"one"');
    expect(await first.text()).toBe("");
  });

  it("leaves runs going on by leaving", async () => {
    const client = await world.connect();
    const before = await newestOf("slow");
    const leaving = callTool(client, "slow").catch(() => undefined);
    const run = await waitFor(
      async () => {
        const newest = await newestOf("slow");
        return newest?.runId === before?.runId ? undefined : newest;
      },
      { what: "the run" },
    );
    await client.transport.terminateSession();
    await client.client.close();
    await leaving;
    const found = await world.ask(`/v1/runs/${run.runId}`);
    expect(found["status"]).toBe("running");
    await expect(
      send({ jsonrpc: "2.0", id: 1, method: "tools/list" }, { session: client.transport.sessionId ?? "x" }),
    ).resolves.toMatchObject({ status: 404 });
    await world.ask(`/v1/runs/${run.runId}/cancel`, { method: "POST", body: {} });
  });

  it("may use a tool that asks for scopes only with a token that has them", async () => {
    await using scoped = await openMcpWorld({
      tokens: [
        { tenant: "miners", token: TOKEN, principal: "agent" },
        { tenant: "miners", token: OTHER_TOKEN, principal: "ann", scopes: ["approver"] },
      ],
      mcp: { toolScopes: { answer: ["approver"] } },
    });
    const agent = await scoped.connect();
    const { tools } = await agent.client.listTools();
    expect(tools.map(({ name }) => name)).not.toContain("answer");
    const { data } = await callTool(agent, "gated");
    const args = { runId: data["runId"], value: { action: "accept" } };
    await expect(callTool(agent, "answer", args)).rejects.toThrow('there is no tool "answer"');
    expect(await callTool(await scoped.connect(OTHER_TOKEN), "answer", args)).toMatchObject({
      isError: false,
    });
  });

  it("tells whose call it is: the trace and the run of another host", async () => {
    const TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const { client } = await world.connect();
    const { structuredContent } = await client.callTool({
      name: "echo",
      arguments: {},
      _meta: { traceparent: TRACEPARENT },
    });
    const { runId } = structuredContent as { readonly runId: string };
    const { events } = await world.ask(`/v1/runs/${runId}/events/poll?lastSequence=0`);
    expect((events as readonly unknown[])[0]).toMatchObject({
      payload: { transport: "mcp", traceparent: TRACEPARENT },
    });
  });
});

interface SessionRequest {
  readonly token?: string;
  readonly session?: string | undefined;
  readonly origin?: string;
  readonly url?: string;
}

function send(
  message: unknown,
  { token = TOKEN, session, origin, url = world.mcpUrl }: SessionRequest,
): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...(session !== undefined && { "mcp-session-id": session }),
      ...(origin !== undefined && { origin }),
    },
    body: typeof message === "string" ? message : JSON.stringify(message),
  });
}
