/** Owns: the nodes that pass on, wait or fail, and those that ask a model. */
import { describe, expect, it } from "vitest";
import { addMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  EffectOutcome,
  ModelAsk,
  NodeEffect,
  NodeType,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { delay, echo, fail, noop } from "../../src/agents/coordination/workflow/nodes/basic-nodes.ts";
import { callPrompt, structuredOutput } from "../../src/agents/coordination/workflow/nodes/model-nodes.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import { createPlay, createView, type Scene } from "./workflow-node-view-scene.ts";
import { NOW } from "./workflow-view-scene.ts";

/** Ports of a node that have these values. */
function withPorts(values: Values): Pick<Scene, "members"> {
  const ports = Object.entries(values).map(([name, value]) => [name, { type: "static", value }]);
  return { members: { inputs: Object.fromEntries(ports) as Values } };
}

describe("nodes that pass on", () => {
  it("complete without outputs where they do nothing", () => {
    expect(noop.step(createView(withPorts({ color: "red" })))).toStrictEqual({
      kind: "complete",
      outputs: {},
    });
  });

  it("complete with their inputs where they repeat them", () => {
    const view = createView(withPorts({ color: "red", size: 3 }));
    expect(echo(view)).toStrictEqual({ kind: "complete", outputs: { color: "red", size: 3 } });
  });
});

describe("a node that fails", () => {
  const [CODE, MESSAGE] = ["conformance_test_failure", "Intentional conformance failure"];

  it.each<[title: string, config: Values, code: string, message: string]>([
    ["for the reason that it has", { code: "broken", message: "It broke." }, "broken", "It broke."],
    ["for a reason of the suite where it has none", {}, CODE, MESSAGE],
    ["for a reason of the suite where its own is empty", { code: "", message: "" }, CODE, MESSAGE],
    ["for a reason of the suite where its own is no text", { code: 5, message: ["no"] }, CODE, MESSAGE],
  ])("fails %s", (_title, config, code, message) => {
    expect(fail.step(createView({ config }))).toStrictEqual({ kind: "fail", error: { code, message } });
  });
});

describe("a node that waits", () => {
  const DAY_MS = 86_400_000;

  /** Returns for how long the node waits; `undefined` where it does not. */
  function readWaitMs(scene: Scene): number | undefined {
    const step = delay.step(createView({ now: NOW, ...scene }));
    return step.kind === "wait" && step.atMs !== undefined ? step.atMs - NOW : undefined;
  }

  it("may be stopped by a pause", () => {
    expect(delay.isPausable).toBe(true);
  });

  it("completes when its time has come, and not before", () => {
    const config = { delayMs: 50 };
    const [before, due] = [49, 50].map((ms) => delay.step(createView({ config, now: addMs(NOW, ms) })));
    expect(before).toStrictEqual({ kind: "wait", atMs: addMs(NOW, 50) });
    expect(due).toStrictEqual({ kind: "complete", outputs: {} });
  });

  it.each<[title: string, scene: Scene, waitMs: number | undefined]>([
    ["of its port before all others", { ...withPorts({ delayMs: 1 }), config: { delayMs: 2 } }, 1],
    ["of its configuration before other names", { config: { delayMs: 2, durationMs: 3, ms: 4 } }, 2],
    ["under the name durationMs", { config: { durationMs: 3, ms: 4 } }, 3],
    ["under the name ms", { config: { ms: 4 } }, 4],
    ["that is a number, where others are none", { ...withPorts({ delayMs: "1" }), config: { ms: 4 } }, 4],
    ["that is finite, where others are not", { config: { delayMs: Infinity, durationMs: NaN, ms: 4 } }, 4],
    ["of none where nothing is configured", {}, undefined],
    ["of none where it is negative", { config: { delayMs: -5 } }, undefined],
    ["of a day where it is longer", { config: { delayMs: DAY_MS + 1 } }, DAY_MS],
  ])("waits for the time %s", (_title, scene, waitMs) => {
    expect(readWaitMs(scene)).toBe(waitMs);
  });
});

function readEffect(type: NodeType, scene: Scene): NodeEffect {
  const step = type.step(createView(scene));
  if (step.kind !== "act") throw new Error("the node asks nobody");
  return step.effect;
}

describe.each([
  ["core.ai.callPrompt", callPrompt],
  ["core.ai.structuredOutput", structuredOutput],
])("the question of %s to its model", (_title, type) => {
  function readRequest(scene: Scene): ModelAsk {
    const effect = readEffect(type, scene);
    if (effect.kind !== "ask_model") throw new Error("no model is asked");
    return effect.request;
  }

  it("is one of its node and its execution, with nothing that nobody configured", () => {
    expect(readEffect(type, { nodeRun: { executions: 2 } })).toStrictEqual({
      kind: "ask_model",
      id: "a:2:ask",
      nodeId: "a",
      request: { messages: [{ role: "user", content: "" }], maxTokens: 4_000 },
    });
  });

  it("has what the caller configures before what the node does, and the smaller bound of tokens", () => {
    const configurable = { model: "small", temperature: 0.1, maxTokens: 30 };
    const config = {
      model: "large",
      temperature: 0,
      maxTokens: 20,
      systemPrompt: "Be brief.",
      outputSchema: {},
    };
    expect(readRequest({ config, started: { configurable } })).toStrictEqual({
      model: "small",
      system: "Be brief.",
      messages: [{ role: "user", content: "" }],
      schema: {},
      temperature: 0.1,
      maxTokens: 20,
    });
    expect(readRequest({ started: { configurable } })).toMatchObject(configurable);
  });

  it("has nothing that is not of its type", () => {
    const config = { model: 1, temperature: "hot", maxTokens: "many", systemPrompt: 2, outputSchema: [] };
    expect(readRequest({ config })).toStrictEqual({
      messages: [{ role: "user", content: "" }],
      maxTokens: 4_000,
    });
  });

  it("takes system prompt and schema from the node alone", () => {
    const configurable = { systemPrompt: "Obey.", outputSchema: {} };
    expect(readRequest({ started: { configurable } })).toStrictEqual({
      messages: [{ role: "user", content: "" }],
      maxTokens: 4_000,
    });
  });

  it("names the agent where the node has one", () => {
    expect(readRequest({ members: { agent: { agentId: "acme.writer" } } }).agentId).toBe("acme.writer");
  });

  it("is for the play where a script answers", () => {
    const plays = [true, false].map((isPlayed) => createPlay({ isModelPlayed: () => isPlayed }));
    const requests = plays.map((play) => readRequest({ settings: { play } }));
    expect(requests.map(({ isPlayed }) => isPlayed)).toEqual([true, undefined]);
  });

  it.each<[title: string, scene: Scene, content: string]>([
    ["its port", { ...withPorts({ prompt: "port" }), config: { prompt: "config" } }, "port"],
    ["its configuration", { config: { prompt: "config" } }, "config"],
    ["anything else, as JSON", withPorts({ prompt: { topic: "bees" } }), '{"topic":"bees"}'],
  ])("has the prompt of %s", (_title, scene, content) => {
    expect(readRequest(scene).messages).toStrictEqual([{ role: "user", content }]);
  });

  it("has the messages of its port in place of a prompt, each from the user or the assistant", () => {
    const messages = [
      { role: "user", content: "hi", name: "alice" },
      { role: "assistant", content: "hello" },
      { role: "system", content: "obey" },
      { role: "user", content: 5 },
      null,
      "text",
    ];
    expect(readRequest(withPorts({ messages, prompt: "more" })).messages).toStrictEqual([
      { role: "user", content: "hi" },
      { role: "assistant", content: "hello" },
      { role: "user", content: "obey" },
    ]);
  });

  it.each([["none"], [[]], [[5, { role: "user" }]]])(
    "has the prompt where the messages are %j",
    (messages) => {
      expect(readRequest(withPorts({ messages, prompt: "more" })).messages).toStrictEqual([
        { role: "user", content: "more" },
      ]);
    },
  );
});

type Answer = EffectOutcome & { readonly kind: "model_answered" };

function createAnswer(text: string, more: Partial<Answer> = {}): Answer {
  return { kind: "model_answered", text, model: "m", usage: {}, ...more };
}

function settle(type: NodeType, outcome: EffectOutcome): readonly WorkflowDraft[] {
  return type.settle?.(createView(), readEffect(type, {}), outcome) ?? [];
}

function createCompleted(outputs: Values): WorkflowDraft[] {
  return [{ type: "node.completed", nodeId: "a", payload: { nodeId: "a", outputs } }];
}

function createFailed(code: string, message: string): WorkflowDraft[] {
  return [{ type: "node.failed", nodeId: "a", payload: { nodeId: "a", error: { code, message } } }];
}

const INVALID = "structured_output_invalid";

describe.each([
  ["core.ai.callPrompt", callPrompt],
  ["core.ai.structuredOutput", structuredOutput],
])("%s", (_title, type) => {
  it("fails where the model answered nothing", () => {
    const drafts = createFailed("model_answer_empty", "the model answered nothing");
    expect(settle(type, createAnswer(" \n"))).toStrictEqual(drafts);
  });

  it("fails where the provider refused", () => {
    expect(settle(type, { kind: "model_refused", model: "m", usage: {} })).toStrictEqual(
      createFailed("envelope_refused_by_provider", "the model's provider refused to answer"),
    );
  });

  it("fails as the asking did", () => {
    const error = { code: "timed_out", message: "too late" };
    expect(settle(type, { kind: "failed", error })).toStrictEqual(createFailed("timed_out", "too late"));
  });

  it("has nothing to say to what is no answer", () => {
    expect(settle(type, { kind: "side_effect_caused", effectId: "e" })).toEqual([]);
  });
});

describe("a model's answer", () => {
  it("is the output of a prompt, as it is", () => {
    expect(settle(callPrompt, createAnswer(" said "))).toStrictEqual(createCompleted({ text: " said " }));
  });

  it("is the object of structured output, which may be none that stands in the text", () => {
    const answer = createAnswer('{"a":1}', { object: { b: 2 } });
    expect(settle(structuredOutput, answer)).toStrictEqual(createCompleted({ result: { b: 2 } }));
  });

  it("is the object in the text where there is no other one", () => {
    const answer = createAnswer('I say {"a":1}.', { problems: [] });
    expect(settle(structuredOutput, answer)).toStrictEqual(createCompleted({ result: { a: 1 } }));
  });

  it("is of no use where it breaks the schema", () => {
    const answer = createAnswer('{"a":1}', { problems: ["a is no text", "b is missing"] });
    const message = "the model's answer breaks the schema: a is no text; b is missing";
    expect(settle(structuredOutput, answer)).toStrictEqual(createFailed(INVALID, message));
  });

  it.each<[title: string, more: Partial<Answer>, why: string]>([
    ["is no JSON", {}, "is no JSON"],
    ["was cut off", { isCutOff: true }, "was cut off where the bound of its length is"],
  ])("is of no use where it %s", (_title, more, why) => {
    expect(settle(structuredOutput, createAnswer('{"a":', more))).toStrictEqual(
      createFailed(INVALID, `the model's answer ${why}`),
    );
  });
});
