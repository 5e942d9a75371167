/** Owns: the fields that facts are made of (`facts.ts`). */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { deliveryModeSchema, laneSchema, prioritySchema } from "./envelope.ts";
import {
  agentIdSchema,
  coordinationIdSchema,
  epochMsSchema,
  eventIdSchema,
  sessionKeySchema,
  stepIdSchema,
} from "./ids.ts";
import { admittedPrivilegeSchema } from "./privilege.ts";
import { gateSchema } from "./verification.ts";
import { isolateSchema } from "./worktree-fields.ts";

/** The schema of a duration, in milliseconds. */
export const durationMs = z.int().min(0).max(BOUNDS.durationMsMax);
/** The schema of an attempt's number, from 1. */
export const attemptSchema = z
  .int()
  .min(1)
  .max(BOUNDS.retryBudgetMax + 1 + BOUNDS.revisionsMax);
/** The schema of a key or id that the host gave. */
export const hostRef = z.string().min(1).max(BOUNDS.sessionKeyCharsMax);
/** The schema of a name. */
export const shortName = z.string().min(1).max(BOUNDS.nameCharsMax);
/** The schema of a share in hundredths of a percent: 10,000 is all. */
export const basisPoints = z.int().min(0).max(10_000);
/** RFC 0039: no host may go below a half. */
export const floorSchema = z.int().min(5_000).max(10_000);
/** The schema of a question's id within its coordination. */
export const escalationId = z.string().min(1).max(BOUNDS.idCharsMax);

/** Names a text by its sha256; the text itself lies in the content table and may be deleted. Size in bytes. */
export const contentRefSchema = z.object({
  sha256: z
    .string()
    .length(BOUNDS.sha256Chars)
    .regex(/^[0-9a-f]*$/),
  bytes: z.int().min(0),
});
/** Names a content beside the log by its sha256 and its size in bytes. */
export type ContentRef = z.infer<typeof contentRefSchema>;

/** A result was held: what let it through, and whether people replaced it. */
export const releasedSchema = z.enum(["verified", "approved", "replaced"]);

/**
 * How the host's side of a fact was learnt: from a hook or a runner as it happened, or by asking the host afterwards; `gate`
 * where it was held and then ruled on.
 */
export const learntViaSchema = z.enum(["hook", "reconciled", "deadline", "runner", "gate"]);
/** How an outcome was learnt: from the host's hook, by asking, or from the agent. */
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
    /** A check of the result failed, or asked for more revisions than there are. */
    "verification_failed",
    /** People withheld the result, or nobody answered about it. */
    "withheld",
    /** The agent's words were held back and could not be kept: the disk, a crash, or too many texts. */
    "result_lost",
    /** The child would not have run as it was asked, and was stopped before its model was called. */
    "not_as_asked",
    /** No worktree could be made for the attempt, or what it left there cannot be read. */
    "worktree_failed",
    /** The provider of the child's model refused its calls, because of its rate limit or its load. */
    "provider_refused",
  ]),
  message: z.string().max(BOUNDS.errorMessageCharsMax),
});
/** Why an attempt failed: a code, and a message free of content. */
export type StepError = z.infer<typeof stepErrorSchema>;

/**
 * Returns the error of a step as facts hold it, with its sentence cut to the bound. An event that breaks a bound could
 * not be read again.
 */
export function createStepError(code: StepError["code"], sentence: string): StepError {
  return { code, message: sentence.slice(0, BOUNDS.errorMessageCharsMax).toWellFormed() };
}

/** Something wrong with what came with a spawn; the spawn went on. */
export const inputProblemSchema = z.object({
  code: z.enum(["ENVELOPE_MALFORMED", "ENVELOPE_NOT_AUTHORITATIVE", "PARAMS_MALFORMED"]),
  path: z.string().max(BOUNDS.problemPathCharsMax),
});
/** Why the input of a step could not be filled. */
export type InputProblem = z.infer<typeof inputProblemSchema>;

/**
 * The kind of agent that runs a step: a subagent of the host, an ACP session of the host, an agent process that speaks ACP over stdio, or a
 * turn of the owner's session, which is how a result is delivered.
 */
export const runnerSchema = z.enum(["subagent", "acp", "acp_stdio", "owner"]);
/** The kind of agent that runs a step: a host subagent, an ACP agent or the owner's session. */
export type RunnerKind = z.infer<typeof runnerSchema>;

/** Usage, as far as it is known. */
export const usageSchema = z.object({
  /** Attempts and spawns of the plans that the agent of the attempt submitted. */
  spawns: z.int().min(0).optional(),
  tokens: z.int().min(0).optional(),
  /** Millionths of a US dollar. */
  costMicroUsd: z.int().min(0).optional(),
});
/** Tokens and cost of an attempt, as far as the provider tells, with all that its agent's plans used. */
export type Usage = z.infer<typeof usageSchema>;

/** A budget as it is enforced: integers only. */
export const spendingLimitSchema = z.object({
  spawns: z.int().min(1).optional(),
  tokens: z.int().min(1).optional(),
  costMicroUsd: z.int().min(1).optional(),
  wallMs: durationMs.optional(),
});
/** Bounds on spending, integers only. */
export type SpendingLimit = z.infer<typeof spendingLimitSchema>;

/** A plan's rules for a step. A spawn that a model asked for has none. */
export const plannedSchema = z.object({
  dependsOn: z.array(stepIdSchema).max(BOUNDS.dependenciesMax),
  /** How many of them must have completed (D6). */
  fanIn: z.int().min(0).max(BOUNDS.dependenciesMax),
  backoffMs: durationMs,
  /** The longest chain of timeouts from the step to an end of the graph, its own included. */
  criticalPathMs: z.int().min(0),
  budget: spendingLimitSchema.optional(),
});
/** The plan's rules for a step: its dependencies, limits, gate and retries. */
export type Planned = z.infer<typeof plannedSchema>;

