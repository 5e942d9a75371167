/**
 * Owns: the form in which a coordination is shown to people and programs, and reading it from a ledger.
 * Does not own: how it is drawn or sent.
 */
import type { CoordinationStatus } from "../../contracts/coordination-summary.ts";
import type {
  PolicyRef,
  ChildDifference,
  ChildRequest,
  ChildRun,
  ContentRef,
  ForkedFrom,
  InputProblem,
  StepAdmitted,
  StepError,
} from "../../contracts/fact-fields.ts";
import type { FactPayloads } from "../../contracts/facts.ts";
import type { AdmittedPrivilege } from "../../contracts/privilege.ts";
import type { BudgetReached, TreeBudget } from "../../contracts/usage.ts";
import type { CriterionMet, Finding, VerificationFailure } from "../../contracts/verification.ts";
import {
  createIdempotencyKey,
  OWNER_STEP_ID,
  type AgentId,
  type CoordinationId,
  type EpochMs,
  type EventId,
  type IdempotencyKey,
  type SessionKey,
  type StepId,
} from "../../contracts/ids.ts";
import type { UsageSum } from "../../ledger/bill.ts";
import {
  findChildOfPhase,
  findSessionOfPhase,
  type Conflict,
  type Escalation,
  type HeldClaim,
  type HeldPhase,
  type RefusedCall,
  type Step,
  type StepPhase,
  type KnownCoordination,
} from "../../ledger/state.ts";
import {
  findReportBehindQuestion,
  listReadableResults,
  type ReadableResult,
} from "../../ledger/readable-results.ts";
import { findOverwrite, type Overwrite } from "../../ledger/overwritten-files.ts";
import { listRunDifferences } from "../../ledger/step-notes.ts";
import { isEverythingWithheld, isQuestionWithheld } from "../../ledger/withheld-words.ts";
import type { LogReader } from "../../ports/ledger-store.ts";
import { viewPlan, type PlanView } from "./view-plan.ts";
import { readStoredState } from "./read-state.ts";
import { viewUsage, type UsageView } from "./usage-view.ts";

export interface CoordinationView {
  readonly coordinationId: CoordinationId;
  readonly status: CoordinationStatus;
  readonly objective: ContentRef;
  readonly ownerSession: SessionKey;
  /** The gateway that opened it, where several share the ledger. */
  readonly gateway?: string;
  /** The policy pack that holds for it alone. */
  readonly policy?: PolicyRef;
  readonly createdAtMs: EpochMs;
  readonly endedAtMs?: EpochMs;
  readonly trace: FactPayloads["coordination.created"]["trace"];
  /** In order of admission. */
  readonly steps: readonly StepView[];
  readonly conflicts: readonly Conflict[];
  /** Held now, expired ones included; absent where there are none. */
  readonly claims?: readonly HeldClaim[];
  readonly escalations: readonly QuestionView[];
  /** Usage of all sessions' model calls together; absent until one was reported. */
  readonly usage?: UsageSum;
  /** Usage of the owner's own model calls on this coordination's trace; a part of `usage`. */
  readonly ownerUsage?: UsageView;
  /** The operator's bounds. */
  readonly budget?: TreeBudget;
  /** Who was stopped by them, and by which. */
  readonly budgetStops?: readonly BudgetReached[];
  /** How far a plan reached what it is for; one that is not met makes its end a give-up. */
  readonly successCriteria?: readonly CriterionMet[];
  readonly gaveUp?: true;
  /** A fork's source, and the first event there that it took nothing from. */
  readonly forkedFrom?: ForkedFrom;
  readonly plan?: PlanView;
}

export type QuestionView = Omit<Escalation, "notified"> &
  Partial<Overwrite> & {
    /** How its notices ended, by their places among them. */
    readonly notified?: Readonly<Record<string, FactPayloads["escalation.notified"]["outcome"]>>;
    /** The agent's question is kept back as its result is; only operators read it, in the ledger. */
    readonly wordsWithheld?: true;
    /** The report that says why the agent could not do the step which people are asked to have tried once more. */
    readonly reason?: ContentRef;
  };

