/** Owns: how a test serves a ledger where it says nothing else: on a free port of the loopback address, for nobody. */
import type { ServingOptions } from "../../src/plugins/serve-openwop.ts";

export function createServing(ledgerPath: string, options: Partial<ServingOptions> = {}): ServingOptions {
  return {
    ledgerPath,
    tokens: [],
    definitions: [],
    version: "0.0.0",
    port: 0,
    hostname: "127.0.0.1",
    allowRemote: false,
    testSeams: false,
    verbose: false,
    confidenceFloor: 0.5,
    escalationThreshold: 0.7,
    privateOrigins: [],
    peerTokens: {},
    log: () => undefined,
    ...options,
  };
}
