import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import {
  BEARER,
  createFakeFace,
  OTHER_TOKEN,
  createPost,
  TOKEN,
  type ErrorBody,
  type FakeFace,
} from "./http-fake-host.ts";

const NOOP = { workflowId: "conformance-noop" };

async function readError(response: Response): Promise<ErrorBody & { readonly status: number }> {
  const body = (await response.json()) as ErrorBody;
  expect(Object.keys(body).filter((key) => !["error", "message", "details"].includes(key))).toEqual([]);
  expect(body.message).toMatch(/\S/);
  expect(response.headers.get("content-type")).toBe("application/json");
  return { status: response.status, ...body };
}

async function get(face: FakeFace, path: string, headers: Record<string, string> = {}): Promise<Response> {
  return await face.app.request(path, { headers: { ...BEARER, ...headers } });
}

describe("runs", () => {
  it("are created with 201 and the paths to follow them", async () => {
    const face = createFakeFace();
    const response = await face.app.request(
      "/v1/runs",
      createPost({ ...NOOP, inputs: { a: 1 }, tags: ["t"] }),
    );
    expect(response.status).toBe(201);
    expect(await response.json()).toEqual({
      runId: "run-1",
      status: "running",
      eventsUrl: "/v1/runs/run-1/events",
      statusUrl: "/v1/runs/run-1",
    });
    const [{ caller, request } = expect.fail("nothing was created")] = face.host.created;
    expect(caller).toEqual({
      tenant: "alpha",
      principal: expect.stringMatching(/^token-[0-9a-f]{12}$/) as string,
    });
    expect(request).toEqual({ ...NOOP, inputs: { a: 1 }, tags: ["t"], transport: "rest" });
  });

  it("of a workflow that is not there are bad requests", async () => {
    const face = createFakeFace();
    const response = await face.app.request("/v1/runs", createPost({ workflowId: "nope" }));
    expect(await readError(response)).toMatchObject({ status: 400, error: "validation_error" });
  });

  it.each(["enforce", " Enforce "])(
    "are refused where no second run of a scope may begin: %j",
    async (dedup) => {
      const face = createFakeFace();
      const request = createPost({ ...NOOP, scopeId: "s" }, { "x-dedup": dedup });
      expect(await readError(await face.app.request("/v1/runs", request))).toMatchObject({
        status: 422,
        error: "capability_required",
        details: { requiredCapability: "X-Dedup" },
      });
      expect(face.host.created).toEqual([]);
    },
  );

  it("take the trace context of the request, and none that is not valid", async () => {
    const face = createFakeFace();
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
    const request = [
      [`00-${trace}-01`, "vendor=1"],
      [`cc-${trace}-01-what-comes-later`, undefined],
      [`00-${trace}-01-extra`, "vendor=1"],
      [`00-${"0".repeat(32)}-00f067aa0ba902b7-01`, undefined],
      [`ff-${trace}-01`, undefined],
      ["nonsense", "vendor=1"],
    ] as const;
    for (const [traceparent, tracestate] of request)
      await face.app.request(
        "/v1/runs",
        createPost(NOOP, { traceparent, ...(tracestate && { tracestate }) }),
      );
    expect(face.host.created.map(({ request }) => [request.traceparent, request.tracestate])).toEqual([
      [`00-${trace}-01`, "vendor=1"],
      [`00-${trace}-01`, undefined],
      ...Array.from({ length: 4 }, () => [undefined, undefined]),
    ]);
  });

  it("know the run of another host that started them", async () => {
    const face = createFakeFace();
    const parent = {
      runId: "run-9",
      hostId: "https://other.test",
      cause: "core.dispatch",
      wellKnownUrl: "https://other.test/.well-known/openwop",
    };
    await face.app.request("/v1/runs", createPost(NOOP, { "openwop-parent": JSON.stringify(parent) }));
    await face.app.request("/v1/runs", createPost(NOOP, { "openwop-parent": "{" }));
    expect(face.host.created.map(({ request }) => request.parent)).toEqual([parent, undefined]);
  });

  it("are paused and resumed with 202, and refuse it with how they are", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const paused = await face.app.request("/v1/runs/run-1:pause", createPost({ drainPolicy: "immediate" }));
    expect(paused.status).toBe(202);
    expect(await paused.json()).toEqual({
      runId: "run-1",
      status: "paused",
      pausedAt: "2026-01-02T03:04:05.678Z",
    });
    const again = await readError(await face.app.request("/v1/runs/run-1:pause", createPost({})));
    expect(again).toMatchObject({ status: 409, details: { runStatus: "paused" } });
    const resumed = await face.app.request("/v1/runs/run-1:resume", createPost({}));
    expect(resumed.status).toBe(202);
    expect(await resumed.json()).toMatchObject({ runId: "run-1", status: "running" });
    expect(await readError(await face.app.request("/v1/runs/run-1:resume", createPost({})))).toMatchObject({
      status: 409,
    });
    expect(await readError(await face.app.request("/v1/runs/nope:pause", createPost({})))).toMatchObject({
      status: 404,
    });
  });

  it("are cancelled, also after they have ended, and also without a body", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    for (const init of [createPost({ reason: "enough" }), { method: "POST", headers: BEARER }]) {
      const response = await face.app.request("/v1/runs/run-1/cancel", init);
      expect([response.status, await response.json()]).toEqual([
        200,
        { runId: "run-1", status: "cancelled" },
      ]);
    }
  });

  it("are cancelled in bulk, each by itself and in the order that was asked", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    face.host.put("run-2").status = "completed";
    face.host.put("run-3", "beta");
    const runIds = ["nope", "run-2", "run-1", "run-3"];
    const response = await face.app.request("/v1/runs:bulk-cancel", createPost({ runIds }));
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      results: [
        { runId: "nope", ok: false, error: { code: "not_found" } },
        { runId: "run-2", ok: false, status: "completed", error: { code: "run_terminal" } },
        { runId: "run-1", ok: true, status: "cancelled" },
        { runId: "run-3", ok: false, error: { code: "not_found" } },
      ],
    });
  });

  it.each([[{}], [{ runIds: [] }], [{ runIds: [1] }], [{ runIds: "run-1" }]])(
    "are not cancelled in bulk for %j",
    async (body) => {
      const response = await createFakeFace().app.request("/v1/runs:bulk-cancel", createPost(body));
      expect(await readError(response)).toMatchObject({ status: 400, error: "validation_error" });
    },
  );

  it("are cancelled at most a hundred at once", async () => {
    const runIds = Array.from({ length: 101 }, (_, index) => `run-${index}`);
    const response = await createFakeFace().app.request("/v1/runs:bulk-cancel", createPost({ runIds }));
    expect(await readError(response)).toMatchObject({ status: 400, details: { maxRunIds: 100 } });
  });

  it("of another tenant are not there", async () => {
    const face = createFakeFace();
    face.host.put("run-1", "beta");
    for (const path of ["", "/events", "/events/poll?timeout=0", "/ancestry"])
      expect(await readError(await get(face, `/v1/runs/run-1${path}`))).toMatchObject({
        status: 404,
        error: "not_found",
      });
    expect((await get(face, "/v1/runs/run-1", { authorization: `Bearer ${OTHER_TOKEN}` })).status).toBe(200);
  });
});

