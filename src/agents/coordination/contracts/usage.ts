/**
 * Owns: what model calls used and what they may use, as the ledger has it. Integers only: tokens, and millionths of a US
 * dollar.
 */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { agentIdSchema, stepIdSchema } from "./ids.ts";

const MICRO_PER_USD = 1_000_000;

/**
 * Converts US dollars to millionths of a dollar, rounded up and at least 1. Binary fractions far behind the point
 * count for nothing.
 */
export function convertToMicroUsd(costUsd: number): number {
  return Math.max(1, Math.ceil(Number((costUsd * MICRO_PER_USD).toFixed(3))));
}

const declareTotal = () => z.int().min(0);

/** The fields of what a number of model calls used together, as the host reports it of each. */
const usageTotalsShape = {
  calls: declareTotal(),
  /** Without what came from a cache. */
  inputTokens: declareTotal(),
  outputTokens: declareTotal(),
  cacheReadTokens: declareTotal(),
  cacheWriteTokens: declareTotal(),
  costMicroUsd: declareTotal(),
};
/** Usage of a number of model calls together. */
export type UsageTotals = z.infer<z.ZodObject<typeof usageTotalsShape>>;

/**
 * Usage of the model calls of one run of a session up to now, as one process counted it: the totals of one run and
 * meter only grow, so that whichever is told last or twice, the largest counts, once.
 */
export const usageRecordedSchema = z.object({
  /** `@owner` for the owner's own session. */
  stepId: stepIdSchema,
  /** The host's name for the run. */
  runId: z.string().min(1).max(BOUNDS.sessionKeyCharsMax),
  /** Names the process that counted. */
  meter: z.string().min(1).max(BOUNDS.nameCharsMax),
  /** `provider/model`, in the order in which they were first called. */
  models: z.array(z.string().min(1).max(BOUNDS.modelNameCharsMax)).max(BOUNDS.modelsPerRunMax),
  ...usageTotalsShape,
});
/** Usage of one run, as one process counted it. */
export type RunUsage = z.infer<typeof usageRecordedSchema>;

const declareLimit = () => z.int().min(1).optional();

const treeLimitsShape = {
  tokens: declareLimit(),
  costMicroUsd: declareLimit(),
  spawns: declareLimit(),
  /** How many levels of children there may be below the owner. */
  depth: declareLimit(),
};
const treeLimitsSchema = z.object(treeLimitsShape);
/** Bounds on the usage of all sessions of a coordination together. */
export type TreeLimits = z.infer<typeof treeLimitsSchema>;

/** The operator's budget as it held when the coordination was opened. */
export const treeBudgetSchema = z.object({
  ...treeLimitsShape,
  /** Bounds on the usage of one agent's sessions together, by its id. */
  agents: z.record(agentIdSchema, treeLimitsSchema).optional(),
});
/** The operator's budget of one coordination. */
export type TreeBudget = z.infer<typeof treeBudgetSchema>;

/** Somebody was stopped because the operator's budget is used up. Recorded once for each that is stopped. */
export const budgetReachedSchema = z.object({
  /** Who was stopped; `@owner` for the owner's own session. */
  stepId: stepIdSchema,
  limit: z.enum(["tokens", "costMicroUsd", "spawns", "depth"]),
  /** The agent whose part of the budget it is; absent where it is the whole coordination's. */
  agentId: agentIdSchema.optional(),
  allowed: z.int().min(1),
  used: z.int().min(0),
  /** The thing that did not happen: a spawn, a further call of a tool or model in a run, or a whole run. */
  stopped: z.enum(["spawn", "call", "run"]),
});
/** Who was stopped by which bound of the budget. */
export type BudgetReached = z.infer<typeof budgetReachedSchema>;
