import { CONFORMANCE_SUITE } from "../../src/plugins/openwop/conformance/conformance-suite.ts";
import { describe, expect, it } from "vitest";
import {
  BEARER,
  createFakeFace,
  createPost,
  type ErrorBody,
  type FakeFace,
} from "../openwop/http-fake-host.ts";
import { startSlowAnswers } from "./slow-answers.ts";

const JSON_TYPE = { "content-type": "application/json" };

interface Attack {
  readonly init: RequestInit;
  /** Chunks of the body that were taken. */
  readonly countTaken: () => number;
}

/** A megabyte of opened arrays, in chunks that are counted as they are taken. */
function createBracketAttack(headers: Readonly<Record<string, string>>): Attack {
  let takenCount = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        takenCount += 1;
        controller.enqueue(new Uint8Array(10_000).fill("[".charCodeAt(0)));
        if (takenCount === 99) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  return { init: { method: "POST", body, headers, duplex: "half" }, countTaken: () => takenCount };
}

async function readRefusal(response: Response): Promise<readonly [status: number, code: string]> {
  return [response.status, ((await response.json()) as ErrorBody).error];
}

/** As it comes over a socket. */
async function askFrom(
  face: FakeFace,
  remoteAddress: string,
  path: string,
  init: RequestInit,
): Promise<Response> {
  return await face.app.fetch(new Request(`http://host.test${path}`, init), {
    incoming: { socket: { remoteAddress } },
  });
}

describe("no byte of a body is taken from whoever", () => {
  it.each<[string, string, Readonly<Record<string, string>>, readonly [number, string]]>([
    ["has no token", "/v1/runs", {}, [401, "unauthenticated"]],
    ["has an unknown token", "/v1/runs", { authorization: "Bearer x" }, [401, "unauthenticated"]],
    ["has an interrupt token that was not signed here", "/v1/interrupts/x", {}, [404, "not_found"]],
    ["answers a run that is not there", "/v1/runs/gone/interrupts/gate", BEARER, [404, "not_found"]],
    ["forks a run that is not there", "/v1/runs/gone:fork", BEARER, [404, "not_found"]],
    ["cancels a run of another tenant", "/v1/runs/other/cancel", BEARER, [404, "not_found"]],
  ])("%s", async (_who, path, headers, refused) => {
    const face = createFakeFace();
    face.host.put("other", "beta");
    const { init, countTaken } = createBracketAttack({ ...JSON_TYPE, ...headers });
    expect(await readRefusal(await face.app.request(path, init))).toEqual(refused);
    expect(countTaken()).toBe(0);
  });

  it("asks more often than it may", async () => {
    const face = createFakeFace({ rateLimit: { requestsPerSecond: 1, burst: 1 } });
    await face.app.request("/v1/runs", createPost({ workflowId: "conformance-noop" }));
    const { init, countTaken } = createBracketAttack({ ...JSON_TYPE, ...BEARER });
    expect(await readRefusal(await face.app.request("/v1/runs", init))).toEqual([429, "rate_limited"]);
    expect(countTaken()).toBe(0);
  });
});

describe("refusals come in one order", () => {
  const paths = ["/cancel", ":pause", ":resume", ":fork", "/interrupts/gate"];

  it.each(paths)("401, 404, 400: %s", async (path) => {
    const face = createFakeFace();
    face.host.put("run-1");
    const bad = "{";
    const none = { ...createPost(bad), headers: JSON_TYPE };
    expect(await readRefusal(await face.app.request(`/v1/runs/gone${path}`, none))).toEqual([
      401,
      "unauthenticated",
    ]);
    expect(await readRefusal(await face.app.request(`/v1/runs/gone${path}`, createPost(bad)))).toEqual([
      404,
      "not_found",
    ]);
    const found = await face.app.request(`/v1/runs/run-1${path}`, createPost(bad));
    expect(await readRefusal(found)).toEqual([400, "validation_error"]);
  });
});

describe("an address without a token that is known", () => {
  it.each([
    ["bearer tokens", "/v1/runs", "unauthenticated"],
    ["interrupt tokens", "/v1/interrupts/x", "not_found"],
  ])("is refused for a while when it tries many %s, and nobody else is", async (_what, path, code) => {
    const face = createFakeFace();
    const seen = new Map<string, number>();
    for (let tries = 0; tries < 300; tries += 1) {
      const [, error] = await readRefusal(await askFrom(face, "192.0.2.1", path, { method: "POST" }));
      seen.set(error, (seen.get(error) ?? 0) + 1);
    }
    expect(Object.fromEntries(seen)).toEqual({ [code]: 200, rate_limited: 100 });
    expect((await readRefusal(await askFrom(face, "192.0.2.2", path, { method: "POST" })))[1]).toBe(code);
    const knownResponse = await askFrom(
      face,
      "192.0.2.1",
      "/v1/runs",
      createPost({ workflowId: "conformance-noop" }),
    );
    expect(knownResponse.status).toBe(201);
    await face.clock.advance(10_000);
    expect((await readRefusal(await askFrom(face, "192.0.2.1", path, { method: "POST" })))[1]).toBe(code);
  });

  it("is one address, however many it has of its network of IPv6", async () => {
    const face = createFakeFace();
    const codes = new Set<string>();
    for (let tries = 0; tries < 300; tries += 1) {
      const response = await askFrom(face, `2001:db8:1:2::${tries.toString(16)}`, "/v1/runs", {
        method: "POST",
      });
      codes.add((await readRefusal(response))[1]);
    }
    expect([...codes]).toEqual(["unauthenticated", "rate_limited"]);
  });
});

