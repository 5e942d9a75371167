/** Addresses of peers that whoever starts a run names, and what they must not do. */
import { describe, expect, test } from "vitest";
import type { PeerHosts, ToolCaller } from "../../src/agents/coordination/ports/outbound.ts";
import { createNamedPeers, createNamedTools } from "../../src/infra/peer/named-peers.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { createWorkflowScene } from "../support/workflow-scene.ts";

describe("a peer's address of many slashes", () => {
  const address = `https://a.example/${"/".repeat(100_000)}x`;

  test.each([
    ["core.subWorkflow", { workflowId: "child" }],
    ["core.ai.callPrompt", { mcp: { tool: "transfer" } }],
    ["core.a2a.invoke", {}],
  ])("fails a %s at once", async (typeId, config) => {
    const scene = createWorkflowScene({
      definitions: [createWorkflow("w", { nodes: [createNode("n", typeId, config)] })],
      peers: createNamedPeers({} as PeerHosts, ["https://peer.example"]),
      tools: createNamedTools({} as ToolCaller, ["https://peer.example"]),
    });
    const startedAtMs = performance.now();
    const runId = await scene.run("w", { inputs: { peerUrl: address } });
    expect(performance.now() - startedAtMs).toBeLessThan(1_000);
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "address_not_allowed" },
    });
  });

  test("is that of no host from 2,001 characters on", async () => {
    const peerUrls: string[] = [];
    const discover: PeerHosts["discover"] = (peerUrl) => {
      peerUrls.push(peerUrl);
      return Promise.resolve({ kind: "refused", code: "rejected", message: "no" });
    };
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", { nodes: [createNode("n", "core.subWorkflow", { workflowId: "child" })] }),
        createWorkflow("child", { nodes: [createNode("a")] }),
      ],
      peers: { discover },
    });
    const longest = `https://a.example/${"x".repeat(1_982)}`;
    for (const peerUrl of [longest, `${longest}x`]) await scene.run("w", { inputs: { peerUrl } });
    expect(peerUrls).toEqual([longest, ""]);
  });
});

