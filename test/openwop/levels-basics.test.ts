/** Owns: what the protocol's suite asserts of runs as such, on workflows of this project. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findSchemaProblems } from "./levels-schemas.ts";
import { createDelayed, createNode, createNoop, pause, createWorkflow } from "./levels-workflows.ts";
import {
  clientOf,
  filterByType,
  findOnly,
  openWorld,
  type Event,
  type Reply,
  type World,
} from "./levels-world.ts";

const DEFINITIONS = [
  createWorkflow("plain", { nodes: [createNoop("only")] }),
  createWorkflow("in-line", { nodes: [createNoop("a"), createNoop("b"), createNoop("c")] }),
  createWorkflow("echoes", {
    nodes: [
      createNode("echo", "core.identity", {
        inputs: { payload: { type: "variable", variableName: "payload" } },
      }),
    ],
  }),
  createWorkflow("fails", {
    nodes: [createNode("bad", "core.fail", { config: { code: "cave_in", message: "rocks" } })],
  }),
  createDelayed("waits", 30_000),
  createWorkflow("two-steps", { nodes: [pause("first", 400), createNoop("second")] }),
  createWorkflow("long-line", {
    nodes: Array.from({ length: 6 }, (_, index) => createNoop(`n${index + 1}`)),
  }),
  createWorkflow("needs-more", { nodes: [createNode("more", "conformance.requiresMissing")] }),
];

let world: World;
beforeAll(async () => {
  world = await openWorld(DEFINITIONS);
});
afterAll(() => world.close());

const nodesOf = (events: readonly Event[], type: string): unknown[] =>
  filterByType(events, type).map(({ nodeId }) => nodeId);

async function startRunning(delayMs = 30_000): Promise<string> {
  const runId = await world.client.start("waits", { inputs: { delayMs } });
  await world.client.until(runId, "running");
  return runId;
}

const postVerb = (runId: string, name: string, body: object = {}, headers = {}): Promise<Reply> =>
  world.client.post(`/v1/runs/${runId}:${name}`, body, headers);

describe("a run", () => {
  it("B-01 is accepted with its id, a status and where its events are, and completes", async () => {
    const { status, body } = await world.client.post("/v1/runs", { workflowId: "plain" });
    expect(status).toBe(201);
    expect(body).toMatchObject({ status: expect.stringMatching(/^(pending|running)$/u) as string });
    const runId = String(body["runId"]);
    expect(body["eventsUrl"]).toBe(`/v1/runs/${runId}/events`);
    const ended = await world.client.until(runId, "completed");
    expect(ended["endedAt"]).toEqual(expect.any(String));
    const events = await world.client.events(runId);
    expect(events.map(({ type }) => type)).toEqual([
      "run.started",
      "node.started",
      "node.completed",
      "run.completed",
    ]);
  });

  it("B-02 shows its inputs as variables, whatever they hold", async () => {
    const payload = { nested: { list: [1, "two", null], ü: true } };
    const { snapshot } = await world.client.run("echoes", { inputs: { payload } });
    expect(snapshot.variables["payload"]).toEqual(payload);
    expect(snapshot.inputs["payload"]).toEqual(payload);
  });

  it("B-03 executes the nodes of a line in its order", async () => {
    const { events } = await world.client.run("in-line");
    expect(nodesOf(events, "node.completed")).toEqual(["a", "b", "c"]);
    const times = events.map(({ timestamp }) => Date.parse(timestamp));
    expect(times).toEqual(times.toSorted((one, other) => one - other));
  });

  it("B-04 that fails says why, at the node and at the end", async () => {
    const { snapshot, events } = await world.client.run("fails");
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "cave_in", message: "rocks" } });
    expect(findOnly(events, "node.failed").payload).toMatchObject({
      nodeId: "bad",
      error: { code: "cave_in" },
    });
    expect(findOnly(events, "run.failed").payload).toMatchObject({ failedNodeId: "bad" });
    expect(events.at(-1)?.type).toBe("run.failed");
  });

  it("B-05 that needs what no host has is accepted, and fails before the node does anything", async () => {
    const { snapshot } = await world.client.run("needs-more");
    expect(snapshot.error).toMatchObject({
      code: "capability_not_provided",
      message: expect.stringContaining("conformance.never-provided") as string,
    });
  });

  it("B-06 has one end, and nothing behind it", async () => {
    for (const workflowId of ["plain", "fails"]) {
      const { runId, events } = await world.client.run(workflowId);
      const ends = filterByType(events, "run.completed", "run.failed", "run.cancelled");
      expect(ends).toEqual([events.at(-1)]);
      await world.client.post(`/v1/runs/${runId}/cancel`);
      expect(await world.client.events(runId)).toEqual(events);
    }
  });
});

describe("errors", () => {
  it("B-10 have one shape and the status of their kind", async () => {
    const { client } = world;
    const stranger = clientOf(world.baseUrl, "nobody's");
    const cases: readonly (readonly [Promise<Reply>, number, string])[] = [
      [client.post("/v1/runs", {}), 400, "validation_error"],
      [client.post("/v1/runs", { workflowId: "no-such-workflow" }), 400, "validation_error"],
      [client.get("/v1/runs/run-nobody"), 404, "not_found"],
      [client.get("/v1/workflows/no-such-workflow"), 404, "not_found"],
      [client.get("/v1/no-such-route"), 404, "not_found"],
      [client.get("/v1/runs/run-nobody/artifacts/none"), 404, "not_found"],
      [client.post("/v1/runs/run-nobody/cancel"), 404, "not_found"],
      [stranger.post("/v1/runs", { workflowId: "plain" }), 401, "unauthenticated"],
      [stranger.get("/v1/runs/run-nobody"), 401, "unauthenticated"],
    ];
    for (const [pendingAnswer, status, error] of cases) {
      const reply = await pendingAnswer;
      expect([reply.status, reply.body["error"]]).toEqual([status, error]);
    }
  });

  it("B-11 keep another tenant's run as hidden as one that is not there", async () => {
    const { runId } = await world.client.run("plain");
    const { other } = world;
    const theirs = await Promise.all([
      other.get(`/v1/runs/${runId}`),
      other.get(`/v1/runs/${runId}/events`),
      other.get(`/v1/runs/${runId}/events/poll?timeout=1`),
      other.post(`/v1/runs/${runId}/cancel`),
      other.post(`/v1/runs/${runId}:pause`),
      other.post(`/v1/runs/${runId}:fork`, { mode: "branch" }),
    ]);
    for (const { status, body } of theirs) expect([status, body["error"]]).toEqual([404, "not_found"]);
  });

  it("B-12 of a fork come in order: the run, the request, the place, the memory", async () => {
    const { runId } = await world.client.run("plain");
    const cases = [
      ["run-nobody", { mode: "replay" }, 404, "not_found"],
      [runId, { mode: "replay", fromSeq: -1 }, 400, "validation_error"],
      [runId, { mode: "sideways" }, 400, "validation_error"],
      [runId, { mode: "branch" }, 400, "validation_error"],
      [runId, { mode: "replay", runOptionsOverlay: { configurable: { a: 1 } } }, 400, "validation_error"],
      [runId, { mode: "branch", fromSeq: 99 }, 422, "invalid_from_seq"],
    ] as const;
    for (const [id, body, status, error] of cases) {
      const reply = await postVerb(id, "fork", body);
      expect([reply.status, reply.body["error"]]).toEqual([status, error]);
    }
    const old = await openWorld(DEFINITIONS, { retentionMs: 0 });
    const ended = await old.client.run("plain");
    const forkLate = async (fromSeq: number) =>
      (await old.client.post(`/v1/runs/${ended.runId}:fork`, { mode: "branch", fromSeq })).body["error"];
    expect(await forkLate(99)).toBe("invalid_from_seq");
    expect(await forkLate(4)).toBe("replay_memory_snapshot_unavailable");
    await old.close();
  });
});

describe("idempotency", () => {
  const postRun = (key: string, nonce: string): Promise<Reply> =>
    world.client.post("/v1/runs", { workflowId: "plain", inputs: { nonce } }, { "idempotency-key": key });
  const readReplayed = ({ headers }: Reply): string | undefined => headers["openwop-idempotent-replay"];

  it("B-13 gives the first answer again, and says so", async () => {
    const first = await postRun("key-1", "one");
    const again = await postRun("key-1", "one");
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.body).toEqual(first.body);
    expect([readReplayed(first), readReplayed(again)]).toEqual([expect.not.stringMatching("true"), "true"]);
  });

  it("B-14 refuses the key for another request, without the run's id", async () => {
    await postRun("key-2", "one");
    const other = await postRun("key-2", "two");
    expect([other.status, other.body["error"]]).toEqual([409, "idempotency_key_mismatch"]);
    expect(other.body).not.toHaveProperty("runId");
  });

  it("B-15 makes one run of ten requests at once", async () => {
    const replies = await Promise.all(Array.from({ length: 10 }, () => postRun("key-3", "one")));
    const made = replies.filter(({ status }) => status === 201);
    expect(new Set(made.map(({ body }) => body["runId"])).size).toBe(1);
    for (const { status, body } of replies.filter((reply) => !made.includes(reply)))
      expect([status, body["error"]]).toEqual([409, "idempotency_in_flight"]);
  });

  it("B-16 keeps the keys of tenants apart", async () => {
    const first = await postRun("key-4", "one");
    const request = { workflowId: "plain", inputs: { nonce: "one" } };
    const theirs = await world.other.post("/v1/runs", request, { "idempotency-key": "key-4" });
    expect(theirs.status).toBe(201);
    expect(theirs.body["runId"]).not.toBe(first.body["runId"]);
  });
});

describe("cancelling", () => {
  it("B-17 ends a run that is under way, with the reason in its log", async () => {
    const runId = await startRunning();
    const { status, body } = await world.client.post(`/v1/runs/${runId}/cancel`, { reason: "enough" });
    expect(status).toBe(200);
    expect(["cancelling", "cancelled"]).toContain(body["status"]);
    await world.client.until(runId, "cancelled");
    const events = await world.client.events(runId);
    expect(findOnly(events, "run.cancelled").payload["reason"]).toBe("enough");
    expect(findOnly(events, "run.cancelled").payload).not.toHaveProperty("parentRunId");
  });

  it("B-18 leaves a run as it ended", async () => {
    const { runId } = await world.client.run("plain");
    const { status, body } = await world.client.post(`/v1/runs/${runId}/cancel`);
    expect([status, body["status"]]).toEqual([200, "completed"]);
  });

  it("B-19 of several runs answers for each, in the order in which they were named", async () => {
    const { runId: ended } = await world.client.run("plain");
    const theirs = await world.other.start("waits");
    const runIds = [await startRunning(), "run-nobody", ended, theirs];
    const { status, body } = await world.client.post("/v1/runs:bulk-cancel", { runIds });
    expect(status).toBe(200);
    expect(body["results"]).toMatchObject([
      { runId: runIds[0], ok: true, status: "cancelled" },
      { runId: "run-nobody", ok: false, error: { code: "not_found" } },
      { runId: ended, ok: false, error: { code: "run_terminal" } },
      { runId: theirs, ok: false, error: { code: "not_found" } },
    ]);
    const again = await world.client.post("/v1/runs:bulk-cancel", { runIds: [runIds[0]] });
    expect(again.body["results"]).toMatchObject([{ ok: true, status: "cancelled" }]);
    for (const bad of [{}, { runIds: [] }, { runIds: [7] }])
      expect((await world.client.post("/v1/runs:bulk-cancel", bad)).status).toBe(400);
    const many = { runIds: Array.from({ length: 101 }, (_, index) => `run-${index}`) };
    expect((await world.client.post("/v1/runs:bulk-cancel", many)).body).toMatchObject({
      error: "validation_error",
      details: { maxRunIds: 100 },
    });
  });
});

describe("pausing", () => {
  it("B-20 stops a run at once where that is asked for, and a resumption begins the node anew", async () => {
    const runId = await startRunning(300);
    expect((await postVerb(runId, "pause", { drainPolicy: "immediate" })).status).toBe(202);
    await world.client.until(runId, "paused");
    expect((await postVerb(runId, "resume")).status).toBe(202);
    await world.client.until(runId, "completed");
    const events = await world.client.events(runId);
    expect(findOnly(events, "run.paused").payload).toMatchObject({ drainPolicy: "immediate" });
    expect(filterByType(events, "node.started")).toHaveLength(2);
    expect(findOnly(events, "run.resumed").sequence).toBeGreaterThan(findOnly(events, "run.paused").sequence);
  });

  it("B-21 lets the node end that is at work, and pauses behind it", async () => {
    const runId = await world.client.start("two-steps");
    expect((await postVerb(runId, "pause", { drainPolicy: "drain-current-node" })).status).toBe(202);
    expect((await world.client.snapshot(runId)).status).toBe("running");
    await world.client.until(runId, "paused");
    const events = await world.client.events(runId);
    expect(nodesOf(events, "node.completed")).toEqual(["first"]);
    expect(findOnly(events, "node.completed").sequence).toBeLessThan(findOnly(events, "run.paused").sequence);
    await postVerb(runId, "resume");
    await world.client.until(runId, "completed");
  });

  it("B-22 pauses behind the last node too, instead of completing", async () => {
    const runId = await startRunning(150);
    await postVerb(runId, "pause");
    await world.client.until(runId, "paused");
    await postVerb(runId, "resume");
    await world.client.until(runId, "completed");
  });

  it("B-23 is refused with the run's status where there is nothing to pause or to resume", async () => {
    const runId = await startRunning();
    expect(await postVerb(runId, "resume")).toMatchObject({
      status: 409,
      body: { details: { runStatus: "running" } },
    });
    await postVerb(runId, "pause", { drainPolicy: "immediate" });
    const again = await postVerb(runId, "pause");
    expect(again).toMatchObject({
      status: 409,
      body: { details: { runStatus: "paused", pausedAt: expect.any(String) as string } },
    });
    expect((await world.client.post(`/v1/runs/${runId}/cancel`)).status).toBe(200);
    await world.client.until(runId, "cancelled");
    const { runId: ended } = await world.client.run("plain");
    expect(await postVerb(ended, "pause")).toMatchObject({
      status: 409,
      body: { details: { runStatus: "completed" } },
    });
    expect((await postVerb("run-nobody", "pause")).status).toBe(404);
  });

  it("B-24 with an idempotency key is the same pause again", async () => {
    const runId = await startRunning();
    const key = { "idempotency-key": "pause-1" };
    const first = await postVerb(runId, "pause", { drainPolicy: "immediate" }, key);
    const again = await postVerb(runId, "pause", { drainPolicy: "immediate" }, key);
    expect([first.status, again.status]).toEqual([202, 202]);
    await world.client.post(`/v1/runs/${runId}/cancel`);
  });
});

describe("bounds", () => {
  it("B-25 on node executions end the run before the node that is too many", async () => {
    const { snapshot, events } = await world.client.run("long-line", { configurable: { recursionLimit: 3 } });
    expect(snapshot.error?.code).toBe("recursion_limit_exceeded");
    const breached = findOnly(events, "cap.breached");
    expect(breached.payload).toMatchObject({ kind: "node-executions", limit: 3, observed: 4, nodeId: "n4" });
    expect(filterByType(events, "node.started")).toHaveLength(3);
    expect(breached.sequence).toBeLessThan(findOnly(events, "run.failed").sequence);
  });

  it("B-26 on time end the run, having observed more than the limit", async () => {
    const { snapshot, events } = await world.client.run("waits", { configurable: { runTimeoutMs: 150 } });
    expect(snapshot.error?.code).toBe("run_timeout");
    const { kind, limit, observed } = findOnly(events, "cap.breached").payload;
    expect([kind, limit]).toEqual(["run-duration", 150]);
    expect(observed).toBeGreaterThan(150);
  });

  it("B-27 that make no sense are refused before a run begins", async () => {
    for (const configurable of [
      { runTimeoutMs: 0 },
      { recursionLimit: -1 },
      { maxLoopIterations: 1.5 },
      { escalationThreshold: 2 },
    ]) {
      const { status, body } = await world.client.post("/v1/runs", { workflowId: "plain", configurable });
      expect([status, body["error"]]).toEqual([400, "validation_error"]);
    }
  });

  it("B-28 are those that are advertised", async () => {
    const { body } = await world.client.get("/.well-known/openwop");
    expect(findSchemaProblems("capabilities", body)).toEqual([]);
    expect(body["limits"]).toMatchObject({
      maxNodeExecutions: expect.any(Number) as number,
      maxRunDurationMs: expect.any(Number) as number,
      maxLoopIterations: expect.any(Number) as number,
    });
  });
});
