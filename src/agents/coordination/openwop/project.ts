/**
 * Owns: the OpenWOP counterpart of every fact (the table of docs/events.md).
 *
 * L5 the projection of the facts equals the OpenWOP events stored, so this is pure and `verify` runs it again.
 * Source: OpenWOP multi-agent-execution.md, handoff state machine: each phase is caused by the phase before it, and
 * `dispatch.began` by the decision.
 */
import { assertNever } from "../contracts/errors.ts";
import type { FactEvent, OpenWopDraft } from "../contracts/run-event.ts";
import type { EventId, StepId } from "../contracts/ids.ts";
import type { OpenWopPayloads } from "../contracts/openwop-events.ts";
import { findChildOfPhase, type KnownCoordination, type Step } from "../ledger/state.ts";
import { draftOpenedQuestion, draftForwardedQuestion, draftClosedQuestion } from "./project-questions.ts";
import { draftDispatchDecision, nameActor } from "./draft-decided.ts";

/** The OpenWOP workflow id of a coordination whose steps were observed rather than planned. */
export const WORKFLOW_IDS = {
  observed: "openclaw.observed-coordination",
  plan: "openclaw.coordination-plan",
} as const;

/** Returns the OpenWOP events to append behind a fact, none for many facts; `state` is the state after it. */
export function projectFact(fact: FactEvent, state: KnownCoordination): OpenWopDraft[] {
  const projectType = PROJECTIONS[fact.type] as FactProjection<FactEvent["type"]>;
  return projectType(state, fact);
}

/** Drafts the OpenWOP events of facts of one type. */
type FactProjection<T extends FactEvent["type"]> = (
  state: KnownCoordination,
  fact: FactEvent & { type: T },
) => OpenWopDraft[];

/** Every fact without a projection is named here too, so that a new one is not forgotten. */
const PROJECTIONS: { readonly [T in FactEvent["type"]]: FactProjection<T> } = {
  "coordination.created": (_, { payload, eventId }) => [
    { type: "run.started", payload: { workflowId: WORKFLOW_IDS[payload.origin] }, causationId: eventId },
  ],
  "step.admitted": draftAdmittedStep,
  "step.dispatched": (state, { payload }) =>
    draftHandoffPhase(state, payload.stepId, { phase: "dispatch.began" }),
  "step.acknowledged": (state, { payload }) =>
    draftHandoffPhase(state, payload.stepId, { phase: "dispatch.succeeded" }),
  "step.completed": (state, { payload }) =>
    draftHandoffPhase(state, payload.stepId, { phase: "child.completed" }),
  "step.failed": draftFailedStep,
  "step.timed_out": (state, { payload }) =>
    draftFailedPhase(state, payload.stepId, { code: "timed_out", message: "the step passed its deadline" }),
  "coordination.escalated": draftOpenedQuestion,
  "coordination.terminal": (state, fact) => [...draftTerminalDecision(state, fact), draftRunEnd(state, fact)],
  "result.held": (state, fact) => [draftAgentDecided(state, fact)],
  "result.verified": (state, fact) => [draftAgentVerified(state, fact)],
  "escalation.forwarded": draftForwardedQuestion,
  "escalation.closed": draftClosedQuestion,
  "claim.acquired": projectNothing,
  "claim.renewed": projectNothing,
  "claim.released": projectNothing,
  "resource.changed": projectNothing,
  "write.undetermined": projectNothing,
  "privilege.refused": projectNothing,
  "conflict.detected": projectNothing,
  "conflict.resolved": projectNothing,
  "step.reported": projectNothing,
  "step.progressed": projectNothing,
  "child.observed": projectNothing,
  "child.differed": projectNothing,
  "step.outcome_refused": projectNothing,
  "step.skipped": projectNothing,
  "step.retry_granted": projectNothing,
  "step.child_stopped": projectNothing,
  "coordination.cancel_requested": projectNothing,
  "result.withheld": projectNothing,
  "result.shortened": projectNothing,
  "message.suppressed": projectNothing,
  "verification.failed": projectNothing,
  "result.revised": projectNothing,
  "worktree.opened": projectNothing,
  "worktree.merge_begun": projectNothing,
  "worktree.merged": projectNothing,
  "worktree.conflicted": projectNothing,
  "worktree.removed": projectNothing,
  "session.told": projectNothing,
  "plan.judged": projectNothing,
  "usage.recorded": projectNothing,
  "budget.reached": projectNothing,
  "budget.lent": projectNothing,
  "escalation.answered": projectNothing,
  "escalation.notified": projectNothing,
};

function projectNothing(): OpenWopDraft[] {
  return [];
}

/**
 * Drafts the decision to dispatch an admitted step; none for a carried result. One that is doubted, itself or with its
 * whole plan, is decided when people let it begin (RFC 0006, CP-1).
 */
function draftAdmittedStep(
  state: KnownCoordination,
  { payload, eventId }: FactEvent & { type: "step.admitted" },
): OpenWopDraft[] {
  // No orchestrator decides on what is not to be done.
  if (payload.carried) return [];
  const isDoubted = payload.decision !== undefined || state.plan?.decisionQuestion !== undefined;
  return payload.planned && isDoubted ? [] : [draftDispatchDecision(state, [payload.stepId], eventId)];
}

