/** Owns: for how long a peer is asked again: while it is away, and while its run has no news. */
import { expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import { OutboundError } from "../../src/infra/http/outbound-error.ts";
import type { SafeFetch } from "../../src/infra/http/safe-fetch.ts";
import { createPeerHosts } from "../../src/infra/peer/peer-hosts.ts";
import { START_MS } from "../support/fake-clock.ts";
import {
  createSteppingClock,
  createUnendingSignal,
  PEER_RUN,
  replyInTurn,
  replyJson,
  serve,
  testFetch,
  type Reply,
  type SteppingClock,
} from "./outbound-scene.ts";

const CHARS_MAX = 1_000_000;

it("a run is created once by a peer that stores it, loses the connection and is away for more than a minute", async () => {
  const clock = createSteppingClock();
  const dropConnection: Reply = (response) => void response.destroy();
  const away = Array.from({ length: 20 }, () => dropConnection);
  const peer = await serve(replyInTurn(...away, replyJson(201, { runId: "run-1", status: "running" })));
  const peers = createPeerHosts({ fetch: testFetch(clock), clock, charsMax: CHARS_MAX });
  expect(await peers.createRun(peer.url, PEER_RUN)).toMatchObject({ kind: "created", runId: "run-1" });
  expect(new Set(peer.received.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
});

it.each([500, 502, 503, 504])(
  "a run is created once by a peer that stores it, where %d is answered for more than a minute",
  async (status) => {
    const clock = createSteppingClock();
    const away = Array.from({ length: 20 }, () => replyJson(status, {}));
    const peer = await serve(replyInTurn(...away, replyJson(201, { runId: "run-1", status: "running" })));
    const peers = createPeerHosts({ fetch: testFetch(clock), clock, charsMax: CHARS_MAX });
    expect(await peers.createRun(peer.url, PEER_RUN)).toMatchObject({ kind: "created", runId: "run-1" });
  },
);

const createNotFound = (): Error => Object.assign(new Error("no such name"), { code: "ENOTFOUND" });

it.each([
  ["whose name does not exist", () => Promise.reject(createNotFound())],
  ["where nobody listens", () => Promise.resolve(["127.0.0.2"])],
])("a peer %s is given up after four tries: none of them can have reached it", async (_which, resolve) => {
  const clock = createSteppingClock();
  const peers = createPeerHosts({ fetch: testFetch(clock, { resolve }), clock, charsMax: CHARS_MAX });
  const outcome = await peers.createRun("http://peer.example:1", PEER_RUN);
  expect(outcome).toEqual({
    kind: "unknown",
    code: "unreachable",
    message: expect.stringContaining("could not be reached") as string,
  });
  expect(clock.waits).toEqual([250, 500, 1_000]);
});

it("a peer that nobody reaches any more after a try that it got is tried for more than a minute", async () => {
  const clock = createSteppingClock();
  const dropConnection: Reply = (response) => void response.destroy();
  const peer = await serve(
    replyInTurn(dropConnection, replyJson(201, { runId: "run-1", status: "running" })),
  );
  let looks = 0;
  const resolve = () => {
    looks += 1;
    return Promise.resolve([looks > 1 && looks < 20 ? "127.0.0.2" : "127.0.0.1"]);
  };
  const peers = createPeerHosts({ fetch: testFetch(clock, { resolve }), clock, charsMax: CHARS_MAX });
  const url = `http://peer.example:${new URL(peer.url).port}`;
  expect(await peers.createRun(url, PEER_RUN)).toMatchObject({ kind: "created", runId: "run-1" });
  expect(looks).toBe(20);
});

it("a peer that may have the run of an earlier process and cannot be reached is tried for more than a minute", async () => {
  const clock = createSteppingClock();
  const peer = await serve(replyJson(201, { runId: "run-1", status: "running" }));
  let looks = 0;
  const resolve = () => {
    looks += 1;
    return Promise.resolve([looks < 20 ? "127.0.0.2" : "127.0.0.1"]);
  };
  const peers = createPeerHosts({ fetch: testFetch(clock, { resolve }), clock, charsMax: CHARS_MAX });
  const url = `http://peer.example:${new URL(peer.url).port}`;
  const created = await peers.createRun(url, { ...PEER_RUN, mayBeStored: true });
  expect(created).toMatchObject({ kind: "created", runId: "run-1" });
});

const sumWaits = ({ waits }: SteppingClock): number => waits.reduce((sum, waitMs) => sum + waitMs, 0);

it("a peer that drops every connection is given up after two minutes, waits and tries counted", async () => {
  const clock = createSteppingClock();
  const peer = await serve((response) => void response.destroy());
  const peers = createPeerHosts({ fetch: testFetch(clock), clock, charsMax: CHARS_MAX });
  expect(await peers.createRun(peer.url, PEER_RUN)).toMatchObject({ kind: "unknown", code: "unreachable" });
  expect(sumWaits(clock)).toBeGreaterThanOrEqual(120_000);
  expect(sumWaits(clock)).toBeLessThan(130_000);
});

it("a peer that hangs is given up after two minutes, too", async () => {
  let nowMs = START_MS;
  const clock: Clock = {
    now: () => nowMs as EpochMs,
    wakeAt: (atMs, run) => {
      nowMs = atMs;
      const soon = setImmediate(run);
      return () => clearImmediate(soon);
    },
  };
  let tries = 0;
  const fetch: SafeFetch = () => {
    tries += 1;
    nowMs += 20_000;
    return Promise.reject(new OutboundError("timed_out", "There was no whole answer within 20000 ms."));
  };
  const peers = createPeerHosts({ fetch, clock, charsMax: CHARS_MAX });
  expect(await peers.createRun("https://peer.example", PEER_RUN)).toMatchObject({ code: "timed_out" });
  expect(tries).toBe(6);
});

it.each([
  ["an answer that is not of the protocol", 201, { status: "pending" }, "malformed"],
  ["a status that it does not have the call", 501, {}, "unavailable"],
])("a peer that keeps giving %s is asked four times", async (_which, status, body, code) => {
  const clock = createSteppingClock();
  const peer = await serve(replyJson(status, body));
  const peers = createPeerHosts({ fetch: testFetch(clock), clock, charsMax: CHARS_MAX });
  expect(await peers.createRun(peer.url, PEER_RUN)).toMatchObject({ kind: "unknown", code });
  expect(peer.received).toHaveLength(4);
});

it("a peer that has the same request under way is asked for more than a minute", async () => {
  const clock = createSteppingClock();
  const underWay = Array.from({ length: 20 }, () => replyJson(409, { error: "idempotency_in_flight" }));
  const peer = await serve(replyInTurn(...underWay, replyJson(201, { runId: "run-1", status: "running" })));
  const peers = createPeerHosts({ fetch: testFetch(clock), clock, charsMax: CHARS_MAX });
  expect(await peers.createRun(peer.url, PEER_RUN)).toMatchObject({ kind: "created", runId: "run-1" });
});

it("no run is begun for one that ended, beyond the first four tries", async () => {
  const clock = createSteppingClock();
  const ending = new AbortController();
  const peer = await serve((response) => {
    if (peer.received.length === 6) ending.abort();
    response.destroy();
  });
  const peers = createPeerHosts({ fetch: testFetch(clock), clock, charsMax: CHARS_MAX });
  const request = { ...PEER_RUN, runSignal: ending.signal };
  expect(await peers.createRun(peer.url, request)).toMatchObject({ kind: "unknown", code: "unreachable" });
  expect(peer.received).toHaveLength(6);
  expect(await peers.createRun(peer.url, request)).toMatchObject({ kind: "unknown", code: "unreachable" });
  expect(peer.received).toHaveLength(10);
});

it(
  "the end of a run is waited for over more than 100,000 looks that bring no news",
  { timeout: 60_000 },
  async () => {
    let looks = 0;
    const fetch = (): Promise<Response> => {
      looks += 1;
      const hasEnded = looks > 100_000;
      const event = { sequence: 1, type: "run.completed", payload: {} };
      return Promise.resolve(Response.json({ events: hasEnded ? [event] : [], isComplete: hasEnded }));
    };
    const peers = createPeerHosts({ fetch, clock: createSteppingClock(), charsMax: CHARS_MAX });
    const signal = createUnendingSignal();
    expect(await peers.awaitEnd("https://peer.example", "run-1", signal)).toMatchObject({
      kind: "ended",
      status: "completed",
    });
  },
);
