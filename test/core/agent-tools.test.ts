/** Owns: which tool the name in an agent's allowlist means, and which names of a tool its scopes and its rate go by. */
import { describe, expect, test } from "vitest";
import {
  readInstalledAgent,
  type InstalledAgent,
} from "../../src/agents/coordination/contracts/workflows/agent-manifest.ts";
import type {
  ChatAnswer,
  McpAnswer,
  McpTool,
  ToolCaller,
} from "../../src/agents/coordination/ports/outbound.ts";
import { NO_AGENTS } from "../../src/agents/coordination/runtime/workflow-host/records/agent-dependencies.ts";
import {
  countOrDenyCall,
  type GatedTool,
} from "../../src/agents/coordination/runtime/workflow-host/agents/tool-gate.ts";
import { createToolRates } from "../../src/agents/coordination/runtime/workflow-host/agents/tool-rates.ts";
import { AGENT as AGENT_TYPE } from "../../src/agents/coordination/workflow/state/graph.ts";
import type { WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { createWorkflowScene } from "../support/workflow-scene.ts";

const AGENT = "vendor.test.buyer";
const SAID = { kind: "answered", finishReason: "stop", model: "m", provider: "p", usage: {} } as const;

function createBuyer(toolAllowlist: readonly string[], agentId = AGENT): InstalledAgent {
  const manifest = { agentId, persona: "Buyer", modelClass: "general", systemPrompt: "Buy." };
  const parsed = readInstalledAgent({
    manifest: { ...manifest, toolAllowlist },
    systemPrompt: "Buy.",
    packName: "p",
    packVersion: "1.0.0",
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

/** Which tool of which server the allowlist came to, by what the servers have; `undefined`: a server does not answer. */
async function surfaceOf(
  toolAllowlist: readonly string[],
  servers: Readonly<Record<string, readonly string[] | undefined>>,
): Promise<unknown[]> {
  const listMcp: ToolCaller["listMcp"] = ({ url }) => {
    const names = servers[new URL(url).hostname];
    const tools = names?.map((name): McpTool => ({ name, inputSchema: {} }));
    return Promise.resolve(
      tools ? { kind: "listed", tools } : { kind: "unknown", code: "unavailable", message: "gone" },
    );
  };
  const mcpServers = Object.fromEntries(Object.keys(servers).map((name) => [name, `http://${name}/mcp`]));
  const scene = createWorkflowScene({
    agents: { ...NO_AGENTS, installed: [createBuyer(toolAllowlist)], mcpServers },
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
  const createGate = (toolScopes: Readonly<Record<string, readonly string[]>>, burst = 10) => {
    const toolRates = createToolRates(createFakeClock(), { perMinute: 1, burst });
    return (tool: GatedTool) =>
      countOrDenyCall({ agentHost: { ...NO_AGENTS, toolScopes }, toolRates }, run, tool);
  };

  test("asks for the scopes of each name of it, whichever it is called by", () => {
    for (const { toolName } of named)
      for (const tool of named)
        expect(createGate({ [toolName]: ["money"] })(tool), `${tool.toolName} by ${toolName}`).toMatchObject({
          status: "forbidden",
        });
    for (const tool of named) expect(createGate({ look: ["money"] })(tool)).toBeUndefined();
  });

  test("counts its calls together, whichever name it is called by", () => {
    const rated = createGate({}, named.length - 1);
    expect(named.map((tool) => rated(tool)?.status)).toEqual([
      undefined,
      undefined,
      undefined,
      "rate_limited",
    ]);
    expect(rated({ toolName: "mcp:other.pay", tool: { server: "other", tool: "pay" } })).toBeUndefined();
  });
});

test("an agent whose node names no inputs is not told the variables that are sensitive", async () => {
  const createDefinition = (more: Readonly<Record<string, unknown>>) => {
    const report = createWorkflow("told", {
      nodes: [createNode("agent", AGENT_TYPE, { agentId: AGENT }, more)],
      variables: { word: "open", pin: "1234" },
    });
    const variables = report.variables.map((each) => ({ ...each, sensitive: each.name === "pin" }));
    return { ...report, variables };
  };
  const taskOf = async (more: Readonly<Record<string, unknown>>): Promise<unknown> => {
    const scene = createWorkflowScene({
      definitions: [createDefinition(more)],
      agents: { ...NO_AGENTS, installed: [createBuyer([])] },
      chat: { complete: () => new Promise(() => undefined) },
    });
    const runId = await scene.run("told");
    return scene.payloads(runId, "coordination.agent_bound")[0]?.task;
  };
  expect(await taskOf({})).toEqual({ word: "open" });
  expect(await taskOf({ inputs: { given: { type: "variable", variableName: "pin" } } })).toEqual({
    given: "1234",
  });
});

test("a task that a model, or who asked it, wrote does not say on which host another agent works", async () => {
  const requests: string[] = [];
  const peerUrl = "https://elsewhere.example";
  const next = ["vendor.test.second", "vendor.test.third"];
  const scene = createWorkflowScene({
    agents: {
      ...NO_AGENTS,
      installed: [AGENT, ...next].map((agentId) => createBuyer(["openwop:agent.handoff"], agentId)),
    },
    chat: {
      complete: (): Promise<ChatAnswer> => {
        const toAgentId = next.shift();
        const args = { toAgentId, task: { peerUrl, task: "Buy." } };
        const toolCalls = toAgentId === undefined ? [] : [{ name: "openwop_agent_handoff", args }];
        return Promise.resolve({ ...SAID, text: toolCalls.length > 0 ? "" : "bought", toolCalls });
      },
    },
    peers: {
      createRun: (url) => {
        requests.push(url);
        return Promise.resolve({ kind: "refused", code: "rejected", message: "no" });
      },
    },
  });
  const inputs = { peerUrl };
  const runId = await scene.run("", { agent: { agentId: AGENT, source: "chat-mention" }, inputs });
  expect(requests).toEqual([]);
  expect(await scene.snapshot(runId)).toMatchObject({
    status: "completed",
    outputs: { result: "bought", agentId: "vendor.test.third" },
  });
});

test("agents whose ids differ by case alone each run as themselves, also where one hands over to the other", async () => {
  const [upper, lower] = ["vendor.test.payRoll", "vendor.test.payroll"] as const;
  const toolCounts: number[] = [];
  const scene = createWorkflowScene({
    agents: {
      ...NO_AGENTS,
      installed: [createBuyer(["openwop:agent.handoff"], upper), createBuyer([], lower)],
    },
    chat: {
      complete: ({ tools = [] }): Promise<ChatAnswer> => {
        toolCounts.push(tools.length);
        const handoff = { name: "openwop_agent_handoff", args: { toAgentId: lower, task: "Pay." } };
        const toolCalls = tools.length > 0 ? [handoff] : [];
        return Promise.resolve({ ...SAID, text: toolCalls.length > 0 ? "" : "paid", toolCalls });
      },
    },
  });
  for (const agentId of [lower, upper]) {
    const runId = await scene.run("", { agent: { agentId, source: "run-api" } });
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "completed",
      outputs: { result: "paid", agentId: lower },
    });
    expect(scene.payloads(runId, "agent.invocation.started")).toMatchObject([{ agentId }]);
  }
  expect(toolCounts).toEqual([0, 1, 0]);
});

describe("what is nested so deep that it cannot be written", () => {
  const DEEP = JSON.parse(`${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`) as Readonly<
    Record<string, unknown>
  >;
  const called: McpAnswer = { kind: "answered", ok: true, text: "", content: [] };

  /** How often the model and the tool were asked until the run had failed, and a while after. */
  async function askTool(args: Readonly<Record<string, unknown>>, answer: McpAnswer): Promise<unknown[]> {
    const counts = { model: 0, tool: 0 };
    const scene = createWorkflowScene({
      agents: {
        ...NO_AGENTS,
        installed: [createBuyer(["mcp:pay"])],
        mcpServers: { bank: "http://bank/mcp" },
      },
      tools: {
        listMcp: () => Promise.resolve({ kind: "listed", tools: [{ name: "pay", inputSchema: {} }] }),
        callMcp: () => {
          counts.tool += 1;
          return Promise.resolve(answer);
        },
      },
      chat: {
        complete: (): Promise<ChatAnswer> => {
          counts.model += 1;
          return Promise.resolve({ ...SAID, text: "", toolCalls: [{ name: "mcp_pay", args }] });
        },
      },
    });
    const runId = await scene.run("", { agent: { agentId: AGENT, source: "run-api" } });
    await scene.clock.advance(10_000);
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "value_not_recordable" },
    });
    expect(scene.types(runId).filter((type) => type === "agent.invocation.completed")).toHaveLength(1);
    return [counts.model, counts.tool];
  }

  test("ends the agent whose model said it, which is not asked over and over", async () => {
    expect(await askTool(DEEP, called)).toEqual([1, 0]);
  });

  test("ends the agent whose tool answered it, which is not called over and over", async () => {
    expect(await askTool({}, { ...called, structured: DEEP })).toEqual([1, 1]);
  });
});
