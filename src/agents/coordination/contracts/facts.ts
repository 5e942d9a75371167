/**
 * Owns: the facts of the ledger, that is the ten QM2 event types (QM2 3.3) and this host's own ones.
 * Does not own: their OpenWOP counterparts (`openwop-events.ts`).
 *
 * Payloads are free of content: ids, hashes, sizes, names and host-made error sentences, never a prompt, a task or
 * a result.
 */
import { z } from "zod";
import {
  appliedStrategySchema,
  changeVersionSchema,
  contestantSchema,
  fencingTokenSchema,
  mergeEvidenceSchema,
  resourceSchema,
} from "./arbitration.ts";
import { BOUNDS } from "./bounds.ts";
import { deliveryModeSchema, laneSchema, prioritySchema } from "./envelope.ts";
import { agentIdSchema, coordinationIdSchema, epochMsSchema, sessionKeySchema, stepIdSchema } from "./ids.ts";
import { conflictStrategySchema, failurePolicySchema } from "./plan.ts";

const durationMs = z.int().min(0).max(BOUNDS.durationMsMax);
const attemptSchema = z
  .int()
  .min(1)
  .max(BOUNDS.retryBudgetMax + 1);
const hostRef = z.string().min(1).max(BOUNDS.sessionKeyCharsMax);
const shortName = z.string().min(1).max(BOUNDS.nameCharsMax);
const basisPoints = z.int().min(0).max(10_000);

/** Names a text by its sha256; the text itself lies in the content table and may be deleted. Size in bytes. */
export const contentRefSchema = z.object({
  sha256: z
    .string()
    .length(BOUNDS.sha256Chars)
    .regex(/^[0-9a-f]*$/),
  bytes: z.int().min(0),
});
export type ContentRef = z.infer<typeof contentRefSchema>;

/** How the host's side of a fact was learnt: from a hook or a runner as it happened, or by asking the host afterwards. */
export const learntViaSchema = z.enum(["hook", "reconciled", "deadline", "runner"]);
export type LearntVia = z.infer<typeof learntViaSchema>;

/** Why a step failed. `message` is the host's sentence, cut to a bound. */
export const stepErrorSchema = z.object({
  code: z.enum([
    "spawn_refused",
    "spawn_not_confirmed",
    "child_failed",
    "child_cancelled",
    "child_lost",
    /** The outputs break the step's `outputSchema`; the message begins with the path. */
    "output_invalid",
    /** A value that the input needs is not kept any more. */
    "input_unavailable",
    /** The child itself reported that it could not do the work. */
    "reported_failed",
  ]),
  message: z.string().max(BOUNDS.errorMessageCharsMax),
});
export type StepError = z.infer<typeof stepErrorSchema>;

/** A step error with the host's sentence cut to its bound: an event that breaks a bound could not be read again. */
export function stepError(code: StepError["code"], sentence: string): StepError {
  return { code, message: sentence.slice(0, BOUNDS.errorMessageCharsMax).toWellFormed() };
}

/** Something wrong with what came with a spawn; the spawn went on. */
export const inputProblemSchema = z.object({
  code: z.enum(["ENVELOPE_MALFORMED", "ENVELOPE_NOT_AUTHORITATIVE", "PARAMS_MALFORMED"]),
  path: z.string().max(BOUNDS.problemPathCharsMax),
});
export type InputProblem = z.infer<typeof inputProblemSchema>;

/**
 * What runs a step: a subagent of the host, an ACP session of the host, an agent process that speaks ACP over stdio, or a
 * turn of the owner's session, which is how a result is delivered.
 */
export const runnerSchema = z.enum(["subagent", "acp", "acp_stdio", "owner"]);
export type RunnerKind = z.infer<typeof runnerSchema>;

/** What was used, as far as it is known. */
export const usageSchema = z.object({
  tokens: z.int().min(0).optional(),
  /** Millionths of a US dollar. */
  costMicroUsd: z.int().min(0).optional(),
});
export type Usage = z.infer<typeof usageSchema>;