/** The phase of a handoff and, where it failed, its error. */
type HandoffPhase = Pick<OpenWopPayloads["core.workflowChain.event"], "phase" | "error">;

/** Drafts the next phase of a step's handoff, caused by the one before it. */
function draftHandoffPhase(
  state: KnownCoordination,
  stepId: StepId,
  { phase, error }: HandoffPhase,
): OpenWopDraft[] {
  const step = state.steps.get(stepId);
  const child = step && findChildOfPhase(step.phase);
  return [
    {
      type: "core.workflowChain.event",
      nodeId: stepId,
      ...nameCausation(step),
      payload: {
        phase,
        workerId: stepId,
        parentRunId: state.coordinationId,
        ...(child && { childRunId: child.childRunId }),
        ...(error && { error }),
      },
    },
  ];
}

function nameCausation(step: Step | undefined): { causationId?: EventId } {
  return step?.chainEventId ? { causationId: step.chainEventId } : {};
}

function draftFailedStep(
  state: KnownCoordination,
  fact: FactEvent & { type: "step.failed" },
): OpenWopDraft[] {
  const { stepId, error, cancelled } = fact.payload;
  if (!cancelled) return draftFailedPhase(state, stepId, error);
  return hasStartedChild(state, stepId)
    ? draftHandoffPhase(state, stepId, { phase: "child.cancelled" })
    : draftFailedPhase(state, stepId, error);
}

function draftFailedPhase(
  state: KnownCoordination,
  stepId: StepId,
  error: { code: string; message: string },
): OpenWopDraft[] {
  return draftHandoffPhase(state, stepId, {
    phase: hasStartedChild(state, stepId) ? "child.failed" : "dispatch.failed",
    error,
  });
}

/** True when the host has acknowledged the step: only then is there a child that can fail. */
function hasStartedChild(state: KnownCoordination, stepId: StepId): boolean {
  const step = state.steps.get(stepId);
  return step !== undefined && findChildOfPhase(step.phase) !== undefined;
}

/** Drafts what an agent arrived at, with its own confidence (RFC 0002). Verdicts name this event. */
function draftAgentDecided(
  state: KnownCoordination,
  fact: FactEvent & { type: "result.held" },
): OpenWopDraft {
  const { stepId, attempt, output, confidence } = fact.payload;
  return {
    type: "agent.decided",
    nodeId: stepId,
    causationId: fact.eventId,
    payload: {
      agentId: nameActor(state, stepId),
      decision: { workerId: stepId, attempt, ...(output && { outputSha256: output.sha256 }) },
      ...(confidence !== undefined && { confidence: confidence / 10_000 }),
    },
  };
}

/** Drafts the verdict on a held result, free of content (RFC 0090). */
function draftAgentVerified(
  state: KnownCoordination,
  fact: FactEvent & { type: "result.verified" },
): OpenWopDraft {
  const { stepId, agentId, verdict, criteria, confidence } = fact.payload;
  const phase = state.steps.get(stepId)?.phase;
  return {
    type: "agent.verified",
    nodeId: stepId,
    causationId: fact.eventId,
    payload: {
      agentId,
      target: phase?.status === "held" ? phase.target : fact.eventId,
      verdict,
      ...(criteria && { criteria }),
      ...(confidence !== undefined && { confidence: confidence / 10_000 }),
    },
  };
}

/**
 * Drafts the end as a decision of the orchestrator that says of each success criterion whether it was met (RFC 0090,
 * section C). It is empty where none was judged.
 */
function draftTerminalDecision(
  state: KnownCoordination,
  fact: FactEvent & { type: "coordination.terminal" },
): OpenWopDraft[] {
  const { successCriteria } = fact.payload;
  if (!successCriteria) return [];
  return [
    {
      type: "runOrchestrator.decided",
      nodeId: "orchestrator",
      causationId: fact.eventId,
      payload: {
        agentId: `agent:${state.created.ownerAgent}`,
        decision: { kind: "terminate", successCriteria },
        iteration: state.iterations + 1,
      },
    },
  ];
}

function draftRunEnd(
  state: KnownCoordination,
  fact: FactEvent & { type: "coordination.terminal" },
): OpenWopDraft {
  const causationId = fact.eventId;
  const durationMs = Math.max(0, state.changedAtMs - state.createdAtMs);
  const { status, steps } = fact.payload;
  switch (status) {
    case "success":
    case "partial":
      return { type: "run.completed", causationId, payload: { durationMs } };
    case "cancelled":
      return { type: "run.cancelled", causationId, payload: { durationMs } };
    case "failed":
    case "escalated": {
      const message = `${steps.completed} of ${steps.total} steps completed`;
      return {
        type: "run.failed",
        causationId,
        payload: { error: { code: `coordination_${status}`, message }, durationMs },
      };
    }
    default:
      return assertNever(status, "terminal status");
  }
}
