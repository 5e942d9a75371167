/** Owns: which model an agent asks where the host routes to several providers, and for how many tokens, by the options of its run and its class. */
import { describe, expect, it } from "vitest";
import { readInstalledAgent } from "../../src/agents/coordination/contracts/workflows/agent-manifest.ts";
import { createWorkflowScene, SAID } from "../support/workflow-scene.ts";

type Values = Readonly<Record<string, unknown>>;

const AGENT = "vendor.test.buyer";

async function runAgent(configurable: Values, modelClasses: Readonly<Record<string, string>> = {}) {
  const models: (string | undefined)[] = [];
  const maxTokens: (number | undefined)[] = [];
  const parsed = readInstalledAgent({
    manifest: { agentId: AGENT, persona: "Buyer", modelClass: "general", systemPrompt: "Buy." },
    systemPrompt: "Buy.",
    packName: "p",
    packVersion: "1.0.0",
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const scene = createWorkflowScene({
    agents: { installed: [parsed.value], modelClasses },
    chat: {
      complete: (request) => {
        models.push(request.model);
        maxTokens.push(request.maxTokens);
        return Promise.resolve({ ...SAID, text: '{"result":"bought","confidence":1}' });
      },
    },
  });
  const runId = await scene.run("", { agent: { agentId: AGENT, source: "run-api" }, configurable });
  return { models, maxTokens, snapshot: await scene.snapshot(runId) };
}

describe("an agent's model at a host that asks several providers", () => {
  it.each<[title: string, ai: Values, classModel: string | undefined, model: string]>([
    ["the run's, at the run's provider", { provider: "a", model: "m" }, undefined, "a/m"],
    ["the run's, whose name has a slash", { provider: "a", model: "v/m" }, undefined, "a/v/m"],
    ["the run's, which begins with its provider", { provider: "a", model: "a/m" }, undefined, "a/m"],
    ["its class's, at the run's provider", { provider: "a" }, "m", "a/m"],
    ["its class's, of the run's provider", { provider: "a" }, "a/m", "a/m"],
    ["its class's, where the run names no provider", {}, "b/m", "b/m"],
  ])("is %s", async (_title, ai, classModel, model) => {
    const { models } = await runAgent({ ai }, classModel === undefined ? {} : { general: classModel });
    expect(models).toEqual([model]);
  });

  it.each<[title: string, modelClasses: Readonly<Record<string, string>>]>([
    ["names no model and its class has none", {}],
    ["names no model and its class has another provider's", { general: "b/m" }],
  ])("is none where the run names a provider, %s", async (_title, modelClasses) => {
    const { models, snapshot } = await runAgent({ ai: { provider: "a" } }, modelClasses);
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "not_configured" } });
    expect(models).toEqual([]);
  });

  it("is the host's where a workflow's own option is called `provider`", async () => {
    expect((await runAgent({ provider: "stripe" })).models).toEqual([undefined]);
  });
});

describe("the tokens of an agent's answer", () => {
  it.each<[title: string, configurable: Values, tokens: number]>([
    ["as many as its run says", { maxTokens: 9_000 }, 9_000],
    ["as many as an agent may have where its run says more", { ai: { maxTokens: 400_001 } }, 400_000],
    [
      "as many as an agent may have, also where another spelling says less",
      { ai: { maxTokens: 400_001 }, maxTokens: 50 },
      400_000,
    ],
    ["8,000 where its run says nothing", {}, 8_000],
  ])("are %s", async (_title, configurable, tokens) => {
    expect((await runAgent(configurable)).maxTokens).toEqual([tokens]);
  });
});
