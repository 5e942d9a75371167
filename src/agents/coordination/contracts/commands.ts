/** Owns: the commands that hosts give to a coordination. Does not own: what `decide` makes of one (`dispatch/`). */
import type { AppliedStrategy, Contestant, MergeEvidence, PluginRuling } from "./arbitration.ts";
import type {
  ChildRun,
  ContentRef,
  LearntVia,
  Requester,
  StepAdmitted,
  StepError,
  Usage,
} from "./fact-fields.ts";
import type { FactPayloads } from "./facts.ts";
import type { Answerer, AnswerKind, Channel } from "./escalation.ts";
import type { CoordinationId, EpochMs, EventId, SessionKey, StepId } from "./ids.ts";
import type { RunUsage } from "./usage.ts";
import type { Finding, VerificationFailure } from "./verification.ts";
import type { ObservedChild } from "./observation.ts";

/** A request of a host to a coordination. Hosts build commands; `decide` rules on them. */
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
  | RecordProgress
  | ObserveChild
  | StopChild
  | SkipSteps
  | ({ readonly type: "openWorktree" } & FactPayloads["worktree.opened"])
  | ({ readonly type: "beginMerge" } & FactPayloads["worktree.merge_begun"])
  | FinishMerge
  | AskAboutMerge
  | FailMerge
  | ({ readonly type: "removeWorktree" } & FactPayloads["worktree.removed"])
  | RetryStep
  | CancelCoordination
  | ExpireEscalation
  | AnswerEscalation
  | AskPeople
  | ({ readonly type: "recordNotice" } & FactPayloads["escalation.notified"])
  | ({ readonly type: "recordTelling" } & FactPayloads["session.told"])
  | ({ readonly type: "withholdText" } & FactPayloads["result.withheld"])
  | ({ readonly type: "recordShortened" } & FactPayloads["result.shortened"])
  | ({ readonly type: "recordSuppressed" } & FactPayloads["message.suppressed"])
  | RecordFinding
  | RecordNoVerdict
  | ({ readonly type: "judgePlan" } & FactPayloads["plan.judged"])
  /** More was used than the plan allows: stop dispatching and ask. */
  | { readonly type: "tripBreaker" }
  | RequestResources
  | ReleaseClaims
  | SettleReview
  | ({ readonly type: "recordChange" } & FactPayloads["resource.changed"])
  | ({ readonly type: "recordUndetermined" } & FactPayloads["write.undetermined"])
  | ({ readonly type: "recordRefusedCall" } & FactPayloads["privilege.refused"])
  | RecordUsage
  | StopAtBudget
  | LendBudget
  /** The plan `to` uses no more, and `budget` is what it and those before it used. */
  | ({ readonly type: "returnBudget" } & FactPayloads["budget.lent"]);

/** Requests that any gateway may make, whichever of them drives the coordination. */
const REQUESTS: ReadonlySet<Command["type"]> = new Set([
  "cancelCoordination",
  "retryStep",
  "answerEscalation",
  "releaseClaims",
  // A plan inside may be opened, and end, in another gateway than the plan around.
  "lendBudget",
  "returnBudget",
]);

/** True for a request that any gateway may append, whichever of them drives the coordination. */
export function isRequest({ type }: Command): boolean {
  return REQUESTS.has(type);
}

/** A spawn that a model asked for: admitted and dispatched at once, because the model decided and the host acts. */
export interface AdmitSpawn extends Omit<
  StepAdmitted,
  "stepId" | "lane" | "deliveryMode" | "priority" | "retryBudget"
> {
  readonly type: "admitSpawn";
  /** A child that the host has made already: its step is acknowledged with its admission. */
  readonly child?: ObservedChild;
  /** The gateway whose model it is, where several share the ledger. */
  readonly gateway?: string;
  /** It is refused where plans of its parent may use the rest of the step's budget. Absent in logs: earlier releases admitted it. */
  readonly countsLoans?: true;
}

/** Records what the model calls of one run used up to now. */
export interface RecordUsage extends RunUsage {
  readonly type: "recordUsage";
}

/** Records that the operator's budget stops a session, where it does. */
export interface StopAtBudget {
  readonly type: "stopAtBudget";
  readonly stepId: StepId;
  readonly stopped: FactPayloads["budget.reached"]["stopped"];
}