/** A budget as it is enforced: integers only. */
export const spendingLimitSchema = z.object({
  spawns: z.int().min(1).optional(),
  tokens: z.int().min(1).optional(),
  costMicroUsd: z.int().min(1).optional(),
  wallMs: durationMs.optional(),
});
export type SpendingLimit = z.infer<typeof spendingLimitSchema>;

/** What a plan says about a step. A spawn that a model asked for has none of it. */
export const plannedSchema = z.object({
  dependsOn: z.array(stepIdSchema).max(BOUNDS.dependenciesMax),
  /** How many of them must have completed (D6). */
  fanIn: z.int().min(0).max(BOUNDS.dependenciesMax),
  backoffMs: durationMs,
  /** The longest chain of timeouts from the step to an end of the graph, its own included. */
  criticalPathMs: z.int().min(0),
  budget: spendingLimitSchema.optional(),
});
export type Planned = z.infer<typeof plannedSchema>;

/** What is fixed about a step from its admission on. */
export const stepAdmittedSchema = z.object({
  stepId: stepIdSchema,
  parentStepId: stepIdSchema.optional(),
  lane: laneSchema,
  runner: runnerSchema,
  agentId: agentIdSchema,
  name: shortName.optional(),
  sourceSession: sessionKeySchema,
  deliveryMode: deliveryModeSchema,
  priority: prioritySchema,
  input: contentRefSchema,
  timeoutMs: durationMs,
  retryBudget: z.int().min(0).max(BOUNDS.retryBudgetMax),
  collect: z.boolean(),
  /** The tool call that asked for the spawn. */
  call: z.object({
    toolCallId: hostRef.optional(),
    runId: hostRef.optional(),
    spanId: hostRef.optional(),
  }),
  problems: z.array(inputProblemSchema).max(BOUNDS.problemsMax).optional(),
  planned: plannedSchema.optional(),
});
export type StepAdmitted = z.infer<typeof stepAdmittedSchema>;

/**
 * Who asked: a person by command line or gateway, a session's model by tool, the host's own task flow, or the step whose
 * child submitted the plan.
 */
export const requesterSchema = z.enum(["operator", "agent", "task_flow", "parent"]);
export type Requester = z.infer<typeof requesterSchema>;

/** The question that a step waits for after its last attempt; `coordination.escalated` follows and asks it. */
const askedSchema = z.object({
  escalationId: z.string().min(1).max(BOUNDS.idCharsMax),
  answerByMs: epochMsSchema,
});

const attemptOf = { stepId: stepIdSchema, attempt: attemptSchema };