/** A result that does not count before it is ruled on. Confidences in basis points. */
export interface HeldView {
  readonly output?: ContentRef;
  /** The last words of its agent, where they were kept back. */
  readonly words?: ContentRef;
  readonly confidence?: number;
  readonly confidenceUnreadable?: true;
  /** The checks that are asked. */
  readonly checks: readonly string[];
  readonly findings: readonly Finding[];
  /** Checks without a verdict, with the reason. */
  readonly failures: Readonly<Record<string, VerificationFailure>>;
  /** The question that people were asked about it. */
  readonly escalationId?: string;
}

/** A claim of an agent. Its line lies beside the log. */
export interface ProgressView {
  readonly percent?: number;
  readonly line: ContentRef;
  readonly atMs: EpochMs;
  /** The line is kept back as the agent's result is, and is shown nowhere. */
  readonly lineWithheld?: true;
}

/** The part of a step that a row on a time axis shows, too. */
export interface StepOutline {
  readonly stepId: StepId;
  readonly parentStepId?: StepId;
  /** 0 before the first dispatch. */
  readonly attempt: number;
  readonly status: StepPhase["status"];
  readonly lane: StepAdmitted["lane"];
  readonly name?: string;
  readonly agentId: AgentId;
  /** Steps that a step of a plan waits for. */
  readonly dependsOn?: readonly StepId[];
  /** When the next attempt is due. */
  readonly retryAtMs?: EpochMs;
  /** Until when people may answer; then the step fails. */
  readonly answerByMs?: EpochMs;
  /** The event that completed a fork's step, in the log of the source. */
  readonly carriedFrom?: EventId;
  /** Wishes for its child besides the agent. */
  readonly requested?: ChildRequest;
  /** The child that really ran in the newest attempt, as the host told it. */
  readonly ran?: ChildRun;
  /** Where the child of the newest attempt, or of one whose result that revises, did not run as it was asked. */
  readonly differences?: readonly ChildDifference[];
}

export interface StepView extends StepOutline {
  readonly runner: StepAdmitted["runner"];
  readonly childSessionKey?: SessionKey;
  readonly childRunId?: string;
  readonly idempotencyKey: IdempotencyKey;
  readonly sourceSession: SessionKey;
  readonly priority: StepAdmitted["priority"];
  readonly deliveryMode: StepAdmitted["deliveryMode"];
  readonly collect: boolean;
  readonly input: ContentRef;
  readonly admittedAtMs: EpochMs;
  /** How many of them must have completed. */
  readonly fanIn?: number;
  readonly retryBudget?: number;
  readonly held?: HeldView;
  /** How far its agent says it is, while it is at work. */
  readonly progress?: ProgressView;
  /** How often its result went back to its agent. */
  readonly revisions?: number;
  readonly skippedBecause?: FactPayloads["step.skipped"]["because"];
  readonly output?: ContentRef;
  /** Results of it that may be read, the newest last; absent where there are none. */
  readonly results?: readonly ReadableResult[];
  /** How many messages of its agent did not go to a chat. */
  readonly suppressedMessages?: number;
  readonly dispatchedAtMs?: EpochMs;
  readonly acknowledgedAtMs?: EpochMs;
  readonly endedAtMs?: EpochMs;
  /** From the dispatch to the end; absent while the step is open. */
  readonly durationMs?: number;
  readonly deadlineAtMs?: EpochMs;
  readonly error?: StepError;
  readonly problems?: readonly InputProblem[];
  /** Bounds on its child besides those of the steps above it. */
  readonly privilege?: AdmittedPrivilege;
  /** Calls of its child that its privileges do not allow; no more than 32. */
  readonly refusedCalls?: readonly RefusedCall[];
  /** Usage of its model calls; absent until one was reported. */
  readonly usage?: UsageView;
}

