import { describe, expect, it } from "vitest";
import type { PeerHosts, PeerRunRequest } from "../../src/agents/coordination/ports/outbound.ts";
import { readParentHeader } from "../../src/agents/coordination/workflow/parent-header.ts";
import { withTokens } from "../../src/infra/http/tokens.ts";
import { createPeerHosts } from "../../src/infra/peer/peer-hosts.ts";
import {
  replyEndlessly,
  replyInTurn,
  replyJson,
  createUnendingSignal,
  PARENT,
  PEER_RUN,
  startRawServer,
  serve,
  createSteppingClock,
  testFetch,
  TRACEPARENT,
  type Reply,
  type Server,
  type SteppingClock,
} from "./outbound-scene.ts";

const REQUEST: PeerRunRequest = { ...PEER_RUN, inputs: { a: 1 }, tracestate: "v=1" };
const CREATED = replyJson(201, { runId: "run-1", status: "pending" });
const createRefusal = (error: string): object => ({ error, message: "text of the peer" });

function createPeersWith(
  clock: SteppingClock = createSteppingClock(),
  tokens: Record<string, string> = {},
): PeerHosts {
  const fetch = withTokens(testFetch(clock), tokens);
  return createPeerHosts({ fetch, clock, charsMax: 1_000_000 });
}

const createEvent = (sequence: number, type: string, payload: object = {}): object => ({
  eventId: `run-1:${sequence}`,
  runId: "run-1",
  sequence,
  type,
  payload,
  timestamp: "2026-01-01T00:00:00.000Z",
});
const page = (events: readonly object[], isComplete = false): Reply => replyJson(200, { events, isComplete });
const snapshotOf = (status: string, more: object = {}): Reply =>
  replyJson(200, { runId: "run-1", workflowId: "wf", status, ...more });

/** A peer that answers polls in turn, and always has the same snapshot. */
const runOf = (snapshot: Reply, ...polls: readonly Reply[]): Promise<Server> => {
  const poll = replyInTurn(...polls);
  return serve((response, request) =>
    (request.path.includes("/events/poll") ? poll : snapshot)(response, request),
  );
};

describe("discovering a peer", () => {
  const model = {
    multiAgent: { executionModel: { crossHostCausation: { supported: true, hostId: "host-b" } } },
  };

  it.each([
    ["at the root", model],
    ["in the wrapper of older hosts", { capabilities: model }],
  ])("takes the name that it gives itself %s", async (_where, document) => {
    const peer = await serve(replyJson(200, { protocolVersion: "1.1", ...document }));
    expect(await createPeersWith().discover(`${peer.url}/`, createUnendingSignal())).toEqual({
      kind: "host",
      hostId: "host-b",
      wellKnownUrl: `${peer.url}/.well-known/openwop`,
    });
  });

  it("names one that has no name by its root, its path included", async () => {
    const peer = await serve(replyJson(200, { multiAgent: { executionModel: {} } }));
    const found = await createPeersWith().discover(`${peer.url}/base/?x=1`, createUnendingSignal());
    expect(found).toMatchObject({
      hostId: `${peer.url}/base`,
      wellKnownUrl: `${peer.url}/base/.well-known/openwop`,
    });
    expect(peer.received[0]!.path).toBe("/base/.well-known/openwop");
  });
});

