/**
 * Owns: the shape of a coordination's folded state. Does not own: how events change it (`evolve.ts`) or what may
 * happen next (`dispatch/decide.ts`).
 */
import type { List, Map as ImmutableMap, OrderedMap, OrderedSet, Set as ImmutableSet } from "immutable";
import type { StatedConfidence } from "../contracts/commands.ts";
import type { Lane } from "../contracts/envelope.ts";
import type {
  ChildRun,
  ContentRef,
  Requester,
  StepAdmitted,
  StepError,
  Usage,
} from "../contracts/fact-fields.ts";
import type { FactPayloads, TerminalStatus } from "../contracts/facts.ts";
import type { CriterionMet, Finding, VerificationFailure } from "../contracts/verification.ts";
import type { CoordinationId, EpochMs, EventId, SessionKey, StepId } from "../contracts/ids.ts";
import type { Bill } from "./bill.ts";
import type { StepNotes } from "./step-notes.ts";

export type Coordination = UnopenedCoordination | KnownCoordination;

/** There is something in its log. */
export type KnownCoordination = OpenCoordination | EndedCoordination;

/** Nothing is in the log yet. */
export interface UnopenedCoordination {
  readonly kind: "unopened";
  readonly coordinationId: CoordinationId;
  readonly nextSequence: 0;
}

export interface OpenCoordination extends KnownFields {
  readonly kind: "open";
}

export interface EndedCoordination extends KnownFields {
  readonly kind: "ended";
  readonly status: TerminalStatus;
  readonly endedAtMs: EpochMs;
}

interface KnownFields {
  readonly coordinationId: CoordinationId;
  readonly nextSequence: number;
  readonly created: FactPayloads["coordination.created"];
  readonly createdEventId: EventId;
  readonly createdAtMs: EpochMs;
  /** The time of the newest event that says more than what was used. */
  readonly changedAtMs: EpochMs;
  /** The newest fact, which causes the terminal event. */
  readonly lastFactId: EventId;
  /** By step id, in order of admission. Persistent: a change costs the same however many steps there are. */
  readonly steps: OrderedMap<StepId, Step>;
  /** The steps that have not ended, so that looking after them does not cost what the ended ones would. */
  readonly openSteps: OrderedSet<StepId>;
  /** The step that a child session works on, or worked on. */
  readonly children: ImmutableMap<SessionKey, StepId>;
  readonly endedSteps: Readonly<Record<EndStatus, number>>;
  /** Orchestrator turns so far (`runOrchestrator.decided.iteration`). */
  readonly iterations: number;
  readonly conflicts: readonly Conflict[];
  /** Conflicts that people rule on, with the time until which they may. */
  readonly reviews: ImmutableMap<string, EpochMs>;
  /** Claims that were not released, by token, the earliest first. Some may have expired. */
  readonly claims: OrderedMap<number, HeldClaim>;
  /** How many of these each step has; a step without any is not there. */
  readonly claimCounts: ImmutableMap<StepId, number>;
  /** 0 before the first claim. */
  readonly newestToken: number;
  /** The token of the newest of these by step and resource, as `formatHoldingKey` names them. */
  readonly holdings: ImmutableMap<string, number>;
  /** The newest change of each resource that a step of this coordination changed. */
  readonly changes: ImmutableMap<string, ResourceChange>;
  /** By id, in the order in which they were asked. */
  readonly escalations: OrderedMap<string, Escalation>;
  /** Questions that wait for an answer, with the time until which they do. */
  readonly openQuestions: OrderedMap<string, EpochMs>;
  /** Steps whose results wait for a ruling. */
  readonly held: OrderedSet<StepId>;
  /** Tellings that sessions still wait for, by id. */
  readonly tellings: OrderedMap<string, PendingTelling>;
  /** The ids of tellings of which no turn began, and none will. */
  readonly untold: ImmutableSet<string>;
  /** Worktrees of attempts that are not known to be gone, as `formatWorktreeKey` names them. */
  readonly worktrees: OrderedMap<string, Worktree>;
  /** How far the plan reached what it is for. */
  readonly successCriteria?: readonly CriterionMet[];
  /** Who asked for the end of the whole coordination. */
  readonly cancelledBy?: Requester;
  /** Usage of the model calls. */
  readonly bill: Bill;
  /** How far the plan is; absent where spawns are observed. */
  readonly plan?: PlanProgress;
}

