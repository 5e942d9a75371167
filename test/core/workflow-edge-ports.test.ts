/** Owns: edges that name a port: which value they bring to it, and when they bring none; and outputs that ask to be masked. */
import { describe, expect, test } from "vitest";
import {
  createEdge,
  createNode,
  createWorkflow,
  type SmallWorkflow,
} from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene } from "../support/workflow-scene.ts";

/** Runs the workflow and returns what the node `to` was given. */
async function readInputsOf(small: SmallWorkflow, afterMs = 0): Promise<unknown> {
  const scene = createWorkflowScene({ definitions: [createWorkflow("w", small)] });
  const runId = await scene.run("w");
  await scene.clock.advance(afterMs);
  return scene.payloads(runId, "node.completed").find(({ nodeId }) => nodeId === "to")?.outputs;
}

const createInputs = (values: Readonly<Record<string, unknown>>) => ({
  inputs: Object.fromEntries(
    Object.entries(values).map(([port, value]) => [port, { type: "static", value }]),
  ),
});
const createSource = (id: string, outputs: Readonly<Record<string, unknown>>) =>
  createNode(id, "core.identity", {}, createInputs(outputs));
const target = createNode("to", "core.identity");

describe("an edge that names a port", () => {
  const outputs = { text: "hello", deep: { down: [1] }, nothing: null };
  test.each([
    ["of both nodes", { sourceOutput: "text", targetInput: "prompt" }, { prompt: "hello" }],
    ["by a path", { sourceOutput: "deep.down", targetInput: "list" }, { list: [1] }],
    ["with the value null", { sourceOutput: "nothing", targetInput: "value" }, { value: null }],
    ["of the source only", { sourceOutput: "text" }, { input: "hello" }],
    ["of the target only", { targetInput: "all" }, { all: outputs }],
    ["that the source does not have", { sourceOutput: "other", targetInput: "prompt" }, {}],
    ["nowhere", {}, {}],
    [
      "and holds",
      { targetInput: "a", sourceOutput: "text", condition: { type: "equals", left: "text", right: "hello" } },
      { a: "hello" },
    ],
  ])("%s brings what it says", async (_title, names, inputs) => {
    const small = { nodes: [createSource("from", outputs), target], edges: [createEdge("from>to", names)] };
    expect(await readInputsOf(small)).toEqual(inputs);
  });

  test("brings an output that is called as the default before all outputs", async () => {
    const small = {
      nodes: [createSource("from", { output: 1, other: 2 }), target],
      edges: [createEdge("from>to", { targetInput: "a" })],
    };
    expect(await readInputsOf(small)).toEqual({ a: 1 });
  });

  test("brings nothing to a port that has a value, and something to one that lacks it", async () => {
    const inputs = {
      fixed: { type: "static", value: "mine" },
      absent: { type: "variable", variableName: "unset" },
    };
    const small = {
      nodes: [createSource("from", { text: "hello" }), createNode("to", "core.identity", {}, { inputs })],
      edges: ["fixed", "absent"].map((targetInput) =>
        createEdge("from>to", { id: targetInput, sourceOutput: "text", targetInput }),
      ),
    };
    expect(await readInputsOf(small)).toEqual({ fixed: "mine", absent: "hello" });
  });

  test("brings nothing where its condition does not hold", async () => {
    const small = {
      nodes: [createSource("from", { text: "hello" }), createSource("other", { text: "bye" }), target],
      edges: [
        createEdge("from>to", {
          sourceOutput: "text",
          triggerRule: "any_success",
          condition: { type: "equals", left: "text", right: "no" },
        }),
        createEdge("other>to", { sourceOutput: "text", targetInput: "b", triggerRule: "any_success" }),
      ],
    };
    expect(await readInputsOf(small)).toEqual({ b: "bye" });
  });

  test("brings the newest value where several name one port", async () => {
    const small = {
      nodes: [
        createSource("late", { text: "late" }),
        createNode("wait", "core.delay", { delayMs: 50 }),
        createSource("early", { text: "early" }),
        target,
      ],
      edges: [
        createEdge("wait>late"),
        createEdge("late>to", { sourceOutput: "text" }),
        createEdge("early>to", { sourceOutput: "text" }),
      ],
    };
    expect(await readInputsOf(small, 100)).toEqual({ input: "late" });
  });

  test("brings nothing that came after the node began", async () => {
    const any = { triggerRule: "any_success", sourceOutput: "text" };
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: [
            createSource("fast", { text: "fast" }),
            createNode("wait", "core.delay", { delayMs: 50 }),
            createSource("slow", { text: "slow" }),
            createNode("hold", "core.conformance.hold", {}, createInputs({ delayMs: 100 })),
          ],
          edges: [
            createEdge("wait>slow"),
            createEdge("fast>hold", any),
            createEdge("slow>hold", { ...any, targetInput: "input" }),
          ],
        }),
      ],
    });
    const runId = await scene.run("w");
    await scene.clock.advance(200);
    const completed = scene.payloads(runId, "node.completed").find(({ nodeId }) => nodeId === "hold");
    expect(completed?.outputs).toEqual({ delayMs: 100, input: "fast" });
  });

  test("gives a model's node its prompt", async () => {
    const questions: unknown[] = [];
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: [createSource("from", { question: "why?" }), createNode("ask", "core.ai.callPrompt")],
          edges: [createEdge("from>ask", { sourceOutput: "question", targetInput: "prompt" })],
        }),
      ],
      chat: {
        complete: ({ messages }) => {
          questions.push(messages);
          return Promise.resolve({ kind: "unknown", code: "unreachable", message: "no" });
        },
      },
    });
    await scene.run("w");
    expect(questions).toEqual([[{ role: "user", content: "why?" }]]);
  });
});