describe("interrupts", () => {
  it("are answered by node", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const path = "/v1/runs/run-1/interrupts";
    const answered = await face.app.request(
      `${path}/gate`,
      createPost({ resumeValue: { action: "accept" } }),
    );
    expect([answered.status, await answered.json()]).toEqual([
      200,
      { runId: "run-1", nodeId: "gate", interruptId: "i1", status: "running" },
    ]);
    expect(
      await readError(await face.app.request(`${path}/nope`, createPost({ resumeValue: 1 }))),
    ).toMatchObject({
      status: 404,
    });
    expect(await readError(await face.app.request(`${path}/gate`, createPost({})))).toMatchObject({
      status: 400,
    });
  });

  it("are shown and answered to whoever has a good token, and nobody learns more without one", async () => {
    const { app } = createFakeFace();
    const shown = await app.request("/v1/interrupts/good");
    expect(Object.keys((await shown.json()) as object)).toEqual(["kind", "key", "data"]);
    const anonymous = { authorization: "" };
    expect((await app.request("/v1/interrupts/good", createPost({ resumeValue: 1 }, anonymous))).status).toBe(
      200,
    );
    expect(
      await readError(await app.request("/v1/interrupts/good", createPost({}, anonymous))),
    ).toMatchObject({
      status: 400,
    });
    expect(
      await readError(await app.request("/v1/interrupts/x", createPost({ correlation: 1 }))),
    ).toMatchObject({
      status: 404,
    });
    expect(
      await readError(await app.request("/v1/interrupts/late", createPost({ resumeValue: 1 }))),
    ).toMatchObject({
      status: 410,
      error: "interrupt_expired",
    });
  });
});

