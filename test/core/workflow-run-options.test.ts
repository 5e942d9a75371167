/** Owns: which options of a run reach the models that its nodes ask, and which options are refused before a run begins. */
import { describe, expect, it } from "vitest";
import type { ChatModel, ChatRequest } from "../../src/agents/coordination/ports/outbound.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import {
  ALICE,
  codeOf,
  createWorkflowScene,
  SAID,
  valueOf,
  type AppendFaults,
} from "../support/workflow-scene.ts";

type Values = Readonly<Record<string, unknown>>;

const OF_NODE = { model: "of-node", temperature: 1, maxTokens: 1_000 };

/** The schema of a workflow's options, one of which may be null. */
const TYPED = {
  type: "object",
  required: ["region"],
  properties: {
    temperature: { type: "number" },
    ai: { type: "object", properties: { temperature: { type: "number" } } },
    region: { type: ["string", "null"] },
  },
};

/** A host whose model says the same to everything; the supervisor ends its run. */
function createScene(target?: ChatModel["target"], faults?: AppendFaults) {
  const requests: ChatRequest[] = [];
  const scene = createWorkflowScene({
    definitions: [
      createWorkflow("prompt", { nodes: [createNode("a", "core.ai.callPrompt", OF_NODE)] }),
      createWorkflow("played", { nodes: [createNode("a", "core.ai.callPrompt", { provider: "mock" })] }),
      createWorkflow("plain", { nodes: [createNode("a", "core.ai.callPrompt")] }),
      createWorkflow("routed", {
        nodes: [createNode("a", "core.ai.callPrompt", { model: "openai/gpt-5" })],
      }),
      {
        ...createWorkflow("typed", { nodes: [createNode("a", "core.ai.callPrompt", OF_NODE)] }),
        configurableSchema: TYPED,
      },
      createWorkflow("boss", {
        nodes: [createNode("a", "core.orchestrator.supervisor", { prompt: "Plan.", model: "of-node" })],
      }),
    ],
    chat: {
      complete: (request) => {
        requests.push(request);
        return Promise.resolve({ ...SAID, text: '{"kind":"terminate","reason":"done","confidence":1}' });
      },
      ...(target && { target }),
    },
    ...(faults && { faults }),
  });
  const run = async (workflowId: string, configurable?: Values) => {
    const runId = await scene.run(workflowId, configurable ? { configurable } : {});
    return { runId, request: requests.at(-1), snapshot: await scene.snapshot(runId) };
  };
  const fork = async (sourceRunId: string, mode: "branch" | "replay", configurable?: Values) => {
    const overlay = configurable && { overlay: { configurable } };
    const forked = await scene.host.fork(ALICE, { sourceRunId, mode, fromSeq: 0, ...overlay });
    await scene.settle();
    return forked;
  };
  return { scene, requests, run, fork };
}

const createUnkeptOption = (option: string): Values =>
  option === "ai.credentialRef" ? { ai: { credentialRef: "x", model: "a" } } : { [option]: { id: "x" } };

/** Records a run as earlier releases did, which began one with any options. */
const createOptionRecorder =
  (option: string): NonNullable<AppendFaults["before"]> =>
  ({ events: [first] }) => {
    if (first?.type === "run.started" && first.sequence === 0 && !first.payload.configurable)
      Object.assign(first.payload, { configurable: createUnkeptOption(option) });
  };