describe("an edge that names a port, from a node that a loop starts again", () => {
  const inTurn = { triggerRule: "any_failed" };

  /** `first` is started again with each rejection at the gate, while the target works with what came first. */
  function createLooped(
    source: Readonly<Record<string, unknown>>,
    worker: SmallWorkflow["nodes"][number],
    edge: object,
  ) {
    return createWorkflow("w", {
      nodes: [source, createNode("gate", "core.approvalGate"), createNode("revise"), worker],
      edges: [
        createEdge("first>gate"),
        createEdge("gate>revise", inTurn),
        createEdge("revise>first"),
        createEdge("first>to", { ...edge }),
      ],
    });
  }

  test("has brought what its target works with, however often that node ends again", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createLooped(createSource("first", { ms: 60_000 }), createNode("to", "core.delay"), {
          sourceOutput: "ms",
          targetInput: "delayMs",
        }),
      ],
    });
    const runId = await scene.run("w");
    const readTarget = async () =>
      ((await scene.snapshot(runId)) as unknown as { nodeStates: Record<string, object> }).nodeStates["to"];
    for (let round = 0; round < 3; round += 1) {
      await scene.answer(runId, "gate", { action: "reject" });
      await scene.clock.advance(15_000);
      expect(await readTarget()).toMatchObject({ status: "running", executions: 1 });
    }
    await scene.clock.advance(15_000);
    const [completed] = scene.payloads(runId, "node.completed").filter(({ nodeId }) => nodeId === "to");
    expect(completed).toMatchObject({ durationMs: 60_000 });
  });

  test("has a model asked the same again where a call of it failed", async () => {
    const questions: unknown[] = [];
    const failure = Promise.withResolvers<undefined>();
    const definition = createLooped(
      createNode(
        "first",
        "core.identity",
        {},
        { inputs: { question: { type: "variable", variableName: "q" } } },
      ),
      createNode("to", "core.ai.callPrompt"),
      { sourceOutput: "question", targetInput: "prompt" },
    );
    const scene = createWorkflowScene({
      definitions: [{ ...definition, settings: { maxRetries: 1 } }],
      chat: {
        complete: async ({ messages }) => {
          questions.push(messages[0]?.content);
          await failure.promise;
          return { kind: "unknown", code: "unreachable", message: "no" };
        },
      },
    });
    const runId = await scene.run("w", { inputs: { q: "why?" } });
    await scene.answer(runId, "gate", { action: "reject" });
    failure.resolve(undefined);
    await scene.settle();
    expect(questions).toEqual(["why?", "why?"]);
  });
});

describe("a node whose outputs are to be masked", () => {
  const createMasked = (outputSensitivity: unknown) =>
    createWorkflow("w", { nodes: [createNode("a", "core.noop", {}, { outputSensitivity })] });

  test("is refused, because nothing here would mask them", async () => {
    const scene = createWorkflowScene({ definitions: [] });
    expect(await scene.host.register(ALICE, createMasked({ secret: true, plain: false }))).toMatchObject({
      code: "validation_error",
      message: "node a wants its output secret masked (outputSensitivity), and this host masks no outputs",
    });
  });

  test("is taken where none of them is", async () => {
    const scene = createWorkflowScene({ definitions: [] });
    for (const outputSensitivity of [{ plain: false }, {}])
      expect(codeOf(await scene.host.register(ALICE, createMasked(outputSensitivity)))).toBe("done");
  });
});
