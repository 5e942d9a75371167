/**
 * Owns: the tokens and the cost that steps used, as attributes of spans: as their model calls say, or their runners where these say
 * more (B2 of `ledger/bill.ts`).
 */
import type { Usage } from "../contracts/fact-fields.ts";
import type { StepId } from "../contracts/ids.ts";
import type { RunUsage } from "../contracts/usage.ts";
import type { SpanAttributes } from "./span.ts";

/** Sums of a step: tokens, and millionths of a US dollar. */
export interface UsedByStep {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Tokens of all kinds, those included whose kind only the runner of the step knows. */
  readonly tokens: number;
  readonly costMicroUsd: number;
  /** `provider/model` of the newest run. */
  readonly model?: string;
}

export interface UsageCounter {
  /** Counts the newest totals of a run, which only grow. */
  add(usage: RunUsage): void;
  /** Counts what the runner of a planned step says that an attempt used. */
  addSpent(stepId: StepId, usage: Usage): void;
  /** Returns the sums of one step, or of all. */
  sum(stepId?: StepId): UsedByStep;
}

const NOTHING: UsedByStep = { inputTokens: 0, outputTokens: 0, tokens: 0, costMicroUsd: 0 };

/**
 * Creates the counter of what the steps of a coordination used: the newest counts of their runs, or what their runners
 * say where that is more. `sum` returns the use of one step or of all.
 */
export function createUsageCounter(): UsageCounter {
  const runs = new Map<StepId, Map<string, RunUsage>>();
  const spent = new Map<StepId, UsedByStep>();
  const sumStep = (stepId: StepId): UsedByStep => {
    const calls = [...(runs.get(stepId)?.values() ?? [])].reduce(addRunToSum, NOTHING);
    const { tokens, costMicroUsd } = spent.get(stepId) ?? NOTHING;
    return {
      ...calls,
      tokens: Math.max(calls.tokens, tokens),
      costMicroUsd: Math.max(calls.costMicroUsd, costMicroUsd),
    };
  };
  return {
    add: (usage) => {
      const ofStep = runs.get(usage.stepId) ?? new Map<string, RunUsage>();
      runs.set(usage.stepId, ofStep.set(`${usage.meter}/${usage.runId}`, usage));
    },
    addSpent: (stepId, { tokens = 0, costMicroUsd = 0 }) => {
      const before = spent.get(stepId) ?? NOTHING;
      spent.set(stepId, addSums(before, { ...NOTHING, tokens, costMicroUsd }));
    },
    sum: (stepId) => {
      if (stepId !== undefined) return sumStep(stepId);
      return [...new Set([...runs.keys(), ...spent.keys()])].map(sumStep).reduce(addSums, NOTHING);
    },
  };
}

function addRunToSum(
  sum: UsedByStep,
  { models, cacheReadTokens, cacheWriteTokens, ...run }: RunUsage,
): UsedByStep {
  const inputTokens = run.inputTokens + cacheReadTokens + cacheWriteTokens;
  const model = models.at(-1);
  return addSums(sum, {
    inputTokens,
    outputTokens: run.outputTokens,
    tokens: inputTokens + run.outputTokens,
    costMicroUsd: run.costMicroUsd,
    ...(model !== undefined && { model }),
  });
}

function addSums(one: UsedByStep, other: UsedByStep): UsedByStep {
  const model = other.model ?? one.model;
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    tokens: one.tokens + other.tokens,
    costMicroUsd: one.costMicroUsd + other.costMicroUsd,
    ...(model !== undefined && { model }),
  };
}

const MICRO_PER_USD = 1_000_000;

/** Returns the span attributes of what was used since an earlier sum; an empty record where nothing was. */
export function describeUsage(used: UsedByStep, since: UsedByStep = NOTHING): SpanAttributes {
  const inputTokens = used.inputTokens - since.inputTokens;
  const outputTokens = used.outputTokens - since.outputTokens;
  const tokens = used.tokens - since.tokens;
  const costMicroUsd = used.costMicroUsd - since.costMicroUsd;
  const areCallsKnown = inputTokens + outputTokens > 0;
  return {
    ...(areCallsKnown && {
      "gen_ai.usage.input_tokens": inputTokens,
      "gen_ai.usage.output_tokens": outputTokens,
    }),
    ...(tokens > inputTokens + outputTokens && { "coordination.usage.tokens": tokens }),
    ...((areCallsKnown || costMicroUsd > 0) && {
      "coordination.usage.cost_usd": costMicroUsd / MICRO_PER_USD,
      ...(used.model !== undefined && describeModel(used.model)),
    }),
  };
}

/**
 * Returns the span attributes of a model that is named `provider/model`; without a slash the name is the model's
 * alone.
 */
export function describeModel(name: string): SpanAttributes {
  const slash = name.indexOf("/");
  if (slash === -1) return { "gen_ai.response.model": name };
  return { "gen_ai.provider.name": name.slice(0, slash), "gen_ai.response.model": name.slice(slash + 1) };
}