/** A decision to do work, with the confidence of whoever decided and what is demanded. */
export const decisionSchema = z.object({ confidence: basisPoints.optional(), floor: floorSchema });
/** The decision that waits for people. */
export type HeldDecision = z.infer<typeof decisionSchema>;

/** `sequence`: the first event of the source that a fork takes nothing from. */
export const forkedFromSchema = z.object({
  coordinationId: coordinationIdSchema,
  sequence: z.int().min(0),
  /** The sha256 of the policy that the plan was put under; absent where there was none. */
  policySha256: contentRefSchema.shape.sha256.optional(),
});
/** Where a fork comes from: the source, and the sequence number of the first event of its own. */
export type ForkedFrom = z.infer<typeof forkedFromSchema>;

/** A result that a step of a fork has from its source: it is completed with its admission, and is not run. */
export const carriedSchema = z.object({
  /** The event that completed it, in the log of the source. */
  eventId: eventIdSchema,
  output: contentRefSchema.optional(),
  /** As in the source: what let it through there, and whether people replaced it. */
  released: releasedSchema.optional(),
});
/** A result that a fork took from its source. */
export type CarriedResult = z.infer<typeof carriedSchema>;

const modelName = z.string().min(1).max(BOUNDS.modelNameCharsMax);
const thinkingLevel = shortName;
const folderPath = z.string().min(1).max(BOUNDS.resourceCharsMax);

/** The wishes of a spawn, besides its agent. The host chooses whatever is absent. */
export const childRequestSchema = z.object({
  /** As `provider/model`; a model alone where the spawn named no provider. */
  model: modelName.optional(),
  thinking: thinkingLevel.optional(),
  /** The real path of the folder that the child was to work in. */
  folder: folderPath.optional(),
});
/** The wishes for a child. */
export type ChildRequest = z.infer<typeof childRequestSchema>;

/** A child that runs, as the host tells it. */
export const childRunSchema = z.object({
  agentId: agentIdSchema.optional(),
  /** The model of its newest call, as `provider/model`. */
  model: modelName.optional(),
  thinking: thinkingLevel.optional(),
  /** The folder from which its tools take relative paths. */
  folder: folderPath.optional(),
  /** The tools that its model was offered: how many, and the sha256 of their sorted names. */
  tools: z.object({ count: z.int().min(0), sha256: contentRefSchema.shape.sha256 }).optional(),
});
/** The agent, model, folder and tools with which a child really ran. */
export type ChildRun = z.infer<typeof childRunSchema>;

/** `writes`: a file that the child changed outside of the folder that was asked. */
export const childDifferenceSchema = z.object({
  field: z.enum(["agent", "model", "thinking", "folder", "writes"]),
  asked: z.string().min(1).max(BOUNDS.resourceCharsMax),
  ran: z.string().min(1).max(BOUNDS.resourceCharsMax),
});
/** One thing in which a child did not run as it was asked. */
export type ChildDifference = z.infer<typeof childDifferenceSchema>;

/** Everything about a step that is fixed from its admission on. */
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
  /** The gate that holds the result until it is ruled on; absent in ledgers of 0.1.0. */
  gate: gateSchema.optional(),
  /** How sure the planner is of this step; below the floor it waits for people before it begins (G2). */
  decision: decisionSchema.optional(),
  /** Bounds on its child's tools and files; absent where nobody set any. */
  privilege: admittedPrivilegeSchema.optional(),
  /** How its attempts are kept apart; what they leave is merged back before the result counts. */
  isolate: isolateSchema.optional(),
  /** Only in a fork. */
  carried: carriedSchema.optional(),
  /** Wishes for the child besides its agent; absent where there were none. */
  requested: childRequestSchema.optional(),
});
/** All that is known of a step when it is admitted. */
export type StepAdmitted = z.infer<typeof stepAdmittedSchema>;

/**
 * Who asked: a person by command line or gateway, a session's model by tool, the host's own task flow, the step whose
 * child submitted the plan, or the operator's budget.
 */
export const requesterSchema = z.enum(["operator", "agent", "task_flow", "parent", "budget"]);
/** Who asked for a change of a coordination: an operator, a session or the host. */
export type Requester = z.infer<typeof requesterSchema>;

/** The question that a step waits for after its last attempt; `coordination.escalated` follows and asks it. */
export const askedSchema = z.object({
  escalationId,
  answerByMs: epochMsSchema,
});

/** The fields that name an attempt of a step. */
export const attemptOf = { stepId: stepIdSchema, attempt: attemptSchema };

/** The child's own confidence; `unreadable` where it stated something that is no number from 0 to 1. */
export const statedConfidence = {
  confidence: basisPoints.optional(),
  confidenceUnreadable: z.literal(true).optional(),
};

/** The name of a policy pack: small letters, digits and `-`. */
export const policyNameSchema = z
  .string()
  .max(BOUNDS.nameCharsMax)
  .regex(/^[a-z][a-z0-9-]*$/u);

/** `1.0.0`, or with what semver allows behind it. */
export const policyVersionSchema = z
  .string()
  .max(BOUNDS.versionCharsMax)
  .regex(/^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/u);

/** The schema of the pack that a coordination was opened under. */
export const policyRefSchema = z.object({ name: policyNameSchema, version: policyVersionSchema });
/** The pack that a coordination was opened under. */
export type PolicyRef = z.infer<typeof policyRefSchema>;
