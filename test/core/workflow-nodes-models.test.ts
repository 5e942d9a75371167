import { describe, expect, test } from "vitest";
import { createNode, createWorkflow, type SmallWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene, type SceneOptions } from "../support/workflow-scene.ts";

async function playNodes(small: SmallWorkflow, options: SceneOptions = {}, inputs = {}) {
  const scene = createWorkflowScene({
    ...options,
    definitions: [createWorkflow("w", small), ...(options.definitions ?? [])],
  });
  const runId = await scene.run("w", { inputs });
  return { scene, runId, snapshot: await scene.snapshot(runId) };
}

function findOutputs(played: Awaited<ReturnType<typeof playNodes>>, id: string) {
  return played.scene.payloads(played.runId, "node.completed").find(({ nodeId }) => nodeId === id)?.outputs;
}

describe("an agent that is scripted", () => {
  const config = {
    agentId: "scripted",
    mockReasoning: { streamChunks: ["a", "b"] },
    mockToolCalls: [
      { toolId: "search", arguments: { q: 1 }, result: { hits: 2 } },
      { toolId: "broken", error: { error: "odd", message: "why" }, durationMs: 5 },
    ],
    mockHandoff: { toAgentId: "other", reason: "knows more" },
    mockDecision: { decision: "go", confidence: 0.9 },
  };

  test("reasons, calls, hands over and decides in that order, each return caused by its call", async () => {
    const { scene, runId } = await playNodes({
      nodes: [createNode("a", "core.conformance.mock-agent", config)],
    });
    const events = scene.events(runId).filter(({ type }) => type.startsWith("agent."));
    expect(events.map(({ type }) => type)).toEqual([
      ...["agent.reasoning.delta", "agent.reasoning.delta", "agent.reasoned"],
      ...["agent.toolCalled", "agent.toolReturned", "agent.toolCalled", "agent.toolReturned"],
      ...["agent.handoff", "agent.decided"],
    ]);
    expect(events[2]?.payload).toMatchObject({ reasoning: "ab" });
    expect(events[4]?.causationId).toBe(events[3]?.eventId);
    expect(events[6]?.causationId).toBe(events[5]?.eventId);
    expect(events[6]?.payload).toMatchObject({ status: "error", error: { code: "odd" }, durationMs: 5 });
  });

  test("does not show its reasoning where the caller wants none", async () => {
    const scene = createWorkflowScene({
      definitions: [createWorkflow("w", { nodes: [createNode("a", "core.conformance.mock-agent", config)] })],
    });
    const runId = await scene.run("w", { configurable: { reasoningVerbosity: "off" } });
    expect(scene.types(runId).filter((type) => type.startsWith("agent.reason"))).toEqual([]);
  });

  test("is refused where the host is not tested, whatever the workflow is called", async () => {
    const nodes = [createNode("a", "core.conformance.mock-agent", config)];
    const scene = createWorkflowScene({
      definitions: [createWorkflow("w", { nodes }), createWorkflow("conformance-w", { nodes })],
      isTested: false,
    });
    for (const workflowId of ["w", "conformance-w"]) {
      const refused = await scene.host.create(ALICE, { workflowId, inputs: {}, transport: "rest" });
      expect(codeOf(refused)).toBe("capability_required");
    }
  });
});

describe("a node that asks a model", () => {
  const createSaying = (text: string, more = {}): SceneOptions => ({
    chat: {
      complete: () =>
        Promise.resolve({
          kind: "answered",
          text,
          finishReason: "stop",
          model: "m",
          provider: "p",
          usage: { inputTokens: 3 },
          ...more,
        }),
    },
  });

  test("keeps its answer, and what it cost", async () => {
    const played = await playNodes(
      { nodes: [createNode("a", "core.ai.callPrompt", { prompt: "?" })] },
      createSaying("yes"),
    );
    expect(findOutputs(played, "a")).toEqual({ text: "yes" });
    expect(played.scene.payloads(played.runId, "provider.usage")).toMatchObject([
      { model: "m", provider: "p", inputTokens: 3 },
    ]);
  });

  test("finds the structured answer in what the model wrote around it", async () => {
    const played = await playNodes(
      { nodes: [createNode("a", "core.ai.structuredOutput")] },
      createSaying('Sure: {"a":[1]} ok?'),
    );
    expect(findOutputs(played, "a")).toEqual({ result: { a: [1] } });
    const none = await playNodes(
      { nodes: [createNode("a", "core.ai.structuredOutput")] },
      createSaying("no"),
    );
    expect(none.snapshot).toMatchObject({ error: { code: "structured_output_invalid" } });
  });

  test("fails where its answer is cut off, and takes no part for the whole", async () => {
    const cutOff = { finishReason: "length" };
    const text = await playNodes(
      { nodes: [createNode("a", "core.ai.callPrompt")] },
      createSaying("the first half of", cutOff),
    );
    expect(text.snapshot).toMatchObject({
      status: "failed",
      error: {
        code: "model_answer_incomplete",
        message: "the model's answer was cut off where the bound of its length is",
      },
    });
    const list = await playNodes(
      { nodes: [createNode("a", "core.ai.structuredOutput")] },
      createSaying('[{"a":1},{"b', cutOff),
    );
    expect(list.snapshot).toMatchObject({ error: { code: "structured_output_invalid" } });
    const nothing = await playNodes(
      { nodes: [createNode("a", "core.ai.callPrompt")] },
      createSaying(" ", cutOff),
    );
    expect(nothing.snapshot).toMatchObject({ error: { code: "model_answer_empty" } });
  });

  test.each([
    ["a list", '[{"id":1}]', [{ id: 1 }]],
    ["a list between words", "Here: [1, 2]. Good luck!", [1, 2]],
    ["a list in a fence", "```json\n[[1], {}]\n```", [[1], {}]],
  ])("takes %s as it is", async (_title, text, result) => {
    const outputSchema = { type: "array" };
    for (const config of [{}, { outputSchema }]) {
      const played = await playNodes(
        { nodes: [createNode("a", "core.ai.structuredOutput", config)] },
        createSaying(text),
      );
      expect(findOutputs(played, "a")).toEqual({ result });
    }
  });

  test("fails without the refusal's text, and is not asked again after one", async () => {
    const played = await playNodes(
      { nodes: [createNode("a", "core.ai.callPrompt")], settings: { maxRetries: 5 } },
      createSaying("", { refusal: "SECRET" }),
    );
    expect(played.snapshot).toMatchObject({ error: { code: "envelope_refused_by_provider" } });
    expect(played.scene.types(played.runId)).not.toContain("node.retried");
    expect(JSON.stringify(played.scene.events(played.runId))).not.toContain("SECRET");
  });

  test("is asked again where it could not be reached, as often as the workflow says", async () => {
    let calls = 0;
    const played = await playNodes(
      { nodes: [createNode("a", "core.ai.callPrompt")], settings: { maxRetries: 2 } },
      {
        chat: {
          complete: () => {
            calls += 1;
            return Promise.resolve({ kind: "unknown", code: "unreachable", message: "no" });
          },
        },
      },
    );
    expect(calls).toBe(3);
    expect(played.snapshot).toMatchObject({ error: { code: "unreachable" } });
  });
});