describe("creating a run at a peer", () => {
  it("sends key, trace, token and parent, and tells the run", async () => {
    const peer = await serve(CREATED);
    const peers = createPeersWith(createSteppingClock(), { [peer.url]: "a-token" });
    expect(await peers.createRun(peer.url, REQUEST)).toEqual({
      kind: "created",
      runId: "run-1",
      status: "pending",
    });
    const [{ method, path, headers, body }] = peer.received as [Server["received"][number]];
    expect([method, path, JSON.parse(body)]).toEqual([
      "POST",
      "/v1/runs",
      { workflowId: "wf", inputs: { a: 1 } },
    ]);
    expect(headers).toMatchObject({
      authorization: "Bearer a-token",
      "idempotency-key": "run:node:1",
      traceparent: TRACEPARENT,
      tracestate: "v=1",
    });
    expect(readParentHeader(String(headers["openwop-parent"]))).toEqual(PARENT);
  });

  it("makes a key of its own of one that no header takes, always the same", async () => {
    const peer = await serve(CREATED);
    const request = { ...REQUEST, idempotencyKey: `ä${"x".repeat(300)}` };
    await createPeersWith().createRun(peer.url, request);
    await createPeersWith().createRun(peer.url, request);
    const keys = peer.received.map(({ headers }) => headers["idempotency-key"]);
    expect(keys[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(keys[1]).toBe(keys[0]);
  });

  it.each([
    [400, "validation_error"],
    [401, "unauthenticated"],
    [403, "forbidden"],
    [404, "not_found"],
    [409, "idempotency_key_mismatch"],
    [422, "capability_required"],
  ])("is refused by %d %s, once and without the peer's text", async (status, error) => {
    const peer = await serve(replyJson(status, createRefusal(error)));
    const outcome = await createPeersWith().createRun(peer.url, REQUEST);
    expect(outcome).toMatchObject({ kind: "refused", code: "rejected", status, errorCode: error });
    expect(JSON.stringify(outcome)).not.toContain("text of the peer");
    expect(peer.received).toHaveLength(1);
  });

  it.each([
    ["a failure", replyJson(500, {})],
    ["too many requests", replyJson(429, createRefusal("rate_limited"), { "retry-after": "7" })],
    ["the same request under way", replyJson(409, createRefusal("idempotency_in_flight"))],
    ["an answer that is no JSON", ((response) => void response.end("<html>")) satisfies Reply],
    ["a run without an id", replyJson(201, { status: "pending" })],
    ["a run whose id is a path", replyJson(201, { runId: "..", status: "pending" })],
    ["a connection that breaks", ((response) => void response.destroy()) satisfies Reply],
  ])("is tried again after %s, with the same key", async (_what, reply) => {
    const peer = await serve(replyInTurn(reply, CREATED));
    expect(await createPeersWith().createRun(peer.url, REQUEST)).toMatchObject({
      kind: "created",
      runId: "run-1",
    });
    expect(new Set(peer.received.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    expect(peer.received).toHaveLength(2);
  });

  it("waits as long as the peer asks, up to a bound", async () => {
    const clock = createSteppingClock();
    const replyLater = (seconds: string): Reply => replyJson(503, {}, { "retry-after": seconds });
    const peer = await serve(replyInTurn(replyLater("7"), replyLater("999999"), CREATED));
    await createPeersWith(clock).createRun(peer.url, REQUEST);
    expect(clock.waits).toEqual([7_000, 30_000]);
  });

  it("is unknown after the last try", async () => {
    const peer = await serve(replyJson(501, {}));
    const outcome = await createPeersWith().createRun(peer.url, REQUEST);
    expect(outcome).toMatchObject({ kind: "unknown", code: "unavailable", status: 501 });
    expect(peer.received).toHaveLength(4);
  });

  it("is refused by a peer that redirects to a private address, which is not asked", async () => {
    const inside = await serve(CREATED);
    const peer = await serve((response) => void response.writeHead(307, { location: inside.url }).end());
    expect(await createPeersWith().createRun(peer.url, REQUEST)).toMatchObject({
      kind: "refused",
      code: "redirected",
    });
    expect(inside.received).toEqual([]);
  });

  it("is refused where the address may not be called", async () => {
    const clock = createSteppingClock();
    const fetch = testFetch(clock, { allowPrivate: false });
    const peers = createPeerHosts({ fetch, clock, charsMax: 1_000 });
    for (const url of ["http://127.0.0.1:1", "nonsense", "https://10.0.0.1"])
      expect(await peers.createRun(url, REQUEST)).toMatchObject({
        kind: "refused",
        code: "address_not_allowed",
      });
    expect(clock.waits).toEqual([]);
  });

  it("is unknown where the peer cannot be reached: an earlier try may have been", async () => {
    const outcome = await createPeersWith().createRun("http://127.0.0.1:1", REQUEST);
    expect(outcome).toMatchObject({ kind: "unknown", code: "unreachable" });
  });

  it("survives a body without end, and one that is slow", async () => {
    const peer = await serve(replyEndlessly);
    expect(await createPeersWith().createRun(peer.url, REQUEST)).toMatchObject({
      kind: "unknown",
      code: "too_large",
    });
    const clock = createSteppingClock();
    const slow = await startRawServer((socket) => {
      socket.write("HTTP/1.1 201 Created\r\n");
      setImmediate(() => clock.expire());
    });
    expect(await createPeersWith(clock).createRun(slow, REQUEST)).toMatchObject({
      kind: "unknown",
      code: "timed_out",
    });
  });

  it("survives JSON that is too deep", async () => {
    const deep = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
    const peer = await serve((response) => void response.writeHead(201).end(deep));
    expect(await createPeersWith().createRun(peer.url, REQUEST)).toMatchObject({
      kind: "unknown",
      code: "malformed",
    });
  });

  it("is given up with the signal, also between tries", async () => {
    const controller = new AbortController();
    const peer = await serve((response) => {
      controller.abort();
      response.writeHead(500).end();
    });
    const outcome = await createPeersWith().createRun(peer.url, { ...REQUEST, signal: controller.signal });
    expect(outcome).toMatchObject({ kind: "unknown", code: "aborted" });
    expect(peer.received).toHaveLength(1);
  });
});

describe("waiting for the end of a peer's run", () => {
  const awaitEnd = (peer: Server, clock = createSteppingClock(), signal = createUnendingSignal()) =>
    createPeersWith(clock).awaitEnd(peer.url, "run-1", signal);

  it("tells outputs, variables and the terminal event", async () => {
    const peer = await runOf(
      snapshotOf("completed", { variables: { v: 1 } }),
      page([createEvent(0, "run.started")]),
      page([createEvent(1, "node.started"), createEvent(2, "run.completed", { outputs: { o: 2 } })], true),
    );
    expect(await awaitEnd(peer)).toEqual({
      kind: "ended",
      status: "completed",
      outputs: { o: 2 },
      variables: { v: 1 },
    });
    expect(peer.received.map(({ path }) => path)).toEqual([
      "/v1/runs/run-1/events/poll?timeout=10",
      "/v1/runs/run-1/events/poll?lastSequence=0&timeout=10",
      "/v1/runs/run-1",
    ]);
  });

  it("tells the variables as outputs where the terminal event has none", async () => {
    const peer = await runOf(
      snapshotOf("completed", { variables: { v: 1 } }),
      page([createEvent(0, "run.completed")], true),
    );
    expect(await awaitEnd(peer)).toMatchObject({ outputs: { v: 1 }, variables: { v: 1 } });
  });

  it.each(["failed", "cancelled"])("tells that it %s, with its error", async (status) => {
    const error = { code: "x", message: "y" };
    const peer = await runOf(snapshotOf(status), page([createEvent(3, `run.${status}`, { error })], true));
    expect(await awaitEnd(peer)).toMatchObject({ kind: "ended", status, error });
  });

  it("takes the first of two ends", async () => {
    const both = [createEvent(1, "run.completed", { outputs: {} }), createEvent(2, "run.failed")];
    const peer = await runOf(snapshotOf("completed"), page(both, true));
    expect(await awaitEnd(peer)).toMatchObject({ status: "completed" });
  });

  it("waits longer and longer for a peer that brings no news, and a tenth of a second after news", async () => {
    const clock = createSteppingClock();
    const old = page([createEvent(0, "run.started")]);
    const news = page([createEvent(0, "run.started"), createEvent(1, "node.started")]);
    const end = page([createEvent(2, "run.completed")], true);
    const peer = await runOf(snapshotOf("completed"), old, old, old, old, old, old, old, news, old, end);
    expect(await awaitEnd(peer, clock)).toMatchObject({ kind: "ended" });
    expect(clock.waits).toEqual([100, 250, 500, 1_000, 2_000, 4_000, 5_000, 100, 250]);
  });

  it("goes through faults of the peer", async () => {
    const peer = await runOf(
      snapshotOf("running"),
      replyJson(500, {}),
      (response) => void response.destroy(),
      (response) => void response.end("no json"),
      replyJson(429, {}, { "retry-after": "1" }),
      replyJson(200, { events: "none" }),
      page([createEvent(0, "run.completed", { outputs: { o: 1 } })], true),
    );
    expect(await awaitEnd(peer)).toMatchObject({ kind: "ended", outputs: { o: 1 } });
  });

  it("waits through faults for the snapshot of a run that has ended", async () => {
    const convergence = { goalSatisfied: false, unmet: ["tests"] };
    const whole = snapshotOf("completed", { variables: { v: 1 }, convergence });
    const end = page([createEvent(0, "run.completed", { outputs: { o: 2 } })], true);
    const peer = await runOf(
      replyInTurn(replyJson(503, {}), (reply) => void reply.destroy(), whole),
      end,
    );
    const values = { outputs: { o: 2 }, variables: { v: 1 }, unmet: ["tests"] };
    expect(await awaitEnd(peer)).toEqual({ kind: "ended", status: "completed", ...values });
  });

  it.each([
    [500, 120],
    [404, 1],
    [403, 1],
  ])("takes the end from the event where the snapshot only answers %d", async (status, looks) => {
    const end = page([createEvent(0, "run.completed", { outputs: { o: 2 } })], true);
    const peer = await runOf(replyJson(status, {}), end);
    expect(await awaitEnd(peer)).toMatchObject({ kind: "ended", outputs: { o: 2 }, variables: { o: 2 } });
    expect(peer.received).toHaveLength(2 * looks);
  });

  it.each([404, 405, 501])("reads the snapshot of a peer whose poll answers %d", async (status) => {
    const poll = replyJson(status, {});
    const peer = await runOf(
      replyInTurn(snapshotOf("running"), snapshotOf("completed", { variables: { v: 1 } })),
      poll,
    );
    const ended = await awaitEnd(peer);
    expect(ended).toEqual({ kind: "ended", status: "completed", outputs: { v: 1 }, variables: { v: 1 } });
  });

  it("reads the snapshot of a peer whose events have no end", async () => {
    const peer = await runOf(snapshotOf("failed", { error: { code: "x", message: "y" } }), replyEndlessly);
    expect(await awaitEnd(peer)).toMatchObject({ kind: "ended", status: "failed", error: { code: "x" } });
  });

  it.each([401, 403, 404])("is refused where the peer knows of no such run: %d", async (status) => {
    const peer = await serve(replyJson(status, createRefusal("not_found")));
    expect(await awaitEnd(peer)).toMatchObject({ kind: "refused", status });
  });

  it("gives up a peer that only fails, after a bounded number of looks", async () => {
    const clock = createSteppingClock();
    const peer = await serve(replyJson(500, {}));
    expect(await awaitEnd(peer, clock)).toMatchObject({ kind: "unknown", code: "unavailable" });
    expect(peer.received).toHaveLength(120);
    expect(Math.max(...clock.waits)).toBe(5_000);
  });

  it("ends with the signal", async () => {
    const controller = new AbortController();
    const peer = await serve(() => controller.abort());
    expect(await awaitEnd(peer, createSteppingClock(), controller.signal)).toMatchObject({
      kind: "unknown",
      code: "aborted",
    });
  });
});

describe("a run of a peer", () => {
  it("has a snapshot", async () => {
    const peer = await serve(
      snapshotOf("waiting-approval", { variables: { v: 1 }, error: null, more: true }),
    );
    expect(await createPeersWith().snapshot(peer.url, "run/1", createUnendingSignal())).toEqual({
      kind: "snapshot",
      runId: "run/1",
      workflowId: "wf",
      status: "waiting-approval",
      variables: { v: 1 },
    });
    expect(peer.received[0]!.path).toBe("/v1/runs/run%2F1");
  });

  it("is cancelled", async () => {
    const peer = await serve(replyJson(200, { runId: "run-1", status: "cancelling" }));
    const request = { reason: "over", signal: createUnendingSignal() };
    expect(await createPeersWith().cancel(peer.url, "run-1", request)).toEqual({
      kind: "cancelling",
      status: "cancelling",
    });
    expect(peer.received[0]).toMatchObject({
      method: "POST",
      path: "/v1/runs/run-1/cancel",
      body: '{"reason":"over"}',
    });
  });

  it("that has ended is no failure to cancel", async () => {
    const peer = await serve(
      replyInTurn(replyJson(409, createRefusal("run_terminal")), snapshotOf("completed")),
    );
    const outcome = await createPeersWith().cancel(peer.url, "run-1", { signal: createUnendingSignal() });
    expect(outcome).toEqual({ kind: "cancelling", status: "completed" });
  });
});
