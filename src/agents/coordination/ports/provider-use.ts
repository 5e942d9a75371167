/** Owns: the port that holds back steps and model calls while a provider of models refuses calls. */
import type { AgentId, SessionKey } from "../contracts/ids.ts";

/** A model call, as the host tells of it. */
export interface ProviderCall {
  readonly provider: string;
  readonly session: SessionKey;
}

/** Says whether one more step of an agent may begin, as far as the provider of its model takes calls. */
export interface StepAdmission {
  canBeginStep(agentId: AgentId): boolean;
  /** Returns the agents whose steps may not begin now. */
  heldBackAgents(): ReadonlySet<AgentId>;
  /** Grows whenever `canBeginStep` may answer differently than before. */
  version(): number;
  /** Calls `listener` whenever steps that could not begin may be able to, or the other way round. Returns the end of it. */
  onChange(listener: () => void): () => void;
}

/** Holds back what would call a provider that refuses calls. In memory only: a restart forgets it, and the next refusal teaches it. */
export interface ProviderLanes extends StepAdmission {
  callBegan(call: ProviderCall): void;
  callAnswered(session: SessionKey): void;
  /** `retryAfterMs`: absent where the provider did not say. */
  callRefused(call: ProviderCall, retryAfterMs?: number): void;
  /**
   * Returns when the session's next call may begin, at the latest after `callDelayMs`; `undefined`: at once. It waits for
   * `nextProvider`; where the caller does not know that, for the provider of its newest call.
   */
  takeTurn(session: SessionKey, nextProvider?: string): Promise<void> | undefined;
  stop(): void;
}