/** The state of a plan, derived from its log and kept so that looking after one step costs the same in a plan of 10,000. */
export interface PlanProgress {
  /** Steps of the plan that are admitted; the delivery is not one of them. */
  readonly admitted: number;
  /** Waiting steps that may run, by lane, with the time since when. */
  readonly ready: Readonly<Record<Lane, OrderedMap<StepId, EpochMs>>>;
  /** Steps of the plan that are dispatched or running. */
  readonly running: OrderedSet<StepId>;
  /** Steps that only time moves on: in backoff, blocked, or spawned by a child and so observed. */
  readonly timed: OrderedSet<StepId>;
  /** Waiting steps that can never run. */
  readonly doomed: OrderedSet<StepId>;
  /** For waiting steps: how many of the dependencies have completed, and how many never will. */
  readonly waits: ImmutableMap<StepId, { readonly met: number; readonly lost: number }>;
  readonly dependents: ImmutableMap<StepId, List<StepId>>;
  /** Children of attempts that we gave up, which may still be at work. */
  readonly strays: OrderedMap<SessionKey, StrayRun>;
  /** Why no further step may begin. */
  readonly stop?: "fail_fast" | "budget" | "denied";
  /** The open question whether the plan is to begin at all (G2). */
  readonly decisionQuestion?: string;
  /** The open question about the budget. */
  readonly budgetQuestion?: string;
  /** A question went unanswered. */
  readonly hasExpired: boolean;
  readonly spent: SpentBudget;
  /** The spending when people last allowed the plan to go on: a budget counts from here. */
  readonly allowedFrom: SpentBudget;
  readonly allowedFromMs: EpochMs;
}

/** A session waits to be told something, once. */
export interface PendingTelling {
  readonly tellingId: string;
  readonly session: SessionKey;
  readonly sinceMs: EpochMs;
  readonly of:
    | { readonly kind: "result"; readonly stepId: StepId; readonly attempt: number }
    | { readonly kind: "answer"; readonly escalationId: string }
    | { readonly kind: "question"; readonly escalationId: string };
}

/** The worktree of an attempt, which may be there from the dispatch on. */
export interface Worktree {
  readonly stepId: StepId;
  readonly attempt: number;
  /** Absent before it is known to be made. */
  readonly opened?: Pick<FactPayloads["worktree.opened"], "repository" | "base" | "folder">;
  /** Absent before its work is merged back. */
  readonly merge?:
    | { readonly status: "begun"; readonly files: FactPayloads["worktree.merge_begun"]["files"] }
    | { readonly status: "merged" | "conflicted" };
}

export interface StrayRun {
  readonly stepId: StepId;
  readonly attempt: number;
  readonly dispatchedAtMs: EpochMs;
  readonly childRunId?: string;
  readonly gateway?: string;
}

export interface SpentBudget {
  readonly spawns: number;
  readonly tokens: number;
  readonly costMicroUsd: number;
}

