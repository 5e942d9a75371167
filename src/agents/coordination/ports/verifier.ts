/** Owns: the port that carries out one check of a result: what the check is given, and what it answers. */
import type { AgentId, CoordinationId, EpochMs, EventId, SessionKey, StepId } from "../contracts/ids.ts";
import type { Check, Verdict, VerificationFailure } from "../contracts/verification.ts";

/** A result that is checked. Verifiers get copies of their own. */
export interface VerifiedResult {
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
  readonly attempt: number;
  /** The event that a verdict is about; a verdict that names another one does not count. */
  readonly target: EventId;
  /** Who did the work, and where. */
  readonly agentId: AgentId;
  readonly childSessionKey?: SessionKey;
  /** The folder in which it was done, as an absolute path. Absent: where its agent works otherwise. */
  readonly folder?: string;
  /** The agent's task, where its text is kept. */
  readonly task?: string;
  /** The result as text: the agent's last words, or its outputs as JSON. */
  readonly text: string;
  /** The outputs, where the agent gave any. */
  readonly outputs?: Readonly<Record<string, unknown>>;
  /** From 0 to 1, as the agent stated it. */
  readonly confidence?: number;
}

/** One check of a result, with the time until which an answer counts. */
export interface CheckRequest {
  readonly key: string;
  readonly check: Check;
  readonly result: VerifiedResult;
  /** The agent whose model criticises, where the check names none. */
  readonly critic?: AgentId;
  /** True where an agent may be the critic of its own results. */
  readonly allowSelf: boolean;
  readonly deadlineAtMs: EpochMs;
  /** Aborted at the deadline, and when the coordinator stops. */
  readonly signal: AbortSignal;
}

/** The answer of a check: a verdict, or why there is none. */
export type CheckAnswer =
  | {
      readonly kind: "verdict";
      readonly verdict: Verdict;
      /** Keys of what was looked at; of a verdict that is no pass, of what was not met. */
      readonly criteria: readonly string[];
      /** From 0 to 1: how sure the verifier is of its verdict. */
      readonly confidence?: number;
      /** Who ruled, as `agent:<id>`, `check:<key>` or `plugin:<id>`. */
      readonly agentId: string;
    }
  /** `message` is for the log, and free of content. */
  | { readonly kind: "none"; readonly because: VerificationFailure; readonly message: string };

/** Carries out checks. Never throws; answers `none` rather than guess. The same request may be made again after a crash. */
export interface Verifier {
  check(request: CheckRequest): Promise<CheckAnswer>;
}
