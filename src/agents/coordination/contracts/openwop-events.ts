/**
 * Owns: the payloads of the OpenWOP v1 events that the projection appends behind the facts.
 * Source: OpenWOP multi-agent-execution.md (RFC 0006, 0037, 0039) and run-event-payloads.schema.json.
 */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { criterionMetSchema } from "./verification.ts";

const ref = z.string().min(1).max(BOUNDS.traceRefCharsMax);
const errorObject = z.object({
  code: z.string().min(1).max(BOUNDS.nameCharsMax),
  message: z.string().max(BOUNDS.errorMessageCharsMax),
});
const interruptKind = z.enum(["approval", "clarification"]);
/** `ApprovalData` and `ClarificationData` of suspend-request.schema.json, as far as they are used here. */
const approvalData = z.strictObject({
  artifactId: ref,
  artifactType: ref,
  title: ref,
  actions: z
    .array(z.enum(["accept", "reject"]))
    .min(1)
    .max(2),
});
const clarificationData = z.strictObject({
  questions: z.array(z.strictObject({ id: ref, question: ref })).length(1),
});
const causationHostId = ref.optional();
const share = z.number().min(0).max(1);
const agentRef = z
  .string()
  .min(3)
  .max(BOUNDS.agentIdCharsMax + "agent:".length);

/** The payload schema of every projected event, by event type. */
export const OPENWOP_PAYLOADS = {
  "run.started": z.object({ workflowId: ref }),
  "run.completed": z.object({ durationMs: z.int().min(0).optional() }),
  "run.failed": z.object({ error: errorObject, durationMs: z.int().min(0).optional() }),
  "run.cancelled": z.object({
    reason: z.string().max(BOUNDS.errorMessageCharsMax).optional(),
    durationMs: z.int().min(0).optional(),
  }),
  "runOrchestrator.decided": z.strictObject({
    agentId: agentRef,
    decision: z.discriminatedUnion("kind", [
      z.strictObject({
        kind: z.literal("next-worker"),
        nextWorkerIds: z.array(ref).min(1).max(BOUNDS.planStepsMax),
      }),
      z.strictObject({
        kind: z.literal("terminate"),
        reason: ref.optional(),
        successCriteria: z.array(criterionMetSchema).max(BOUNDS.successCriteriaMax).optional(),
      }),
    ]),
    iteration: z.int().min(1),
    causationHostId,
  }),
  /** `decision` names the result by its hash; the result itself stays out of the log. */
  "agent.decided": z.strictObject({
    agentId: agentRef,
    decision: z.strictObject({
      workerId: ref,
      attempt: z.int().min(1),
      outputSha256: ref.optional(),
    }),
    confidence: share.optional(),
    causationHostId,
  }),
  "agent.verified": z.strictObject({
    agentId: agentRef,
    target: ref,
    verdict: z.enum(["pass", "fail", "revise"]),
    criteria: z.array(ref).max(BOUNDS.criteriaMax).optional(),
    confidence: share.optional(),
    causationHostId,
  }),
  "node.dispatched": z.strictObject({
    childRunId: ref,
    childWorkflowId: ref,
    childStatus: z.string().max(BOUNDS.nameCharsMax).optional(),
  }),
  "core.workflowChain.event": z.strictObject({
    phase: z.enum([
      "dispatch.began",
      "dispatch.succeeded",
      "dispatch.failed",
      "child.completed",
      "child.failed",
      "child.cancelled",
      "output.harvested",
    ]),
    workerId: ref,
    parentRunId: ref,
    childRunId: ref.optional(),
    harvestedKeys: z.array(ref).max(BOUNDS.planStepsMax).optional(),
    error: errorObject.optional(),
    causationHostId,
  }),
  "core.workflowChain.confidence-escalated": z.strictObject({
    confidence: z.number().min(0).max(1),
    floor: z.number().min(0.5).max(1),
    escalationKind: z.enum(["clarify", "escalate"]),
    parentRunId: ref,
    workerId: ref.optional(),
    causationHostId,
  }),
  "interrupt.requested": z.strictObject({
    kind: interruptKind,
    key: ref,
    data: z.union([approvalData, clarificationData]),
    timeoutMs: z.int().min(0).optional(),
  }),
  "interrupt.resolved": z.object({
    nodeId: ref,
    interruptId: ref,
    kind: interruptKind.optional(),
    /** Which way, never the text. */
    resumeValue: z.strictObject({ action: z.enum(["accept", "reject", "answer", "expired", "cancelled"]) }),
  }),
  "node.suspended": z.object({
    nodeId: ref,
    interruptId: ref,
    kind: interruptKind,
    key: ref,
    /** Where an agent's own confidence was the cause. */
    reason: z.literal("low-confidence").optional(),
    agentId: agentRef.optional(),
    threshold: share.optional(),
    observed: share.optional(),
  }),
} as const;

/** The types of OpenWOP events in a coordination's log. */
export type OpenWopType = keyof typeof OPENWOP_PAYLOADS;
/** The payload of each type of OpenWOP event. */
export type OpenWopPayloads = { [T in OpenWopType]: z.infer<(typeof OPENWOP_PAYLOADS)[T]> };
