import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { formatCanonicalJson } from "../../src/agents/coordination/std/canonical-json.ts";
import type { ChatAnswer, ChatModel, OutboundFailure } from "../../src/agents/coordination/ports/outbound.ts";
import { createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, valueOf, createWorkflowScene } from "../support/workflow-scene.ts";

const ANSWER = {
  kind: "answered",
  text: "yes",
  finishReason: "stop",
  model: "answering",
  provider: "p",
  usage: {},
} as const;

async function playModel(
  input: {
    readonly config?: object;
    readonly typeId?: string;
    readonly maxRetries?: number;
    readonly inputs?: object;
  },
  answer: Partial<ChatAnswer> | OutboundFailure,
  target?: ChatModel["target"],
) {
  const { config = {}, typeId = "core.ai.callPrompt", maxRetries = 0, inputs = {} } = input;
  const requests: unknown[] = [];
  const more = { inputs: { prompt: { type: "variable", variableName: "prompt" } } };
  const nodes = [createNode("a", typeId, { ...config }, more)];
  const scene = createWorkflowScene({
    definitions: [createWorkflow("w", { nodes, settings: { maxRetries }, variables: { prompt: "?" } })],
    chat: {
      complete: (request) => {
        requests.push(request);
        return Promise.resolve({ ...ANSWER, ...answer } as ChatAnswer);
      },
      ...(target && { target }),
    },
  });
  const runId = await scene.run("w", { inputs: { ...inputs } });
  return { scene, runId, requests: requests, snapshot: await scene.snapshot(runId) };
}

function digestOf(provider: string, model: string, request: object = {}): string {
  const messages = [{ role: "user", content: "?" }];
  const whole = { messages, maxOutputTokens: 4_000, ...request };
  return hash(
    "sha256",
    formatCanonicalJson({ recipe: "openwop-semantic-request-v2", provider, model, request: whole }),
  );
}

describe("what a model was asked", () => {
  test("is told ahead of its answer, by the model that the request goes to", async () => {
    const { scene, runId } = await playModel({}, {}, () => ({ provider: "host", model: "default" }));
    expect(scene.types(runId).slice(1, -1)).toEqual([
      ...["node.started", "coordination.model_asked", "provider.usage", "node.completed"],
    ]);
    expect(scene.payloads(runId, "coordination.model_asked")).toEqual([
      { nodeId: "a", provider: "host", model: "default", requestDigest: digestOf("host", "default") },
    ]);
  });

  test("is told by the one that answered, where nobody knew before, and by the name that was asked for", async () => {
    const unnamed = await playModel({}, {});
    expect(unnamed.scene.payloads(unnamed.runId, "coordination.model_asked")).toMatchObject([
      { provider: "p", model: "answering", requestDigest: digestOf("p", "answering") },
    ]);
    const named = await playModel({ config: { model: "wanted", temperature: 0 } }, {});
    expect(named.scene.payloads(named.runId, "coordination.model_asked")).toMatchObject([
      { model: "wanted", requestDigest: digestOf("p", "wanted", { temperature: 0 }) },
    ]);
  });

  test("is told of each try", async () => {
    const unreachable = { kind: "unknown", code: "unreachable", message: "no" } as const;
    const { scene, runId } = await playModel({ maxRetries: 1 }, unreachable, () => ({
      provider: "p",
      model: "m",
    }));
    expect(scene.types(runId).slice(1, -1)).toEqual([
      ...["node.started", "coordination.model_asked", "node.retried", "node.started"],
      ...["coordination.model_asked", "node.failed"],
    ]);
  });

  test("is not asked where it is no Unicode text", async () => {
    const { requests, snapshot } = await playModel({ inputs: { prompt: "torn \ud800" } }, {});
    expect([requests, snapshot]).toMatchObject([[], { error: { code: "model_request_malformed" } }]);
  });

  test("is told of by names that the log takes, however long the provider's are", async () => {
    const { snapshot, scene, runId } = await playModel({}, { model: "m".repeat(9_000), provider: "" });
    expect(snapshot.status).toBe("completed");
    expect(scene.payloads(runId, "coordination.model_asked")).toMatchObject([
      { model: "m".repeat(256), provider: "unknown" },
    ]);
  });
});

