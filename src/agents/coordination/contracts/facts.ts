/**
 * Owns: the facts of the ledger, that is the ten QM2 event types (QM2 3.3) and this host's own ones.
 * Does not own: their OpenWOP counterparts (`openwop-events.ts`).
 *
 * Payloads are free of content: ids, hashes, sizes, names and host-made error sentences, never a prompt, a task or
 * a result.
 */
import { z } from "zod";
import { CLAIM_FACTS, CONFLICT_FACTS, resourceSchema } from "./arbitration.ts";
import { BOUNDS } from "./bounds.ts";
import { answerKindSchema, QUESTION_FACTS, noticeSchema, questionPolicySchema } from "./escalation.ts";
import { laneSchema } from "./envelope.ts";
import {
  agentIdSchema,
  coordinationIdSchema,
  epochMsSchema,
  gatewayNameSchema,
  sessionKeySchema,
  stepIdSchema,
} from "./ids.ts";
import { failurePolicySchema } from "./plan.ts";
import { policyRefSchema } from "./fact-fields.ts";
import { privilegeOriginSchema, privilegeRuleSchema } from "./privilege.ts";
import { budgetReachedSchema, treeBudgetSchema, usageRecordedSchema } from "./usage.ts";
import {
  criterionKeySchema,
  criterionMetSchema,
  findingSchema,
  successCriterionSchema,
  verificationFailureSchema,
} from "./verification.ts";
import { absolutePath, commitId, mergedFileSchema, unmergedFileSchema } from "./worktree-fields.ts";
import {
  durationMs,
  hostRef,
  shortName,
  basisPoints,
  escalationId,
  contentRefSchema,
  forkedFromSchema,
  learntViaSchema,
  releasedSchema,
  stepErrorSchema,
  usageSchema,
  spendingLimitSchema,
  decisionSchema,
  stepAdmittedSchema,
  requesterSchema,
  askedSchema,
  attemptOf,
  childDifferenceSchema,
  childRunSchema,
  statedConfidence,
} from "./fact-fields.ts";

