/**
 * Owns: what the protocol asks of nodes that ask a model (RFC 0041 A, 0150, 0212), of the mock one, and how a run ends whatever a
 * model says, in real runs over HTTP.
 */
import { hash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatCanonicalJson } from "../../src/agents/coordination/std/canonical-json.ts";
import {
  endOf,
  MODEL_WORKFLOWS,
  openModelWorld,
  programModel,
  REFUSAL,
  SEAMS,
  SECRET,
  VALID_ANSWER,
  WORD,
  type ModelWorld,
} from "./levels-model-world.ts";
import { clientOf, filterByType, findOnly, openWorld } from "./levels-world.ts";

let world: ModelWorld;
beforeAll(async () => {
  world = await openModelWorld();
});
afterAll(() => world.close());

describe("the key of a request to a model", () => {
  const postKey = (body: object) => world.client.post(`${SEAMS}/llm-cache-key`, body);
  const request = { provider: "openai", model: "gpt-4", messages: [{ role: "user", content: "hi" }] };

  it("L4-60 is the sha256 of the request's canonical text, and that of every other host", async () => {
    const { status, body } = await postKey(request);
    expect([status, body["cacheKey"]]).toEqual([
      200,
      "69343d2be2121991a9f7499b8444ac19f7a979f4857838e5d30676de04a0cc00",
    ]);
    const more = {
      ...request,
      messages: [{ content: "cross-host parity probe", role: "user" }],
      temperature: 0.3,
      seed: 7,
    };
    expect((await postKey(more)).body["cacheKey"]).toBe(
      "4fa1460e5ac21cb1c99a60d55c4fa321558e518f34c975380f60623baa4382ce",
    );
  });

  it("L4-61 depends on what changes an answer, and on nothing else", async () => {
    const plain = (await postKey(request)).body["cacheKey"];
    const transport = { stream: true, metadata: { a: 1 }, user: "u", "x-request-id": "1", traceparent: "t" };
    const same = { ...request, ...transport, tenantId: "t", timeoutMs: 3, runId: "run_123" };
    expect((await postKey(same)).body["cacheKey"]).toBe(plain);
    for (const more of [
      { temperature: 0 },
      { seed: 1 },
      { stop: ["x"] },
      { maxOutputTokens: 5 },
      { topP: 1 },
    ])
      expect((await postKey({ ...request, ...more })).body["cacheKey"], JSON.stringify(more)).not.toBe(plain);
  });

  it("L4-62 is told to nobody without a token, and of nothing that is no request", async () => {
    const bare = await fetch(`${world.baseUrl}${SEAMS}/llm-cache-key`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(request),
    });
    expect(bare.status).toBe(404);
    for (const body of [{}, { ...request, model: 1 }, { ...request, messages: "hi" }])
      expect(await postKey(body)).toMatchObject({ status: 400, body: { error: "invalid_argument" } });
  });

  it("L4-63 of what a node really asks is in the log of its run, ahead of the answer, with no text of either", async () => {
    const { events } = await world.client.run("instructed");
    const sent = world.model.askedBodies.findLast(({ model: name }) => name === "model-a");
    const digest = hash(
      "sha256",
      formatCanonicalJson({
        recipe: "openwop-semantic-request-v2",
        provider: new URL(world.model.origin).host,
        model: sent?.model,
        request: {
          messages: sent?.messages,
          temperature: sent?.temperature,
          maxOutputTokens: sent?.max_tokens,
          responseFormat: { type: "json_schema", schema: WORD },
        },
      }),
    );
    const askedEvent = findOnly(events, "coordination.model_asked");
    expect(askedEvent.payload).toEqual({
      nodeId: "ask",
      provider: new URL(world.model.origin).host,
      model: "model-a",
      requestDigest: digest,
    });
    expect(findOnly(events, "provider.usage").payload).toMatchObject({ inputTokens: 11, outputTokens: 7 });
    expect(askedEvent.sequence).toBeLessThan(endOf(events, "ask")?.sequence ?? 0);
    expect(sent?.messages[0]).toEqual({ role: "system", content: "Say one word." });
  });

  it("L4-64 is there for the supervisor's turns too, one for each", async () => {
    const { snapshot, events } = await world.client.run("supervised-plan");
    expect(snapshot.status).toBe("completed");
    const modelEvents = filterByType(
      events,
      "coordination.model_asked",
      "provider.usage",
      "runOrchestrator.decided",
    );
    expect(modelEvents.map(({ type }) => type)).toEqual([
      ...["coordination.model_asked", "provider.usage", "runOrchestrator.decided"],
      ...["coordination.model_asked", "provider.usage", "runOrchestrator.decided"],
    ]);
    const digests = filterByType(modelEvents, "coordination.model_asked").map(
      ({ payload }) => payload["requestDigest"],
    );
    expect(new Set(digests).size).toBe(2);
  });
});

