/** Owns: the decisions that `decide` returns. */
import type { StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";

/** Why a command was refused. */
export type RefusalCode =
  | "NOT_OPENED"
  /** The append that the commands rest on has failed: they are made anew. */
  | "STATE_VOID"
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
  /** A step carries a result of another plan, and the coordination is no fork. */
  | "NOT_A_FORK"
  /** D6: the step still waits for something. */
  | "NOT_READY"
  /** The plan was cancelled, has failed or passed its deadline: no further attempt begins. */
  | "PLAN_STOPPED"
  /** More was used than the budget allows: no attempt begins until people answer. */
  | "BUDGET_SPENT"
  /** Too many spawns of models are open. */
  | "LANE_FULL"
  /** One attempt has reported often enough. */
  | "TOO_MANY_REPORTS"
  /** The attempt told how far it is a moment ago. */
  | "TOO_SOON"
  /** The child of an attempt has changed often enough. */
  | "TOO_MANY_CHANGES"
  /** One attempt has ended its turn with a text often enough. */
  | "TOO_MANY_TEXTS"
  /** A2: the claim has ended, or belongs to another step. */
  | "STALE_TOKEN"
  | "TOO_MANY_CLAIMS"
  | "TOO_MANY_CONFLICTS"
  /** So many runs of one coordination have told what they used. */
  | "TOO_MANY_RUNS"
  | "NOTHING_TO_RETRY"
  | "QUESTION_CLOSED"
  | "UNKNOWN_QUESTION"
  /** The person may not answer this question, or not in this way. */
  | "ANSWER_REFUSED"
  | "TOO_MANY_QUESTIONS"
  /** The result is not held, or the verdict is about another result. */
  | "NOT_HELD"
  | "QUESTIONS_OPEN"
  /** The result would have to be held back, and the host cannot do that. */
  | "UNGATEABLE"
  /** The child would have to be held to its privileges, and its calls cannot be seen. */
  | "UNENFORCEABLE";

/** The answer of `decide` to a command. */
export type Decision =
  /** The facts to append; `stepId` is the step that the command was about. */
  | { readonly kind: "accepted"; readonly facts: readonly FactDraft[]; readonly stepId?: StepId }
  /** D2: the log already says what the command would record. */
  | { readonly kind: "replay"; readonly stepId?: StepId }
  /** `reason` is a sentence for people. `facts` record the refusal itself where the log has to keep it. */
  | {
      readonly kind: "refused";
      readonly code: RefusalCode;
      readonly reason: string;
      readonly facts?: readonly FactDraft[];
    };

/** Returns a decision that refuses a command and records nothing. */
export function refuse(code: RefusalCode, reason: string): Decision & { readonly kind: "refused" } {
  return { kind: "refused", code, reason };
}

/** Returns a decision that accepts a command by appending these facts; `stepId`: the step that it is about. */
export function accept(facts: readonly FactDraft[], stepId?: StepId): Decision {
  return { kind: "accepted", facts, ...(stepId && { stepId }) };
}
