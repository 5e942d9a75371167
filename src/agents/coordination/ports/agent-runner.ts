/** Owns: the port that runs the attempts of planned steps: starting, observing and cancelling the agent of one. */
import type { CoordinationEnvelope, Lane } from "../contracts/envelope.ts";
import type { AgentId, EpochMs, IdempotencyKey, SessionKey } from "../contracts/ids.ts";
import type { Cancellation, ChildEnding, Observation, ObservedChild } from "../contracts/observation.ts";

/** One attempt of a planned step, as runners know it. The same attempt has the same fields, also after a restart. */
export interface Attempt {
  readonly idempotencyKey: IdempotencyKey;
  readonly agentId: AgentId;
  /** The session that the attempt runs in. It is chosen by us, and no other attempt has it but one of the owner. */
  readonly childSessionKey: SessionKey;
  /** The host's name for the run; absent until it acknowledged the start. */
  readonly childRunId?: string;
  readonly dispatchedAtMs: EpochMs;
  /** The runner of owners begins another run, of a few, where one failed before the session had its message. */
  readonly isRepeated?: true;
}

/** An attempt with everything that a runner needs to start it. */
export interface AttemptOrder extends Attempt {
  readonly envelope: CoordinationEnvelope;
  readonly lane: Lane;
  /** The message to the agent: the task and, where there is one, its input. */
  readonly message: string;
  /** The JSON Schema that the outputs must meet. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  readonly deadlineAtMs: EpochMs;
  /** Where the agent works; absent: in its own folder. */
  readonly folder?: string;
  /** W3C trace context. */
  readonly traceparent: string;
}

/** The result of starting an attempt. */
export type Start =
  /** The agent is at work, or has ended already. */
  | { readonly kind: "started"; readonly child: ObservedChild; readonly ending?: ChildEnding }
  /** Nothing was started, and nothing will be. */
  | { readonly kind: "refused"; readonly message: string }
  /** It may have been started: only asking can tell. */
  | { readonly kind: "unknown"; readonly message: string };

/**
 * Runs agents for the steps of plans. No method throws because of the agent's work; an error that a method throws counts as
 * `unknown`. Starting twice with one key is one run (D2).
 */
export interface AgentRunner {
  start(order: AttemptOrder): Promise<Start>;
  /** Asks once, without waiting for the end. */
  observe(attempt: Attempt): Promise<Observation>;
  /** Resolves when the attempt has ended, or with `unknown` when that cannot be waited for or `signal` aborts. */
  follow(attempt: Attempt, signal: AbortSignal): Promise<Observation>;
  /** Stops the agent and what it started in turn. */
  cancel(attempt: Attempt): Promise<Cancellation>;
}
