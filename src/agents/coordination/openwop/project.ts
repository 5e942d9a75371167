/**
 * Owns: the OpenWOP counterpart of every fact (the table of docs/events.md).
 *
 * L5 the projection of the facts equals the OpenWOP events stored, so this is pure and `verify` runs it again.
 * Source: OpenWOP multi-agent-execution.md, handoff state machine: each phase is caused by the phase before it, and
 * `dispatch.began` by the decision.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import { unreachable } from "../contracts/errors.ts";
import type { FactEvent, OpenWopDraft } from "../contracts/run-event.ts";
import { FACT_PAYLOADS, type FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID, type EventId, type StepId } from "../contracts/ids.ts";
import type { OpenWopPayloads } from "../contracts/openwop-events.ts";
import { childOf, type KnownCoordination, type Step } from "../ledger/state.ts";

/** The OpenWOP workflow id of a coordination whose steps were observed rather than planned. */
export const WORKFLOW_IDS = {
  observed: "openclaw.observed-coordination",
  plan: "openclaw.coordination-plan",
} as const;

/** What to append behind `fact`; `state` is the state after it. */
export function project(fact: FactEvent, state: KnownCoordination): OpenWopDraft[] {
  switch (fact.type) {
    case "coordination.created":
      return [
        {
          type: "run.started",
          payload: { workflowId: WORKFLOW_IDS[fact.payload.origin] },
          causationId: fact.eventId,
        },
      ];
    case "step.admitted":
      return admitted(state, fact);
    case "step.dispatched":
      return handoff(state, fact.payload.stepId, { phase: "dispatch.began" });
    case "step.acknowledged":
      return handoff(state, fact.payload.stepId, { phase: "dispatch.succeeded" });
    case "step.completed":
      return handoff(state, fact.payload.stepId, { phase: "child.completed" });
    case "step.failed":
      return failed(state, fact);
    case "step.timed_out":
      return failedWith(state, fact.payload.stepId, {
        code: "timed_out",
        message: "the step passed its deadline",
      });
    case "coordination.escalated":
      return escalated(state, fact);
    case "coordination.terminal":
      return [...terminated(state, fact), ended(state, fact)];
    case "result.held":
      return [agentDecided(state, fact)];
    case "result.verified":
      return [agentVerified(state, fact)];
    case "escalation.closed":
      return resolved(state, fact);
    default:
      return withoutCounterpart(fact);
  }
}

/** Every other fact is named here, so that a new one is not forgotten. */
function withoutCounterpart(
  fact: FactEvent & {
    type:
      | "claim.acquired"
      | "claim.renewed"
      | "claim.released"
      | "resource.changed"
      | "write.undetermined"
      | "conflict.detected"
      | "conflict.resolved"
      | "step.reported"
      | "step.outcome_refused"
      | "step.skipped"
      | "step.retry_granted"
      | "step.child_stopped"
      | "coordination.cancel_requested"
      | "result.withheld"
      | "verification.failed"
      | "result.revised"
      | "session.told"
      | "plan.judged"
      | "escalation.answered"
      | "escalation.notified";
  },
): OpenWopDraft[] {
  return fact.type in FACT_PAYLOADS ? [] : unreachable(fact as never, "fact");
}

/** RFC 0006, CP-1: what its planner doubts is decided when people let it begin. */
function admitted(
  state: KnownCoordination,
  { payload, eventId }: FactEvent & { type: "step.admitted" },
): OpenWopDraft[] {
  // No orchestrator decides on what is not to be done.
  if (payload.carried) return [];
  const isDoubted = payload.decision !== undefined || state.plan?.decisionQuestion !== undefined;
  return payload.planned && isDoubted ? [] : [decided(state, [payload.stepId], eventId)];
}

function decided(state: KnownCoordination, stepIds: readonly StepId[], causationId: EventId): OpenWopDraft {
  return {
    type: "runOrchestrator.decided",
    nodeId: "orchestrator",
    causationId,
    payload: {
      agentId: `agent:${state.created.ownerAgent}`,
      decision: { kind: "next-worker", nextWorkerIds: [...stepIds] },
      iteration: state.iterations + 1,
    },
  };
}