/** Builds what people and tools are shown of a coordination from its state. */
export function viewCoordination(state: KnownCoordination): CoordinationView {
  const { coordinationId, created, createdAtMs, conflicts, escalations, bill } = state;
  return {
    coordinationId,
    status: state.kind === "ended" ? state.status : "running",
    objective: created.objective,
    ownerSession: created.ownerSession,
    createdAtMs,
    ...(state.kind === "ended" && { endedAtMs: state.endedAtMs }),
    trace: created.trace,
    steps: [...state.steps.values()].map((step) => ({
      ...viewStep(coordinationId, step),
      ...viewUsage("usage", bill, { stepId: step.spec.stepId, spent: step.spent }),
    })),
    conflicts,
    ...(state.claims.size > 0 && { claims: state.claims.valueSeq().toArray() }),
    escalations: escalations
      .valueSeq()
      .toArray()
      .map((question) => viewQuestion(state, question)),
    ...(bill.sum.tokens + bill.sum.costMicroUsd > 0 && { usage: bill.sum }),
    ...viewUsage("ownerUsage", bill, { stepId: OWNER_STEP_ID }),
    ...(created.budget && { budget: created.budget }),
    ...(bill.stops.length > 0 && { budgetStops: bill.stops }),
    ...(state.successCriteria && viewCriteria(state.successCriteria)),
    ...viewOrigin(created),
    ...viewPlan(state),
  };
}

function viewQuestion(state: KnownCoordination, escalation: Escalation): QuestionView {
  const { notified, ...question } = escalation;
  const reason = findReportBehindQuestion(state.steps, escalation);
  return {
    ...question,
    ...(notified && { notified: Object.fromEntries(notified) }),
    ...(isQuestionWithheld(state.steps, escalation) && { wordsWithheld: true }),
    ...(reason && { reason }),
    ...findOverwrite(state, escalation),
  };
}

function viewCriteria(successCriteria: readonly CriterionMet[]): Partial<CoordinationView> {
  const gaveUp = successCriteria.some(({ met }) => !met);
  return { successCriteria, ...(gaveUp && { gaveUp }) };
}

function viewOrigin({
  forkedFrom,
  gateway,
  policy,
}: KnownCoordination["created"]): Partial<CoordinationView> {
  return {
    ...(forkedFrom && { forkedFrom }),
    ...(gateway !== undefined && { gateway }),
    ...(policy && { policy }),
  };
}

function viewStep(coordinationId: CoordinationId, step: Step): StepView {
  const { spec, phase, admittedAtMs } = step;
  return {
    stepId: spec.stepId,
    ...(spec.parentStepId && { parentStepId: spec.parentStepId }),
    attempt: phase.attempt,
    status: phase.status,
    lane: spec.lane,
    ...(spec.name && { name: spec.name }),
    agentId: spec.agentId,
    runner: spec.runner,
    ...viewChild(phase),
    idempotencyKey: createIdempotencyKey(coordinationId, spec.stepId, phase.attempt),
    sourceSession: spec.sourceSession,
    priority: spec.priority,
    deliveryMode: spec.deliveryMode,
    collect: spec.collect,
    input: spec.input,
    admittedAtMs,
    ...viewTimes(phase),
    ...("error" in phase && { error: phase.error }),
    ...(phase.status === "held" && { held: viewHeldResult(phase, step) }),
    ...viewProgress(step),
    ...viewResults(step),
    ...(spec.problems && { problems: spec.problems }),
    ...viewRequestedAndRan(step),
    ...viewPrivilege(step),
    ...(spec.planned && viewPlannedFields(spec, phase)),
  };
}

function viewResults(step: Step): Pick<StepView, "revisions" | "results" | "suppressedMessages"> {
  const { revisions, suppressed } = step;
  const results = listReadableResults(step);
  return {
    ...(revisions !== undefined && { revisions }),
    ...(results.length > 0 && { results }),
    ...(suppressed !== undefined && { suppressedMessages: suppressed }),
  };
}

