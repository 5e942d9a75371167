/** Owns: what every agent tool is given, and the form in which it answers. */
import type { AgentId, SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type { PlanAccess } from "./plan-access.ts";

/** The answer of a tool to the model, as JSON. */
export interface ToolAnswer extends Readonly<Record<string, unknown>> {
  readonly status: string;
}

/** The session that calls a tool, and what it may reach. */
export interface ToolCallScope {
  readonly plans: PlanAccess;
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

/** Runs the work of a tool with what is known of its call. */
export type ToolCallRunner = <T>(work: (calling: ToolCallScope) => Promise<T>) => Promise<T>;

/** Returns the answer of an agent tool that says what is wrong with the call; nothing is thrown. */
export function createToolError(message: string): ToolAnswer {
  return { status: "error", message };
}
