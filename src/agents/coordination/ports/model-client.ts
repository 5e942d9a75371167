/** Owns: the port that asks a model of the host one question, outside of any conversation. */
import type { AgentId } from "../contracts/ids.ts";

/** A question to a model that belongs to no conversation. */
export interface ModelRequest {
  /** Whose model is asked. It is no turn of that agent: it has no tools, no history and no session. */
  readonly agentId: AgentId;
  readonly system: string;
  readonly prompt: string;
  readonly charsMax: number;
  readonly signal: AbortSignal;
}

/** Asks a model one question through the host. */
export interface ModelClient {
  /** @throws Error with a sentence when the host has no such model, refuses, or the signal aborts. */
  complete(request: ModelRequest): Promise<{ readonly text: string; readonly model: string }>;
}
