/** Owns: what hosts ask about plans, and what they are answered. */
import type { ForkedFrom, Requester } from "../../contracts/fact-fields.ts";
import type { AgentId, CoordinationId, EpochMs, SessionKey, StepId } from "../../contracts/ids.ts";
import type { ReplayPolicy } from "../../contracts/config/replay-policy.ts";
import type { RefusalCode } from "../../dispatch/decision.ts";
import type { PlanProblem } from "../../plan/plan-problem.ts";
import type { ParentOf } from "../privileges/bounds-of-session.ts";

export interface PlanSubmission {
  /** Not validated yet. */
  readonly plan: unknown;
  /** The session that submits it where that is known, which then must be the plan's `ownerSession` (H3). */
  readonly submittedBy?: SessionKey;
  readonly ownerAgent: AgentId;
  /** Which agents the submitter may use; absent: all, because an operator decides. */
  readonly mayRun?: (agent: AgentId) => boolean;
  /** The host's record of who spawned whom, for a submitter that the ledger does not know; absent: nobody spawned it. */
  readonly parentOf?: ParentOf;
  /** The W3C trace that the submission is part of; absent: a new one. */
  readonly traceId?: string;
  /** The results of the steps that had completed there are the plan's own (`forkPlan`). No agent can say so. */
  readonly forkedFrom?: ForkedFrom;
}

export type PlanSubmitted =
  /** `replay`: the same plan was submitted before. */
  | { readonly kind: "accepted" | "replay"; readonly coordinationId: CoordinationId; readonly steps: number }
  | { readonly kind: "refused"; readonly problems: readonly PlanProblem[] };

export interface ForkRequest {
  /** The plan to fork: a prefix of its id is none. */
  readonly source: CoordinationId;
  /** The first event of the source that the fork takes nothing from; absent: what comes after the newest. */
  readonly from?: number;
  /** Absent: the fork gets an id of its own. */
  readonly coordinationId?: CoordinationId;
  /** Rules in place of those of the plan; never laxer than the operator's configuration. */
  readonly policy?: ReplayPolicy;
  /** Only tells what would be done. */
  readonly isPreview?: boolean;
}

export type PlanForked =
  | {
      readonly kind: "accepted" | "replay" | "preview";
      readonly coordinationId: CoordinationId;
      readonly from: ForkedFrom;
      /** In the order of the plan: those that have their results already, and those that are run. */
      readonly carried: readonly StepId[];
      readonly anew: readonly StepId[];
    }
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
export interface ChildReport {
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

/** How far a child says it is, as its model wrote it. */
export interface ChildProgress {
  readonly percent?: number;
  readonly line: string;
}

export type ProgressAnswer =
  | {
      /** `too_soon`: nothing was recorded. */
      readonly kind: "recorded" | "too_soon";
      /** From when on the next one is recorded. */
      readonly nextAtMs: EpochMs;
    }
  /** The session works on no step, its step has ended, or the line says nothing. */
  | { readonly kind: "refused"; readonly reason: string };

/** Requests of a host about plans; part of the coordinator. */
export interface PlanRequests {
  /** Checks a plan, records it and begins to run it. @throws CoordinationError when it could not be recorded. */
  submitPlan(submission: PlanSubmission): Promise<PlanSubmitted>;
  /**
   * Runs a plan again from a place in the log of an earlier run: what had completed by then is kept, the rest is done anew.
   *
   * @throws CoordinationError `COORDINATION_NOT_FOUND`, `INPUT_INVALID` where there is nothing to fork there, or as `submitPlan`
   */
  forkPlan(request: ForkRequest): Promise<PlanForked>;
  /** Cancels a coordination or one of its steps, with every running child. */
  cancel(request: CoordinationRequest): Promise<RequestAnswer>;
  /** Grants a blocked step one attempt more, or lets a coordination go on that stopped at its budget. */
  retry(request: CoordinationRequest): Promise<RequestAnswer>;
  /** Records a child's report about the step that its session works on (H3). */
  report(childSessionKey: SessionKey, report: ChildReport): Promise<ReportAnswer>;
  /** Records how far a child says it is with the step that its session works on (H3). It is a claim: nothing follows from it. */
  progress(childSessionKey: SessionKey, progress: ChildProgress): Promise<ProgressAnswer>;
}