/** The schema of how a coordination ended. */
export const terminalStatusSchema = z.enum(["success", "partial", "failed", "escalated", "cancelled"]);
/** How a coordination ended. */
export type TerminalStatus = z.infer<typeof terminalStatusSchema>;

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
    /** Rules for questions to people; absent in ledgers of 0.1.0. */
    questions: questionPolicySchema.optional(),
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
        /** The planner's confidence in the whole plan, where it is to be ruled on. */
        decision: decisionSchema.optional(),
        successCriteria: z.array(successCriterionSchema).max(BOUNDS.successCriteriaMax).optional(),
      })
      .optional(),
    /** The step whose child submitted the plan. */
    parent: z
      .object({
        coordinationId: coordinationIdSchema,
        stepId: stepIdSchema,
        /** The attempt of that child; absent in ledgers of 0.1.0. */
        attempt: z.int().min(1).optional(),
        /** The sum of what the plans used that the same child submitted before; absent: nothing. */
        usedBefore: usageSchema.optional(),
      })
      .optional(),
    /** The plan that this one is a fork of, and the first event there that it takes nothing from. */
    forkedFrom: forkedFromSchema.optional(),
    /** The operator's bound on the usage of all sessions of an observed coordination together. */
    budget: treeBudgetSchema.optional(),
    /** The policy pack that holds for it alone; absent: what holds for the gateway. */
    policy: policyRefSchema.optional(),
    /** The gateway that opened it, where several share the ledger: the owner's session and observed children are there. */
    gateway: gatewayNameSchema.optional(),
  }),
  "step.admitted": stepAdmittedSchema,
  "step.dispatched": z.object({
    ...attemptOf,
    lane: laneSchema,
    idempotencyKey: z.string().max(BOUNDS.idempotencyKeyCharsMax),
    deadlineAtMs: epochMsSchema,
    /** The session that the attempt is to run in, where we choose it. */
    targetSession: sessionKeySchema.optional(),
    /** The message to the agent, as it was sent. */
    message: contentRefSchema.optional(),
    /** The gateway that starts the agent, where several share the ledger. */
    gateway: gatewayNameSchema.optional(),
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
    released: releasedSchema.optional(),
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
    /** The host made no child of a model's spawn, which then counts for no budget. Earlier releases counted it, and say nothing. */
    unspawned: z.literal(true).optional(),
  }),
  "step.timed_out": z.object({
    ...attemptOf,
    deadlineAtMs: epochMsSchema,
    via: learntViaSchema,
    retryAtMs: epochMsSchema.optional(),
    escalated: askedSchema.optional(),
    usage: usageSchema.optional(),
  }),
  /** A child's structured result, before its run ended. The newest one of an attempt counts. */
  "step.reported": z.object({
    ...attemptOf,
    outcome: z.enum(["completed", "failed"]),
    output: contentRefSchema,
    confidence: basisPoints.optional(),
  }),
  /** How far the child of an attempt says it is. It changes nothing; the newest one is shown. */
  "step.progressed": z.object({
    ...attemptOf,
    percent: z.int().min(0).max(100).optional(),
    /** One line, as the agent wrote it. */
    line: contentRefSchema,
  }),
  /** The child that really runs in an attempt: all that is known at first, then each change. */
  "child.observed": z.object({
    ...attemptOf,
    ran: childRunSchema,
    /** It differs from what was asked, and the run was stopped before its model was called. */
    refused: z.literal(true).optional(),
  }),
  /** A child does not run as it was asked. Each difference of an attempt is recorded once. */
  "child.differed": z.object({ ...attemptOf, ...childDifferenceSchema.shape }),
  /** D3: an outcome that came too late to count. */
  "step.outcome_refused": z.object({
    ...attemptOf,
    outcome: z.enum(["completed", "failed", "timed_out", "reported", "verified"]),
    because: z.enum(["stale_attempt", "step_ended", "other_target"]),
  }),
  /** A planned step that will not run. */
  "step.skipped": z.object({
    stepId: stepIdSchema,
    because: z.enum(["dependency", "cancelled", "fail_fast", "deadline", "budget", "denied"]),
  }),
  /** One attempt more than the budget, granted by a person. */
  "step.retry_granted": z.object({ stepId: stepIdSchema, by: requesterSchema }),
  /** The child of an attempt that we gave up was told to stop. */
  "step.child_stopped": z.object({
    ...attemptOf,
    childSessionKey: sessionKeySchema,
    outcome: z.enum(["stopped", "already_ended", "unreachable"]),
    /** Absent: nothing, or the end of its attempt has counted what it used. */
    usage: usageSchema.optional(),
  }),
  /** The attempt has a worktree of its own, made from a commit of a repository. */
  "worktree.opened": z.object({
    ...attemptOf,
    repository: absolutePath,
    base: commitId,
    /** Where the agent works. */
    folder: absolutePath,
  }),
  /** The files that are about to be written into the repository's folder. */
  "worktree.merge_begun": z.object({
    ...attemptOf,
    files: z.array(mergedFileSchema).max(BOUNDS.worktreeFilesMax),
  }),
  /** Everything that the attempt left in its worktree is in the repository's folder. */
  "worktree.merged": z.object({ ...attemptOf, files: z.int().min(0).max(BOUNDS.worktreeFilesMax) }),
  /** The attempt's changes could not be merged back, and people are asked; the worktree stays until they answer. */
  "worktree.conflicted": z.object({
    ...attemptOf,
    /** Empty where there is more than a host merges. */
    files: z.array(unmergedFileSchema).max(BOUNDS.worktreeFilesMax),
  }),
  /** The worktree of an attempt that is over is gone, with its branch; or it could not be removed. */
  "worktree.removed": z.object({ ...attemptOf, outcome: z.enum(["removed", "left"]) }),
  "coordination.cancel_requested": z.object({ by: requesterSchema, stepId: stepIdSchema.optional() }),
  /** The words of an attempt's child were kept back from its parent, and kept here. The newest of an attempt counts. */
  "result.withheld": z.object({
    ...attemptOf,
    text: contentRefSchema,
    ...statedConfidence,
  }),
  /** The child said more than its parent is shown: the whole text is kept here. */
  "result.shortened": z.object({
    ...attemptOf,
    text: contentRefSchema,
    chars: z.int().min(1),
    /** How many its parent is shown. */
    shownChars: z.int().min(1),
  }),
  /** Words of the child did not go to a chat: only its parent, or a person, may say it there. */
  "message.suppressed": z.object({
    ...attemptOf,
    /** How the host was about to send it. */
    through: z.enum(["message", "reply"]),
    channel: shortName,
    chars: z.int().min(0),
    /** How many files or images it had. */
    media: z.int().min(0),
  }),
  /** The child has ended; its result does not count before it is ruled on (G1). */
  "result.held": z.object({
    ...attemptOf,
    via: learntViaSchema,
    output: contentRefSchema.optional(),
    usage: usageSchema.optional(),
    ...statedConfidence,
    /** Until when the checks may take. */
    verifyByMs: epochMsSchema.optional(),
  }),
  "result.verified": z.object({ ...attemptOf, ...findingSchema.shape }),
  /** A check of a held result gave no verdict. */
  "verification.failed": z.object({
    ...attemptOf,
    check: criterionKeySchema,
    because: verificationFailureSchema,
  }),
  /** The result goes back to its agent, for another attempt. */
  "result.revised": z.object({
    ...attemptOf,
    revision: z.int().min(1).max(BOUNDS.revisionsMax),
    /** The keys of what was not met. */
    criteria: z.array(criterionKeySchema).max(BOUNDS.criteriaMax),
  }),
  /** A session was told what it had been waiting for: the fate of a held result, or an answer. */
  "session.told": z.object({
    tellingId: z
      .string()
      .min(1)
      .max(BOUNDS.idCharsMax + BOUNDS.nameCharsMax),
    delivery: z.enum(["delivered", "not_delivered", "unknown"]),
  }),
  /** How far a plan reached what it is for, before its owner is told. */
  "plan.judged": z.object({
    successCriteria: z.array(criterionMetSchema).min(1).max(BOUNDS.successCriteriaMax),
  }),
  ...QUESTION_FACTS,
  ...CLAIM_FACTS,
  /** A call that its session may not make was refused before it happened. */
  "privilege.refused": z.object({
    /** The step whose child called. */
    stepId: stepIdSchema,
    tool: shortName,
    rule: privilegeRuleSchema,
    /** Whose rule it was. */
    from: privilegeOriginSchema,
    /** The resource that the call would have changed. */
    resource: resourceSchema.optional(),
  }),
  ...CONFLICT_FACTS,
  /** Usage of one run's model calls up to now. It may follow the end of the coordination, and changes nothing else. */
  "usage.recorded": usageRecordedSchema,
  "budget.reached": budgetReachedSchema,
  /**
   * A plan that the child of an attempt submitted, and those before it, may use so much of the budget of this plan. The newest loan of
   * an attempt counts until the attempt ends.
   */
  "budget.lent": z.object({ ...attemptOf, to: coordinationIdSchema, budget: usageSchema }),
  "coordination.escalated": z.object({
    escalationId,
    stepId: stepIdSchema.optional(),
    cause: z.enum([
      "confidence",
      "conflict",
      "verifier",
      "retries_exhausted",
      "deadline",
      "agent",
      "budget",
      "mismatch",
      /** The changes of an attempt in its worktree could not be merged back. */
      "merge",
    ]),
    kind: z.enum(["approval", "clarification"]),
    /** Present when confidence was the cause; basis points, 10,000 is certainty. */
    confidence: z
      .object({
        /** Absent where none was stated, or none that is a number. */
        measured: basisPoints.optional(),
        floor: basisPoints,
        /** Whose confidence it is: of a decision (RFC 0039), of a result, or of a verdict. Absent: of a decision. */
        of: z.enum(["decision", "result", "verdict"]).optional(),
      })
      .optional(),
    deadlineAtMs: epochMsSchema,
    /** Absent in ledgers of 0.1.0: people could only let a step be tried again. */
    answers: z.array(answerKindSchema).max(3).optional(),
    /** The session whose agent asks. */
    askedBy: sessionKeySchema.optional(),
    /** The session that is asked in place of people: the parent of the one that asks. */
    askedOf: sessionKeySchema.optional(),
    /** `askedBy` may not answer. */
    requireDifferentApprover: z.literal(true).optional(),
    /** The question, as an agent wrote it. */
    question: contentRefSchema.optional(),
    /** The conflict that people rule on. */
    conflictId: escalationId.optional(),
    /** The answer that counts when nobody gives one in time. */
    onExpiry: z.enum(["deny", "default"]).optional(),
    notices: z.array(noticeSchema).max(BOUNDS.noticesMax).optional(),
  }),
  "coordination.terminal": z.object({
    status: terminalStatusSchema,
    steps: z.object({
      total: z.int().min(0),
      completed: z.int().min(0),
      failed: z.int().min(0),
      timedOut: z.int().min(0),
      cancelled: z.int().min(0),
      skipped: z.int().min(0).optional(),
    }),
    successCriteria: z.array(criterionMetSchema).max(BOUNDS.successCriteriaMax).optional(),
    /** Whether the owner of a plan was told. */
    delivery: z.enum(["delivered", "not_delivered", "unknown"]).optional(),
  }),
} as const;

/** The types of facts, such as `step.completed`. */
export type FactType = keyof typeof FACT_PAYLOADS;
/** The payload of each type of fact (QM2, section 5). */
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
