/**
 * Owns: a plan as its author writes it: the schemas of its steps, policies and budget, and checking a plan against them.
 * Does not own: whether its graph is sound (`plan/`).
 */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { deliveryModeSchema, laneSchema, prioritySchema } from "./envelope.ts";
import { coordinationIdSchema, sessionKeySchema, stepIdSchema } from "./ids.ts";
import { privilegeSchema } from "./privilege.ts";
import { stepVerifySchema, successCriterionSchema } from "./verification.ts";
import { isolateSchema } from "./worktree-fields.ts";
import { parseBounded, PLAN_BOUNDS, type Parsed, type ValidationProblem } from "./validation.ts";

const durationMs = z.int().min(1).max(BOUNDS.durationMsMax);
const resourceName = z.string().min(1).max(BOUNDS.resourceCharsMax);

/** QM2 2.4: how a contested resource is awarded. */
export const conflictStrategySchema = z.enum([
  "owner_wins",
  "priority_wins",
  "merge_if_safe",
  "manual_review",
]);
/** How a contest is ruled: by priority, time, merge, a plugin or people. */
export type ConflictStrategy = z.infer<typeof conflictStrategySchema>;

/** The conflict rules of a coordination: a default strategy, exceptions by resource pattern, and what is high-risk. */
export const arbiterPolicySchema = z.strictObject({
  /** Absent in a plan: the operator's. */
  strategy: conflictStrategySchema.optional(),
  overrides: z
    .array(
      z.strictObject({
        resource: resourceName.describe(
          "The resource, or a pattern: `**` is any number of folders, `*` anything within a name.",
        ),
        strategy: conflictStrategySchema.describe("Who gets it."),
      }),
    )
    .max(BOUNDS.policyOverridesMax)
    .refine(
      (overrides) => sumPatternChars(overrides.map(({ resource }) => resource)) <= BOUNDS.policyCharsMax,
    )
    .optional()
    .describe("Other strategies for single resources."),
  highRisk: z
    .array(resourceName)
    .max(BOUNDS.policyOverridesMax)
    .refine((patterns) => sumPatternChars(patterns) <= BOUNDS.policyCharsMax)
    .optional()
    .describe("Resources of which people approve every contested write."),
});
/** The strategies of a plan, by resource. */
export type ArbiterPolicy = z.infer<typeof arbiterPolicySchema>;

function sumPatternChars(patterns: readonly string[]): number {
  return patterns.reduce((chars, pattern) => chars + pattern.length, 0);
}

/** The schema of a plan's policy for failures. */
export const failurePolicySchema = z.strictObject({
  retryBudget: z.int().min(0).max(BOUNDS.retryBudgetMax),
  timeoutPolicy: z.enum(["fail_fast", "continue_with_partial"]),
  escalationPolicy: z.enum(["none", "hitl"]),
});
/** Rules for steps of a plan that fail. */
export type FailurePolicy = z.infer<typeof failurePolicySchema>;

const retrySchema = z.strictObject({
  budget: z.int().min(0).max(BOUNDS.retryBudgetMax),
  backoffMs: durationMs.optional(),
});

/** Bounds at which the work stops and people are asked: attempts and spawns, tokens, US dollars, wall time. */
export const budgetSchema = z.strictObject({
  spawns: z.int().min(1).max(BOUNDS.budgetMax).optional(),
  tokens: z.int().min(1).max(BOUNDS.budgetMax).optional(),
  costUsd: z.number().positive().max(1_000_000).optional(),
  wallMs: durationMs.optional(),
});
/** Bounds on the spending of a plan or step: tokens, cost, spawns and time. */
export type Budget = z.infer<typeof budgetSchema>;

/**
 * The id of an agent in the one form that the host has for it: it trims and lower-cases, and session keys are made of it.
 */
const hostAgentSchema = z
  .string()
  .max(BOUNDS.agentIdCharsMax)
  .trim()
  .toLowerCase()
  .min(1)
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/)
  .brand<"AgentId">();

