import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { waitFor } from "../support/wait-for.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { forgetQuestions } from "./a2a-call.ts";
import { BEARER, createFakeFace, OTHER_TOKEN, createPost, type ErrorBody } from "./http-fake-host.ts";
import { openMcpWorld, TOKEN as ANN, type McpWorld } from "./mcp-world.ts";

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

  it("stays free after a refusal that may be tried again, and what it asked after a failure", async () => {
    const face = createFakeFace();
    await face.app.request("/v1/runs", createPost({ workflowId: "nope" }, KEY));
    face.host.fail(new CoordinationError("LEDGER_BUSY", "locked"));
    expect((await face.app.request("/v1/runs", createPost(NOOP, KEY))).status).toBe(503);
    face.host.fail(new Error("odd"));
    expect((await face.app.request("/v1/runs", createPost(NOOP, KEY))).status).toBe(500);
    const other = await face.app.request("/v1/runs", createPost({ ...NOOP, inputs: { a: 1 } }, KEY));
    expect(await readError(other)).toMatchObject({ status: 409, error: "idempotency_key_mismatch" });
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

describe("an idempotency key of a write", () => {
  const FILE = "/v1/host/workspace/files/a.md";
  const KEY = "k1";
  const REPLAYED = "openwop-idempotent-replay";

  interface FileRequest {
    readonly content?: string;
    readonly ifMatch?: string;
    readonly key?: string;
  }

  function send(
    world: McpWorld,
    method: string,
    { content, ifMatch, key }: FileRequest = {},
  ): Promise<Response> {
    return fetch(`${world.baseUrl}${FILE}`, {
      method,
      headers: {
        authorization: `Bearer ${ANN}`,
        "content-type": "application/json",
        ...(key !== undefined && { "idempotency-key": key }),
        ...(ifMatch !== undefined && { "if-match": ifMatch }),
      },
      ...(content !== undefined && { body: JSON.stringify({ content }) }),
    });
  }

  async function put(world: McpWorld, sending: FileRequest): Promise<string> {
    const written = await send(world, "PUT", sending);
    expect(written.status).toBe(200);
    return written.headers.get("etag") ?? "";
  }

  it("does not answer for one `If-Match` what was asked with another", async () => {
    await using world = await openMcpWorld();
    const first = await put(world, { content: "one" });
    const sending = { content: "two", key: KEY };
    const second = await put(world, { ...sending, ifMatch: first });
    await put(world, { content: "three", ifMatch: second });
    const newest = await put(world, { content: "four" });
    const refused = await send(world, "PUT", { ...sending, ifMatch: newest });
    expect(await readError(refused)).toMatchObject({ status: 409, error: "idempotency_key_mismatch" });
    const again = await send(world, "PUT", { ...sending, ifMatch: first });
    expect([again.status, again.headers.get(REPLAYED)]).toEqual([200, "true"]);
  });

  it("stays free after a conflict of versions", async () => {
    await using world = await openMcpWorld();
    const etag = await put(world, { content: "one" });
    const stale = { content: "two", key: KEY, ifMatch: '"stale"' };
    expect(await readError(await send(world, "PUT", stale))).toMatchObject({ error: "workspace_conflict" });
    expect((await send(world, "PUT", { ...stale, ifMatch: etag })).status).toBe(200);
    expect(await (await send(world, "GET")).json()).toMatchObject({ content: "two", version: 2 });
  });

  it("gives the first answer again with its tag, and one without a body too", async () => {
    await using world = await openMcpWorld();
    const etag = await put(world, { content: "one", key: KEY });
    const written = await send(world, "PUT", { content: "one", key: KEY });
    expect([written.headers.get("etag"), written.headers.get(REPLAYED)]).toEqual([etag, "true"]);
    const replays = [];
    for (let turn = 0; turn < 2; turn += 1) {
      const removed = await send(world, "DELETE", { key: KEY });
      replays.push([removed.status, removed.headers.get(REPLAYED), await removed.text()]);
    }
    expect(replays).toEqual([
      [204, "false", ""],
      [204, "true", ""],
    ]);
    const unkeyed = await send(world, "DELETE");
    expect(unkeyed.status).toBe(404);
  });

  it("that an older version left open with the id of a run is still answered", async () => {
    const gate = createNode("gate", "core.approvalGate", { title: "Go?" });
    await using world = await openMcpWorld({ definitions: [createWorkflow("gated", { nodes: [gate] })] });
    const body = { workflowId: "gated" };
    const { runId } = (await world.ask("/v1/runs", { method: "POST", body })) as { readonly runId: string };
    const answer = (): Promise<Response> =>
      fetch(
        `${world.baseUrl}/v1/runs/${runId}/interrupts/gate`,
        createPost(
          { resumeValue: { action: "accept" } },
          { authorization: `Bearer ${ANN}`, "idempotency-key": KEY },
        ),
      );
    await waitFor(async () => (await answer()).status === 200, { what: "the question" });
    forgetQuestions(world.ledger);
    expect(await (await answer()).json()).toMatchObject({ runId, interruptId: "gate~1" });
  });

  it("is another key for another person who answers", async () => {
    const gate = createNode("gate", "core.approvalGate", { title: "Go?", requiredApprovals: 2 });
    await using world = await openMcpWorld({
      definitions: [createWorkflow("votes", { nodes: [gate] })],
      tokens: [
        { tenant: "miners", token: ANN, principal: "ann" },
        { tenant: "miners", token: "t-bob", principal: "bob" },
      ],
    });
    const body = { workflowId: "votes" };
    const { runId } = (await world.ask("/v1/runs", { method: "POST", body })) as { readonly runId: string };
    const hasStatus = async (status: string): Promise<boolean> =>
      (await world.ask(`/v1/runs/${runId}`))["status"] === status;
    await waitFor(() => hasStatus("waiting-approval"), { what: "the question" });
    const vote = (token: string): Promise<Response> =>
      fetch(
        `${world.baseUrl}/v1/runs/${runId}/interrupts/gate`,
        createPost(
          { resumeValue: { action: "accept" } },
          { authorization: `Bearer ${token}`, "idempotency-key": `approve-${runId}` },
        ),
      );
    const replays = [];
    for (const token of [ANN, ANN, "t-bob", "t-bob"]) {
      const voted = await vote(token);
      replays.push([voted.status, voted.headers.get(REPLAYED)]);
    }
    expect(replays).toEqual([
      [200, "false"],
      [200, "true"],
      [200, "false"],
      [200, "true"],
    ]);
    await waitFor(() => hasStatus("completed"), { what: "the end of the run" });
  });
});
