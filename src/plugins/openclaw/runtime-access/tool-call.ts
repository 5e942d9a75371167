/** Owns: what every agent tool is given, and the form in which it answers. */
import type { AgentId, SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type { Plans } from "./plan-access.ts";

/** The answer of a tool to the model, as JSON. */
export interface ToolAnswer extends Readonly<Record<string, unknown>> {
  readonly status: string;
}

export interface Calling {
  readonly plans: Plans;
  readonly mayRun: (agent: AgentId) => boolean;
  /** The host's record of who spawned whom. */
  readonly parentOf?: (session: SessionKey) => SessionKey | undefined;
  /** For a plan without an id. */
  readonly planId: string;
  readonly session: SessionKey;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal | undefined;
  readonly agent: AgentId;
}

export type Use = <T>(work: (calling: Calling) => Promise<T>) => Promise<T>;

/** Returns the answer of an agent tool that says what is wrong with the call; nothing is thrown. */
export function createToolError(message: string): ToolAnswer {
  return { status: "error", message };
}