/** The payload schema of every fact, by event type. */
export const FACT_PAYLOADS = {
  "coordination.created": z.object({
    origin: z.enum(["observed", "plan"]),
    ownerSession: sessionKeySchema,
    ownerAgent: agentIdSchema,
    objective: contentRefSchema,
    trace: z.object({
      traceId: hostRef.optional(),
      runId: hostRef.optional(),
      spanId: hostRef.optional(),
      /** The coordination that came before on the same trace. */
      causalRef: coordinationIdSchema.optional(),
    }),
    failurePolicy: failurePolicySchema,
    /** How long after the last change, with no step open, the coordination ends. */
    settleMs: durationMs,
    /** How long a dispatched step may stay without the host's acknowledgement. */
    acknowledgeMs: durationMs,
    plan: z
      .object({
        /** The plan as it was submitted, as JSON. */
        content: contentRefSchema,
        steps: z.int().min(1).max(BOUNDS.planStepsMax),
        /** The waits before retries follow from it. */
        seed: shortName,
        deadlineAtMs: epochMsSchema.optional(),
        budget: spendingLimitSchema.optional(),
        /** How long a question to people stays open. */
        escalateMs: durationMs,
      })
      .optional(),
    /** The step whose child submitted the plan. */
    parent: z.object({ coordinationId: coordinationIdSchema, stepId: stepIdSchema }).optional(),
  }),
  "step.admitted": stepAdmittedSchema,
  "step.dispatched": z.object({
    ...attemptOf,
    lane: laneSchema,
    idempotencyKey: z.string().max(BOUNDS.idempotencyKeyCharsMax),
    deadlineAtMs: epochMsSchema,
    /** The session that the attempt is to run in, where we choose it. */
    targetSession: sessionKeySchema.optional(),
    /** What the agent is told, as it was sent. */
    message: contentRefSchema.optional(),
  }),
  "step.acknowledged": z.object({
    ...attemptOf,
    childSessionKey: sessionKeySchema,
    childRunId: hostRef,
    via: learntViaSchema,
  }),
  "step.completed": z.object({
    ...attemptOf,
    via: learntViaSchema,
    output: contentRefSchema.optional(),
    usage: usageSchema.optional(),
  }),
  "step.failed": z.object({
    ...attemptOf,
    error: stepErrorSchema,
    cancelled: z.boolean(),
    via: learntViaSchema,
    /** When the next attempt is due; absent when there is none. */
    retryAtMs: epochMsSchema.optional(),
    escalated: askedSchema.optional(),
    usage: usageSchema.optional(),
  }),
  "step.timed_out": z.object({
    ...attemptOf,
    deadlineAtMs: epochMsSchema,
    via: learntViaSchema,
    retryAtMs: epochMsSchema.optional(),
    escalated: askedSchema.optional(),
  }),
  /** A child's structured result, before its run ended. The newest one of an attempt counts. */
  "step.reported": z.object({
    ...attemptOf,
    outcome: z.enum(["completed", "failed"]),
    output: contentRefSchema,
    confidence: basisPoints.optional(),
  }),
  /** D3: an outcome that came too late to count. */
  "step.outcome_refused": z.object({
    ...attemptOf,
    outcome: z.enum(["completed", "failed", "timed_out", "reported"]),
    because: z.enum(["stale_attempt", "step_ended"]),
  }),
  /** A planned step that will not run. */
  "step.skipped": z.object({
    stepId: stepIdSchema,
    because: z.enum(["dependency", "cancelled", "fail_fast", "deadline", "budget"]),
  }),
  /** One attempt more than the budget, granted by a person. */
  "step.retry_granted": z.object({ stepId: stepIdSchema, by: requesterSchema }),
  /** The child of an attempt that we gave up was told to stop. */
  "step.child_stopped": z.object({
    ...attemptOf,
    childSessionKey: sessionKeySchema,
    outcome: z.enum(["stopped", "already_ended", "unreachable"]),
  }),
  "coordination.cancel_requested": z.object({ by: requesterSchema, stepId: stepIdSchema.optional() }),
  "escalation.closed": z.object({
    escalationId: z.string().min(1).max(BOUNDS.idCharsMax),
    resolution: z.enum(["retried", "continued", "expired", "cancelled"]),
    by: requesterSchema.optional(),
  }),
  /** A step may change a resource, and whoever else wants to is ruled on, until the lease ends. */
  "claim.acquired": z.object({
    stepId: stepIdSchema,
    resource: resourceSchema,
    /** A2: the position among all claims of the ledger. */
    token: fencingTokenSchema,
    priority: prioritySchema,
    expiresAtMs: epochMsSchema,
    /** What the resource was when it was claimed. */
    base: changeVersionSchema.optional(),
  }),
  "claim.renewed": z.object({ stepId: stepIdSchema, token: fencingTokenSchema, expiresAtMs: epochMsSchema }),
  "claim.released": z.object({
    stepId: stepIdSchema,
    token: fencingTokenSchema,
    because: z.enum([
      "step_ended",
      "turn_ended",
      "expired",
      "preempted",
      /** A step that this one spawned, or runs for it, claimed the resource. */
      "delegated",
      /** The call that acquired it changed nothing. */
      "unused",
      "operator",
      "coordination_ended",
    ]),
  }),
  /** What a write left behind. */
  "resource.changed": z.object({
    stepId: stepIdSchema,
    resource: resourceSchema,
    version: changeVersionSchema,
    tool: shortName,
    /** The claim under which it was written (A2). */
    token: fencingTokenSchema,
  }),
  /** A call may change something, and what it changes could not be told. */
  "write.undetermined": z.object({
    stepId: stepIdSchema,
    tool: shortName,
    because: z.enum(["undeclared", "unreadable", "too_many", "extractor_failed"]),
    /** Who could not tell, where it was an extractor of a plugin. */
    extractor: shortName.optional(),
    action: z.enum(["asked", "denied"]),
  }),
  "conflict.detected": z.object({
    conflictId: z.string().min(1).max(BOUNDS.idCharsMax),
    resource: resourceSchema,
    claims: z.array(contestantSchema).min(2).max(BOUNDS.claimsMax),
    /** Everything else that the ruling follows from; absent in ledgers of 0.1.0. */
    contest: z
      .object({
        requester: stepIdSchema,
        cause: z.enum(["overlap", "stale_base"]),
        ...appliedStrategySchema.shape,
        atMs: epochMsSchema,
        /** What the requester's change is based on, and what the resource is. */
        base: changeVersionSchema.optional(),
        current: changeVersionSchema.optional(),
        merge: mergeEvidenceSchema.optional(),
        /** Until when people may answer. */
        reviewByMs: epochMsSchema.optional(),
      })
      .optional(),
  }),
  "conflict.resolved": z.object({
    conflictId: z.string().min(1).max(BOUNDS.idCharsMax),
    strategy: conflictStrategySchema,
    winner: stepIdSchema.optional(),
    /** Where the winner is a step of another coordination. */
    winnerCoordinationId: coordinationIdSchema.optional(),
    losers: z.array(stepIdSchema).max(BOUNDS.claimsMax),
    because: shortName,
    /** Which part of the evaluation ruled (QM2 2.4); absent in ledgers of 0.1.0. */
    rule: z.enum(["ownership", "lease", "strategy", "people"]).optional(),
  }),
  "coordination.escalated": z.object({
    escalationId: z.string().min(1).max(BOUNDS.idCharsMax),
    stepId: stepIdSchema.optional(),
    cause: z.enum(["confidence", "conflict", "verifier", "retries_exhausted", "deadline", "agent", "budget"]),
    kind: z.enum(["approval", "clarification"]),
    /** Present when confidence was the cause; basis points, 10,000 is certainty. */
    confidence: z.object({ measured: basisPoints, floor: z.int().min(5_000).max(10_000) }).optional(),
    deadlineAtMs: epochMsSchema,
  }),
  "coordination.terminal": z.object({
    status: z.enum(["success", "partial", "failed", "escalated", "cancelled"]),
    steps: z.object({
      total: z.int().min(0),
      completed: z.int().min(0),
      failed: z.int().min(0),
      timedOut: z.int().min(0),
      cancelled: z.int().min(0),
      skipped: z.int().min(0).optional(),
    }),
    /** Whether the owner of a plan was told. */
    delivery: z.enum(["delivered", "not_delivered", "unknown"]).optional(),
  }),
} as const;

export type FactType = keyof typeof FACT_PAYLOADS;
export type FactPayloads = { [T in FactType]: z.infer<(typeof FACT_PAYLOADS)[T]> };

/** The ten types that QM2 3.3 demands; the others are this host's own. */
export const QM2_EVENT_TYPES = [
  "coordination.created",
  "step.dispatched",
  "step.acknowledged",
  "step.completed",
  "step.failed",
  "step.timed_out",
  "conflict.detected",
  "conflict.resolved",
  "coordination.escalated",
  "coordination.terminal",
] as const satisfies readonly FactType[];

export type TerminalStatus = FactPayloads["coordination.terminal"]["status"];
