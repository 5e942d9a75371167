/**
 * Owns: that only peers which the operator named are asked anything. Who starts a run may say on which peer its children run, and
 * would otherwise reach every address that this host reaches, with whatever path.
 *
 * P3: a peer is its origin and its path; no other path of the same origin is that peer.
 */
import type { OutboundFailure, PeerHosts } from "../../agents/coordination/ports/outbound.ts";
import { failureOf } from "../http/outbound-error.ts";
import { resolvePeerAddress } from "./peer-call.ts";

/** `named`: roots of peers, such as `https://peer.example` or `https://peer.example/openwop`. */
export function createNamedPeers(peers: PeerHosts, named: readonly string[]): PeerHosts {
  const roots = new Set(named.map((url) => resolvePeerAddress(url, "")));
  const callIfNamed = async <T>(peerUrl: string, ask: () => Promise<T>): Promise<T | OutboundFailure> => {
    const root = resolvePeerAddress(peerUrl, "");
    return root !== undefined && roots.has(root) ? await ask() : NOT_NAMED;
  };
  return {
    discover: (peerUrl, signal) => callIfNamed(peerUrl, () => peers.discover(peerUrl, signal)),
    createRun: (peerUrl, request) => callIfNamed(peerUrl, () => peers.createRun(peerUrl, request)),
    snapshot: (peerUrl, runId, signal) => callIfNamed(peerUrl, () => peers.snapshot(peerUrl, runId, signal)),
    awaitEnd: (peerUrl, runId, signal) => callIfNamed(peerUrl, () => peers.awaitEnd(peerUrl, runId, signal)),
    cancel: (peerUrl, runId, request) => callIfNamed(peerUrl, () => peers.cancel(peerUrl, runId, request)),
  };
}

const NOT_NAMED = failureOf({
  code: "address_not_allowed",
  message: "The peer is none that the operator named (--peer, openwop.peers).",
});
