/** Owns: two hosts over loopback: a node of one runs a workflow of the other by MCP and by A2A, and both tell the ancestry. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { clientOf, openWorld, type World } from "./levels-world.ts";

const B_TOKEN = "the-token-that-only-b-knows";
const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`;

const ON_A = [
  createWorkflow("by-mcp", {
    nodes: [createNode("call", "core.ai.callPrompt", { mcp: { tool: "digs", arguments: { word: "gold" } } })],
  }),
  createWorkflow("by-a2a", {
    nodes: [createNode("call", "core.a2a.invoke", { skill: "digs", message: "gold" })],
  }),
];
const ON_B = [createWorkflow("digs", { nodes: [createNode("only")], variables: { word: "none" } })];

let a: World;
let b: World;
beforeAll(async () => {
  b = await openWorld(ON_B, {
    tokens: [{ tenant: "miners", token: B_TOKEN }],
    mcp: { toolScopes: {} },
    a2a: true,
    testSeams: true,
  });
  a = await openWorld(ON_A, {
    privateOrigins: [b.baseUrl],
    peers: [b.baseUrl],
    peerTokens: { [b.baseUrl]: B_TOKEN },
  });
});
afterAll(async () => {
  await a.close();
  await b.close();
});

const onA = () => clientOf(a.baseUrl);
const onB = () => clientOf(b.baseUrl, B_TOKEN);

/** The newest run on B that has begun, as its A2A server lists it. */
async function findFarRun() {
  const request = { jsonrpc: "2.0", id: 1, method: "ListTasks", params: { pageSize: 1 } };
  const { body } = await onB().post("/v1/a2a", request, { "a2a-version": "1.0" });
  const { tasks } = body["result"] as { readonly tasks: readonly { readonly id: string }[] };
  const runId = tasks[0]?.id ?? "";
  return { runId, snapshot: await onB().snapshot(runId), events: await onB().events(runId) };
}

describe.each([
  { workflowId: "by-mcp", cause: "mcp-tool-call", transport: "mcp" },
  { workflowId: "by-a2a", cause: "a2a-message", transport: "a2a" },
])("$workflowId", ({ workflowId, cause, transport }) => {
  it("runs the workflow of the other host, and both hosts tell whose run is whose", async () => {
    const headers = { traceparent: TRACEPARENT };
    const { runId, snapshot } = await onA().run(workflowId, {
      inputs: { peerUrl: b.baseUrl },
      headers,
    });
    expect(snapshot.status).toBe("completed");
    const far = await findFarRun();
    expect(far.snapshot).toMatchObject({ workflowId: "digs", status: "completed", inputs: { word: "gold" } });
    const [started] = far.events;
    expect(started?.payload).toMatchObject({ transport });
    const ancestry = await onB().get(`/v1/runs/${far.runId}/ancestry`);
    expect(ancestry.body).toMatchObject({
      hostId: b.baseUrl,
      parent: { runId, hostId: a.baseUrl, cause, wellKnownUrl: `${a.baseUrl}/.well-known/openwop` },
    });
    expect((await onA().get(`/v1/runs/${runId}/ancestry`)).body).toMatchObject({
      hostId: a.baseUrl,
      parent: null,
    });
    const spans = await onB().get(`/v1/host/sample/test/otel/spans?runId=${far.runId}`);
    expect(spans.body["spans"]).toContainEqual(
      expect.objectContaining({ traceId: TRACE_ID, name: "invoke_agent digs", status: "OK" }),
    );
  });

  it("asks no host that the operator did not name", async () => {
    const { runId } = await startFailing("http://127.0.0.1:9");
    const { error } = await onA().until(runId, "failed");
    expect(error).toMatchObject({ code: "address_not_allowed" });
    const nowhere = await startFailing(undefined);
    expect((await onA().until(nowhere.runId, "failed")).error).toMatchObject({ code: "not_configured" });
  });

  it("is sent the token of the other host where the operator wrote its origin in another way", async () => {
    const written = b.baseUrl.replace("127.0.0.1", "127.1");
    const other = await openWorld(ON_A, { privateOrigins: [written], peerTokens: { [written]: B_TOKEN } });
    const { snapshot } = await other.client.run(workflowId, { inputs: { peerUrl: b.baseUrl } });
    expect(snapshot.status).toBe("completed");
    await other.close();
  });

  const startFailing = async (peerUrl: string | undefined) => ({
    runId: await onA().start(workflowId, { inputs: peerUrl === undefined ? {} : { peerUrl } }),
  });
});
