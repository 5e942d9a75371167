/** Owns: that every agent whose manifest is valid can be started, however long it is called. */
import { expect, test } from "vitest";
import { readInstalledAgent } from "../../src/agents/coordination/contracts/workflows/agent-manifest.ts";
import { createWorkflowScene, SAID } from "../support/workflow-scene.ts";

test.each([
  ["the longest persona, of emoji", "🖋".repeat(200), "vendor.test.writer"],
  ["the longest id", "Writer", `vendor.test.${"w".repeat(244)}`],
])("an agent with %s is started", async (_, persona, agentId) => {
  const systemPrompt = "Write.";
  const manifest = { agentId, persona, modelClass: "general", systemPrompt };
  const installed = readInstalledAgent({ manifest, systemPrompt, packName: "p", packVersion: "1.0.0" });
  if (!installed.ok) throw new Error(JSON.stringify(installed.problems));
  const scene = createWorkflowScene({
    agents: { installed: [installed.value] },
    chat: { complete: () => Promise.resolve(SAID) },
  });
  const runId = await scene.run("", { agent: { agentId, source: "run-api" } });
  expect(await scene.status(runId)).toBe("completed");
});