describe("options of a run about models", () => {
  it("go before what a node configures, and the smaller bound of tokens counts", async () => {
    const { run } = createScene();
    const { request } = await run("prompt", { model: "of-caller", temperature: 0, maxTokens: 100 });
    expect(request).toMatchObject({ model: "of-caller", temperature: 0, maxTokens: 100 });
    expect((await run("prompt", { maxTokens: 9_000 })).request).toMatchObject(OF_NODE);
    expect((await run("plain", { maxTokens: 9_000 })).request).toMatchObject({ maxTokens: 9_000 });
  });

  it.each<[title: string, configurable: Values]>([
    ["nested", { ai: { model: "of-ai", temperature: 0 }, model: "legacy" }],
    ["with dots", { "ai.model": "of-ai", "ai.temperature": 0, model: "legacy" }],
  ])("are read below `ai`, %s, before those beside it", async (_title, configurable) => {
    const { run } = createScene();
    for (const workflowId of ["prompt", "boss"])
      expect((await run(workflowId, configurable)).request).toMatchObject({ model: "of-ai", temperature: 0 });
  });

  it("bound a supervisor's turn too", async () => {
    const { run } = createScene();
    const { request, snapshot } = await run("boss", { model: "of-caller", maxTokens: 100 });
    expect(request).toMatchObject({ model: "of-caller", maxTokens: 100 });
    expect(snapshot.status).toBe("completed");
    expect((await run("boss", { maxTokens: 9_000 })).request).toMatchObject({ maxTokens: 2_000 });
  });

  it.each<[title: string, model: unknown]>([
    ["is no text", 5],
    ["is empty", ""],
    ["is null", null],
  ])("name no model below `ai` where it %s, so that the one beside it counts", async (_title, model) => {
    const { run } = createScene();
    for (const options of [{ ai: { model } }, { "ai.model": model }]) {
      expect((await run("prompt", options)).request).toMatchObject(OF_NODE);
      expect((await run("prompt", { ...options, model: "plain" })).request).toMatchObject({ model: "plain" });
    }
  });

  it.each<[key: string, value: unknown, sentence: string]>([
    ["maxTokens", "200", "expected a whole number from 1 to 9007199254740991"],
    ["maxTokens", 100.5, "expected a whole number from 1 to 9007199254740991"],
    ["maxTokens", 0, "expected a whole number from 1 to 9007199254740991"],
    ["temperature", 3, "expected a number from 0 to 2"],
  ])("are held to their bounds below `ai` too: a %s of %j", async (key, value, sentence) => {
    const { scene } = createScene();
    for (const configurable of [
      { ai: { [key]: value }, [key]: 1 },
      { [`ai.${key}`]: value, [key]: 1 },
    ]) {
      const request = { workflowId: "prompt", inputs: {}, transport: "rest", configurable } as const;
      expect(await scene.host.create(ALICE, request)).toMatchObject({
        code: "validation_error",
        message: `configurable.ai.${key}: ${sentence}`,
      });
    }
  });

  it("count in a branch as its overlay has them", async () => {
    const { run, fork, requests } = createScene();
    const { runId } = await run("prompt");
    expect(codeOf(await fork(runId, "branch", { model: "of-overlay", maxTokens: 7 }))).toBe("done");
    expect(requests.at(-1)).toMatchObject({ model: "of-overlay", maxTokens: 7, temperature: 1 });
  });

  it.each<[title: string, source: Values, overlay: Values, request: Values]>([
    [
      "beside `ai`",
      { ai: { temperature: 0.9, model: "a" } },
      { temperature: 0 },
      { temperature: 0, model: "a" },
    ],
    [
      "with dots",
      { ai: { temperature: 0.9, model: "a" } },
      { "ai.temperature": 0 },
      { temperature: 0, model: "a" },
    ],
    [
      "nested",
      { ai: { temperature: 0.9, model: "a" } },
      { ai: { temperature: 0 } },
      { temperature: 0, model: "a" },
    ],
    [
      "over one with dots",
      { "ai.model": "a", "ai.temperature": 0.9 },
      { model: "b" },
      { model: "b", temperature: 0.9 },
    ],
    [
      "over one beside",
      { model: "a", temperature: 0.9 },
      { ai: { model: "b" } },
      { model: "b", temperature: 0.9 },
    ],
    [
      "as null",
      { ai: { temperature: 0.9 }, model: "a" },
      { temperature: null, maxTokens: null },
      { temperature: 1, model: "a" },
    ],
    [
      "as null below `ai`",
      { model: "a", maxTokens: 7 },
      { ai: { model: null } },
      { model: "of-node", maxTokens: 7 },
    ],
    ["as no options below `ai`", { ai: { model: "a" } }, { ai: null }, { model: "of-node" }],
    ["as an empty `ai`", { ai: { model: "a" } }, { ai: {} }, { model: "a" }],
  ])("count in a branch in whichever spelling its overlay has them: %s", async (_title, ...options) => {
    const [source, overlay, request] = options;
    const { run, fork, requests } = createScene();
    const { runId } = await run("prompt", source);
    const branch = valueOf(await fork(runId, "branch", overlay)).runId;
    expect(requests.at(-1)).toMatchObject(request);
    await fork(branch, "branch");
    await fork(branch, "branch", { escalationThreshold: 1 });
    expect(requests.slice(-2)).toMatchObject([request, request]);
    expect(requests).toHaveLength(4);
  });

  it.each<[source: Values, overlay: Values]>([
    [{ region: "eu", temperature: 0.5 }, { temperature: null }],
    [{ region: "eu", ai: { temperature: 0.5 } }, { ai: { temperature: null } }],
    [{ region: "eu", ai: { temperature: 0.5 } }, { ai: null }],
    [{ region: null, temperature: 0.5 }, { temperature: 0.1 }],
  ])("may be null in a branch whatever the workflow's schema says of them: %j, %j", async (...options) => {
    const [source, overlay] = options;
    const { run, fork, requests } = createScene();
    const { runId } = await run("typed", source);
    expect(requests).toMatchObject([{ temperature: 0.5 }]);
    const branch = valueOf(await fork(runId, "branch", overlay)).runId;
    expect(requests.at(-1)).toMatchObject({ temperature: overlay["temperature"] ?? 1 });
    expect(codeOf(await fork(branch, "branch", { maxTokens: 7 }))).toBe("done");
  });

  it("are held to the workflow's schema in a branch, too", async () => {
    const { run, fork } = createScene();
    const { runId } = await run("typed", { region: "eu", temperature: 0.5 });
    expect(await fork(runId, "branch", { temperature: null, region: 5 })).toMatchObject({
      code: "validation_error",
      message: expect.stringMatching(/^configurable\.region: /u) as string,
    });
  });

  it("of a source stay where its branch replaces one of them again", async () => {
    const { run, fork, requests } = createScene();
    const { runId } = await run("prompt", { ai: { temperature: 0.9, model: "a" } });
    const branch = valueOf(await fork(runId, "branch", { temperature: 0 })).runId;
    await fork(branch, "branch", { ai: { temperature: 0.5 } });
    expect(requests.at(-1)).toMatchObject({ temperature: 0.5, model: "a" });
  });

  it("are part of the recorded request, with which a replay agrees", async () => {
    const { scene, run, fork, requests } = createScene();
    const { runId } = await run("prompt", { model: "of-caller", maxTokens: 100 });
    expect(scene.payloads(runId, "coordination.model_asked")).toMatchObject([{ model: "of-caller" }]);
    const replay = valueOf(await fork(runId, "replay")).runId;
    expect(await scene.status(replay)).toBe("completed");
    expect(requests).toHaveLength(1);
  });
});