describe("a structured answer", () => {
  const outputSchema = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
  const playStructured = (text: string, more: Partial<ChatAnswer> = {}) =>
    playModel({ typeId: "core.ai.structuredOutput", config: { outputSchema } }, { text, ...more });

  test("is one of its schema, also where words are around it", async () => {
    expect((await playStructured('so: {"n":1}')).snapshot.status).toBe("completed");
    expect((await playStructured("", { object: { n: 1 } })).snapshot.status).toBe("completed");
  });

  test.each([
    ["an object", 'One of [1, 2, 3, 4, 5] is {"n":1}', outputSchema, { n: 1 }],
    ["a list", 'One of {"n":1,"m":2,"l":3} is [1]', { type: "array" }, [1]],
  ])(
    "is %s where its schema asks for one, though something longer stands beside it",
    async (_title, text, schema, result) => {
      const input = { typeId: "core.ai.structuredOutput", config: { outputSchema: schema } };
      const { scene, runId } = await playModel(input, { text });
      expect(scene.payloads(runId, "node.completed")).toMatchObject([{ outputs: { result } }]);
    },
  );

  test("that nothing in the text is of the schema for says what is wrong with the longest", async () => {
    const { snapshot } = await playStructured('One of ["a", "b", "c"] is {"n":"one"}');
    expect(snapshot).toMatchObject({
      error: { message: expect.stringContaining("object") as string },
    });
  });

  test.each([
    ["breaks its schema", '{"n":"SECRET"}', {}, "structured_output_invalid"],
    ["is another value", "[1]", { object: [1] }, "structured_output_invalid"],
    ["is no JSON", "SECRET", {}, "structured_output_invalid"],
    ["is cut off", '{"n":', { finishReason: "length" }, "structured_output_invalid"],
    ["is nothing", " \n", {}, "model_answer_empty"],
  ] as const)("that %s fails its node by that, without what it says", async (_what, text, more, code) => {
    const { snapshot, scene, runId } = await playStructured(text, more);
    expect(snapshot).toMatchObject({ status: "failed", error: { code } });
    expect(JSON.stringify(scene.events(runId))).not.toContain("SECRET");
  });

  test("that is cut off says so", async () => {
    const { snapshot } = await playStructured('{"n":', { finishReason: "length" });
    expect(snapshot).toMatchObject({ error: { message: expect.stringContaining("cut off") as string } });
    const whole = await playStructured('{"n":');
    expect(whole.snapshot).toMatchObject({
      error: { message: expect.stringContaining("no JSON") as string },
    });
  });

  test("is asked for again as often as the workflow says", async () => {
    const input = { typeId: "core.ai.structuredOutput", config: { outputSchema }, maxRetries: 2 };
    const { requests, snapshot } = await playModel(input, { text: "no" });
    expect([requests.length, snapshot.status]).toEqual([3, "failed"]);
  });
});

describe("a node with a mock model", () => {
  const definitions = [
    createWorkflow("w", { nodes: [createNode("a", "core.ai.callPrompt", { provider: "mock" })] }),
    createWorkflow("conformance-w", { nodes: [createNode("a", "core.ai.callPrompt", { provider: "mock" })] }),
  ];

  test("asks nobody, and is refused where the host is not tested, whatever the workflow is called", async () => {
    const allowing = createWorkflowScene({ definitions });
    expect(await allowing.status(await allowing.run("w"))).toBe("completed");
    const scene = createWorkflowScene({ definitions, isTested: false });
    for (const workflowId of ["w", "conformance-w"])
      expect(await scene.host.create(ALICE, { workflowId, inputs: {}, transport: "rest" })).toMatchObject({
        code: "capability_required",
        message: expect.stringContaining("node a has config.provider mock") as string,
      });
    expect(scene.host.workflowIds()).toEqual([]);
  });
});

describe("a replay", () => {
  const definitions = [
    createWorkflow("w", {
      nodes: [createNode("a", "core.ai.callPrompt", { provider: "mock", prompt: "?" }), createNode("b")],
      edges: [createEdge("a>b")],
    }),
  ];

  async function replayOf(report: (payload: { requestDigest: string }) => void) {
    const scene = createWorkflowScene({
      definitions,
      faults: {
        before: ({ events }) => {
          for (const event of events) if (event.type === "coordination.model_asked") report(event.payload);
        },
      },
    });
    const sourceRunId = await scene.run("w");
    expect(await scene.status(sourceRunId)).toBe("completed");
    const { runId } = valueOf(await scene.host.fork(ALICE, { sourceRunId, mode: "replay" }));
    await scene.settle();
    return { scene, sourceRunId, runId, snapshot: await scene.snapshot(runId) };
  }

  test("does not use what was recorded for another request: it ends there, and says so", async () => {
    const { scene, sourceRunId, runId, snapshot } = await replayOf((payload) => {
      payload.requestDigest = "0".repeat(64);
    });
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "replay_diverged" } });
    const askedEvent = scene.events(sourceRunId).find(({ type }) => type === "coordination.model_asked");
    expect(scene.payloads(runId, "replay.diverged")).toMatchObject([
      { sourceRunId, atSequence: askedEvent?.sequence, originalEventId: askedEvent?.eventId },
    ]);
    expect(scene.types(runId)).not.toContain("node.completed");
  });

  test("uses what was recorded for its own", async () => {
    const { scene, sourceRunId, runId, snapshot } = await replayOf(() => undefined);
    expect(snapshot.status).toBe("completed");
    expect(scene.types(runId)).toEqual(scene.types(sourceRunId));
  });
});
