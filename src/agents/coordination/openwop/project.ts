/**
 * Owns: the OpenWOP counterpart of every fact (the table of docs/events.md).
 *
 * L5 the projection of the facts equals the OpenWOP events stored, so this is pure and `verify` runs it again.
 * Source: OpenWOP multi-agent-execution.md, handoff state machine: each phase is caused by the phase before it, and
 * `dispatch.began` by the decision.
 */
import { unreachable } from "../contracts/errors.ts";
import type { FactEvent, OpenWopDraft } from "../contracts/run-event.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { EventId, StepId } from "../contracts/ids.ts";
import type { OpenWopPayloads } from "../contracts/openwop-events.ts";
import { childOf, type Coordination, type Step } from "../ledger/state.ts";

/** The OpenWOP workflow id of a coordination whose steps were observed rather than planned. */
const WORKFLOW_IDS = {
  observed: "openclaw.observed-coordination",
  plan: "openclaw.coordination-plan",
} as const;

type Known = Exclude<Coordination, { kind: "unopened" }>;

/** What to append behind `fact`; `state` is the state after it. */
export function project(fact: FactEvent, state: Known): OpenWopDraft[] {
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
      return [decided(state, fact.payload.stepId, fact.eventId)];
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
      return [ended(state, fact)];
    case "claim.acquired":
    case "claim.renewed":
    case "claim.released":
    case "resource.changed":
    case "write.undetermined":
    case "conflict.detected":
    case "conflict.resolved":
    case "step.reported":
    case "step.outcome_refused":
    case "step.skipped":
    case "step.retry_granted":
    case "step.child_stopped":
    case "coordination.cancel_requested":
    case "escalation.closed":
      return [];
    default:
      return unreachable(fact, "fact");
  }
}

function decided(state: Known, stepId: StepId, causationId: EventId): OpenWopDraft {
  return {
    type: "runOrchestrator.decided",
    nodeId: "orchestrator",
    causationId,
    payload: {
      agentId: `agent:${state.created.ownerAgent}`,
      decision: { kind: "next-worker", nextWorkerIds: [stepId] },
      iteration: state.iterations + 1,
    },
  };
}

type Handoff = Pick<OpenWopPayloads["core.workflowChain.event"], "phase" | "error">;

function handoff(state: Known, stepId: StepId, { phase, error }: Handoff): OpenWopDraft[] {
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

function failed(state: Known, fact: FactEvent & { type: "step.failed" }): OpenWopDraft[] {
  const { stepId, error, cancelled } = fact.payload;
  if (!cancelled) return failedWith(state, stepId, error);
  return ranBefore(state, stepId)
    ? handoff(state, stepId, { phase: "child.cancelled" })
    : failedWith(state, stepId, error);
}

function failedWith(state: Known, stepId: StepId, error: { code: string; message: string }): OpenWopDraft[] {
  return handoff(state, stepId, {
    phase: ranBefore(state, stepId) ? "child.failed" : "dispatch.failed",
    error,
  });
}

/** Whether the host had acknowledged the step: only then is there a child that can fail. */
function ranBefore(state: Known, stepId: StepId): boolean {
  const step = state.steps.get(stepId);
  return step !== undefined && childOf(step.phase) !== undefined;
}

function escalated(state: Known, fact: FactEvent & { type: "coordination.escalated" }): OpenWopDraft[] {
  const { escalationId, stepId, cause, kind, confidence, deadlineAtMs } = fact.payload;
  const nodeId = stepId ?? "orchestrator";
  const timeoutMs = Math.max(0, deadlineAtMs - state.changedAtMs);
  const interrupt: OpenWopDraft[] = [
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
      payload: { nodeId, interruptId: escalationId, kind, key: escalationId },
    },
  ];
  if (cause !== "confidence" || !confidence) return interrupt;
  return [
    {
      type: "core.workflowChain.confidence-escalated",
      nodeId,
      causationId: fact.eventId,
      payload: {
        confidence: confidence.measured / 10_000,
        floor: confidence.floor / 10_000,
        escalationKind: kind === "approval" ? "escalate" : "clarify",
        parentRunId: state.coordinationId,
        ...(stepId && { workerId: stepId }),
      },
    },
    ...interrupt,
  ];
}

/** What is asked, in the shape that OpenWOP demands for its kind; free of content. */
function questionOf({
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

function ended(state: Known, fact: FactEvent & { type: "coordination.terminal" }): OpenWopDraft {
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
