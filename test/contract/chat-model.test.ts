import { describe, expect, it } from "vitest";
import type { ChatRequest } from "../../src/agents/coordination/ports/outbound.ts";
import { createChatModel, type ModelConfig } from "../../src/infra/model/chat-model.ts";
import {
  replyEndlessly,
  replyInTurn,
  replyJson,
  createUnendingSignal,
  serve,
  createSteppingClock,
  testFetch,
  TRACEPARENT,
  type Reply,
} from "./outbound-scene.ts";

const ASK: ChatRequest = {
  messages: [{ role: "user", content: "hi" }],
  maxTokens: 100,
  signal: createUnendingSignal(),
};

const createCompletion = (message: object, finish = "stop"): Reply =>
  replyJson(200, {
    id: "c-1",
    object: "chat.completion",
    created: 1,
    model: "served-model",
    choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, finish_reason: finish }],
    usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 },
  });

function createChatAt(url: string, config: Partial<ModelConfig> = {}, clock = createSteppingClock()) {
  return createChatModel({
    config: { baseUrl: `${url}/v1`, model: "default-model", ...config },
    fetch: testFetch(clock),
    clock,
    readVariable: (name) => (name === "MODEL_KEY" ? "the-key" : undefined),
  });
}

describe("asking a model", () => {
  it("sends what is asked, and tells text, model and usage", async () => {
    const server = await serve(createCompletion({ content: "hello" }));
    const answer = await createChatAt(server.url, { apiKey: "${MODEL_KEY}" }).complete({
      ...ASK,
      system: "be brief",
      temperature: 0.5,
      topP: 0.9,
      seed: 7,
      stop: ["END"],
      traceparent: TRACEPARENT,
    });
    expect(answer).toEqual({
      kind: "answered",
      text: "hello",
      finishReason: "stop",
      model: "served-model",
      provider: new URL(server.url).host,
      usage: { inputTokens: 3, outputTokens: 5 },
    });
    const [{ path, headers, body }] = server.received as [(typeof server.received)[number]];
    expect(path).toBe("/v1/chat/completions");
    expect(headers).toMatchObject({ authorization: "Bearer the-key", traceparent: TRACEPARENT });
    expect(JSON.parse(body)).toEqual({
      model: "default-model",
      max_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      stop: ["END"],
      messages: [
        { role: "system", content: "be brief" },
        { role: "user", content: "hi" },
      ],
    });
  });

  it("takes the request's model, else the agent's, else the default one", async () => {
    const server = await serve(createCompletion({ content: "x" }));
    const chat = createChatAt(server.url, { agents: { critic: "critic-model" } });
    await chat.complete({ ...ASK, agentId: "critic", model: "named" });
    await chat.complete({ ...ASK, agentId: "critic" });
    await chat.complete({ ...ASK, agentId: "toString" });
    const models = server.received.map(({ body }) => (JSON.parse(body) as { model: string }).model);
    expect(models).toEqual(["named", "critic-model", "default-model"]);
  });

  it("asks for an answer of a schema, and hands it over unchecked", async () => {
    const server = await serve(createCompletion({ content: '{"a":"not a number"}' }));
    const schema = { type: "object", properties: { a: { type: "number" } } };
    const answer = await createChatAt(server.url).complete({ ...ASK, schema: { name: "shape", schema } });
    expect(answer).toMatchObject({
      kind: "answered",
      object: { a: "not a number" },
      text: '{"a":"not a number"}',
    });
    expect(JSON.parse(server.received[0]!.body)).toMatchObject({
      response_format: { type: "json_schema", json_schema: { name: "shape", strict: false, schema } },
    });
  });

  it.each([
    ["no JSON", { content: "sorry" }, "stop"],
    ["JSON that was cut off", { content: '{"a":' }, "length"],
    ["nothing", { content: "" }, "stop"],
  ])(
    "tells an answer without an object where a schema was asked for and %s came",
    async (_what, message, finish) => {
      const server = await serve(createCompletion(message, finish));
      const schema = { name: "shape", schema: { type: "object" } };
      const answer = await createChatAt(server.url).complete({ ...ASK, schema });
      expect(answer).toMatchObject({ kind: "answered", text: message.content, finishReason: finish });
      expect(answer).not.toHaveProperty("object");
    },
  );

  it.each([[undefined], [{ name: "shape", schema: { type: "object" } }]])(
    "tells a refusal apart from text, with the schema %j",
    async (schema) => {
      const server = await serve(createCompletion({ refusal: "I cannot" }));
      const answer = await createChatAt(server.url).complete({ ...ASK, ...(schema && { schema }) });
      expect(answer).toMatchObject({ kind: "answered", text: "", refusal: "I cannot" });
    },
  );

  it("offers tools, and hands over the calls that it asks for, also those that cannot be read", async () => {
    const call = (name: string, text: string) => ({
      id: `id-${name}`,
      type: "function",
      function: { name, arguments: text },
    });
    const tool_calls = [
      call("measure", '{"at":1}'),
      call("other", "{}"),
      call("broken", "{at"),
      call("listed", "[]"),
    ];
    const server = await serve(createCompletion({ content: "let me see", tool_calls }, "tool_calls"));
    const parameters = { type: "object", properties: { at: { type: "number" } } };
    const tools = [{ name: "measure", description: "Measures.", parameters }];
    expect(await createChatAt(server.url).complete({ ...ASK, tools })).toMatchObject({
      kind: "answered",
      text: "let me see",
      finishReason: "tool-calls",
      toolCalls: [
        { name: "measure", args: { at: 1 } },
        { name: "other", args: {} },
        { name: "broken" },
        { name: "listed" },
      ],
    });
    const sent = JSON.parse(server.received[0]?.body ?? "") as { tools: unknown };
    expect(sent.tools).toEqual([
      { type: "function", function: { name: "measure", description: "Measures.", parameters } },
    ]);
  });

  it("is told what it asked for and what came back", async () => {
    const server = await serve(createCompletion({ content: "three" }));
    const toolCalls = [{ callId: "c1", name: "measure", args: { at: 1 } }];
    await createChatAt(server.url).complete({
      ...ASK,
      messages: [
        ...ASK.messages,
        { role: "assistant", content: "let me see", toolCalls },
        { role: "tool", callId: "c1", name: "measure", content: "three metres" },
      ],
    });
    const { messages } = JSON.parse(server.received[0]?.body ?? "") as { messages: unknown[] };
    expect(messages.slice(1)).toMatchObject([
      {
        role: "assistant",
        content: "let me see",
        tool_calls: [{ id: "c1", function: { name: "measure", arguments: '{"at":1}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: "three metres" },
    ]);
  });

  it("tells a filtered answer as a refusal", async () => {
    const server = await serve(createCompletion({ content: "half an ans" }, "content_filter"));
    const answer = await createChatAt(server.url).complete(ASK);
    expect(answer).toMatchObject({ finishReason: "content-filter", refusal: "half an ans", text: "" });
  });

  it.each<[string, Reply]>([
    ["a failure", replyJson(500, {})],
    ["too many requests", replyJson(429, {}, { "retry-after": "3" })],
    ["a broken connection", (response) => void response.destroy()],
    ["no JSON", (response) => void response.end("<html>")],
    ["an answer without choices", replyJson(200, { choices: [] })],
  ])("asks again after %s", async (_what, reply) => {
    const server = await serve(replyInTurn(reply, createCompletion({ content: "x" })));
    expect(await createChatAt(server.url).complete(ASK)).toMatchObject({ kind: "answered", text: "x" });
  });

  it.each<[string, Reply, object, number]>([
    ["a wrong key", replyJson(401, { error: { message: "secret" } }), { kind: "refused", status: 401 }, 1],
    ["an unknown model", replyJson(404, {}), { kind: "refused", code: "rejected", status: 404 }, 1],
    ["failures without end", replyJson(503, {}), { kind: "unknown", code: "unavailable", status: 503 }, 3],
    ["a body without end", replyEndlessly, { kind: "unknown", code: "too_large" }, 3],
    [
      "a redirect",
      (response) => void response.writeHead(307, { location: "/" }).end(),
      { code: "redirected" },
      1,
    ],
  ])("survives %s", async (_what, reply, expected, asks) => {
    const server = await serve(reply);
    const outcome = await createChatAt(server.url).complete(ASK);
    expect(outcome).toMatchObject(expected);
    expect(JSON.stringify(outcome)).not.toContain("secret");
    expect(server.received).toHaveLength(asks);
  });

  it("ends in time, and with the signal", async () => {
    const clock = createSteppingClock();
    const silent = await serve(() => void setImmediate(() => clock.expire()));
    expect(await createChatAt(silent.url, {}, clock).complete(ASK)).toMatchObject({
      kind: "unknown",
      code: "timed_out",
    });
    const controller = new AbortController();
    const other = await serve(() => controller.abort());
    const outcome = await createChatAt(other.url).complete({ ...ASK, signal: controller.signal });
    expect(outcome).toMatchObject({ kind: "unknown", code: "aborted" });
    expect(other.received).toHaveLength(1);
  });
});