describe("the mock model", () => {
  it("L4-65 says what was written for the node, call by call, then what its schema takes", async () => {
    await programModel(world, "call", { content: '{"valid":false}' }, VALID_ANSWER);
    const results = [];
    for (let run = 0; run < 3; run += 1) {
      const { events } = await world.client.run("mocked");
      results.push(endOf(events, "call")?.payload["outputs"]);
    }
    expect(results).toEqual([
      { result: { valid: false } },
      { result: { valid: true } },
      { result: { valid: true } },
    ]);
    await programModel(world, "call", { content: "said" });
    expect(endOf((await world.client.run("mocked-prompt")).events, "call")?.payload["outputs"]).toEqual({
      text: "said",
    });
  });

  it("L4-66 is the tenant's own, and forgets with the reset", async () => {
    await programModel(world, "call", { content: '{"valid":false}' });
    const other = await world.other.run("mocked");
    expect(endOf(other.events, "call")?.payload["outputs"]).toEqual({ result: { valid: true } });
    await world.other.post(`${SEAMS}/reset`);
    await programModel(world, "call", { content: '{"valid":false}' });
    await world.client.post(`${SEAMS}/reset`);
    const { events } = await world.client.run("mocked");
    expect(endOf(events, "call")?.payload["outputs"]).toEqual({ result: { valid: true } });
  });

  it("L4-67 refuses where it is told to: the run fails by that, once, and shows nothing of the refusal", async () => {
    await programModel(world, "call", REFUSAL, VALID_ANSWER);
    const { snapshot, events } = await world.client.run("mocked-again");
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "envelope_refused_by_provider" } });
    expect(findOnly(events, "envelope.refusal").payload).toEqual({
      nodeId: "call",
      provider: "mock",
      model: "mock",
    });
    expect(filterByType(events, "node.retried")).toEqual([]);
    expect(JSON.stringify([snapshot, events])).not.toContain(SECRET);
    await world.client.post(`${SEAMS}/reset`);
  });

  it("L4-68 answers in both forms of the protocol's pages", async () => {
    await programModel(world, "call", { mode: "envelope", envelope: { valid: false } }, { mode: "refusal" });
    expect(endOf((await world.client.run("mocked")).events, "call")?.payload["outputs"]).toEqual({
      result: { valid: false },
    });
    expect((await world.client.run("mocked")).snapshot.error?.code).toBe("envelope_refused_by_provider");
  });

  it("L4-69 is there only where mocks are: elsewhere a workflow with one is refused", async () => {
    const plain = await openWorld(MODEL_WORKFLOWS, { testSeams: false });
    try {
      const client = clientOf(plain.baseUrl);
      for (const workflowId of ["mocked", "conformance-mocked"]) {
        const refused = await client.post("/v1/runs", { workflowId });
        expect([refused.status, refused.body["error"]]).toEqual([422, "capability_required"]);
      }
      expect((await client.post(`${SEAMS}/mock-ai/program`, { nodeId: "call", program: [] })).status).toBe(
        404,
      );
    } finally {
      await plain.close();
    }
  });
});

describe("a model that says", () => {
  /** How a run of each node ends, in the order of the kinds; and the text of the log, which no answer may be in. */
  async function runEnds(prompt: string): Promise<readonly string[]> {
    const id = prompt.replaceAll(" ", "-");
    const runs = await Promise.all(
      ["structured", "prompted", "supervised"].map((kind) => world.client.run(`${kind}-${id}`)),
    );
    const failed = runs.filter(({ snapshot }) => snapshot.status === "failed");
    expect(JSON.stringify(failed)).not.toContain(SECRET);
    return runs.map(({ snapshot }) => snapshot.error?.code ?? snapshot.status);
  }

  it("L4-90 what was asked for is heard, in a fence too", async () => {
    expect(await runEnds("word")).toEqual(["completed", "completed", "decision_malformed"]);
    const { events } = await world.client.run("structured-fenced");
    expect(endOf(events, "ask")?.payload["outputs"]).toEqual({ result: { word: "gold" } });
  });

  it("L4-91 nothing fails its node by that", async () => {
    for (const prompt of ["nothing", "none"])
      expect(await runEnds(prompt), prompt).toEqual(Array(3).fill("model_answer_empty"));
    expect(await runEnds("no body")).toEqual(Array(3).fill("malformed"));
    expect(await runEnds("hangs up")).toEqual(Array(3).fill("unreachable"));
  });

  it("L4-92 something malformed fails its node by that, without a word of it", async () => {
    expect(await runEnds("no json")).toEqual([
      "structured_output_invalid",
      "completed",
      "decision_malformed",
    ]);
    expect(await runEnds("half json")).toEqual([
      "structured_output_invalid",
      "model_answer_incomplete",
      "decision_malformed",
    ]);
    expect(await runEnds("not of the schema")).toEqual([
      ...["structured_output_invalid", "completed", "decision_malformed"],
    ]);
    expect(await runEnds("broken body")).toEqual(Array(3).fill("malformed"));
  });

  it("L4-93 ten megabytes is not read to the end, and what is too large for the log is not kept", async () => {
    expect(await runEnds("huge")).toEqual(Array(3).fill("too_large"));
    expect((await runEnds("quite large")).slice(1)).toEqual(["value_not_recordable", "decision_malformed"]);
  });

  it("L4-94 no, as the model or its provider, fails its node by that, once, without its words", async () => {
    for (const prompt of ["refusal", "content filter"])
      expect(await runEnds(prompt), prompt).toEqual(Array(3).fill("envelope_refused_by_provider"));
    const { events } = await world.client.run("retried");
    expect(filterByType(events, "node.retried")).toEqual([]);
    expect(findOnly(events, "envelope.refusal").payload).toMatchObject({
      nodeId: "ask",
      model: "model-of-the-day",
    });
    expect(JSON.stringify(events)).not.toContain(SECRET);
  });
});
