/** Owns: what hosts ask about plans, and what they are answered. */
import type { Requester } from "../contracts/fact-fields.ts";
import type { AgentId, CoordinationId, SessionKey, StepId } from "../contracts/ids.ts";
import type { RefusalCode } from "../dispatch/decision.ts";
import type { PlanProblem } from "../plan/plan-problem.ts";

export interface PlanSubmission {
  /** Not validated yet. */
  readonly plan: unknown;
  /** The session that submits it where that is known, which then must be the plan's `ownerSession` (H3). */
  readonly submittedBy?: SessionKey;
  readonly ownerAgent: AgentId;
  /** Which agents the submitter may use; absent: all, because an operator decides. */
  readonly mayRun?: (agent: AgentId) => boolean;
  /** The W3C trace that the submission is part of; absent: a new one. */
  readonly traceId?: string;
}

export type PlanSubmitted =
  /** `replay`: the same plan was submitted before. */
  | { readonly kind: "accepted" | "replay"; readonly coordinationId: CoordinationId; readonly steps: number }
  | { readonly kind: "refused"; readonly problems: readonly PlanProblem[] };

export interface CoordinationRequest {
  readonly coordinationId: CoordinationId;
  /** Absent: the whole coordination. */
  readonly stepId?: StepId;
  readonly by: Requester;
  /** The session that asks, which must own the coordination then (H3). */
  readonly askedBy?: SessionKey;
}

export type RequestAnswer =
  | { readonly kind: "accepted" | "replay"; readonly coordinationId: CoordinationId }
  | {
      readonly kind: "refused";
      readonly code: RefusalCode | "NOT_FOUND" | "NOT_OWNER";
      readonly reason: string;
    };

/** A child's structured result, as its model wrote it. */
export interface Report {
  readonly outcome: "completed" | "failed";
  readonly outputs: Readonly<Record<string, unknown>>;
  /** From 0 to 1. */
  readonly confidence?: number;
}

export type ReportAnswer =
  | { readonly kind: "recorded"; readonly coordinationId: CoordinationId; readonly stepId: StepId }
  /** The outputs break the step's `outputSchema`; the child may report again. */
  | {
      readonly kind: "invalid";
      readonly problems: readonly { readonly path: string; readonly message: string }[];
    }
  /** The session works on no step, or its step has ended. */
  | { readonly kind: "refused"; readonly reason: string };

/** What a host may ask about plans; part of the coordinator. */
export interface PlanRequests {
  /** Checks a plan, records it and begins to run it. @throws CoordinationError when it could not be recorded. */
  submitPlan(submission: PlanSubmission): Promise<PlanSubmitted>;
  /** Cancels a coordination or one of its steps, with every running child. */
  cancel(request: CoordinationRequest): Promise<RequestAnswer>;
  /** Grants a blocked step one attempt more, or lets a coordination go on that stopped at its budget. */
  retry(request: CoordinationRequest): Promise<RequestAnswer>;
  /** Records a child's report about the step that its session works on (H3). */
  report(childSessionKey: SessionKey, report: Report): Promise<ReportAnswer>;
}
