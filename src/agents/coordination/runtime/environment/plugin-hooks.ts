/** Owns: what plugins of other authors are asked before something happens, as the runtime asks it. Everything is free of content. */
import type { Contestant } from "../../contracts/arbitration.ts";
import type { ResourceContest } from "../../contracts/commands.ts";
import type { AgentId, CoordinationId, EpochMs, SessionKey } from "../../contracts/ids.ts";

export interface PluginHooks {
  /** A look into a map: nothing else happens where nobody has such a hook. */
  hasAny(kind: "arbitrate" | "decide"): boolean;
  /** In order of priority, until one has an opinion. `undefined`: nobody has. */
  arbitrate(contest: PluginContest, deadlineAtMs: EpochMs): Promise<ContestAnswer | undefined>;
  /** All at once. `undefined`: nobody has an opinion. */
  decide(decision: PluginDecision, deadlineAtMs: EpochMs): Promise<DecisionAnswer | undefined>;
}

export interface PluginContest {
  readonly coordinationId: CoordinationId;
  readonly resource: string;
  /** The names that the call changes it by; of a file with hard links the paths, and those under which its holders claim it. */
  readonly names: readonly string[];
  /** The cause of the contest; a write that has happened already is for people. */
  readonly cause: Exclude<ResourceContest["cause"], "overwritten">;
  /** The strategy that rules where no hook does. */
  readonly strategy: ResourceContest["strategy"];
  readonly requester: ContestSide;
  readonly holders: readonly ContestSide[];
  readonly tool: string;
}

export type ContestSide = Omit<Contestant, "claimedSequence"> & { readonly agentId?: AgentId };

export type ContestAnswer =
  | { readonly award: "requester" | "holder"; readonly plugin: string; readonly reason: string }
  /** The id of the plugin, and a sentence that names it. */
  | { readonly failed: string; readonly message: string };

export type PluginDecision = {
  readonly agentId: AgentId;
  readonly sourceSession: SessionKey;
  readonly coordinationId?: CoordinationId;
  /** From 0 to 1, as whoever decided stated it. */
  readonly confidence?: number;
} & (
  | { readonly kind: "spawn"; readonly runner: string; readonly depth?: number }
  | { readonly kind: "plan"; readonly steps: number; readonly agents: readonly AgentId[] }
);

export type DecisionAnswer =
  | { readonly action: "allow"; readonly confidence?: number }
  /** A sentence that names the plugin. */
  | { readonly action: "deny"; readonly reason: string };
