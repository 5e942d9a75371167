/** Owns: a host with agents of manifests, the model that plays them and the tools that they may call. */
import {
  readInstalledAgent,
  type InstalledAgent,
} from "../../src/agents/coordination/contracts/workflows/agent-manifest.ts";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type { ServingOptions } from "../../src/plugins/serve-openwop.ts";
import { startMcpTools, type McpToolServer } from "../support/mcp-tools.ts";
import { startScriptedModel, type Rule, type ScriptedModel, type Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { clientOf, openWorld, TOKEN, type EndedRun, type Start, type World } from "./levels-world.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface AgentDraft {
  readonly manifest?: Fields;
  readonly systemPrompt?: string;
  readonly taskSchema?: Fields;
  readonly returnSchema?: Fields;
  readonly packVersion?: string;
}

/** @throws Error where it is no agent. */
export function createAgent(
  agentId: string,
  { manifest, systemPrompt = "Do it.", ...rest }: AgentDraft = {},
): InstalledAgent {
  const value = {
    packName: "vendor.test",
    packVersion: "1.2.3",
    systemPrompt,
    ...rest,
    manifest: { agentId, persona: "Tester", modelClass: "reasoning", systemPrompt, ...manifest },
  };
  const parsed = readInstalledAgent(value);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

export interface Agents extends World {
  readonly model: ScriptedModel;
  readonly mcp: McpToolServer;
  /** A run of one agent, whose model plays these turns. */
  run(agentId: string, task: Fields, turns: readonly Turn[], start?: Start): Promise<EndedRun>;
  /** A run of a workflow, whose agent's model plays these turns. */
  runWorkflow(workflowId: string, turns: readonly Turn[]): Promise<EndedRun>;
  /** Waits until it is so. */
  until(isSo: () => Promise<boolean>): Promise<void>;
  /** As `run`, and its id as soon as it was accepted. */
  start(agentId: string, task: Fields, turns: readonly Turn[], start?: Start): Promise<string>;
}

function findToken({ headers = {} }: Start = {}): string {
  return headers["authorization"]?.replace("Bearer ", "") ?? TOKEN;
}

const ENDS = ["completed", "failed", "cancelled"];

export interface AgentsOptions extends Partial<ServingOptions> {
  readonly definitions?: readonly WorkflowDefinition[];
  /** Nodes that name no server call the tools of this one. */
  readonly nodesCallTools?: boolean;
}

export async function openAgents(
  installed: readonly InstalledAgent[],
  { agents, definitions = [], nodesCallTools = false, ...options }: AgentsOptions = {},
): Promise<Agents> {
  const rules: Rule[] = [];
  const [model, mcp] = await Promise.all([startScriptedModel({ rules }), startMcpTools()]);
  const world = await openWorld(definitions, {
    model: { baseUrl: model.baseUrl, model: "plain-model" },
    privateOrigins: [new URL(model.baseUrl).origin, mcp.origin],
    agents: {
      installed,
      modelClasses: { reasoning: "thinking-model" },
      mcpServers: { tools: mcp.url },
      ...agents,
    },
    ...(nodesCallTools && { mcpUrl: mcp.url }),
    ...options,
  });
  const addPlay = (turns: readonly Turn[]): string => {
    const name = `play-${rules.length}.`;
    rules.push({ when: (text) => text.includes(name), turns });
    return name;
  };
  const start: Agents["start"] = async (agentId, task, turns, { headers, ...more } = {}) => {
    const inputs = { ...task, play: addPlay(turns) };
    const reply = await world.client.post("/v1/runs", { agent: { agentId }, ...more, inputs }, headers);
    if (reply.status !== 201) throw new Error(JSON.stringify(reply.body));
    return String(reply.body["runId"]);
  };
  return {
    ...world,
    model,
    mcp,
    start,
    runWorkflow: (workflowId, turns) => world.client.run(workflowId, { inputs: { play: addPlay(turns) } }),
    until: async (isSo) => {
      await waitFor(async () => ((await isSo()) ? true : undefined), { what: "it to be so", everyMs: 10 });
    },
    run: async (agentId, task, turns, more) => {
      const runId = await start(agentId, task, turns, more);
      const client = clientOf(world.baseUrl, findToken(more));
      const snapshot = await client.until(runId, ...ENDS);
      return { runId, snapshot, events: await client.events(runId) };
    },
    close: async () => {
      mcp.release();
      await world.close();
      await Promise.all([model.close(), mcp.close()]);
    },
  };
}
