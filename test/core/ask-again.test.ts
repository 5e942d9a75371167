import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { CoordinationId, EventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  checkRecordedModelCall,
  type AskAgainDependencies,
} from "../../src/agents/coordination/runtime/workflow-host/models/ask-again.ts";
import type { ChatModel, ChatRequest } from "../../src/agents/coordination/ports/outbound.ts";
import type { ProgrammedAnswer } from "../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { hashModelRequest } from "../../src/agents/coordination/runtime/workflow-host/models/model-request.ts";
import {
  classifyEnvelope,
  findRecordedEnvelope,
} from "../../src/agents/coordination/workflow/envelope-kind.ts";
import { foldWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { compileWorkflow } from "../../src/agents/coordination/workflow/state/graph.ts";
import type { ModelAsk } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { createConformancePlay } from "../../src/plugins/openwop/conformance/create-conformance-play.ts";
import { createMockModel } from "../../src/plugins/openwop/conformance/mock-model.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { SAID } from "../support/workflow-scene.ts";

const SOURCE = "run-source" as CoordinationId;
const FORK = "run-fork" as CoordinationId;
const hashText = (text: string): string => hash("sha256", text);

type Draft = {
  [T in WorkflowEvent["type"]]: Omit<
    Extract<WorkflowEvent, { type: T }>,
    "eventId" | "runId" | "sequence" | "timestamp"
  >;
}[WorkflowEvent["type"]];

function createEventAt(runId: CoordinationId, sequence: number, draft: Draft): WorkflowEvent {
  const eventId = `${runId}:${sequence}` as EventId;
  return { eventId, runId, sequence, timestamp: "2026-01-01T00:00:00.000Z", ...draft };
}

const compiled = compileWorkflow(
  createWorkflow("w", {
    nodes: [
      createNode("call", "core.ai.callPrompt", { provider: "mock", model: "of-node", maxTokens: 20 }),
      createNode("boss", "core.orchestrator.supervisor", { prompt: "Plan." }),
    ],
  }),
  "0".repeat(64),
);
const graph = compiled.ok ? compiled.graph : expect.fail("the workflow is right");

/** A fork whose node `call` waits for its model. */
function createWaitingRun(configurable?: Readonly<Record<string, unknown>>) {
  const run = foldWorkflow([
    createEventAt(FORK, 0, {
      type: "run.started",
      payload: {
        workflowId: "w",
        inputs: {},
        transport: "rest",
        definition: "0".repeat(64),
        memoryScope: "s",
        ...(configurable && { configurable }),
        owner: { tenant: "t", principal: "p" },
      },
    }),
    createEventAt(FORK, 1, {
      type: "node.started",
      nodeId: "call",
      payload: { nodeId: "call", typeId: "core.ai.callPrompt", attempt: 0 },
    }),
  ]);
  return { run: run ?? expect.fail("it has begun"), graph };
}

const REQUEST: ModelAsk = { isPlayed: true, messages: [{ role: "user", content: "?" }], maxTokens: 10 };
const completed: Draft = { type: "node.completed", nodeId: "call", payload: { nodeId: "call", outputs: {} } };
const createNodeFailed = (code: string): Draft => ({
  type: "node.failed",
  nodeId: "call",
  payload: { nodeId: "call", error: { code, message: "why" } },
});
const refusal: Draft = {
  type: "envelope.refusal",
  nodeId: "call",
  payload: { nodeId: "call", provider: "mock", model: "mock" },
};
const createModelAsked = (request: ModelAsk, provider = "mock"): Draft => {
  const model = { provider, model: request.model ?? "mock" };
  const modelAsked = hashModelRequest({ sha256: hashText }, request, model) ?? expect.fail("it has a key");
  const payload = { nodeId: "call", ...model, requestDigest: modelAsked.digest };
  return { type: "coordination.model_asked", nodeId: "call", payload };
};

interface Play {
  readonly request?: ModelAsk;
  readonly nodeId?: string;
  /** The model's answer now; absent: nobody may ask it. */
  readonly says?: ProgrammedAnswer;
  readonly replayReinvokesModels?: boolean;
  /** The options of the run. */
  readonly configurable?: Readonly<Record<string, unknown>>;
  /** The live model; absent: none may be asked. */
  readonly chat?: ChatModel;
}

async function playAsk(
  drafts: readonly Draft[],
  { request = REQUEST, nodeId = "call", says, configurable, chat, ...settings }: Play = {},
) {
  const recorded = drafts.map((draft, index) => createEventAt(SOURCE, index + 2, draft));
  const mock = createMockModel();
  if (says) mock.program("t", nodeId, [says]);
  const requests: string[] = [];
  const dependencies: AskAgainDependencies = {
    sha256: hashText,
    settings,
    contract: () => Promise.resolve(createAjvOutputContract()),
    chat: () => (chat ? Promise.resolve(chat) : Promise.reject(new Error("no live model is asked"))),
    conformance: {
      ...createConformancePlay(),
      modelOf: (node) => {
        const model = mock.modelOf(node);
        return {
          ...model,
          complete: (request) => {
            requests.push(node.nodeId);
            return model.complete(request);
          },
        };
      },
    },
  };
  const effect = { kind: "ask_model", id: `${nodeId}:1:ask`, nodeId, request } as const;
  const call = { effect, recorded, sourceRunId: SOURCE };
  const { signal } = new AbortController();
  const replayDrafts = await checkRecordedModelCall(
    dependencies,
    createWaitingRun(configurable),
    call,
    signal,
  );
  return {
    drafts: replayDrafts.map(({ type, payload }) => ({ type, payload })),
    requests: requests,
  };
}

const REFUSES: ProgrammedAnswer = { refusalText: "no" };
const SAYS: ProgrammedAnswer = { content: "yes" };

describe("a replay that asks a model again", () => {
  test.each([
    ["answers as it did", [createModelAsked(REQUEST), completed], SAYS],
    [
      "refuses as it did",
      [createModelAsked(REQUEST), refusal, createNodeFailed("envelope_refused_by_provider")],
      REFUSES,
    ],
    [
      "refuses as it did before refusals had an event",
      [createNodeFailed("envelope_refused_by_provider")],
      REFUSES,
    ],
  ])("goes on where the model %s", async (_what, recorded, says) => {
    expect(await playAsk(recorded, { says })).toEqual({ drafts: [], requests: ["call"] });
  });

  test.each([
    ["refuses what it answered", [completed], REFUSES, ["valid", "refusal"], `${SOURCE}:2`],
    [
      "answers what it refused",
      [createModelAsked(REQUEST), refusal],
      SAYS,
      ["refusal", "valid"],
      `${SOURCE}:3`,
    ],
  ])("ends where the model %s, with both kinds and the place, and no word of it", async (...args) => {
    const [, recorded, says, [originalEnvelopeKind, replayEnvelopeKind], originalEventId] = args;
    const { drafts } = await playAsk(recorded, { says });
    expect(drafts.map(({ type }) => type)).toEqual(["replay.divergedAtRefusal", "node.failed", "run.failed"]);
    expect(drafts[0]?.payload).toEqual({
      sourceRunId: SOURCE,
      nodeId: "call",
      originalEnvelopeKind,
      replayEnvelopeKind,
      originalEventId,
      atSequence: Number(originalEventId.split(":")[1]),
    });
    expect(drafts[2]?.payload).toMatchObject({
      error: { code: "replay_diverged_at_refusal" },
      failedNodeId: "call",
    });
    expect(JSON.stringify(drafts)).not.toMatch(/"(no|yes)"/);
  });

  test("ends where it would ask something else, without asking it", async () => {
    const other: ModelAsk = { ...REQUEST, messages: [{ role: "user", content: "!" }] };
    const { drafts, requests } = await playAsk([createModelAsked(other), completed], {
      says: SAYS,
    });
    expect(drafts.map(({ type }) => type)).toEqual(["replay.diverged", "node.failed", "run.failed"]);
    expect(drafts[0]?.payload).toMatchObject({
      sourceRunId: SOURCE,
      atSequence: 2,
      originalEventId: `${SOURCE}:2`,
    });
    expect(drafts[2]?.payload).toMatchObject({ error: { code: "replay_diverged" } });
    expect(requests).toEqual([]);
  });

  test("takes a request of earlier releases, in which the node's configuration went before the run's options", async () => {
    const { isPlayed: _, ...live } = REQUEST;
    const configurable = { model: "of-caller", temperature: 0, maxTokens: 10 };
    const request = { ...live, ...configurable };
    const earlier = { ...live, model: "of-node", temperature: 0, maxTokens: 20 };
    const play = { request, configurable };
    expect(await playAsk([createModelAsked(earlier), completed], play)).toEqual({ drafts: [], requests: [] });
    const other = { ...earlier, temperature: 1 };
    const { drafts } = await playAsk([createModelAsked(other), completed], play);
    expect(drafts.map(({ type }) => type)).toEqual(["replay.diverged", "node.failed", "run.failed"]);
  });

  test("asks a live model again as the earlier release asked it", async () => {
    const { isPlayed: _, ...live } = REQUEST;
    const configurable = { model: "of-caller", temperature: 0, ai: { provider: "p" } };
    const request = {
      ...live,
      model: "of-caller",
      provider: "p",
      routedModel: "p/of-caller",
      temperature: 0,
    };
    const earlier = { ...live, model: "of-node", temperature: 0, maxTokens: 20 };
    const requests: ChatRequest[] = [];
    const chat: ChatModel = {
      complete: (chatRequest) => {
        requests.push(chatRequest);
        return Promise.resolve(SAID);
      },
    };
    const play = { request, configurable, chat, replayReinvokesModels: true };
    expect((await playAsk([createModelAsked(earlier), completed], play)).drafts).toEqual([]);
    expect((await playAsk([createModelAsked(request), completed], play)).drafts).toEqual([]);
    expect(requests).toMatchObject([
      { model: "of-node", temperature: 0, maxTokens: 20 },
      { model: "p/of-caller", temperature: 0, maxTokens: 10 },
    ]);
  });

  test.each([
    ["the earlier release asked, which ignored the option", "host", "of-node"],
    ["the run names, where that one was asked", "p", "p/of-node"],
  ])("asks the provider that %s", async (_, provider, model) => {
    const { isPlayed: _isPlayed, ...live } = REQUEST;
    const earlier = { ...live, model: "of-node", maxTokens: 20 };
    const request = { ...earlier, provider: "p", routedModel: "p/of-node" };
    const requests: ChatRequest[] = [];
    const chat: ChatModel = {
      complete: (chatRequest) => {
        requests.push(chatRequest);
        return Promise.resolve(SAID);
      },
    };
    const play = { request, configurable: { ai: { provider: "p" } }, chat, replayReinvokesModels: true };
    expect((await playAsk([createModelAsked(earlier, provider), completed], play)).drafts).toEqual([]);
    expect(requests).toMatchObject([{ model }]);
  });

  test("takes the recorded outcome of a request that names no model, whichever answers by now", async () => {
    const { isPlayed: _, ...live } = REQUEST;
    const modelAsked = hashModelRequest({ sha256: hashText }, live, {
      provider: "host-of-then",
      model: "model-of-then",
    });
    const payload = { nodeId: "call", provider: "host-of-then", model: "model-of-then" };
    const report = { ...payload, requestDigest: modelAsked?.digest ?? "" };
    const recorded: Draft[] = [
      { type: "coordination.model_asked", nodeId: "call", payload: report },
      completed,
    ];
    expect(await playAsk(recorded, { request: live })).toEqual({ drafts: [], requests: [] });
  });

  test("does not ask where the record tells of neither an answer nor a refusal, nor for another node's", async () => {
    for (const recorded of [
      [createNodeFailed("unreachable")],
      [createNodeFailed("structured_output_invalid")],
      [],
    ])
      expect((await playAsk(recorded, { says: REFUSES })).requests).toEqual([]);
    const elsewhere: Draft = { type: "node.completed", nodeId: "other", payload: { nodeId: "other" } };
    expect((await playAsk([elsewhere], { says: REFUSES })).requests).toEqual([]);
  });

  test("asks neither a live model unless it is to, nor ever a supervisor's", async () => {
    const { isPlayed: _, ...live } = REQUEST;
    expect(await playAsk([completed], { request: live })).toEqual({ drafts: [], requests: [] });
    await expect(playAsk([completed], { request: live, replayReinvokesModels: true })).rejects.toThrow(
      "live",
    );
    const decided = [{ ...completed, nodeId: "boss" }];
    expect(
      (await playAsk(decided, { nodeId: "boss", replayReinvokesModels: true, says: REFUSES })).requests,
    ).toEqual([]);
  });
});

describe("an outcome", () => {
  const report = { text: "{}", model: "m", usage: {} };

  test("is an answer, a refusal or neither", () => {
    expect(classifyEnvelope({ kind: "model_answered", ...report })).toBe("valid");
    expect(classifyEnvelope({ kind: "model_refused", model: "m", usage: {} })).toBe("refusal");
    expect(classifyEnvelope({ kind: "model_answered", ...report, problems: ["(root): no"] })).toBeUndefined();
    expect(
      classifyEnvelope({ kind: "failed", error: { code: "unreachable", message: "no" } }),
    ).toBeUndefined();
  });

  test("is that of the first end of its own node", () => {
    const events = [
      createModelAsked(REQUEST),
      { ...createNodeFailed("x"), nodeId: "other" } as Draft,
      refusal,
      completed,
    ];
    const recorded = events.map((draft, index) => createEventAt(SOURCE, index, draft));
    expect(findRecordedEnvelope("call", recorded)).toMatchObject({ kind: "refusal", event: { sequence: 2 } });
    expect(findRecordedEnvelope("call", [])).toBeUndefined();
  });
});