type Handoff = Pick<OpenWopPayloads["core.workflowChain.event"], "phase" | "error">;

function handoff(state: KnownCoordination, stepId: StepId, { phase, error }: Handoff): OpenWopDraft[] {
  const step = state.steps.get(stepId);
  const child = step && childOf(step.phase);
  return [
    {
      type: "core.workflowChain.event",
      nodeId: stepId,
      ...causedBy(step),
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

function causedBy(step: Step | undefined): { causationId?: EventId } {
  return step?.chainEventId ? { causationId: step.chainEventId } : {};
}

function failed(state: KnownCoordination, fact: FactEvent & { type: "step.failed" }): OpenWopDraft[] {
  const { stepId, error, cancelled } = fact.payload;
  if (!cancelled) return failedWith(state, stepId, error);
  return ranBefore(state, stepId)
    ? handoff(state, stepId, { phase: "child.cancelled" })
    : failedWith(state, stepId, error);
}

function failedWith(
  state: KnownCoordination,
  stepId: StepId,
  error: { code: string; message: string },
): OpenWopDraft[] {
  return handoff(state, stepId, {
    phase: ranBefore(state, stepId) ? "child.failed" : "dispatch.failed",
    error,
  });
}

/** Whether the host had acknowledged the step: only then is there a child that can fail. */
function ranBefore(state: KnownCoordination, stepId: StepId): boolean {
  const step = state.steps.get(stepId);
  return step !== undefined && childOf(step.phase) !== undefined;
}

/** RFC 0002: what an agent arrived at, with its own confidence. Verdicts name this event. */
function agentDecided(state: KnownCoordination, fact: FactEvent & { type: "result.held" }): OpenWopDraft {
  const { stepId, attempt, output, confidence } = fact.payload;
  return {
    type: "agent.decided",
    nodeId: stepId,
    causationId: fact.eventId,
    payload: {
      agentId: actorOf(state, stepId),
      decision: { workerId: stepId, attempt, ...(output && { outputSha256: output.sha256 }) },
      ...(confidence !== undefined && { confidence: confidence / 10_000 }),
    },
  };
}

/** RFC 0090: free of content. */
function agentVerified(
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

function actorOf(state: KnownCoordination, stepId: StepId | undefined): string {
  const agentId = (stepId && state.steps.get(stepId)?.spec.agentId) ?? state.created.ownerAgent;
  return `agent:${agentId}`;
}

type Escalated = FactEvent & { type: "coordination.escalated" };

/** G2: the event that records the doubt, then the interrupt. */
function escalated(state: KnownCoordination, fact: Escalated): OpenWopDraft[] {
  const { escalationId, stepId, kind, deadlineAtMs } = fact.payload;
  const nodeId = stepId ?? "orchestrator";
  const timeoutMs = Math.max(0, deadlineAtMs - state.changedAtMs);
  return [
    ...doubted(state, fact),
    {
      type: "interrupt.requested",
      nodeId,
      causationId: fact.eventId,
      payload: { kind, key: escalationId, data: questionOf(fact.payload), timeoutMs },
    },
    {
      type: "node.suspended",
      nodeId,
      causationId: fact.eventId,
      payload: { nodeId, interruptId: escalationId, kind, key: escalationId, ...lowConfidence(state, fact) },
    },
  ];
}

/** RFC 0039: of a decision to dispatch; what an agent doubts of its own result is said with the suspension. */
function doubted(state: KnownCoordination, fact: Escalated): OpenWopDraft[] {
  const { stepId, cause, kind, confidence } = fact.payload;
  if (cause !== "confidence" || confidence?.measured === undefined) return [];
  if ((confidence.of ?? "decision") !== "decision") return [];
  return [
    {
      type: "core.workflowChain.confidence-escalated",
      nodeId: stepId ?? "orchestrator",
      causationId: fact.eventId,
      payload: {
        confidence: confidence.measured / 10_000,
        floor: confidence.floor / 10_000,
        escalationKind: kind === "approval" ? "escalate" : "clarify",
        parentRunId: state.coordinationId,
        ...(stepId && { workerId: stepId }),
      },
    },
  ];
}

function lowConfidence(
  state: KnownCoordination,
  { payload: { stepId, cause, confidence } }: Escalated,
): Partial<OpenWopPayloads["node.suspended"]> {
  if (cause !== "confidence" || !confidence || (confidence.of ?? "decision") === "decision") return {};
  return {
    reason: "low-confidence",
    agentId: actorOf(state, stepId),
    threshold: confidence.floor / 10_000,
    ...(confidence.measured !== undefined && { observed: confidence.measured / 10_000 }),
  };
}

/** What is asked, in the shape that OpenWOP demands for its kind; free of content. */
export function questionOf({
  escalationId,
  stepId,
  cause,
  kind,
}: FactPayloads["coordination.escalated"]): OpenWopPayloads["interrupt.requested"]["data"] {
  const title = `${stepId ?? "the coordination"}: ${cause}`;
  return kind === "approval"
    ? {
        artifactId: stepId ?? escalationId,
        artifactType: "coordination.step",
        title,
        actions: ["accept", "reject"],
      }
    : { questions: [{ id: escalationId, question: title }] };
}

const RESUMED = {
  approved: "accept",
  retried: "accept",
  continued: "accept",
  denied: "reject",
  answered: "answer",
  expired: "expired",
  cancelled: "cancelled",
} as const;

/** A question of 0.1.0 had no counterpart when it was closed, and has none now (L4). */
function resolved(state: KnownCoordination, fact: FactEvent & { type: "escalation.closed" }): OpenWopDraft[] {
  const { escalationId, resolution } = fact.payload;
  const question = state.escalations.get(escalationId);
  if (!question?.answers) return [];
  const { stepId, kind } = question;
  return [
    {
      type: "interrupt.resolved",
      nodeId: stepId ?? "orchestrator",
      causationId: fact.eventId,
      payload: {
        nodeId: stepId ?? "orchestrator",
        interruptId: escalationId,
        kind,
        resumeValue: { action: RESUMED[resolution] },
      },
    },
    ...approvedDecision(state, fact),
  ];
}

/** RFC 0006, CP-1: the one decision, once people let it be carried out. */
function approvedDecision(
  state: KnownCoordination,
  fact: FactEvent & { type: "escalation.closed" },
): OpenWopDraft[] {
  const { escalationId, resolution } = fact.payload;
  const { cause, confidence, stepId } = state.escalations.get(escalationId) ?? {};
  const isDecision = cause === "confidence" && (confidence?.of ?? "decision") === "decision";
  if (!isDecision || resolution !== "approved") return [];
  const stepIds = stepId ? [stepId] : undoubted(state);
  return inParts(stepIds).map((part, index) =>
    decided({ ...state, iterations: state.iterations + index }, part, fact.eventId),
  );
}

/** What waits for nothing but the decision about the whole plan. */
function undoubted({ steps }: KnownCoordination): StepId[] {
  return steps
    .filter(({ spec, phase }) => spec.planned && !spec.decision && phase.status === "waiting")
    .keySeq()
    .filter((stepId) => stepId !== DELIVERY_STEP_ID)
    .toArray();
}

/** An event has its bound, and a plan of 10,000 steps breaks it. */
function inParts(stepIds: readonly StepId[]): StepId[][] {
  const parts: StepId[][] = [];
  for (let from = 0; from < stepIds.length; from += BOUNDS.stepsPerAppendMax)
    parts.push(stepIds.slice(from, from + BOUNDS.stepsPerAppendMax));
  return parts;
}

/** RFC 0090, section C: the end as the orchestrator's decision, with how far the plan reached what it is for. */
function terminated(
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

function ended(state: KnownCoordination, fact: FactEvent & { type: "coordination.terminal" }): OpenWopDraft {
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
      return unreachable(status, "terminal status");
  }
}