/** One dispatchable unit of a plan, with its input and the contract of its output (QM2 2.2). */
export const coordinationStepSchema = z.strictObject({
  stepId: stepIdSchema,
  agent: hostAgentSchema,
  task: z.string().min(1).max(BOUNDS.taskCharsMax),
  dependsOn: z.array(stepIdSchema).max(BOUNDS.dependenciesMax).optional(),
  fanIn: z
    .union([z.enum(["all", "any"]), z.strictObject({ min: z.int().min(1).max(BOUNDS.dependenciesMax) })])
    .optional(),
  input: z.record(z.string().max(BOUNDS.idCharsMax), z.json()).optional(),
  outputSchema: z.record(z.string().max(BOUNDS.idCharsMax), z.json()).optional(),
  priority: prioritySchema.optional(),
  timeoutMs: durationMs.optional(),
  retry: retrySchema.optional(),
  resources: z.array(resourceName).max(BOUNDS.resourcesPerStepMax).optional(),
  deliveryMode: deliveryModeSchema.optional(),
  lane: laneSchema.optional(),
  /** Checks of the result before it counts. */
  verify: stepVerifySchema.optional(),
  /** How sure the planner is that the step is right, from 0 to 1; below the floor people are asked before it begins. */
  confidence: z.number().min(0).max(1).optional(),
  budget: budgetSchema.optional(),
  ...privilegeSchema.shape,
  isolate: isolateSchema.optional(),
});
/** A step as its author wrote it. */
export type CoordinationStep = z.infer<typeof coordinationStepSchema>;

/** Defaults of every step of a plan that does not say otherwise. */
export const stepDefaultsSchema = z.strictObject({
  priority: prioritySchema.optional(),
  timeoutMs: durationMs.optional(),
  retry: retrySchema.optional(),
  deliveryMode: deliveryModeSchema.optional(),
  lane: laneSchema.optional(),
});
/** Defaults of the steps of a plan. */
export type StepDefaults = z.infer<typeof stepDefaultsSchema>;

/**
 * A declarative execution graph (QM2 3.2). Whether its graph is sound is the plan compiler's question. `deadlineMs` is how
 * long the whole plan may take from its start.
 */
export const coordinationPlanSchema = z.strictObject({
  coordinationId: coordinationIdSchema,
  objective: z.string().min(1).max(BOUNDS.objectiveCharsMax),
  ownerSession: sessionKeySchema,
  steps: z.array(coordinationStepSchema).min(1).max(BOUNDS.planStepsMax),
  conflictPolicy: arbiterPolicySchema,
  failurePolicy: failurePolicySchema,
  deadlineMs: durationMs.optional(),
  defaults: stepDefaultsSchema.optional(),
  budget: budgetSchema.optional(),
  /** How sure the planner is of the whole plan, from 0 to 1. */
  confidence: z.number().min(0).max(1).optional(),
  /** Aims of the plan: one that is not met makes the end a give-up. */
  successCriteria: z.array(successCriterionSchema).max(BOUNDS.successCriteriaMax).optional(),
});
/** A plan as its author wrote it (docs/plans.md). */
export type CoordinationPlan = z.infer<typeof coordinationPlanSchema>;

/**
 * Returns a plan checked for its shape alone, or its problems: those outside of its steps, else those of its steps. It
 * stops when enough are found to report: naming those of 10,000 bad steps takes 100 ms.
 */
export function parsePlan(value: unknown): Parsed<CoordinationPlan> {
  const outline = parseBounded(planOutlineSchema, value, PLAN_BOUNDS);
  if (!outline.ok) return outline;
  const problems: ValidationProblem[] = [];
  const steps: CoordinationStep[] = [];
  for (const [index, step] of outline.value.steps.entries()) {
    const parsed = parseBounded(coordinationStepSchema, step, PLAN_BOUNDS);
    if (parsed.ok) {
      steps.push(parsed.value);
      continue;
    }
    problems.push(
      ...parsed.problems.map((problem) => ({
        ...problem,
        path: joinProblemPath(`steps[${index}]`, problem.path),
      })),
    );
    if (problems.length >= BOUNDS.validationProblemsMax) break;
  }
  if (problems.length > 0) return { ok: false, problems: problems.slice(0, BOUNDS.validationProblemsMax) };
  return { ok: true, value: { ...outline.value, steps } };
}

/** Any object; its fields are not looked at. */
export const anyFieldsSchema = z.record(z.string(), z.unknown());

/** A plan whose steps are not looked at yet. */
export const planOutlineSchema = coordinationPlanSchema.extend({
  steps: z.array(z.unknown()).min(1).max(BOUNDS.planStepsMax),
});

function joinProblemPath(outer: string, path: string): string {
  return path === "(root)" ? outer : `${outer}.${path}`.slice(0, BOUNDS.problemPathCharsMax);
}