export interface Step extends StepNotes {
  readonly spec: StepAdmitted;
  readonly admittedAtMs: EpochMs;
  readonly phase: StepPhase;
  /** The newest fact about this step: the cause of the next one. */
  readonly lastFactId: EventId;
  /** The acknowledgement, which causes what the child itself spawns. */
  readonly acknowledgedEventId?: EventId;
  /** The newest OpenWOP event of the step's handoff chain: the cause of the next one. */
  readonly chainEventId?: EventId;
  /** The child that really runs in the current attempt. */
  readonly observed?: ObservedRun;
  /** Attempts that people granted beyond the budget. */
  readonly granted?: number;
  /** How often its result went back to its agent. */
  readonly revisions?: number;
  /** Attempts that ended because a provider refused calls, up to `BOUNDS.refusedAttemptsMax`. They do not count as retries. */
  readonly refusals?: number;
  /** People let it begin although its planner doubts it (G2). */
  readonly isApproved?: true;
  /** Who asked for the end of this step alone. */
  readonly cancelledBy?: Requester;
  /** Calls of its child that its privileges do not allow, in their order; no more than `BOUNDS.privilegeRefusalsMax`. */
  readonly refusedCalls?: readonly RefusedCall[];
  /** When the first attempt of a planned step began. */
  readonly begunAtMs?: EpochMs;
  /** Spending of all attempts, and of the spawns of a planned step's child. */
  readonly spent?: SpentBudget;
}

export interface ObservedRun {
  readonly ran: ChildRun;
  /** How often something changed, the first observation included. */
  readonly changes: number;
  /** The run was stopped before its model was called. */
  readonly refused?: true;
}

/** A call that was refused before it happened. */
export type RefusedCall = Omit<FactPayloads["privilege.refused"], "stepId"> & { readonly atMs: EpochMs };

export type StepPhase =
  | WaitingPhase
  | DispatchedPhase
  | RunningPhase
  | HeldPhase
  | BackoffPhase
  | BlockedPhase
  | EndedPhase
  | CarriedPhase
  | SkippedPhase;

export type EndStatus = EndedPhase["status"] | SkippedPhase["status"];

export interface WaitingPhase {
  readonly status: "waiting";
  readonly attempt: 0;
}

/** The intent is recorded; whether the host acted on it is not known yet. */
export interface DispatchedPhase {
  readonly status: "dispatched";
  readonly attempt: number;
  readonly dispatchedAtMs: EpochMs;
  readonly deadlineAtMs: EpochMs;
  /** The session that the attempt is to run in, where we chose it. */
  readonly targetSession?: SessionKey;
  /** The message to the agent of a planned step. */
  readonly message?: ContentRef;
  /** The gateway that starts the agent, where several share the ledger. */
  readonly gateway?: string;
}

export interface RunningPhase extends ChildIds {
  readonly status: "running";
  readonly attempt: number;
  readonly dispatchedAtMs: EpochMs;
  readonly acknowledgedAtMs: EpochMs;
  readonly deadlineAtMs: EpochMs;
  /** The gateway that started the agent, where several share the ledger. */
  readonly gateway?: string;
}

/** The child has ended, and its result does not count before it is ruled on (G1). */
export interface HeldPhase extends AttemptFields {
  readonly status: "held";
  readonly output?: ContentRef;
  readonly usage?: Usage;
  readonly stated: StatedConfidence;
  /** The event that verdicts are about: the `agent.decided` behind the fact. */
  readonly target: EventId;
  readonly verifyByMs?: EpochMs;
  readonly findings: readonly Finding[];
  /** Checks without a verdict, with the reason. */
  readonly failures: ReadonlyMap<string, VerificationFailure>;
  /** The question that people were asked about it. */
  readonly escalationId?: string;
}

/** An attempt went wrong and the next one is due at `retryAtMs`. */
export interface BackoffPhase extends AttemptFields {
  readonly status: "backoff";
  readonly cause: FailureStatus;
  readonly retryAtMs: EpochMs;
  /** The result goes back to its agent. */
  readonly revision?: { readonly criteria: readonly string[]; readonly output?: ContentRef };
}

/** No attempt is left, and people are asked. */
export interface BlockedPhase extends AttemptFields {
  readonly status: "blocked";
  readonly cause: FailureStatus;
  readonly escalationId: string;
  /** Then the step fails. */
  readonly answerByMs: EpochMs;
}

export type FailureStatus = "failed" | "timed_out";

export interface EndedPhase extends AttemptFields {
  readonly status: "completed" | "cancelled" | FailureStatus;
  readonly output?: ContentRef;
  /** It was held: what let it through. */
  readonly released?: NonNullable<FactPayloads["step.completed"]["released"]>;
}

