/** Owns: that a workflow whose schemas nothing can be held against is refused, with the place, before anything begins. */
import { describe, expect, test } from "vitest";
import {
  createEdge,
  createNode,
  createWorkflow,
  type SmallWorkflow,
} from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene, valueOf } from "../support/workflow-scene.ts";

const TYPO = { type: "object", properties: { n: { type: "strng" } } };
const PROBLEM = /is not a usable JSON Schema: properties\.n\.type: type must be one of/;

function createRun(nodes: SmallWorkflow["nodes"], more: object = {}) {
  const definition = { ...createWorkflow("w", { nodes, edges: [createEdge("a>b")] }), ...more };
  const scene = createWorkflowScene({ definitions: [definition] });
  return {
    scene,
    created: scene.host.create(ALICE, { workflowId: "w", inputs: {}, transport: "rest" }),
  };
}

describe("a workflow with a schema that is not usable", () => {
  test.each([
    ["resumeSchema of node a", "core.interrupt", { resumeSchema: TYPO }],
    [
      "schema of question q of node a",
      "core.clarificationGate",
      { questions: [{ id: "q", question: "?", schema: TYPO }] },
    ],
    ["outputSchema of node a", "core.ai.structuredOutput", { prompt: "?", outputSchema: TYPO }],
    ["outputSchema of node a", "core.ai.callPrompt", { prompt: "?", outputSchema: TYPO }],
  ])("is refused for the %s (%s), and is not among those that can be run", async (place, typeId, config) => {
    const { scene, created } = createRun([createNode("a", typeId, config), createNode("b")]);
    const refusal = await created;
    expect(refusal).toMatchObject({ kind: "refused", code: "validation_error" });
    expect(refusal).toHaveProperty("message", expect.stringContaining(place));
    expect(refusal).toHaveProperty("message", expect.stringMatching(PROBLEM));
    expect(scene.host.workflowIds()).toEqual([]);
    expect(scene.said).toEqual([expect.stringContaining(`the workflow w is not offered: ${place} is not`)]);
  });

  test("is refused for its configurableSchema, whatever is configured", async () => {
    const { created } = createRun([createNode("a"), createNode("b")], { configurableSchema: TYPO });
    const refusal = await created;
    expect(refusal).toHaveProperty("code", "validation_error");
    expect(refusal).toHaveProperty("message", expect.stringMatching(/^configurableSchema is not a usable/));
  });

  test("is none where its schemas are usable", async () => {
    const schema = { type: "object", properties: { n: { type: "integer" } } };
    const { created } = createRun(
      [createNode("a", "core.interrupt", { resumeSchema: schema }), createNode("b")],
      { configurableSchema: schema },
    );
    expect(await created).toHaveProperty("kind", "done");
  });
});

describe("the schema of an external event", () => {
  const AMOUNT = { type: "object", required: ["amount"], properties: { amount: { type: "integer" } } };
  const QUESTION = {
    kind: "external-event",
    data: { eventType: "paid", correlation: { orderId: "7" } },
    resumeSchema: AMOUNT,
  };
  const answerEvent = async (value: unknown) => {
    const { scene, created } = createRun([createNode("a", "core.interrupt", QUESTION), createNode("b")]);
    const { runId } = valueOf(await created);
    await scene.settle();
    return { runId, scene, answered: await scene.answer(runId, "a", value) };
  };

  test("is not held by a flat event around a payload that breaks it", async () => {
    const { answered } = await answerEvent({
      amount: 1,
      orderId: "7",
      eventPayload: { orderId: "7", amount: "lots" },
    });
    expect(answered).toMatchObject({
      code: "validation_error",
      details: { problems: [expect.stringMatching(/^amount: /)] },
    });
  });

  test.each([
    { orderId: "7", amount: 1 },
    { orderId: "7", eventPayload: { amount: 1 } },
  ])("is held by what is recorded: %j", async (value) => {
    const { scene, runId, answered } = await answerEvent(value);
    expect(codeOf(answered)).toBe("done");
    expect(scene.payloads(runId, "interrupt.resolved")).toMatchObject([{ resumeValue: { amount: 1 } }]);
  });
});
