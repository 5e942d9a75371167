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
  async function runTransfer(url: string | undefined, peerUrl: string) {
    const called: string[] = [];
    const callMcp: ToolCaller["callMcp"] = (call) => {
      called.push(call.url);
      return Promise.resolve({ kind: "answered", ok: true, text: "sent", content: [] });
    };
    const mcp = { tool: "transfer", ...(url !== undefined && { url }) };
    const scene = createWorkflowScene({
      definitions: [createWorkflow("w", { nodes: [createNode("n", "core.ai.callPrompt", { mcp })] })],
      agents: {
        mcpServers: { other: "https://other.example/v1/mcp", pay: "https://pay.example/v1/mcp" },
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

  test.each(["https://PAY.example/v1/mcp", "https://pay.example/v1/mcp/?x#y"])(
    "asks for the same scopes where a workflow states it: %s",
    async (url) => {
      const { called, snapshot } = await runTransfer(url, "");
      expect(called).toEqual([]);
      expect(snapshot).toMatchObject({ status: "failed", error: { code: "forbidden" } });
    },
  );

  test("of another server asks for none", async () => {
    const { called, snapshot } = await runTransfer(undefined, "https://FREE.example/");
    expect(called).toEqual(["https://free.example/v1/mcp"]);
    expect(snapshot).toMatchObject({ status: "completed" });
  });
});