/** Sets budget of a plan aside for another plan, which the child of an attempt is about to submit. */
export interface LendBudget {
  readonly type: "lendBudget";
  readonly stepId: StepId;
  readonly attempt: number;
  /** The plan that is about to be opened. */
  readonly to: CoordinationId;
  /** The use of the plans that the same child submitted before. It is booked when the attempt ends. */
  readonly usedBefore?: Usage;
  /** The most that it may use; where a kind is absent, all that is left. */
  readonly budget: Usage;
}

/** Basis points. */
export interface StatedConfidence {
  readonly confidence?: number;
  readonly confidenceUnreadable?: true;
}

/** A command that is decided in another way since a release. */
export interface RevisedCommand {
  /** Set by a replay alone: decided as before that release, of which older logs have the facts. */
  readonly asEarlier?: true;
}

interface OutcomeOf {
  readonly stepId: StepId;
  /** The fencing token: an outcome of an older attempt is refused (D3). */
  readonly attempt: number;
  readonly via: LearntVia;
}

/** Records that the host created the child of a step. */
export interface AcknowledgeStep extends OutcomeOf {
  readonly type: "acknowledgeStep";
  readonly childSessionKey: SessionKey;
  readonly childRunId: string;
}

/** Records that an attempt completed, with its output. */
export interface CompleteStep extends OutcomeOf, RevisedCommand {
  readonly type: "completeStep";
  readonly output?: ContentRef;
  readonly usage?: Usage;
  /** The confidence that the agent stated with its result, where it did not report one. */
  readonly stated?: StatedConfidence;
}

/** Records that an attempt failed, or was cancelled. */
export interface FailStep extends OutcomeOf, RevisedCommand {
  readonly type: "failStep";
  readonly error: StepError;
  readonly cancelled: boolean;
  readonly usage?: Usage;
  /** After this time the provider that refused takes calls again, as it said. */
  readonly retryAfterMs?: number;
  /** The host made no child, so that the spawn counts for no budget. */
  readonly unspawned?: true;
}

/** Records that an attempt ran out of time. */
export interface TimeOutStep extends OutcomeOf {
  readonly type: "timeOutStep";
  readonly usage?: Usage;
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
  /** The gateway that starts the agent, where several share the ledger. */
  readonly gateway?: string;
}

/** Records what the agent of a step reported through its tool. */
export interface ReportStep {
  readonly type: "reportStep";
  readonly stepId: StepId;
  readonly attempt: number;
  readonly outcome: FactPayloads["step.reported"]["outcome"];
  readonly output: ContentRef;
  /** Basis points. */
  readonly confidence?: number;
}

/** Records how far the agent of a step says it is. */
export interface RecordProgress {
  readonly type: "recordProgress";
  readonly stepId: StepId;
  readonly attempt: number;
  readonly percent?: number;
  readonly line: ContentRef;
}

/** Records what the host says of the child of an attempt. */
export interface ObserveChild {
  readonly type: "observeChild";
  readonly stepId: StepId;
  readonly attempt: number;
  /** Fields that are absent are not known, or did not change. */
  readonly ran: ChildRun;
  /** The run is stopped before its model is called, where it differs from what was asked. */
  readonly refused?: true;
}

/** Records what became of the child of an attempt that was given up. */
export interface StopChild {
  readonly type: "stopChild";
  readonly childSessionKey: SessionKey;
  readonly outcome: FactPayloads["step.child_stopped"]["outcome"];
  readonly usage?: Usage;
}

/** Ends planned steps that can no longer run. */
export interface SkipSteps {
  readonly type: "skipSteps";
  readonly stepIds: readonly StepId[];
}

/** All files that the merge began with are written: the result counts. */
export interface FinishMerge {
  readonly type: "finishMerge";
  readonly stepId: StepId;
  readonly attempt: number;
  /** Their present versions, by resource. */
  readonly changed: readonly { readonly resource: string; readonly version: string }[];
}

/** The attempt's changes cannot be merged back: people look after them. */
export interface AskAboutMerge extends RevisedCommand {
  readonly type: "askAboutMerge";
  readonly stepId: StepId;
  readonly attempt: number;
  readonly files: FactPayloads["worktree.conflicted"]["files"];
  /** Files that were written before it turned out, where an earlier version recorded them with the question. */
  readonly changed: FinishMerge["changed"];
  readonly question: ContentRef;
}

