/** Owns: usage as tests tell it: every call of a model used the same. */
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunUsage } from "../../src/agents/coordination/contracts/usage.ts";

/** 150 tokens and a thousandth of a dollar a call. */
export function usageOf(
  stepId: StepId,
  calls: number,
  {
    runId = `run-of-${stepId}`,
    meter = "meter-1",
  }: { readonly runId?: string; readonly meter?: string } = {},
): RunUsage {
  return {
    stepId,
    runId,
    meter,
    models: ["mock/scripted"],
    calls,
    inputTokens: 80 * calls,
    outputTokens: 20 * calls,
    cacheReadTokens: 40 * calls,
    cacheWriteTokens: 10 * calls,
    costMicroUsd: 1_000 * calls,
  };
}
