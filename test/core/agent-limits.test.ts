/** Owns: limits of an agent's tools: whatever goes beyond one is told to the model, or to whoever runs the host. */
import { describe, expect, test } from "vitest";
import { readInstalledAgent } from "../../src/agents/coordination/contracts/workflows/agent-manifest.ts";
import type {
  ChatAnswer,
  ChatMessage,
  McpTool,
  ToolCaller,
} from "../../src/agents/coordination/ports/outbound.ts";
import { NO_AGENTS } from "../../src/agents/coordination/runtime/workflow-host/records/agent-dependencies.ts";
import { createWorkflowScene, SAID } from "../support/workflow-scene.ts";

const AGENT = "vendor.test.buyer";
const LOOK: McpTool = { name: "look", inputSchema: {} };
const TOUCH: McpTool = { name: "touch", inputSchema: {} };

function createBuyer(tools: readonly McpTool[]) {
  const parsed = readInstalledAgent({
    manifest: {
      agentId: AGENT,
      persona: "Buyer",
      modelClass: "general",
      systemPrompt: "Buy.",
      toolAllowlist: tools.map(({ name }) => `mcp:${name}`),
    },
    systemPrompt: "Buy.",
    packName: "p",
    packVersion: "1.0.0",
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

interface Shop {
  readonly tools?: readonly McpTool[];
  /** Calls in the first turn, of the tools in turn. */
  readonly calls?: number;
  readonly result?: string;
}

/** Runs an agent that calls a tool in its first turn, and answers in its second. */
async function runBuyer({ tools = [LOOK], calls = 1, result = "seen" }: Shop) {
  const requests: (readonly ChatMessage[])[] = [];
  let toolCalls = 0;
  const callMcp: ToolCaller["callMcp"] = () => {
    toolCalls += 1;
    return Promise.resolve({ kind: "answered", ok: true, text: result, content: [] });
  };
  const scene = createWorkflowScene({
    agents: { ...NO_AGENTS, installed: [createBuyer(tools)], mcpServers: { shop: "http://shop/mcp" } },
    tools: { listMcp: () => Promise.resolve({ kind: "listed", tools }), callMcp },
    chat: {
      complete: ({ messages }): Promise<ChatAnswer> => {
        requests.push(messages);
        const wanted = Array.from({ length: calls }, (_, index) => {
          const tool = tools[index % tools.length] ?? LOOK;
          return { name: `mcp_${tool.name}`, args: {} };
        });
        return Promise.resolve(requests.length === 1 ? { ...SAID, text: "", toolCalls: wanted } : SAID);
      },
    },
  });
  const runId = await scene.run("", { agent: { agentId: AGENT, source: "run-api" } });
  for (let pass = 0; pass < calls; pass += 1) await scene.settle();
  expect(await scene.status(runId)).toBe("completed");
  const results = (requests[1] ?? []).flatMap(({ role, content }) => (role === "tool" ? [content] : []));
  return { scene, runId, results, toolCalls };
}

describe("the model of an agent", () => {
  test("is told where the result of a tool was cut", async () => {
    const { results } = await runBuyer({ result: `${"x".repeat(50_000)}y` });
    expect(results).toEqual([`${"x".repeat(50_000)}\n[cut after 50000 characters]`]);
  });

  test("is told nothing of that where a result fits", async () => {
    const { results } = await runBuyer({ result: "x".repeat(50_000) });
    expect(results).toEqual(["x".repeat(50_000)]);
  });

  test("has as many calls as it may have made in one turn, and is told of those beyond", async () => {
    const { results, toolCalls } = await runBuyer({ calls: 66, tools: [LOOK, TOUCH] });
    expect(toolCalls).toBe(64);
    const refusal = "error: you have called tools as often as you may; answer now";
    expect(results).toEqual([...Array<string>(64).fill("seen"), refusal, refusal]);
  });
});

describe("a tool that is too large for an agent", () => {
  test("is left out, and the log says so", async () => {
    const large = { name: "large", inputSchema: { title: "x".repeat(20_000) } };
    const { scene, runId } = await runBuyer({ tools: [LOOK, large] });
    const [bound] = scene.payloads(runId, "coordination.agent_bound");
    expect(bound?.tools.map(({ id }) => id)).toEqual(["mcp:look"]);
    expect(scene.said).toEqual([
      `a tool is left out: it, or all tools of the agent, are more than a model is told {"runId":"${runId}","agentId":"${AGENT}","tool":"mcp:large"}`,
    ]);
  });
});
