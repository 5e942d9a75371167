/** Owns: the tokens and the cost that model calls of steps used, as attributes of spans. */
import type { StepId } from "../contracts/ids.ts";
import type { RunUsage } from "../contracts/usage.ts";
import type { SpanAttributes } from "./span.ts";

/** Sums of a step: tokens, and millionths of a US dollar. */
export interface UsedByStep {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costMicroUsd: number;
  /** `provider/model` of the newest run. */
  readonly model?: string;
}

export interface UsageCounter {
  /** Counts the newest totals of a run, which only grow. */
  add(usage: RunUsage): void;
  /** Returns the sums of one step, or of all. */
  sum(stepId?: StepId): UsedByStep;
}

const NOTHING: UsedByStep = { inputTokens: 0, outputTokens: 0, costMicroUsd: 0 };

export function createUsageCounter(): UsageCounter {
  const runs = new Map<StepId, Map<string, RunUsage>>();
  const sumStep = (stepId: StepId): UsedByStep =>
    [...(runs.get(stepId)?.values() ?? [])].reduce(addRun, NOTHING);
  return {
    add: (usage) => {
      const ofStep = runs.get(usage.stepId) ?? new Map<string, RunUsage>();
      runs.set(usage.stepId, ofStep.set(`${usage.meter}/${usage.runId}`, usage));
    },
    sum: (stepId) =>
      stepId === undefined ? [...runs.keys()].map(sumStep).reduce(addSums, NOTHING) : sumStep(stepId),
  };
}

function addRun(
  sum: UsedByStep,
  { models, cacheReadTokens, cacheWriteTokens, ...run }: RunUsage,
): UsedByStep {
  const inputTokens = run.inputTokens + cacheReadTokens + cacheWriteTokens;
  const model = models.at(-1);
  return addSums(sum, {
    inputTokens,
    outputTokens: run.outputTokens,
    costMicroUsd: run.costMicroUsd,
    ...(model !== undefined && { model }),
  });
}

function addSums(one: UsedByStep, other: UsedByStep): UsedByStep {
  const model = other.model ?? one.model;
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    costMicroUsd: one.costMicroUsd + other.costMicroUsd,
    ...(model !== undefined && { model }),
  };
}

const MICRO_PER_USD = 1_000_000;

/** Returns attributes for what was used since an earlier sum; none where nothing was. */
export function describeUsage(used: UsedByStep, since: UsedByStep = NOTHING): SpanAttributes {
  const inputTokens = used.inputTokens - since.inputTokens;
  const outputTokens = used.outputTokens - since.outputTokens;
  const cost = used.costMicroUsd - since.costMicroUsd;
  if (inputTokens + outputTokens + cost === 0) return {};
  return {
    "gen_ai.usage.input_tokens": inputTokens,
    "gen_ai.usage.output_tokens": outputTokens,
    "coordination.usage.cost_usd": cost / MICRO_PER_USD,
    ...(used.model !== undefined && describeModel(used.model)),
  };
}

/** Splits `provider/model` into the names that the conventions have for them. */
export function describeModel(name: string): SpanAttributes {
  const slash = name.indexOf("/");
  if (slash === -1) return { "gen_ai.response.model": name };
  return { "gen_ai.provider.name": name.slice(0, slash), "gen_ai.response.model": name.slice(slash + 1) };
}