describe("who asks", () => {
  it.each([
    ["nobody", undefined],
    ["an unknown token", "Bearer nope"],
    ["a part of a token", `Bearer ${TOKEN.slice(0, -1)}`],
    ["another scheme", `Basic ${TOKEN}`],
    ["two tokens", `Bearer ${TOKEN} ${TOKEN}`],
    ["an endless token", `Bearer ${"a".repeat(9_000)}`],
  ])("is refused as %s", async (_who, authorization) => {
    const { app } = createFakeFace();
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    for (const [path, method] of [
      ["/v1/runs", "POST"],
      ["/v1/runs/run-1", "GET"],
      ["/v1/workflows/conformance-noop", "GET"],
    ] as const) {
      const response = await app.request(path, { method, headers });
      expect(response.headers.get("www-authenticate")).toMatch(/^Bearer realm="openwop"/);
      expect(await readError(response)).toMatchObject({ status: 401, error: "unauthenticated" });
    }
  });

  it("is let in whatever the case of the scheme, and never shown as a token", async () => {
    const face = createFakeFace();
    await face.app.request("/v1/runs", createPost(NOOP, { authorization: `bEARER   ${OTHER_TOKEN}` }));
    await face.app.request("/v1/runs", createPost(NOOP));
    expect(face.host.created.map(({ caller }) => caller.principal)).toEqual([
      "bob",
      expect.stringMatching(/^token-/),
    ]);
    expect(JSON.stringify(face.host.created)).not.toContain(TOKEN);
  });

  it("is nobody where there are no tokens", async () => {
    const { app } = createFakeFace({ tokens: [] });
    expect((await app.request("/v1/runs", createPost(NOOP))).status).toBe(401);
  });

  it.each([
    [{ token: "", tenant: "a" }],
    [{ token: "with space", tenant: "a" }],
    [{ token: "good", tenant: "@interrupt" }],
  ])("cannot be %j", (token) => {
    expect(() => createFakeFace({ tokens: [token] })).toThrow(RangeError);
  });

  it("is one tenant's only: the same token for two would be the last one's", () => {
    const tokens = ["a", "b"].map((tenant) => ({ token: "same", tenant }));
    expect(() => createFakeFace({ tokens })).toThrow("two bearer tokens are the same");
  });

  it("may ask as often as the tenant's limit says, and learns when again", async () => {
    const face = createFakeFace({ rateLimit: { requestsPerSecond: 2, burst: 3 } });
    face.host.put("run-1");
    const statuses = [];
    for (let turn = 0; turn < 4; turn += 1) statuses.push((await get(face, "/v1/runs/run-1")).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    const refused = await get(face, "/v1/runs/run-1");
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await readError(refused)).toMatchObject({
      error: "rate_limited",
      details: { retryAfterMs: 500, scope: "tenant" },
    });
    expect((await get(face, "/v1/runs/run-1", { authorization: `Bearer ${OTHER_TOKEN}` })).status).toBe(404);
    await face.clock.advance(500);
    expect((await get(face, "/v1/runs/run-1")).status).toBe(200);
    expect((await get(face, "/v1/runs/run-1")).status).toBe(429);
  });

  it.each(["/.well-known/openwop", "/v1/openapi.json"])(
    "is counted for its tenant where it reads what anybody may: %s",
    async (path) => {
      const face = createFakeFace({ rateLimit: { requestsPerSecond: 1, burst: 2 } });
      const statuses = [];
      for (let turn = 0; turn < 3; turn += 1) statuses.push((await get(face, path)).status);
      expect(statuses).toEqual([200, 200, 429]);
      expect((await get(face, path, { authorization: `Bearer ${OTHER_TOKEN}` })).status).toBe(200);
      expect((await face.app.request(path)).status).toBe(200);
    },
  );
});

