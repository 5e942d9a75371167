/** Owns: for how long a peer is asked again: while it is away, and while its run has no news. */
import { expect, it } from "vitest";
import type { PeerRunRequest } from "../../src/agents/coordination/ports/outbound.ts";
import { createPeerHosts } from "../../src/infra/peer/peer-hosts.ts";
import {
  createSteppingClock,
  createUnendingSignal,
  PARENT,
  replyInTurn,
  replyJson,
  serve,
  testFetch,
  TRACEPARENT,
  type Reply,
} from "./outbound-scene.ts";

const CHARS_MAX = 1_000_000;

it("a run is created once by a peer that stores it, loses the connection and is away for minutes", async () => {
  const clock = createSteppingClock();
  const dropConnection: Reply = (response) => void response.destroy();
  const away = Array.from({ length: 60 }, () => dropConnection);
  const peer = await serve(replyInTurn(...away, replyJson(201, { runId: "run-1", status: "running" })));
  const peers = createPeerHosts({ fetch: testFetch(clock), clock, charsMax: CHARS_MAX });
  const request: PeerRunRequest = {
    workflowId: "wf",
    inputs: {},
    idempotencyKey: "run:node:1",
    parent: PARENT,
    traceparent: TRACEPARENT,
    signal: createUnendingSignal(),
  };
  expect(await peers.createRun(peer.url, request)).toMatchObject({ kind: "created", runId: "run-1" });
  expect(new Set(peer.received.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
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