describe("the provider that a run's options name", () => {
  const here = { provider: "here", model: "m" };

  it("fails the node where the host asks another one, and nobody is asked", async () => {
    const { run, requests } = createScene(() => here);
    const message = 'the run names the model provider "elsewhere", and this host asks "here"';
    for (const workflowId of ["prompt", "boss"]) {
      const { snapshot } = await run(workflowId, { ai: { provider: "elsewhere" } });
      expect(snapshot).toMatchObject({ status: "failed", error: { code: "not_configured", message } });
    }
    expect(requests).toEqual([]);
  });

  it("is asked where it is the host's, or where the host asks several", async () => {
    const single = createScene(() => here);
    expect((await single.run("prompt", { "ai.provider": "here" })).snapshot.status).toBe("completed");
    const { request } = await createScene().run("prompt", { ai: { provider: "elsewhere", model: "of-ai" } });
    expect(request).toMatchObject({ model: "elsewhere/of-ai" });
  });

  it("goes before a model's name that has a slash, unless that begins with it", async () => {
    const { run } = createScene();
    const readModel = async (workflowId: string, ai: Values) =>
      (await run(workflowId, { ai })).request?.model;
    const vendored = { provider: "openrouter", model: "meta-llama/x" };
    expect(await readModel("prompt", vendored)).toBe("openrouter/meta-llama/x");
    expect(await readModel("prompt", { ...vendored, provider: "meta-llama" })).toBe("meta-llama/x");
    expect(await readModel("routed", { provider: "openai" })).toBe("openai/gpt-5");
    expect(await readModel("prompt", { provider: "elsewhere" })).toBe("elsewhere/of-node");
  });

  it("fails the node whose own model is another provider's, where the host asks several", async () => {
    const { run, requests } = createScene();
    const { snapshot } = await run("routed", { ai: { provider: "anthropic" } });
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "not_configured" } });
    expect(requests).toEqual([]);
    const single = createScene(() => here);
    expect((await single.run("routed", { ai: { provider: "here" } })).request?.model).toBe("openai/gpt-5");
  });

  it("is not an option of the workflow that has the same name beside `ai`", async () => {
    const { run } = createScene(() => here);
    for (const workflowId of ["prompt", "boss"])
      expect((await run(workflowId, { provider: "stripe" })).snapshot.status).toBe("completed");
    expect((await createScene().run("prompt", { provider: "stripe" })).request).toMatchObject(OF_NODE);
  });

  it("does not count where a script plays the node's model", async () => {
    const { run, requests } = createScene();
    expect((await run("played", { ai: { provider: "elsewhere" } })).snapshot.status).toBe("completed");
    expect(requests).toEqual([]);
  });

  it("fails the node where the host asks several and no model is named", async () => {
    const { run, requests } = createScene();
    const { snapshot } = await run("plain", { ai: { provider: "elsewhere" } });
    const message = "neither the run nor the node names a model of the provider that the run names";
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "not_configured", message } });
    expect(requests).toEqual([]);
  });
});