describe("a request that fails", () => {
  it("says nothing of the inside, and the log has the rest under one id", async () => {
    const face = createFakeFace();
    face.host.fail(new Error("secret path /var/lib"));
    const body = await readError(await get(face, "/v1/runs/run-1"));
    expect(body).toMatchObject({ status: 500, error: "internal_error" });
    expect(JSON.stringify(body)).not.toContain("secret");
    expect(face.logged).toHaveLength(1);
    expect(JSON.stringify(face.logged)).toContain(String(body.details?.["correlationId"]));
    expect(JSON.stringify(face.logged)).not.toContain("secret");
  });

  it("is to be tried again where the ledger is busy", async () => {
    const face = createFakeFace();
    face.host.fail(new CoordinationError("LEDGER_BUSY", "locked"));
    const response = await get(face, "/v1/runs/run-1");
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await readError(response)).toMatchObject({ status: 503, error: "unavailable" });
  });

  it.each([
    ["an error in the log", "LEDGER_CORRUPT", "error"],
    ["no error in the log where the host stops meanwhile", "LEDGER_CLOSED", "info"],
  ] as const)("is %s", async (_where, code, level) => {
    const face = createFakeFace();
    face.host.fail(new CoordinationError(code, "as it happened"));
    await get(face, "/v1/runs/run-1");
    expect(face.logged.map((line) => line.level)).toEqual([level]);
  });

  it("has the shape of an error also where there is no route, or not this method", async () => {
    const face = createFakeFace();
    const cases = [
      ["GET", "/v1/nothing", 404, "not_found"],
      ["GET", "/", 404, "not_found"],
      ["GET", "/v1/runs/run-1/artifacts/a", 404, "not_found"],
      ["POST", "/v1/runs/run-1/approvals/gate", 404, "not_found"],
      ["POST", "/v1/webhooks", 404, "not_found"],
      ["DELETE", "/v1/webhooks/w", 404, "not_found"],
      ["GET", "/v1/agents", 404, "not_found"],
      ["POST", "/v1/runs/run-1:archive", 404, "not_found"],
      ["GET", "/v1/runs/run-1:diff?against=run-2", 404, "not_found"],
      ["POST", "/v1/host/sample/workflows", 404, "not_found"],
      ["GET", "/runs/run-1", 400, "unversioned_path"],
      ["GET", "/v1/runs", 405, "method_not_allowed"],
      ["DELETE", "/v1/runs/run-1", 405, "method_not_allowed"],
      ["OPTIONS", "/v1/runs", 405, "method_not_allowed"],
      ["PUT", "/v1/runs/run-1:pause", 405, "method_not_allowed"],
    ] as const;
    for (const [method, path, status, code] of cases) {
      const response = await face.app.request(path, { method, headers: BEARER });
      expect([method, path, (await readError(response)).error, response.status]).toEqual([
        method,
        path,
        code,
        status,
      ]);
    }
    expect((await face.app.request("/v1/runs", { headers: BEARER })).headers.get("allow")).toBe("POST");
  });
});
