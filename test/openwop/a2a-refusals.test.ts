/** Owns: that the A2A server refuses in the form of JSON-RPC also what never reaches one of its methods. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createA2aFace } from "../../src/plugins/a2a/a2a-routes.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import {
  createFakeFace,
  createFakeHost,
  createPost,
  createRecordingLogger,
  type FakeFace,
} from "./http-fake-host.ts";
import { openMcpWorld, TOKEN, type McpWorld } from "./mcp-world.ts";

let world: McpWorld;
beforeAll(async () => {
  world = await openMcpWorld({ a2a: true });
});
afterAll(() => world[Symbol.asyncDispose]());

function post(body: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${world.baseUrl}/v1/a2a`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json", ...headers },
    body,
  });
}

const GET_TASK = { jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: "x" } };
const matchRefusal = (code: number): object => ({
  jsonrpc: "2.0",
  id: null,
  error: { code, message: expect.any(String) as string },
});

interface Refusal {
  readonly status: number;
  readonly code: number;
}

describe("a refusal", () => {
  it.each<[title: string, body: string, headers: Record<string, string>, refusal: Refusal]>([
    ["broken JSON", "{", {}, { status: 400, code: -32_700 }],
    ["a message without jsonrpc", '{"id":1,"method":"GetTask"}', {}, { status: 400, code: -32_600 }],
    ["messages that are sent together", JSON.stringify([GET_TASK]), {}, { status: 400, code: -32_600 }],
    ["a body that is too deep", "[".repeat(1_000) + "]".repeat(1_000), {}, { status: 400, code: -32_600 }],
    [
      "a body of another type",
      JSON.stringify(GET_TASK),
      { "content-type": "text/plain" },
      { status: 415, code: -32_600 },
    ],
    ["a body that is too large", JSON.stringify("x".repeat(10_000_000)), {}, { status: 413, code: -32_600 }],
    [
      "a key that is none",
      JSON.stringify(GET_TASK),
      { "idempotency-key": "\u00e4" },
      { status: 400, code: -32_600 },
    ],
    [
      "a token that is not known",
      JSON.stringify(GET_TASK),
      { authorization: "Bearer wrong" },
      { status: 401, code: -32_000 },
    ],
  ])("of %s is JSON-RPC", async (_title, body, headers, { status, code }) => {
    const refused = await post(body, headers);
    expect(refused.status).toBe(status);
    expect(await refused.json()).toEqual(matchRefusal(code));
  });

  it("of another HTTP method is JSON-RPC, and names the one that is possible", async () => {
    for (const method of ["GET", "DELETE"]) {
      const refused = await fetch(`${world.baseUrl}/v1/a2a`, { method });
      expect([refused.status, refused.headers.get("allow")]).toEqual([405, "POST"]);
      expect(await refused.json()).toEqual(matchRefusal(-32_000));
    }
  });

  it("of a stream beyond the quota is JSON-RPC, and says when to try again, also with an idempotency key", async () => {
    const { app } = createLimitedFace();
    const params = { message: { messageId: "m-1", role: "ROLE_USER", parts: [{ text: "go" }] } };
    const message = { ...GET_TASK, method: "SendStreamingMessage", params };
    for (const key of [{}, { "idempotency-key": "k" }]) {
      const refused = await app.request("/v1/a2a", createPost(message, { "a2a-version": "1.0", ...key }));
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
      expect(await refused.json()).toEqual(matchRefusal(-32_000));
    }
  });
});

function createLimitedFace(): FakeFace {
  const host = createFakeHost();
  const clock = createFakeClock();
  const face = createA2aFace({
    host,
    clock,
    logger: createRecordingLogger().logger,
    runs: createMemoryWorkflowLedger().open(),
    contract: () => Promise.resolve({ check: () => [] }),
    version: "0.0.0",
    baseUrl: () => "http://host.test",
  });
  return createFakeFace({ host, clock, faces: [face], quotas: { streams: 0 } });
}

it("an empty A2A-Version is revision 0.3, as where the header is left out", async () => {
  const message = { ...GET_TASK, method: "tasks/get", params: { id: "no-such" } };
  const answered = await post(JSON.stringify(message), { "a2a-version": "" });
  expect(await answered.json()).toMatchObject({ id: 1, error: { message: "There is no such task." } });
});
