import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { CoordinationId, EventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  askAgain,
  type AskAgainParts,
} from "../../src/agents/coordination/runtime/workflow-host/models/ask-again.ts";
import {
  createMockModel,
  type MockAnswer,
} from "../../src/agents/coordination/runtime/workflow-host/records/mock-model.ts";
import { modelAskedOf } from "../../src/agents/coordination/runtime/workflow-host/models/model-request.ts";
import { envelopeOf, findRecordedEnvelope } from "../../src/agents/coordination/workflow/envelope-kind.ts";
import { foldWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { compileWorkflow } from "../../src/agents/coordination/workflow/state/graph.ts";
import type { ModelAsk } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";
import { node, workflow } from "../support/workflow-definitions.ts";

const SOURCE = "run-source" as CoordinationId;
const FORK = "run-fork" as CoordinationId;
const sha256 = (text: string): string => hash("sha256", text);

type Draft = {
  [T in WorkflowEvent["type"]]: Omit<
    Extract<WorkflowEvent, { type: T }>,
    "eventId" | "runId" | "sequence" | "timestamp"
  >;
}[WorkflowEvent["type"]];

function eventAt(runId: CoordinationId, sequence: number, draft: Draft): WorkflowEvent {
  const eventId = `${runId}:${sequence}` as EventId;
  return { eventId, runId, sequence, timestamp: "2026-01-01T00:00:00.000Z", ...draft };
}

const compiled = compileWorkflow(
  workflow("w", {
    nodes: [
      node("call", "core.ai.callPrompt", { provider: "mock" }),
      node("boss", "core.orchestrator.supervisor", { prompt: "Plan." }),
    ],
  }),
  "0".repeat(64),
);
const graph = compiled.ok ? compiled.graph : expect.fail("the workflow is right");

/** A fork whose node `call` waits for its model. */
const known = (() => {
  const run = foldWorkflow([
    eventAt(FORK, 0, {
      type: "run.started",
      payload: {
        workflowId: "w",
        inputs: {},
        transport: "rest",
        definition: "0".repeat(64),
        memoryScope: "s",
        owner: { tenant: "t", principal: "p" },
      },
    }),
    eventAt(FORK, 1, {
      type: "node.started",
      nodeId: "call",
      payload: { nodeId: "call", typeId: "core.ai.callPrompt", attempt: 0 },
    }),
  ]);
  return { run: run ?? expect.fail("it has begun"), graph };
})();

const REQUEST: ModelAsk = { provider: "mock", messages: [{ role: "user", content: "?" }], maxTokens: 10 };
const completed: Draft = { type: "node.completed", nodeId: "call", payload: { nodeId: "call", outputs: {} } };
const failed = (code: string): Draft => ({
  type: "node.failed",
  nodeId: "call",
  payload: { nodeId: "call", error: { code, message: "why" } },
});
const refusal: Draft = {
  type: "envelope.refusal",
  nodeId: "call",
  payload: { nodeId: "call", provider: "mock", model: "mock" },
};
const askedFor = (request: ModelAsk): Draft => {
  const model = { provider: "mock", model: request.model ?? "mock" };
  const asked = modelAskedOf({ sha256 }, request, model) ?? expect.fail("it has a key");
  const payload = { nodeId: "call", ...model, requestDigest: asked.digest };
  return { type: "coordination.model_asked", nodeId: "call", payload };
};

interface Play {
  readonly request?: ModelAsk;
  readonly nodeId?: string;
  /** What the model says now; absent: nobody may ask it. */
  readonly says?: MockAnswer;
  readonly replayReinvokesModels?: boolean;
}

async function play(
  drafts: readonly Draft[],
  { request = REQUEST, nodeId = "call", says, ...settings }: Play = {},
) {
  const recorded = drafts.map((draft, index) => eventAt(SOURCE, index + 2, draft));
  const mock = createMockModel();
  if (says) mock.program("t", nodeId, [says]);
  const asked: string[] = [];
  const parts: AskAgainParts = {
    sha256,
    settings,
    contract: () => Promise.resolve(createAjvOutputContract()),
    chat: () => Promise.reject(new Error("no live model is asked")),
    mockModel: {
      answer: (at, given) => {
        asked.push(at.nodeId);
        return mock.answer(at, given);
      },
    },
  };
  const effect = { kind: "ask_model", id: `${nodeId}:1:ask`, nodeId, request } as const;
  const call = { effect, recorded, sourceRunId: SOURCE };
  const told = await askAgain(parts, known, call, new AbortController().signal);
  return {
    told: told.map(({ type, payload }) => ({ type, payload })),
    asked,
  };
}

const REFUSES: MockAnswer = { refusalText: "no" };
const SAYS: MockAnswer = { content: "yes" };

describe("a replay that asks a model again", () => {
  test.each([
    ["answers as it did", [askedFor(REQUEST), completed], SAYS],
    ["refuses as it did", [askedFor(REQUEST), refusal, failed("envelope_refused_by_provider")], REFUSES],
    ["refuses as it did before refusals had an event", [failed("envelope_refused_by_provider")], REFUSES],
  ])("goes on where the model %s", async (_what, recorded, says) => {
    expect(await play(recorded, { says })).toEqual({ told: [], asked: ["call"] });
  });

  test.each([
    ["refuses what it answered", [completed], REFUSES, ["valid", "refusal"], `${SOURCE}:2`],
    ["answers what it refused", [askedFor(REQUEST), refusal], SAYS, ["refusal", "valid"], `${SOURCE}:3`],
  ])("ends where the model %s, with both kinds and the place, and no word of it", async (...given) => {
    const [, recorded, says, [originalEnvelopeKind, replayEnvelopeKind], originalEventId] = given;
    const { told } = await play(recorded, { says });
    expect(told.map(({ type }) => type)).toEqual(["replay.divergedAtRefusal", "node.failed", "run.failed"]);
    expect(told[0]?.payload).toEqual({
      sourceRunId: SOURCE,
      nodeId: "call",
      originalEnvelopeKind,
      replayEnvelopeKind,
      originalEventId,
      atSequence: Number(originalEventId.split(":")[1]),
    });
    expect(told[2]?.payload).toMatchObject({
      error: { code: "replay_diverged_at_refusal" },
      failedNodeId: "call",
    });
    expect(JSON.stringify(told)).not.toMatch(/"(no|yes)"/);
  });

  test("ends where it would ask something else, without asking it", async () => {
    const other: ModelAsk = { ...REQUEST, messages: [{ role: "user", content: "!" }] };
    const { told, asked } = await play([askedFor(other), completed], { says: SAYS });
    expect(told.map(({ type }) => type)).toEqual(["replay.diverged", "node.failed", "run.failed"]);
    expect(told[0]?.payload).toMatchObject({
      sourceRunId: SOURCE,
      atSequence: 2,
      originalEventId: `${SOURCE}:2`,
    });
    expect(told[2]?.payload).toMatchObject({ error: { code: "replay_diverged" } });
    expect(asked).toEqual([]);
  });

  test("takes the recorded outcome of a request that names no model, whichever answers by now", async () => {
    const { provider: _, ...live } = REQUEST;
    const asked = modelAskedOf({ sha256 }, live, { provider: "host-of-then", model: "model-of-then" });
    const payload = { nodeId: "call", provider: "host-of-then", model: "model-of-then" };
    const told = { ...payload, requestDigest: asked?.digest ?? "" };
    const recorded: Draft[] = [
      { type: "coordination.model_asked", nodeId: "call", payload: told },
      completed,
    ];
    expect(await play(recorded, { request: live })).toEqual({ told: [], asked: [] });
  });

  test("does not ask where the record tells of neither an answer nor a refusal, nor for another node's", async () => {
    for (const recorded of [[failed("unreachable")], [failed("structured_output_invalid")], []])
      expect((await play(recorded, { says: REFUSES })).asked).toEqual([]);
    const elsewhere: Draft = { type: "node.completed", nodeId: "other", payload: { nodeId: "other" } };
    expect((await play([elsewhere], { says: REFUSES })).asked).toEqual([]);
  });

  test("asks neither a live model unless it is to, nor ever a supervisor's", async () => {
    const { provider: _, ...live } = REQUEST;
    expect(await play([completed], { request: live })).toEqual({ told: [], asked: [] });
    await expect(play([completed], { request: live, replayReinvokesModels: true })).rejects.toThrow("live");
    const decided = [{ ...completed, nodeId: "boss" }];
    expect(
      (await play(decided, { nodeId: "boss", replayReinvokesModels: true, says: REFUSES })).asked,
    ).toEqual([]);
  });
});

describe("an outcome", () => {
  const told = { text: "{}", model: "m", usage: {} };

  test("is an answer, a refusal or neither", () => {
    expect(envelopeOf({ kind: "model_answered", ...told })).toBe("valid");
    expect(envelopeOf({ kind: "model_refused", model: "m", usage: {} })).toBe("refusal");
    expect(envelopeOf({ kind: "model_answered", ...told, problems: ["(root): no"] })).toBeUndefined();
    expect(envelopeOf({ kind: "failed", error: { code: "unreachable", message: "no" } })).toBeUndefined();
  });

  test("is that of the first end of its own node", () => {
    const events = [askedFor(REQUEST), { ...failed("x"), nodeId: "other" } as Draft, refusal, completed];
    const recorded = events.map((draft, index) => eventAt(SOURCE, index, draft));
    expect(findRecordedEnvelope("call", recorded)).toMatchObject({ kind: "refusal", event: { sequence: 2 } });
    expect(findRecordedEnvelope("call", [])).toBeUndefined();
  });
});