describe("options that this host cannot keep", () => {
  it.each<[option: string, configurable: Values, code: string]>([
    ["a mock provider", { mockProvider: { id: "stream-text" } }, "mock_provider_forbidden"],
    ["a mock provider without a name", { mockProvider: {} }, "mock_provider_forbidden"],
    ["overrides of prompts", { promptOverrides: { "a.system": "Be formal." } }, "capability_required"],
    ["a credential of the caller's", { ai: { credentialRef: "cred-1" } }, "capability_required"],
    ["a credential of the caller's, with dots", { "ai.credentialRef": "cred-1" }, "capability_required"],
  ])("are refused before a run begins and in a fork: %s", async (_option, configurable, code) => {
    const { scene, run, fork, requests } = createScene();
    const request = { workflowId: "prompt", inputs: {}, transport: "rest", configurable } as const;
    expect(codeOf(await scene.host.create(ALICE, request))).toBe(code);
    expect([scene.ledger.runs.size, requests]).toEqual([0, []]);
    const { runId } = await run("prompt");
    expect(codeOf(await fork(runId, "branch", configurable))).toBe(code);
    expect(requests).toHaveLength(1);
  });

  it("name the mock provider that was asked for, and that there is none", async () => {
    const { scene } = createScene();
    const configurable = { mockProvider: { id: "stream-text" } };
    const request = { workflowId: "prompt", inputs: {}, transport: "rest", configurable } as const;
    expect(await scene.host.create(ALICE, request)).toMatchObject({
      details: { requestedProvider: "stream-text", supportedProviders: [] },
    });
  });

  it.each<[option: string, code: string]>([
    ["mockProvider", "mock_provider_forbidden"],
    ["promptOverrides", "capability_required"],
    ["ai.credentialRef", "capability_required"],
  ])(
    "are refused in every branch of a run that was begun with them, until an overlay sets them to null: %s",
    async (option, code) => {
      const { scene, run, fork } = createScene(undefined, { before: createOptionRecorder(option) });
      const { runId } = await run("prompt");
      expect(scene.payloads(runId, "run.started")).toMatchObject([
        { configurable: createUnkeptOption(option) },
      ]);
      expect(codeOf(await fork(runId, "branch"))).toBe(code);
      const refused = await fork(runId, "branch", { temperature: 0 });
      expect(refused).toMatchObject({ code, message: expect.stringContaining("null") as string });
      expect(codeOf(await fork(runId, "branch", { [option]: null }))).toBe("done");
      expect(codeOf(await fork(runId, "replay"))).toBe("done");
    },
  );

  it("are not an empty list of overrides", async () => {
    const { run } = createScene();
    expect((await run("prompt", { promptOverrides: {} })).snapshot.status).toBe("completed");
  });
});
