/** Owns: the answers of `decide`. */
import type { StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";

export type RefusalCode =
  | "NOT_OPENED"
  | "ALREADY_OPENED"
  | "COORDINATION_ENDED"
  | "UNKNOWN_STEP"
  | "STALE_ATTEMPT"
  | "NOT_DISPATCHED"
  | "STEP_ENDED"
  | "ALREADY_RUNNING"
  | "OTHER_CHILD"
  | "CHILD_TAKEN"
  | "TOO_MANY_STEPS"
  | "STEPS_OPEN"
  /** The command is about plans, and the coordination runs none. */
  | "NOT_PLANNED"
  /** Results of another plan, where there is none. */
  | "NOT_A_FORK"
  /** D6: what the step waits for is not there yet. */
  | "NOT_READY"
  /** The plan was cancelled, has failed or passed its deadline: nothing more begins. */
  | "PLAN_STOPPED"
  /** What was used is more than the budget: nothing begins until people answer. */
  | "BUDGET_SPENT"
  /** Too many spawns of models are open. */
  | "LANE_FULL"
  /** One attempt has reported often enough. */
  | "TOO_MANY_REPORTS"
  /** One attempt has ended its turn with a text often enough. */
  | "TOO_MANY_TEXTS"
  /** A2: the claim has ended, or is another step's. */
  | "STALE_TOKEN"
  | "TOO_MANY_CLAIMS"
  | "TOO_MANY_CONFLICTS"
  | "NOTHING_TO_RETRY"
  | "QUESTION_CLOSED"
  | "UNKNOWN_QUESTION"
  /** Whoever answered may not, or not so. */
  | "ANSWER_REFUSED"
  | "TOO_MANY_QUESTIONS"
  /** The result is not held, or a verdict is about something else. */
  | "NOT_HELD"
  | "QUESTIONS_OPEN"
  /** What would have to be held back cannot be. */
  | "UNGATEABLE";

export type Decision =
  /** The facts to append; `stepId` is the step that the command was about. */
  | { readonly kind: "accepted"; readonly facts: readonly FactDraft[]; readonly stepId?: StepId }
  /** D2: the log already says so. */
  | { readonly kind: "replay"; readonly stepId?: StepId }
  /** `facts` record the refusal itself, where that matters. */
  | {
      readonly kind: "refused";
      readonly code: RefusalCode;
      readonly reason: string;
      readonly facts?: readonly FactDraft[];
    };

export function refuse(code: RefusalCode, reason: string): Decision & { readonly kind: "refused" } {
  return { kind: "refused", code, reason };
}

export function accept(facts: readonly FactDraft[], stepId?: StepId): Decision {
  return { kind: "accepted", facts, ...(stepId && { stepId }) };
}
