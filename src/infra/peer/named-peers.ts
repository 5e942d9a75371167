/**
 * Owns: that only peers which the operator named are asked anything. Who starts a run may say on which peer its children run, and
 * would otherwise reach every address that this host reaches, with whatever path.
 *
 * P3: a peer is its origin and its path; no other path of the same origin is that peer.
 */
import type { OutboundFailure, PeerHosts, ToolCaller } from "../../agents/coordination/ports/outbound.ts";
import { resolvePeerAddress } from "../../agents/coordination/std/foreign-text.ts";
import { createOutboundFailure } from "../http/outbound-error.ts";

/**
 * Wraps the access to OpenWOP peers so that only named ones are called; for others a failure is returned. `named`:
 * roots of peers, such as `https://peer.example` or `https://peer.example/openwop`.
 */
export function createNamedPeers(peers: PeerHosts, named: readonly string[]): PeerHosts {
  const callIfNamed = createCallIfNamed(named);
  return {
    discover: (peerUrl, signal) => callIfNamed(peerUrl, () => peers.discover(peerUrl, signal)),
    createRun: (peerUrl, request) => callIfNamed(peerUrl, () => peers.createRun(peerUrl, request)),
    snapshot: (peerUrl, runId, signal) => callIfNamed(peerUrl, () => peers.snapshot(peerUrl, runId, signal)),
    awaitEnd: (peerUrl, runId, signal) => callIfNamed(peerUrl, () => peers.awaitEnd(peerUrl, runId, signal)),
    cancel: (peerUrl, runId, request) => callIfNamed(peerUrl, () => peers.cancel(peerUrl, runId, request)),
  };
}

/**
 * Wraps the caller of MCP tools and A2A agents so that calls through a peer reach named peers only; for others a
 * failure is returned. Calls without a peer are made as they are.
 */
export function createNamedTools(tools: ToolCaller, named: readonly string[]): ToolCaller {
  const callIfNamed = createCallIfNamed(named);
  return {
    listMcp: (call) => tools.listMcp(call),
    callMcp: async (call) =>
      call.peerUrl === undefined
        ? await tools.callMcp(call)
        : await callIfNamed(call.peerUrl, () => tools.callMcp(call)),
    sendA2a: async (call) =>
      call.peerUrl === undefined
        ? await tools.sendA2a(call)
        : await callIfNamed(call.peerUrl, () => tools.sendA2a(call)),
  };
}

/** Creates the function that asks a peer only if it is named, and returns a failure for any other. */
function createCallIfNamed(named: readonly string[]) {
  const roots = new Set(named.map((url) => resolvePeerAddress(url, "")));
  return async <T>(peerUrl: string, ask: () => Promise<T>): Promise<T | OutboundFailure> => {
    const root = resolvePeerAddress(peerUrl, "");
    return root !== undefined && roots.has(root) ? await ask() : NOT_NAMED;
  };
}

const NOT_NAMED = createOutboundFailure({
  code: "address_not_allowed",
  message: "The peer is none that the operator named (--peer, openwop.peers).",
});
