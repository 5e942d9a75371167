/** Owns: which memory an agent of a manifest has in a child run. */
import { expect, test } from "vitest";
import {
  readInstalledAgent,
  type InstalledAgent,
} from "../../src/agents/coordination/contracts/workflows/agent-manifest.ts";
import type { ChatModel } from "../../src/agents/coordination/ports/outbound.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, createWorkflowScene, type WorkflowScene } from "../support/workflow-scene.ts";

const AGENT_ID = "vendor.memory.keeper";

function installKeeper(): InstalledAgent {
  const systemPrompt = "Keep.";
  const manifest = {
    agentId: AGENT_ID,
    persona: "Keeper",
    modelClass: "general",
    systemPrompt,
    toolAllowlist: ["openwop:memory.write"],
    memoryShape: { longTerm: true },
  };
  const parsed = readInstalledAgent({ manifest, systemPrompt, packName: "p", packVersion: "1.0.0" });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

/** A model that keeps something once, and then is done. */
const keepOnce: Partial<ChatModel> = {
  complete: ({ messages }) =>
    Promise.resolve({
      kind: "answered",
      finishReason: "stop",
      model: "m",
      provider: "p",
      usage: {},
      text: '{"result":"kept","confidence":0.9}',
      ...(!messages.some(({ role }) => role === "assistant") && {
        toolCalls: [{ name: "openwop_memory_write", args: { content: "deep" } }],
      }),
    }),
  target: () => ({ provider: "p", model: "m" }),
};

async function runChild(
  config: object,
  memoryRef?: string,
): Promise<{ scene: WorkflowScene; scope: string }> {
  const agent = { agentId: AGENT_ID, ...(memoryRef !== undefined && { memoryRef }) };
  const scene = createWorkflowScene({
    chat: keepOnce,
    agents: { installed: [installKeeper()] },
    definitions: [
      createWorkflow("child", {
        nodes: [createNode("keep", "openclaw.agent", { task: "keep it" }, { agent })],
      }),
      createWorkflow("parent", {
        nodes: [createNode("call", "core.subWorkflow", { workflowId: "child", ...config })],
      }),
    ],
  });
  const runId = await scene.run("parent");
  expect(await scene.status(runId)).toBe("completed");
  const childRunId = scene.payloads(runId, "node.dispatched")[0]?.childRunId ?? "";
  const [written = expect.fail("nothing was written")] = scene.payloads(childRunId, "memory.written");
  expect(await scene.host.memory(ALICE, written.memoryRef, { limit: 9 })).toMatchObject([
    { content: "deep" },
  ]);
  return { scene, scope: written.memoryRef };
}

test.each([
  [undefined, `agent:${AGENT_ID}`],
  ["shared", "shared"],
])("an agent of a child run keeps in its own memory: named %s, it is %s", async (memoryRef, scope) => {
  expect((await runChild({}, memoryRef)).scope).toBe(scope);
});

test.each([undefined, "shared"])(
  "an agent of an isolated child run has the child's memory alone, named %s",
  async (memoryRef) => {
    const { scene, scope } = await runChild({ memoryScopeIsolation: "isolated" }, memoryRef);
    expect(scope).not.toBe("shared");
    for (const outside of ["shared", `agent:${AGENT_ID}`])
      expect(await scene.host.memory(ALICE, outside, { limit: 9 })).toEqual([]);
  },
);