function viewPrivilege({ spec, refusedCalls }: Step): Pick<StepView, "privilege" | "refusedCalls"> {
  return {
    ...(spec.privilege && { privilege: spec.privilege }),
    ...(refusedCalls && { refusedCalls }),
  };
}

function viewProgress(step: Step): Pick<StepView, "progress"> {
  const { phase, progress } = step;
  const isAtWork = phase.status === "dispatched" || phase.status === "running";
  if (!progress || !isAtWork) return {};
  const isWithheld = isEverythingWithheld(step, findSessionOfPhase(phase));
  const { percent, line, atMs } = progress;
  return {
    progress: {
      ...(percent !== undefined && { percent }),
      line,
      atMs,
      ...(isWithheld && { lineWithheld: true }),
    },
  };
}

function viewRequestedAndRan(step: Step): Pick<StepView, "requested" | "ran" | "differences"> {
  const { spec, observed } = step;
  const { requested } = spec;
  const differences = listRunDifferences(step);
  return {
    ...(requested && { requested }),
    ...(observed && { ran: observed.ran }),
    ...(differences.length > 0 && { differences }),
  };
}

function viewHeldResult(
  { attempt, output, stated, findings, failures, escalationId }: HeldPhase,
  { spec, withheld }: Step,
): HeldView {
  return {
    ...(output && { output }),
    ...(withheld?.attempt === attempt && { words: withheld.text }),
    ...stated,
    checks: spec.gate?.checks ?? [],
    findings,
    failures: Object.fromEntries(failures),
    ...(escalationId && { escalationId }),
  };
}

function viewPlannedFields({ planned, retryBudget }: StepAdmitted, phase: StepPhase): Partial<StepView> {
  return {
    ...(planned && { dependsOn: planned.dependsOn, fanIn: planned.fanIn, retryBudget }),
    ...(phase.status === "backoff" && { retryAtMs: phase.retryAtMs }),
    ...(phase.status === "blocked" && { answerByMs: phase.answerByMs }),
    ...("carriedFrom" in phase && { carriedFrom: phase.carriedFrom }),
    ...(phase.status === "skipped" && { skippedBecause: phase.because }),
    // Nobody reads a held result before it is ruled on.
    ...(phase.status === "completed" && phase.output && { output: phase.output }),
  };
}

function viewChild(phase: StepPhase): Pick<StepView, "childSessionKey" | "childRunId"> {
  const child = findChildOfPhase(phase);
  return child ? { childSessionKey: child.childSessionKey, childRunId: child.childRunId } : {};
}

function viewTimes(
  phase: StepPhase,
): Pick<StepView, "dispatchedAtMs" | "acknowledgedAtMs" | "endedAtMs" | "durationMs" | "deadlineAtMs"> {
  if (phase.status === "waiting") return {};
  if (!("dispatchedAtMs" in phase)) return { endedAtMs: phase.endedAtMs };
  return {
    dispatchedAtMs: phase.dispatchedAtMs,
    ...("acknowledgedAtMs" in phase && { acknowledgedAtMs: phase.acknowledgedAtMs }),
    ...("endedAtMs" in phase && {
      endedAtMs: phase.endedAtMs,
      durationMs: Math.max(0, phase.endedAtMs - phase.dispatchedAtMs),
    }),
    ...("deadlineAtMs" in phase && { deadlineAtMs: phase.deadlineAtMs }),
  };
}

/**
 * Reads a coordination's log and builds its view; `undefined` where the ledger does not know it. @throws
 * CoordinationError as `readStoredState`
 */
export async function readCoordinationView(
  store: LogReader,
  runId: CoordinationId,
): Promise<CoordinationView | undefined> {
  const state = await readStoredState(store, runId);
  return state.kind === "unopened" ? undefined : viewCoordination(state);
}
