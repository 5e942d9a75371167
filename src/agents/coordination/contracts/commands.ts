import type { AppliedStrategy, Contestant, MergeEvidence } from "./arbitration.ts";
import type {
  ContentRef,
  FactPayloads,
  LearntVia,
  Requester,
  StepAdmitted,
  StepError,
  Usage,
} from "./facts.ts";
import type { EpochMs, SessionKey, StepId } from "./ids.ts";
import type { ObservedChild } from "./observation.ts";

/** What a host asks of a coordination. Hosts build commands; `decide` rules on them. */
export type Command =
  | ({ readonly type: "openCoordination" } & FactPayloads["coordination.created"])
  | AdmitSpawn
  | AcknowledgeStep
  | CompleteStep
  | FailStep
  | TimeOutStep
  | { readonly type: "settleCoordination" }
  | AdmitPlanSteps
  | DispatchStep
  | ReportStep
  | StopChild
  | SkipSteps
  | RetryStep
  | CancelCoordination
  | ExpireEscalation
  /** What was used is more than the plan allows: stop dispatching and ask. */
  | { readonly type: "tripBreaker" }
  | RequestResources
  | ReleaseClaims
  | SettleReview
  | ({ readonly type: "recordChange" } & FactPayloads["resource.changed"])
  | ({ readonly type: "recordUndetermined" } & FactPayloads["write.undetermined"]);

/** A spawn that a model asked for: admitted and dispatched at once, because the model decided and the host acts. */
export interface AdmitSpawn extends Omit<
  StepAdmitted,
  "stepId" | "lane" | "deliveryMode" | "priority" | "retryBudget"
> {
  readonly type: "admitSpawn";
  /** A child that the host has made already: its step is acknowledged with its admission. */
  readonly child?: ObservedChild;
}

interface OutcomeOf {
  readonly stepId: StepId;
  /** The fencing token: an outcome of an older attempt is refused (D3). */
  readonly attempt: number;
  readonly via: LearntVia;
}

export interface AcknowledgeStep extends OutcomeOf {
  readonly type: "acknowledgeStep";
  readonly childSessionKey: SessionKey;
  readonly childRunId: string;
}

export interface CompleteStep extends OutcomeOf {
  readonly type: "completeStep";
  readonly output?: ContentRef;
  readonly usage?: Usage;
}

export interface FailStep extends OutcomeOf {
  readonly type: "failStep";
  readonly error: StepError;
  readonly cancelled: boolean;
  readonly usage?: Usage;
}

export interface TimeOutStep extends OutcomeOf {
  readonly type: "timeOutStep";
}

/** The next steps of the plan, in the order of its graph; those that are admitted already are left out. */
export interface AdmitPlanSteps {
  readonly type: "admitPlanSteps";
  readonly steps: readonly (StepAdmitted & Required<Pick<StepAdmitted, "planned">>)[];
}

/** Records the intent to begin the next attempt of a planned step. */
export interface DispatchStep {
  readonly type: "dispatchStep";
  readonly stepId: StepId;
  readonly attempt: number;
  readonly targetSession: SessionKey;
  readonly message?: ContentRef;
}

export interface ReportStep {
  readonly type: "reportStep";
  readonly stepId: StepId;
  readonly attempt: number;
  readonly outcome: FactPayloads["step.reported"]["outcome"];
  readonly output: ContentRef;
  /** Basis points. */
  readonly confidence?: number;
}

/** Records what became of the child of an attempt that was given up. */
export interface StopChild {
  readonly type: "stopChild";
  readonly childSessionKey: SessionKey;
  readonly outcome: FactPayloads["step.child_stopped"]["outcome"];
}

/** Ends planned steps that can no longer run. */
export interface SkipSteps {
  readonly type: "skipSteps";
  readonly stepIds: readonly StepId[];
}

/** Grants a blocked or failed step one attempt more; without a step, answers the coordination's open questions so. */
export interface RetryStep {
  readonly type: "retryStep";
  readonly by: Requester;
  readonly stepId?: StepId;
}

export interface CancelCoordination {
  readonly type: "cancelCoordination";
  readonly by: Requester;
  /** Only this step. */
  readonly stepId?: StepId;
}

/** The deadline of a question passed without an answer. */
export interface ExpireEscalation {
  readonly type: "expireEscalation";
  readonly escalationId: string;
}

/** A step, or the owner's session, is about to change resources: all of them, or none. */
export interface RequestResources {
  readonly type: "requestResources";
  readonly stepId: StepId;
  readonly requests: readonly ResourceRequest[];
}

/** What the ruling on one resource follows from (A1), as the ledger has it. */
export interface ResourceRequest {
  readonly resource: string;
  /** The requester's own claim on it, which is renewed; else the token that a new claim gets. */
  readonly held?: number;
  readonly token: number;
  readonly expiresAtMs: EpochMs;
  /** Steps of this coordination that the requester works for: what they hold of the resource ends. */
  readonly delegated?: readonly StepId[];
  /** What the requester's change is based on, where that is known. */
  readonly base?: string;
  readonly current?: string;
  /** Absent where nobody else wants the resource. */
  readonly contest?: ResourceContest;
}

export interface ResourceContest extends AppliedStrategy {
  readonly cause: "overlap" | "stale_base";
  /** The requester is one of them. */
  readonly claims: readonly Contestant[];
  readonly merge?: MergeEvidence;
  /** Until when people may answer, where they are asked. */
  readonly reviewByMs?: EpochMs;
}

/** By their tokens, or all claims of a step; `within` those that overlap a resource. */
export interface ReleaseClaims {
  readonly type: "releaseClaims";
  readonly because: FactPayloads["claim.released"]["because"];
  readonly tokens?: readonly number[];
  readonly stepId?: StepId;
  readonly within?: string;
}

/** People answered, or nobody did in time. */
export interface SettleReview {
  readonly type: "settleReview";
  readonly conflictId: string;
  readonly answer: "approved" | "denied" | "unanswered" | "nobody_to_ask" | "withdrawn";
  /** For an approved one: the claim that the requester gets. */
  readonly claim?: { readonly token: number; readonly expiresAtMs: EpochMs };
}