/** The attempt's changes cannot be read: the attempt has failed. */
export interface FailMerge {
  readonly type: "failMerge";
  readonly stepId: StepId;
  readonly attempt: number;
  readonly message: string;
}

/** Grants a blocked or failed step one attempt more; without a step, answers the coordination's open questions so. */
export interface RetryStep {
  readonly type: "retryStep";
  readonly by: Requester;
  readonly stepId?: StepId;
}

/** Cancels a coordination, or one of its steps. */
export interface CancelCoordination {
  readonly type: "cancelCoordination";
  readonly by: Requester;
  /** Only this step. */
  readonly stepId?: StepId;
}

/** The deadline of a question passed without an answer, or nobody waits for the answer any more. */
export interface ExpireEscalation {
  readonly type: "expireEscalation";
  readonly escalationId: string;
}

/** Somebody answers a question; the first one that may answer counts. */
export interface AnswerEscalation {
  readonly type: "answerEscalation";
  readonly escalationId: string;
  readonly answer: AnswerKind;
  readonly text?: ContentRef;
  /** As the channel vouches for it. */
  readonly by: Answerer;
  readonly through: Channel;
  /** The sessions whose plan the question belongs to, and whose plans are around that; absent: the owner of its own plan. */
  readonly planOwners?: readonly SessionKey[];
}

/** An agent asks people, or its parent. */
export interface AskPeople {
  readonly type: "askPeople";
  readonly askedBy: SessionKey;
  /** The step that its session works on. */
  readonly stepId?: StepId;
  /** The session that is asked in place of people, until the deadline. */
  readonly askedOf?: SessionKey;
  readonly kind: FactPayloads["coordination.escalated"]["kind"];
  readonly question: ContentRef;
  /** How long whoever is asked may take; no longer than the coordination's own limit. */
  readonly answerMs?: number;
  /** The question names an answer that counts when nobody gives one. */
  readonly hasDefault: boolean;
  /** How many questions of agents may be open at once. */
  readonly openMax: number;
  /** The ids of tellings that are under way: an answer that the session is being told is none to this question. */
  readonly tellingsUnderWay?: readonly string[];
}

/** A check of a held result ruled; `target` is the event that it ruled on. */
export interface RecordFinding extends RevisedCommand {
  readonly type: "recordFinding";
  readonly stepId: StepId;
  readonly attempt: number;
  readonly target: EventId;
  readonly finding: Finding;
}

/** A check of a held result gave no verdict. */
export interface RecordNoVerdict extends RevisedCommand {
  readonly type: "recordNoVerdict";
  readonly stepId: StepId;
  readonly attempt: number;
  readonly target: EventId;
  readonly check: string;
  readonly because: VerificationFailure;
}

/** A step, or the owner's session, is about to change resources: all of them, or none. */
export interface RequestResources {
  readonly type: "requestResources";
  readonly stepId: StepId;
  readonly requests: readonly ResourceRequest[];
  /** Records the conflicts that are won, and claims nothing yet: the claims of other coordinations have to end first. */
  readonly claimsLater?: true;
}

/** Everything that the ruling on one resource follows from (A1), as the ledger has it. */
export interface ResourceRequest {
  readonly resource: string;
  /** The requester's own claim on it, which is renewed; else the token that a new claim gets. */
  readonly held?: number;
  readonly token: number;
  readonly expiresAtMs: EpochMs;
  /** Steps of this coordination that the requester works for: what they hold of the resource ends. */
  readonly delegated?: readonly StepId[];
  /** The version that the requester's change is based on, where it is known. */
  readonly base?: string;
  readonly current?: string;
  /** Absent where nobody else wants the resource. */
  readonly contest?: ResourceContest;
}

/** A contest for a resource, as the arbiter found it. */
export interface ResourceContest extends AppliedStrategy {
  readonly cause: "overlap" | "stale_base" | "overwritten";
  /** The requester is one of them. */
  readonly claims: readonly Contestant[];
  readonly merge?: MergeEvidence;
  /** The plugins' ruling on it. */
  readonly hook?: PluginRuling;
  /** Until when people may answer, where the host asks them. */
  readonly reviewByMs?: EpochMs;
  /** The host can ask nobody: a question is put to people, where there is somebody to tell. */
  readonly asksPeople?: true;
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
