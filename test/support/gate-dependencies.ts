/** Owns: everything that gates and questions need of the world: the operator's defaults, and nobody to ask but who is given. */
import {
  parsePluginConfig,
  type TruthConfig,
} from "../../src/agents/coordination/contracts/config/config.ts";
import type {
  EscalationsConfig,
  GatesConfig,
} from "../../src/agents/coordination/contracts/config/gates-config.ts";
import type { GateDependencies } from "../../src/agents/coordination/runtime/environment/gate-dependencies.ts";

export interface GivenGates extends Partial<Omit<GateDependencies, "gates" | "escalations" | "truth">> {
  readonly gates?: Partial<GatesConfig>;
  readonly escalations?: Partial<EscalationsConfig>;
  readonly truth?: Partial<TruthConfig>;
}

const DEFAULTS = parsePluginConfig({});

export function createGateDependencies({
  gates,
  escalations,
  truth,
  ...input
}: GivenGates = {}): GateDependencies {
  return {
    verifier: () => Promise.reject(new Error("nothing is checked here")),
    pluginGates: {
      verifiersFor: () => [],
      verify: () => Promise.resolve({ kind: "none", because: "unavailable", message: "no plugins here" }),
      channels: () => [],
    },
    channelOf: () => undefined,
    ...input,
    gates: { ...DEFAULTS.gates, ...gates },
    escalations: { ...DEFAULTS.escalations, ...escalations },
    truth: { ...DEFAULTS.truth, ...truth },
  };
}
