import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BEARER, createFakeFace, createPost, type ErrorBody } from "./http-fake-host.ts";

const JSON_TYPE = { ...BEARER, "content-type": "application/json" };

async function readRefusal(response: Response): Promise<readonly [number, string]> {
  const body = (await response.json()) as ErrorBody;
  expect(Object.keys(body).toSorted().join()).toMatch(/^(details,)?error,message$/);
  return [response.status, body.error];
}

function nestLevels(depth: number): string {
  return `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
}

describe("a body", () => {
  it.each([
    ["no JSON", '{"workflowId":'],
    ["not UTF-8 words", "\u0000\u0001"],
    ["an array", "[]"],
    ["a number", "1"],
    ["null", "null"],
    ["empty", ""],
    ["of wrong types", '{"workflowId":1,"inputs":[]}'],
    ["with a field too many", '{"workflowId":"conformance-noop","input":{}}'],
    ["too deep", `{"workflowId":"conformance-noop","inputs":${nestLevels(100)}}`],
    ["very deep", `{"workflowId":"conformance-noop","inputs":${nestLevels(100_000)}}`],
    ["of very many values", `{"workflowId":"conformance-noop","inputs":{"a":[${"0,".repeat(300_000)}0]}}`],
    ["with too many tags", JSON.stringify({ workflowId: "conformance-noop", tags: Array(101).fill("t") })],
    ["with too long a tag", JSON.stringify({ workflowId: "conformance-noop", tags: ["t".repeat(257)] })],
    [
      "with too much metadata",
      JSON.stringify({ workflowId: "conformance-noop", metadata: { a: "x".repeat(60_000) } }),
    ],
  ])("is refused: %s", async (_what, body) => {
    const face = createFakeFace();
    expect(await readRefusal(await face.app.request("/v1/runs", createPost(body)))).toEqual([
      400,
      "validation_error",
    ]);
    expect(face.host.created).toEqual([]);
  });

  it("names the field that is wrong", async () => {
    const response = await createFakeFace().app.request("/v1/runs", createPost({ workflowId: 5 }));
    expect(await response.json()).toMatchObject({
      message: "The body does not have the expected form: workflowId: expected string, got number 5.",
      details: { problems: [{ path: "workflowId" }] },
    });
  });

  it("is refused when it is too large, whether it says so or not", async () => {
    const { app } = createFakeFace();
    const large = JSON.stringify({ workflowId: "conformance-noop", inputs: { a: "x".repeat(1_000_001) } });
    const request = {
      ...createPost(large),
      headers: { ...JSON_TYPE, "content-length": String(large.length) },
    };
    expect(await readRefusal(await app.request("/v1/runs", request))).toEqual([413, "payload_too_large"]);
    expect(await readRefusal(await app.request("/v1/runs", createPost(large)))).toEqual([
      413,
      "payload_too_large",
    ]);
  });

  it("that never ends is read up to the bound only", async () => {
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += 65_536;
        controller.enqueue(new Uint8Array(65_536).fill(32));
      },
    });
    const init = { method: "POST", headers: JSON_TYPE, body, duplex: "half" } as RequestInit;
    const response = await createFakeFace().app.request("/v1/runs", init);
    expect(await readRefusal(response)).toEqual([413, "payload_too_large"]);
    expect(sent).toBeLessThan(1_500_000);
  });

  it.each(["text/plain", "application/x-www-form-urlencoded", "", "application/jsonp", "json"])(
    "is not JSON with the type %j",
    async (type) => {
      const response = await createFakeFace().app.request(
        "/v1/runs",
        createPost("{}", { "content-type": type }),
      );
      expect(await readRefusal(response)).toEqual([415, "unsupported_media_type"]);
    },
  );

  it.each(["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.x+json"])(
    "is JSON with the type %j",
    async (type) => {
      const body = { workflowId: "conformance-noop" };
      const response = await createFakeFace().app.request(
        "/v1/runs",
        createPost(body, { "content-type": type }),
      );
      expect(response.status).toBe(201);
    },
  );

  it("cannot change what objects are", async () => {
    const face = createFakeFace();
    const body = '{"workflowId":"conformance-noop","inputs":{"__proto__":{"polluted":1},"constructor":1}}';
    await face.app.request("/v1/runs", createPost(body, { "idempotency-key": "k" }));
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

describe("any request", () => {
  const method = fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD");
  const part = fc.constantFrom(
    ...[
      "v1",
      "runs",
      "run-1",
      "run-1:pause",
      "events",
      "poll",
      "interrupts",
      "..",
      "%00",
      "%2e%2e",
      "%",
      "{runId}",
    ],
    ...[
      "__proto__",
      "constructor",
      "runs:bulk-cancel",
      ".well-known",
      "openwop",
      "x".repeat(5_000),
      "ü",
      "a b",
    ],
  );
  const query = fc.constantFrom(
    ...[
      "",
      "?streamMode=values,updates",
      "?bufferMs=-1",
      "?lastSequence=1e9&timeout=0",
      "?timeout=x",
      "?a=%zz",
    ],
  );
  const header = fc.constantFrom(
    "last-event-id",
    "accept",
    "traceparent",
    "idempotency-key",
    "openwop-parent",
  );
  const value = fc.oneof(fc.stringMatching(/^[\x21-\x7e]{0,200}$/), fc.constantFrom("-1", "1", "NaN", "[[["));

  it("gets an answer of the known shape, and never a failure of ours", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({ method, parts: fc.array(part, { maxLength: 6 }), query, header, value, body: fc.json() }),
        async ({ method, parts, query, header, value, body }) => {
          const face = createFakeFace();
          face.host.put("run-1").status = "completed";
          const url = `http://host.test/${parts.join("/")}${query}`;
          const sent = ["GET", "HEAD", "OPTIONS"].includes(method) ? {} : { body };
          const headers = { ...JSON_TYPE, [header]: value };
          const response = await face.app.request(url, { method, headers, ...sent });
          expect(response.status).toBeLessThan(500);
          const text = await response.text();
          if (response.status >= 400 && method !== "HEAD") {
            const { error, message } = JSON.parse(text) as ErrorBody;
            expect(error).toMatch(/^[a-z_]+$/);
            expect(message.length).toBeLessThan(1_000);
          }
          expect([face.app.openStreams(), face.host.watching(), face.clock.pending]).toEqual([0, 0, 0]);
        },
      ),
      { numRuns: 500 },
    );
  });
});
