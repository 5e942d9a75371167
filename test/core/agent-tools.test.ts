/** Owns: which tool the name in an agent's allowlist means, and which names of a tool its scopes and its rate go by. */
import { describe, expect, test } from "vitest";
import { readInstalledAgent } from "../../src/agents/coordination/contracts/agent-manifest.ts";
import type { McpTool, ToolCaller } from "../../src/agents/coordination/ports/outbound.ts";
import { NO_AGENTS } from "../../src/agents/coordination/runtime/workflows/agent-parts.ts";
import { gateTool, type GatedTool } from "../../src/agents/coordination/runtime/workflows/tool-gate.ts";
import { createToolRates } from "../../src/agents/coordination/runtime/workflows/tool-rates.ts";
import type { WorkflowRun } from "../../src/agents/coordination/workflow/state.ts";
import { fakeClock } from "../support/fake-clock.ts";
import { workflowScene } from "../support/workflow-scene.ts";

const AGENT = "vendor.test.buyer";

/** Which tool of which server the allowlist came to, by what the servers have; `undefined`: a server does not answer. */
async function surfaceOf(
  toolAllowlist: readonly string[],
  servers: Readonly<Record<string, readonly string[] | undefined>>,
): Promise<unknown[]> {
  const manifest = { agentId: AGENT, persona: "Buyer", modelClass: "general", systemPrompt: "Buy." };
  const parsed = readInstalledAgent({
    ...{ manifest: { ...manifest, toolAllowlist }, systemPrompt: "Buy." },
    ...{ packName: "p", packVersion: "1.0.0" },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const listMcp: ToolCaller["listMcp"] = ({ url }) => {
    const names = servers[new URL(url).hostname];
    const tools = names?.map((name): McpTool => ({ name, inputSchema: {} }));
    return Promise.resolve(
      tools ? { kind: "listed", tools } : { kind: "unknown", code: "unavailable", message: "gone" },
    );
  };
  const mcpServers = Object.fromEntries(Object.keys(servers).map((name) => [name, `http://${name}/mcp`]));
  const scene = workflowScene({
    agents: { ...NO_AGENTS, installed: [parsed.value], mcpServers },
    tools: { listMcp },
    chat: { complete: () => new Promise(() => undefined) },
  });
  const runId = await scene.run("", { agent: { agentId: AGENT, source: "run-api" } });
  return (scene.payloads(runId, "coordination.agent_bound")[0]?.tools ?? []).map(
    ({ id, server, tool }) => `${id} is ${server ?? ""}/${tool ?? ""}`,
  );
}

describe("a tool of an allowlist", () => {
  test("is that of the first server that has it", async () => {
    const servers = { bank: ["pay"], other: ["pay", "look"] };
    expect(await surfaceOf(["mcp:pay", "mcp:look", "mcp:other.pay", "mcp:other/pay"], servers)).toEqual([
      "mcp:pay is bank/pay",
      "mcp:look is other/look",
      "mcp:other.pay is other/pay",
      "mcp:other/pay is other/pay",
    ]);
  });

  test("is not another server's while the one that it may be on cannot be asked", async () => {
    expect(await surfaceOf(["mcp:pay"], { bank: undefined, other: ["pay"] })).toEqual([]);
    expect(await surfaceOf(["mcp:pay"], { bank: ["pay"], other: undefined })).toEqual([
      "mcp:pay is bank/pay",
    ]);
  });

  test("that names its server is not one of another server that calls a tool so", async () => {
    const names = ["mcp:bank.pay", "mcp:bank/pay"];
    expect(await surfaceOf(names, { bank: [], other: ["bank.pay", "bank/pay"] })).toEqual([]);
    expect(await surfaceOf(names, { other: ["bank.pay", "bank/pay"], bank: ["pay"] })).toEqual([
      "mcp:bank.pay is bank/pay",
      "mcp:bank/pay is bank/pay",
    ]);
  });
});

describe("the gate of a tool", () => {
  const run = { started: { scopes: [], owner: { tenant: "t", principal: "p" } } } as unknown as WorkflowRun;
  const named: readonly GatedTool[] = [
    { toolName: "pay", tool: { server: "bank", tool: "pay" } },
    { toolName: "mcp:pay", tool: { server: "bank", tool: "pay" } },
    { toolName: "mcp:bank.pay", tool: { server: "bank", tool: "pay" } },
    { toolName: "mcp:bank/pay", tool: { server: "bank", tool: "pay" } },
  ];
  const gate = (toolScopes: Readonly<Record<string, readonly string[]>>, burst = 10) => {
    const toolRates = createToolRates(fakeClock(), { perMinute: 1, burst });
    return (tool: GatedTool) => gateTool({ agentHost: { ...NO_AGENTS, toolScopes }, toolRates }, run, tool);
  };

  test("asks for the scopes of each name of it, whichever it is called by", () => {
    for (const { toolName } of named)
      for (const tool of named)
        expect(gate({ [toolName]: ["money"] })(tool), `${tool.toolName} by ${toolName}`).toMatchObject({
          status: "forbidden",
        });
    for (const tool of named) expect(gate({ look: ["money"] })(tool)).toBeUndefined();
  });

  test("counts its calls together, whichever name it is called by", () => {
    const rated = gate({}, named.length - 1);
    expect(named.map((tool) => rated(tool)?.status)).toEqual([
      undefined,
      undefined,
      undefined,
      "rate_limited",
    ]);
    expect(rated({ toolName: "mcp:other.pay", tool: { server: "other", tool: "pay" } })).toBeUndefined();
  });
});
