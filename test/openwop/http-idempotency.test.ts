import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { BEARER, createFakeFace, OTHER_TOKEN, createPost, type ErrorBody } from "./http-fake-host.ts";

const NOOP = { workflowId: "conformance-noop" };

async function readError(response: Response): Promise<ErrorBody & { readonly status: number }> {
  return { status: response.status, ...((await response.json()) as ErrorBody) };
}

describe("an idempotency key", () => {
  const KEY = { "idempotency-key": "k1" };
  const REPLAYED = "openwop-idempotent-replay";

  it("creates one run, however often it is sent", async () => {
    const face = createFakeFace();
    const first = await face.app.request("/v1/runs", createPost({ ...NOOP, inputs: { a: 1, b: 2 } }, KEY));
    const second = await face.app.request("/v1/runs", createPost({ inputs: { b: 2, a: 1 }, ...NOOP }, KEY));
    expect([first.status, first.headers.get(REPLAYED)]).toEqual([201, "false"]);
    expect([second.status, second.headers.get(REPLAYED)]).toEqual([201, "true"]);
    expect(await second.json()).toEqual(await first.json());
    expect(face.host.runs.size).toBe(1);
  });

  it("is refused for another request, without the run of the first", async () => {
    const face = createFakeFace();
    await face.app.request("/v1/runs", createPost(NOOP, KEY));
    const other = await face.app.request("/v1/runs", createPost({ ...NOOP, inputs: { a: 2 } }, KEY));
    expect(await readError(other)).toMatchObject({ status: 409, error: "idempotency_key_mismatch" });
  });

  it("is another key for another tenant and another route", async () => {
    const face = createFakeFace();
    const beta = { ...KEY, authorization: `Bearer ${OTHER_TOKEN}` };
    const first = (await (await face.app.request("/v1/runs", createPost(NOOP, KEY))).json()) as {
      runId: string;
    };
    await face.app.request("/v1/runs", createPost(NOOP, beta));
    const cancelled = await face.app.request(`/v1/runs/${first.runId}/cancel`, createPost({}, KEY));
    expect(cancelled.headers.get(REPLAYED)).toBe("false");
    expect(face.host.created).toHaveLength(2);
  });

  it("does not answer for one run what was asked of another", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    face.host.put("run-2");
    await face.app.request("/v1/runs/run-1:pause", createPost({}, KEY));
    expect(
      await readError(await face.app.request("/v1/runs/run-2:pause", createPost({}, KEY))),
    ).toMatchObject({
      error: "idempotency_key_mismatch",
    });
  });

  it("is looked at before the state of the run", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const statuses = [];
    for (let turn = 0; turn < 2; turn += 1)
      statuses.push((await face.app.request("/v1/runs/run-1:pause", createPost({}, KEY))).status);
    expect(statuses).toEqual([202, 202]);
  });

  it("stays free after what may be tried again", async () => {
    const face = createFakeFace();
    await face.app.request("/v1/runs", createPost({ workflowId: "nope" }, KEY));
    face.host.fail(new CoordinationError("LEDGER_BUSY", "locked"));
    expect((await face.app.request("/v1/runs", createPost(NOOP, KEY))).status).toBe(503);
    face.host.fail(new Error("odd"));
    expect((await face.app.request("/v1/runs", createPost({ ...NOOP, inputs: { a: 1 } }, KEY))).status).toBe(
      500,
    );
  });

  it("is told from one that is still under way", async () => {
    const face = createFakeFace();
    const release = face.host.holdCreating();
    const both = [1, 2].map(async () => face.app.request("/v1/runs", createPost(NOOP, KEY)));
    const late = await Promise.race(both);
    release();
    const statuses = (await Promise.all(both)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([201, 409]);
    expect(late.status).toBe(409);
    expect(late.headers.get("retry-after")).toBe("1");
    expect(await readError(late)).toMatchObject({
      error: "idempotency_in_flight",
      details: { retryAfter: 1 },
    });
    expect(face.host.runs.size).toBe(1);
  });

  it.each([["a".repeat(256)], ["ü"], [""]])("must be usable: %j", async (key) => {
    const response = await createFakeFace().app.request(
      "/v1/runs",
      createPost(NOOP, { "idempotency-key": key }),
    );
    expect(await readError(response)).toMatchObject({ status: 400, error: "validation_error" });
  });

  it("keeps no refusal that says when to come again", async () => {
    const face = createFakeFace();
    const create = face.host.create.bind(face.host);
    const details = { activeRunId: "run-9", retryAfter: 7 };
    face.host.create = () =>
      Promise.resolve({ kind: "refused", code: "run_already_active", message: "It runs.", details });
    const refused = await face.app.request("/v1/runs", createPost(NOOP, KEY));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([409, "7"]);
    face.host.create = create;
    expect((await face.app.request("/v1/runs", createPost(NOOP, KEY))).status).toBe(201);
  });

  it("of one interrupt token says nothing to another, and strangers keep nothing", async () => {
    const face = createFakeFace();
    const answer = createPost({ resumeValue: 1 }, { ...KEY, authorization: "" });
    const begun: string[] = [];
    const begin = face.host.requests.begin.bind(face.host.requests);
    face.host.requests.begin = async (request) => {
      begun.push(request.tenant);
      return await begin(request);
    };
    expect((await face.app.request("/v1/interrupts/stranger", answer)).status).toBe(404);
    expect(begun).toEqual([]);
    const first = await face.app.request("/v1/interrupts/good", answer);
    const second = await face.app.request("/v1/interrupts/good", answer);
    expect([first, second].map(({ headers }) => headers.get(REPLAYED))).toEqual(["false", "true"]);
    expect(begun).toEqual(Array(2).fill(expect.stringMatching(/^@interrupt:[0-9a-f]{32}$/)));
  });

  it("means nothing to a GET", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    const response = await face.app.request("/v1/runs/run-1", { headers: { ...BEARER, ...KEY } });
    expect([response.status, response.headers.get(REPLAYED)]).toEqual([200, null]);
  });
});
