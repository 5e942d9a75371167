/** Owns: what gates and questions need of the world. */
import type { TruthConfig } from "../../contracts/config/config.ts";
import type { EscalationsConfig, GatesConfig } from "../../contracts/config/gates-config.ts";
import type { AgentId } from "../../contracts/ids.ts";
import type { HumanChannel } from "../../ports/human-channel.ts";
import type { CheckAnswer, CheckRequest, Verifier } from "../../ports/verifier.ts";

/** Checks and channels of other plugins. Their checks have keys that begin with `plugin:`. */
export interface PluginGates {
  /** The keys of the checks that plugins make of an agent's results. */
  verifiersFor(agentId: AgentId): readonly string[];
  /** Never throws. */
  verify(request: Omit<CheckRequest, "check" | "critic" | "allowSelf">): Promise<CheckAnswer>;
  /** Plugins that want to hear of every question, as channels. */
  channels(): readonly string[];
}

export interface GateDependencies {
  readonly gates: GatesConfig;
  readonly escalations: EscalationsConfig;
  readonly truth: TruthConfig;
  readonly verifier: () => Promise<Verifier>;
  readonly pluginGates: PluginGates;
  /** `undefined` for a channel that there is none of. */
  readonly channelOf: (channel: string) => HumanChannel | undefined;
}