describe("deep JSON", () => {
  const nestBrackets = (open: string, close: string): string => open.repeat(100_000) + close.repeat(100_000);

  it.each<[string, string, string]>([
    [
      "POST",
      "/v1/runs",
      `{"workflowId":"conformance-noop","inputs":${nestBrackets('{"a":', "}").replace(":}", ":1}")}}`,
    ],
    ["POST", "/v1/runs", nestBrackets("[", "]")],
    ["POST", "/v1/runs", "[".repeat(999_999)],
    ["POST", "/v1/runs/run-1:fork", `{"mode":"branch","runOptionsOverlay":${nestBrackets("[", "]")}}`],
    ["POST", "/v1/runs/run-1/cancel", nestBrackets("[", "]")],
    ["POST", "/v1/runs/run-1/interrupts/gate", `{"resumeValue":${nestBrackets("[", "]")}}`],
    ["POST", "/v1/interrupts/good", `{"resumeValue":${nestBrackets("[", "]")}}`],
    ["PUT", "/v1/host/workspace/files/a.txt", `{"content":${nestBrackets("[", "]")}}`],
    ["DELETE", "/v1/host/workspace/files/a.txt", nestBrackets("[", "]")],
    ["POST", "/v1/host/sample/workflows", `{"nodes":${nestBrackets("[", "]")}}`],
    ["POST", "/v1/host/sample/reset", nestBrackets("[", "]")],
  ])("is refused with its reason and is never a failure of ours: %s %s", async (method, path, body) => {
    const face = createFakeFace({ suite: CONFORMANCE_SUITE.face });
    face.host.put("run-1");
    const headers = { "idempotency-key": "k" };
    const response = await face.app.request(path, { ...createPost(body, headers), method });
    const refused = (await response.json()) as ErrorBody;
    if (response.status !== 404) {
      expect([response.status, refused.error]).toEqual([400, "validation_error"]);
      expect(refused.message).toBe("The body is nested more than 40 levels deep.");
    }
    expect(face.logged).toEqual([]);
  });

  it("is as deep as a body may be and no deeper", async () => {
    const { app } = createFakeFace();
    const nestInputs = (levels: number): string =>
      `{"workflowId":"conformance-noop","inputs":${'{"a":'.repeat(levels)}1${"}".repeat(levels)}}`;
    expect((await app.request("/v1/runs", createPost(nestInputs(39)))).status).toBe(201);
    expect((await app.request("/v1/runs", createPost(nestInputs(40)))).status).toBe(400);
  });

  it("is not what brackets in texts are", async () => {
    const { app } = createFakeFace();
    const inputs = { a: "[".repeat(1_000), b: '\\"[[[[{{{{'.repeat(100), '"[[[\\': "\\\\" };
    expect(
      (await app.request("/v1/runs", createPost({ workflowId: "conformance-noop", inputs }))).status,
    ).toBe(201);
  });
});

describe("slow bodies to the address for signed answers", () => {
  it("that name a webhook that does not exist take no place", async () => {
    const { send, hang } = startSlowAnswers();
    const slow = Array.from({ length: 500 }, () => hang({ url: "/coordination/answers/gone" }));
    expect((await Promise.all(slow)).map(({ status }) => status)).toEqual(Array(500).fill(401));
    expect(await send()).toMatchObject({ status: 200 });
  });

  it.each([
    ["lack a header of the signature", { "webhook-signature": undefined }],
    ["have an id that cannot be signed", { "webhook-id": "a b" }],
    ["have a time that is none", { "webhook-timestamp": "soon" }],
  ])("that %s take no place", async (_what, headers) => {
    const { send, hang } = startSlowAnswers();
    const slow = Array.from({ length: 500 }, () => hang({ headers }));
    for (const { status } of await Promise.all(slow)) expect([400, 401]).toContain(status);
    expect(await send()).toMatchObject({ status: 200 });
  });

  it("that look like signed answers give their places to those that come at once", async () => {
    const { send, hang, pass } = startSlowAnswers();
    const slow = Array.from({ length: 32 }, () => hang({}));
    await pass(600);
    expect(await send()).toMatchObject({ status: 200 });
    await pass(10_000);
    expect((await Promise.all(slow)).map(({ status }) => status)).toEqual(Array(32).fill(413));
  });

  it("are not waited for once they are refused", async () => {
    const { hang } = startSlowAnswers();
    expect(await hang({ url: "/coordination/answers/gone" })).toMatchObject({ connection: "close" });
  });
});
