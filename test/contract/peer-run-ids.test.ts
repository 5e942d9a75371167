/** Owns: ids of a peer's runs that are no Unicode text: no request can name such a run. */
import { expect, it } from "vitest";
import type { PeerHosts } from "../../src/agents/coordination/ports/outbound.ts";
import { createPeerHosts } from "../../src/infra/peer/peer-hosts.ts";
import {
  createSteppingClock,
  createUnendingSignal,
  PEER_RUN,
  replyInTurn,
  replyJson,
  serve,
  testFetch,
} from "./outbound-scene.ts";

const HALF = "run-\ud800";

function createPeers(): PeerHosts {
  const clock = createSteppingClock();
  return createPeerHosts({ fetch: testFetch(clock), clock, charsMax: 1_000_000 });
}

it("a run whose id has half of a surrogate pair is refused with the field that is wrong", async () => {
  const peer = await serve(replyJson(201, { runId: HALF, status: "pending" }));
  expect(await createPeers().createRun(peer.url, PEER_RUN)).toMatchObject({
    kind: "unknown",
    code: "malformed",
    message: "The peer's answer is not of the protocol (runId: expected whole Unicode characters).",
  });
});

it("a peer that answers with another id then is taken at that", async () => {
  const replyCreated = (runId: string) => replyJson(201, { runId, status: "pending" });
  const peer = await serve(replyInTurn(replyCreated(HALF), replyCreated("run-1")));
  expect(await createPeers().createRun(peer.url, PEER_RUN)).toMatchObject({ runId: "run-1" });
});

it("one that a log has from before is asked for, and has an end", async () => {
  const peer = await serve(replyJson(404, { error: "not_found", message: "no such run" }));
  const peers = createPeers();
  expect(await peers.awaitEnd(peer.url, HALF, createUnendingSignal())).toMatchObject({
    kind: "refused",
    status: 404,
  });
  expect(await peers.snapshot(peer.url, HALF, createUnendingSignal())).toMatchObject({ kind: "refused" });
});
