/**
 * Owns: what the model calls of a coordination used, summed over its tree.
 *
 * B1 of one run and meter the largest totals count, whatever the order and number of records: a sum never falls and
 * counts nothing twice. B2 what a plan's runner says that its step used counts where it is more than the calls say:
 * programs outside of the host have no calls that we hear of.
 */
import { Map as ImmutableMap } from "immutable";
import type { AgentId, StepId } from "../contracts/ids.ts";
import type { BudgetReached, RunUsage, UsageTotals } from "../contracts/usage.ts";

export interface Bill {
  /** Usage of all model calls that were recorded, of all steps and of the owner. */
  readonly total: UsageTotals;
  /** Usage of the coordination, its plan's programs included (B2). */
  readonly sum: UsageSum;
  /** `OWNER_STEP_ID` for the owner. */
  readonly steps: ImmutableMap<StepId, StepBill>;
  readonly agents: ImmutableMap<AgentId, UsageTotals>;
  /** By run and meter, as `nameRun` names them. */
  readonly runs: ImmutableMap<string, RunUsage>;
  /** Spawns that models made, by the agent whose session made them; without those that ended before they had a child. */
  readonly spawns: ImmutableMap<AgentId, number>;
  readonly spawnCount: number;
  /** Who was stopped by the operator's budget. */
  readonly stops: readonly BudgetReached[];
}

export interface UsageSum {
  readonly tokens: number;
  readonly costMicroUsd: number;
}

export interface StepBill {
  readonly totals: UsageTotals;
  /** The models of the newest run, in the order in which they were first called. */
  readonly models: readonly string[];
}

export const NO_USAGE: UsageTotals = {
  calls: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costMicroUsd: 0,
};

/** Returns the bill of a coordination in which nothing was used yet. */
export function createEmptyBill(): Bill {
  return {
    total: NO_USAGE,
    sum: { tokens: 0, costMicroUsd: 0 },
    steps: ImmutableMap(),
    agents: ImmutableMap(),
    runs: ImmutableMap(),
    spawns: ImmutableMap(),
    spawnCount: 0,
    stops: [],
  };
}

/** Returns the key of a model run in the bill, made of its step, its meter and its id. */
export function nameRun({ stepId, runId, meter }: RunUsage): string {
  return `${stepId}\n${meter}\n${runId}`;
}

/**
 * Returns the bill with what a record of a model run says beyond the earlier records of that run. `agentId`: whose
 * session it is.
 */
export function addRunUsage(bill: Bill, usage: RunUsage, agentId: AgentId): Bill {
  const name = nameRun(usage);
  const counted = bill.runs.get(name);
  const merged = mergeRunUsage(counted, usage);
  const added = subtractTotals(merged, counted ?? NO_USAGE);
  const step = bill.steps.get(usage.stepId);
  const totals = addTotals(step?.totals ?? NO_USAGE, added);
  const models = merged.models.length > 0 ? merged.models : (step?.models ?? []);
  return {
    ...bill,
    total: addTotals(bill.total, added),
    steps: bill.steps.set(usage.stepId, { totals, models }),
    agents: bill.agents.set(agentId, addTotals(bill.agents.get(agentId) ?? NO_USAGE, added)),
    runs: bill.runs.set(name, merged),
  };
}

/**
 * Returns the tokens and cost of a step, or of the owner: for each, the larger of what its model calls and its runner
 * say (B2). `spent`: as the runner of a plan's step says.
 */
export function computeStepUsage(bill: Bill, stepId: StepId, spent: UsageSum | undefined): UsageSum {
  const totals = bill.steps.get(stepId)?.totals ?? NO_USAGE;
  return {
    tokens: Math.max(countTokens(totals), spent?.tokens ?? 0),
    costMicroUsd: Math.max(totals.costMicroUsd, spent?.costMicroUsd ?? 0),
  };
}

/** Returns the bill with its sum changed by the difference of what a step used before and after. */
export function replaceStepUsage(bill: Bill, { before, after }: Record<"before" | "after", UsageSum>): Bill {
  const { tokens, costMicroUsd } = bill.sum;
  const sum = {
    tokens: tokens + after.tokens - before.tokens,
    costMicroUsd: costMicroUsd + after.costMicroUsd - before.costMicroUsd,
  };
  return { ...bill, sum };
}

/**
 * Returns a model run's use with the larger total of each kind from an earlier and a new record (B1); the new one
 * where there is no earlier.
 */
export function mergeRunUsage(counted: RunUsage | undefined, usage: RunUsage): RunUsage {
  if (!counted) return usage;
  const { stepId, runId, meter } = usage;
  const models = counted.models.length > usage.models.length ? counted.models : usage.models;
  return { stepId, runId, meter, models, ...combineTotals(counted, usage, Math.max) };
}

/** Returns the bill with one spawn of an agent more or less, in its count and in that of all. */
export function changeSpawnCount(bill: Bill, agentId: AgentId, by: 1 | -1): Bill {
  const spawns = bill.spawns.set(agentId, (bill.spawns.get(agentId) ?? 0) + by);
  return { ...bill, spawns, spawnCount: bill.spawnCount + by };
}

/** Returns the sums of two totals of usage, kind by kind. */
export function addTotals(a: UsageTotals, b: UsageTotals): UsageTotals {
  return combineTotals(a, b, (one, other) => one + other);
}

/** Returns the differences of two totals of usage, kind by kind. */
export function subtractTotals(a: UsageTotals, b: UsageTotals): UsageTotals {
  return combineTotals(a, b, (one, other) => one - other);
}

function combineTotals(
  a: UsageTotals,
  b: UsageTotals,
  combine: (a: number, b: number) => number,
): UsageTotals {
  return {
    calls: combine(a.calls, b.calls),
    inputTokens: combine(a.inputTokens, b.inputTokens),
    outputTokens: combine(a.outputTokens, b.outputTokens),
    cacheReadTokens: combine(a.cacheReadTokens, b.cacheReadTokens),
    cacheWriteTokens: combine(a.cacheWriteTokens, b.cacheWriteTokens),
    costMicroUsd: combine(a.costMicroUsd, b.costMicroUsd),
  };
}

/**
 * Returns the sum of the tokens of all kinds in totals of usage: input, output, and those read from and written to the
 * cache.
 */
export function countTokens(totals: UsageTotals): number {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = totals;
  return inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;
}
