/** Owns: a host whose model is scripted by what it is asked, and workflows that ask it. */
import { expect } from "vitest";
import { startModelServer, type ModelServer, type ScriptedAnswer } from "./levels-model-server.ts";
import {
  end,
  createLoop,
  createNode,
  createNoop,
  pause,
  work,
  createWorkflow,
  WORKERS,
} from "./levels-workflows.ts";
import { openWorld, type EndedRun, type Event, type World } from "./levels-world.ts";

const VALID = { type: "object", required: ["valid"], properties: { valid: { type: "boolean" } } };
export const WORD = {
  type: "object",
  required: ["word"],
  properties: { word: { type: "string", maxLength: 8 } },
};

const createMocked = (id: string, config: object = {}) =>
  createNode(id, "core.ai.structuredOutput", {
    config: { provider: "mock", outputSchema: VALID, ...config },
  });
const createAsking = (prompt: string, config: object = {}) =>
  createNode("ask", "core.ai.structuredOutput", { config: { prompt, outputSchema: WORD, ...config } });
const createSaying = (prompt: string) => createNode("ask", "core.ai.callPrompt", { config: { prompt } });
const createBoss = (prompt: string, id: string) =>
  createLoop(id, { plan: [], supervisor: { mockDispatchPlan: undefined, prompt, workers: ["worker-good"] } });
const createHeld = (id: string) =>
  createNode(id, "core.conformance.hold", {
    inputs: { delayMs: { type: "variable", variableName: "delayMs" } },
  });

export const SECRET = "what-nobody-may-read";
const TEN_MEGABYTES = "x".repeat(10_000_000);

/** The model's answer, by its request. */
const SAYINGS: Readonly<Record<string, ScriptedAnswer>> = {
  word: { content: '{"word":"gold"}' },
  fenced: { content: 'Sure:\n```json\n{"word":"gold"}\n```' },
  nothing: { content: "" },
  none: { content: null },
  "no body": { body: "" },
  "hangs up": { hangsUp: true },
  "no json": { content: `I would say ${SECRET}` },
  "half json": { content: '{"word":"go', finish: "length" },
  "broken body": { body: '{"choices":[{"mess' },
  "not of the schema": { content: `{"word":"${SECRET}"}` },
  huge: { content: TEN_MEGABYTES },
  "quite large": { content: "y".repeat(1_500_000) },
  refusal: { content: null, refusal: SECRET },
  "content filter": { content: SECRET, finish: "content_filter" },
};

const LIVE = Object.keys(SAYINGS).map((prompt) => [prompt, prompt.replaceAll(" ", "-")] as const);

export const MODEL_WORKFLOWS = [
  ...WORKERS,
  createWorkflow("mocked", { nodes: [createNoop("before"), createMocked("call")] }),
  createWorkflow("mocked-again", { nodes: [createMocked("call")], settings: { maxRetries: 2 } }),
  createWorkflow("mocked-prompt", {
    nodes: [createNode("call", "core.ai.callPrompt", { config: { provider: "mock" } })],
  }),
  createWorkflow("conformance-mocked", { nodes: [createMocked("call")] }),
  createWorkflow("causes", {
    nodes: [createHeld("wait"), createNode("effect", "core.conformance.side-effect")],
    variables: { delayMs: 1 },
  }),
  createWorkflow("words", {
    nodes: [createNoop("a"), createNode("b", "core.identity")],
    variables: { word: "gold", apiKey: "" },
  }),
  createWorkflow("slow", { nodes: [createNoop("a"), pause("wait", 60_000)] }),
  createLoop("hands-over", { plan: [work(["worker-good"]), end()] }),
  createWorkflow("instructed", {
    nodes: [
      createAsking("word", {
        systemPrompt: "Say one word.",
        temperature: 0.5,
        maxTokens: 99,
        model: "model-a",
      }),
    ],
  }),
  createWorkflow("retried", { nodes: [createSaying("refusal")], settings: { maxRetries: 3 } }),
  ...LIVE.map(([prompt, id]) => createWorkflow(`structured-${id}`, { nodes: [createAsking(prompt)] })),
  ...LIVE.map(([prompt, id]) => createWorkflow(`prompted-${id}`, { nodes: [createSaying(prompt)] })),
  ...LIVE.map(([prompt, id]) => createBoss(prompt, `supervised-${id}`)),
  createBoss("plan", "supervised-plan"),
];

export interface ModelWorld extends World {
  readonly model: ModelServer;
}

export async function openModelWorld(): Promise<ModelWorld> {
  const model = await startModelServer((prompt) => SAYINGS[prompt] ?? scriptSupervisor(model, prompt));
  const world = await openWorld(MODEL_WORKFLOWS, {
    model: { baseUrl: model.baseUrl, model: "model-default" },
    privateOrigins: [model.origin],
  });
  return {
    ...world,
    model,
    close: async () => {
      await world.close();
      await model.close();
    },
  };
}

/** A supervisor's instructions are in its system message; what it is asked is how the run stands. */
function scriptSupervisor({ askedBodies }: ModelServer, situation: string): ScriptedAnswer {
  const { content = "" } = askedBodies.at(-1)?.messages[0] ?? {};
  const [instruction = ""] = content.split("\n");
  return instruction === "plan" ? scriptDecision(situation) : (SAYINGS[instruction] ?? {});
}

/** One worker, and the end. */
function scriptDecision(situation: string): ScriptedAnswer {
  const { turn } = JSON.parse(situation) as { readonly turn: number };
  return { content: JSON.stringify(turn === 1 ? work(["worker-good"]) : end()) };
}

export const SEAMS = "/v1/host/sample/test";
export const VALID_ANSWER = { content: '{"valid":true}', stopReason: "end_turn" };
export const REFUSAL = { content: SECRET, stopReason: "safety", refusalText: SECRET };

export async function programModel(
  { client }: World,
  nodeId: string,
  ...answers: readonly object[]
): Promise<void> {
  const reply = await client.post(`${SEAMS}/mock-ai/program`, { nodeId, program: answers });
  expect(reply.status).toBe(200);
}

export async function forkToEnd({ client }: World, source: string, body: object = {}): Promise<EndedRun> {
  const reply = await client.post(`/v1/runs/${source}:fork`, { fromSeq: 0, mode: "replay", ...body });
  expect([reply.status, reply.body]).toMatchObject([201, { sourceRunId: source }]);
  const runId = String(reply.body["runId"]);
  const snapshot = await client.until(runId, "completed", "failed", "cancelled");
  return { runId, snapshot, events: await client.events(runId) };
}

/** Without what is another one in every run (RFC 0041, section C). */
export function stripVolatile(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(stripVolatile);
  if (typeof value !== "object" || value === null) return value;
  const volatile = ["eventId", "runId", "observedAt", "timestamp", "occurredAt", "emittedAt", "id"];
  const kept = Object.entries(value).filter(([name]) => !volatile.includes(name));
  return Object.fromEntries(kept.map(([name, member]) => [name, stripVolatile(member)]));
}

export const endOf = (events: readonly Event[], nodeId: string): Event | undefined =>
  events.findLast((event) => event.nodeId === nodeId && /^node\.(completed|failed)$/u.test(event.type));