describe("another spelling of an MCP server's address", () => {
  async function runTransfer(
    url: string | undefined,
    peerUrl: string,
    mcpServers: Readonly<Record<string, string>> = {
      other: "https://other.example/v1/mcp",
      pay: "https://pay.example/v1/mcp",
    },
  ) {
    const called: string[] = [];
    const callMcp: ToolCaller["callMcp"] = (call) => {
      called.push(call.url);
      return Promise.resolve({ kind: "answered", ok: true, text: "sent", content: [] });
    };
    const mcp = { tool: "transfer", ...(url !== undefined && { url }) };
    const scene = createWorkflowScene({
      definitions: [createWorkflow("w", { nodes: [createNode("n", "core.ai.callPrompt", { mcp })] })],
      agents: {
        mcpServers,
        toolScopes: { "mcp:pay.transfer": ["money"] },
      },
      tools: createNamedTools({ callMcp } as ToolCaller, ["https://pay.example", "https://free.example"]),
    });
    const runId = await scene.run("w", { inputs: { peerUrl } });
    return { called, snapshot: await scene.snapshot(runId) };
  }

  test.each([
    "https://pay.example",
    "https://PAY.example",
    "https://pay.example:443",
    "https://pay.example//",
    "https://pay.example/.",
    "https://pay.example?x",
    "https://pay.example#x",
    "https://a:b@pay.example",
  ])("asks for the same scopes: %s", async (peerUrl) => {
    const { called, snapshot } = await runTransfer(undefined, peerUrl);
    expect(called).toEqual([]);
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "forbidden" } });
  });

  test.each([
    "https://PAY.example/v1/mcp",
    "https://pay.example/v1/mcp/?x#y",
    "https://pay.example:443/v1/mcp",
    "https://a:b@pay.example/v1/mcp",
    "https://pay.example./v1/mcp",
    "https://p%61y.example/v1/mcp",
    String.raw`https:\\pay.example\v1\mcp`,
    "https://pay.example/x/../v1/mcp",
    "https://pay.example/x/%2e%2E/v1/mcp",
    "https://pay.example/x/..%2fv1/mcp",
    "https://pay.example/x%2f..%2fv1%2fmcp",
    "https://pay.example/x/..%5cv1/mcp",
    "https://pay.example/x/%252e%252e/v1/mcp",
    "https://pay.example//v1///mcp",
    "https://pay.example/./v1/%2e/mcp",
    "https://pay.example/v1/%6dcp",
    "https://pay.example/v1/%256Dcp",
    "https://pay.example/V1/MCP",
    "https://pay.example/v1/mcp%2f",
    "https://pay.example/v1/mcp;x=1",
    "https://pay.example/v1/mcp%3Fx",
    "https://pay.example/v1/mcp%23x",
    "https://pay.example/x/..;/v1/mcp",
    "https://pay.example/v1/mcp%3F%2f..%2fx",
    "https://pay.example/%zz",
  ])("asks for the same scopes where a workflow states it: %s", async (url) => {
    const { called, snapshot } = await runTransfer(url, "");
    expect(called).toEqual([]);
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "forbidden" } });
  });

  test("asks for the scopes of each name that its server has", async () => {
    const first = "https://pay.example/v1/mcp/";
    const servers = { first, pay: "https://pay.example/v1/mcp" };
    for (const url of [first, `${first}?x`])
      expect((await runTransfer(url, "", servers)).snapshot).toMatchObject({
        status: "failed",
        error: { code: "forbidden" },
      });
  });

  test.each(["https://PAY.example/my%20docs/mcp/?session=1", "https://pay.example/my docs/mcp"])(
    "asks for none where it is that of a configured server with an encoded path: %s",
    async (url) => {
      const servers = { docs: "https://pay.example/my%20docs/mcp", pay: "https://pay.example/v1/mcp" };
      const { called, snapshot } = await runTransfer(url, "", servers);
      expect(called).toEqual([url]);
      expect(snapshot).toMatchObject({ status: "completed" });
    },
  );

  test("asks for the same scopes where the operator wrote it in another way", async () => {
    const servers = { pay: "https://pay.example/v1/mc%70" };
    expect((await runTransfer("https://pay.example/v1/mcp", "", servers)).called).toEqual([]);
  });

  test("is another server where the operator names both with their queries", async () => {
    const free = "https://pay.example/v1/mcp?of=free";
    const servers = { free, pay: "https://pay.example/v1/mcp?of=pay" };
    expect((await runTransfer(free, "", servers)).called).toEqual([free]);
    expect((await runTransfer(`${free}&x`, "", servers)).called).toEqual([]);
  });

  test.each([
    "https://pay.example/v1/mcp2",
    "https://pay.example/v1/mcp/free",
    "https://pay.example:8443/v1/mcp",
    "https://free.pay.example/v1/mcp",
    "http://pay.example/v1/mcp",
  ])("of another server asks for none where a workflow states it: %s", async (url) => {
    const { called, snapshot } = await runTransfer(url, "");
    expect(called).toEqual([url]);
    expect(snapshot).toMatchObject({ status: "completed" });
  });

  test("of any length is compared at once", async () => {
    const startedAtMs = performance.now();
    await runTransfer(`https://pay.example/${"%25".repeat(100_000)}`, "");
    await runTransfer(`https://pay.example${".".repeat(100_000)}x/v1/mcp`, "");
    expect(performance.now() - startedAtMs).toBeLessThan(1_000);
  });

  test("of another server asks for none", async () => {
    const { called, snapshot } = await runTransfer(undefined, "https://FREE.example/");
    expect(called).toEqual(["https://free.example/v1/mcp"]);
    expect(snapshot).toMatchObject({ status: "completed" });
  });
});
