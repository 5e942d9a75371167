/** Owns: that the same message or call, by its id, is the same run for one principal, and another run for another one. */
import { hash } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { formatCanonicalJson } from "../../src/agents/coordination/std/canonical-json.ts";
import { createA2aFace } from "../../src/plugins/a2a/a2a-routes.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, BOB, createWorkflowScene } from "../support/workflow-scene.ts";
import { sendMessage, type A2aReply, type ShownTask } from "./a2a-call.ts";
import { createFakeFace, createPost, createRecordingLogger } from "./http-fake-host.ts";
import { openMcpWorld, TOKEN, type McpWorld } from "./mcp-world.ts";

const BOBS_TOKEN = "t-bob";

let world: McpWorld;
beforeAll(async () => {
  world = await openMcpWorld({
    tokens: [
      { tenant: "miners", token: TOKEN, principal: "ann" },
      { tenant: "miners", token: BOBS_TOKEN, principal: "bob" },
    ],
    a2a: true,
  });
});
afterAll(() => world[Symbol.asyncDispose]());

async function readPrincipal(runId: string): Promise<unknown> {
  return ((await world.ask(`/v1/runs/${runId}`))["owner"] as { readonly principal: string }).principal;
}

it("a first A2A message of another principal with the same id begins a run of that principal", async () => {
  const message = { messageId: "m-1", parts: [{ text: "go" }], metadata: { skillId: "echo" } };
  const send = async (token: string): Promise<string> => {
    const headers = { authorization: `Bearer ${token}` };
    return String((await sendMessage(world, message, { headers })).result?.task.id);
  };
  const anns = await send(TOKEN);
  const bobs = await send(BOBS_TOKEN);
  expect([await readPrincipal(anns), await readPrincipal(bobs)]).toEqual(["ann", "bob"]);
  expect([await send(TOKEN), await send(BOBS_TOKEN)]).toEqual([anns, bobs]);
});

it("an MCP call of another principal with the same id begins a run of that principal", async () => {
  const request = { name: "echo", arguments: { word: "once" }, _meta: { "openclaw/callId": "call-1" } };
  const call = async (token: string): Promise<string> => {
    const { structuredContent } = await (await world.connect(token)).client.callTool(request);
    return (structuredContent as { readonly runId: string }).runId;
  };
  const anns = await call(TOKEN);
  const bobs = await call(BOBS_TOKEN);
  expect([await readPrincipal(anns), await readPrincipal(bobs)]).toEqual(["ann", "bob"]);
  expect([await call(TOKEN), await call(BOBS_TOKEN)]).toEqual([anns, bobs]);
});

it("a message whose run was begun by a version that did not tell principals apart finds that run", async () => {
  const scene = createWorkflowScene({
    definitions: [createWorkflow("echo", { nodes: [createNode("only")] })],
  });
  const { host, clock, ledger } = scene;
  const { logger } = createRecordingLogger();
  const access = {
    host,
    clock,
    logger,
    version: "0.0.0",
    runs: ledger.open(),
    baseUrl: () => "http://host.test",
  };
  const tokens = [
    { token: TOKEN, ...ALICE },
    { token: BOBS_TOKEN, ...BOB },
  ];
  const { app } = createFakeFace({
    host,
    clock,
    tokens,
    faces: [createA2aFace({ ...access, contract: () => Promise.resolve({ check: () => [] }) })],
  });
  const name = hash("sha256", formatCanonicalJson([ALICE.tenant, "echo", "m-1", "", {}])).slice(0, 32);
  const begun = await scene.run("echo", { runId: `run-a2a-${name}` as CoordinationId });
  const params = {
    message: { messageId: "m-1", role: "ROLE_USER", parts: [{ data: {} }] },
    configuration: { returnImmediately: true },
  };
  const send = async (token: string): Promise<string | undefined> => {
    const headers = { authorization: `Bearer ${token}`, "a2a-version": "1.0" };
    const message = { jsonrpc: "2.0", id: 1, method: "SendMessage", params };
    const answering = app.request("/v1/a2a", createPost(message, headers));
    await clock.advance(0);
    const { result } = (await (await answering).json()) as A2aReply<{ readonly task: ShownTask }>;
    return result?.task.id;
  };
  expect(await send(TOKEN)).toBe(begun);
  expect(await send(BOBS_TOKEN)).toMatch(/^run-a2a-/u);
  expect(await send(BOBS_TOKEN)).not.toBe(begun);
});