/** A step of a fork that was completed in its source, and is not run. */
export interface CarriedPhase {
  readonly status: "completed";
  readonly attempt: 0;
  /** When the fork took it. */
  readonly endedAtMs: EpochMs;
  readonly output?: ContentRef;
  readonly released?: EndedPhase["released"];
  readonly carriedFrom: EventId;
}

/** A planned step that was never dispatched and will not be. */
export interface SkippedPhase {
  readonly status: "skipped";
  readonly attempt: 0;
  readonly endedAtMs: EpochMs;
  readonly because: FactPayloads["step.skipped"]["because"];
}

/** The newest attempt is over. */
interface AttemptFields {
  readonly attempt: number;
  readonly dispatchedAtMs: EpochMs;
  /** Absent where the host never confirmed the spawn. */
  readonly acknowledgedAtMs?: EpochMs;
  readonly deadlineAtMs: EpochMs;
  readonly endedAtMs: EpochMs;
  /** Absent where the host refused the spawn or never confirmed it. */
  readonly child?: ChildIds;
  /** The gateway that started the child, while its result may go back to it. Absent where it has the ledger alone. */
  readonly gateway?: string;
  readonly error?: StepError;
}

export interface ChildIds {
  readonly childSessionKey: SessionKey;
  readonly childRunId: string;
}

export type HeldClaim = FactPayloads["claim.acquired"] & { readonly acquiredAtMs: EpochMs };

export function formatHoldingKey(stepId: StepId, resource: string): string {
  return `${stepId}\n${resource}`;
}

export interface ResourceChange {
  readonly stepId: StepId;
  readonly version: string;
  readonly atMs: EpochMs;
  /** The claim under which it was changed; absent where a command changed it under none. */
  readonly token?: number;
  /** The newest change before it by another step. */
  readonly other?: Omit<ResourceChange, "other">;
}

export type Conflict = FactPayloads["conflict.detected"] & {
  readonly detectedEventId: EventId;
  readonly resolution?: FactPayloads["conflict.resolved"];
  readonly resolvedAtMs?: EpochMs;
};

export type Escalation = FactPayloads["coordination.escalated"] & {
  readonly askedAtMs: EpochMs;
  /** When it was put to people because the session that was asked first did not answer. */
  readonly forwardedAtMs?: EpochMs;
  readonly closed?: FactPayloads["escalation.closed"];
  /** The answer that counted. */
  readonly answered?: EscalationAnswer;
  /** How many answers did not count. */
  readonly refusedAnswers?: number;
  /** How its notices ended, by their places among them. */
  readonly notified?: ReadonlyMap<number, FactPayloads["escalation.notified"]["outcome"]>;
};

export type EscalationAnswer = Omit<FactPayloads["escalation.answered"], "escalationId" | "refused"> & {
  readonly atMs: EpochMs;
};

export function isEnded(phase: StepPhase): phase is EndedPhase | CarriedPhase | SkippedPhase {
  return ENDED.has(phase.status);
}

const ENDED: ReadonlySet<StepPhase["status"]> = new Set([
  "completed",
  "failed",
  "cancelled",
  "timed_out",
  "skipped",
] satisfies EndStatus[]);

export function listOpenSteps(state: OpenCoordination | EndedCoordination): Step[] {
  return state.openSteps.toArray().flatMap((stepId) => state.steps.get(stepId) ?? []);
}

export function findChildOfPhase(phase: StepPhase): ChildIds | undefined {
  if (phase.status === "running") return phase;
  return "child" in phase ? phase.child : undefined;
}

export function findSessionOfPhase(phase: StepPhase): SessionKey | undefined {
  return (
    findChildOfPhase(phase)?.childSessionKey ??
    (phase.status === "dispatched" ? phase.targetSession : undefined)
  );
}

export function createUnopenedCoordination(coordinationId: CoordinationId): UnopenedCoordination {
  return { kind: "unopened", coordinationId, nextSequence: 0 };
}
