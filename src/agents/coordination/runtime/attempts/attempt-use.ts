/** Owns: what the agent of an attempt used. */
import { usageSchema, type Usage } from "../../contracts/fact-fields.ts";
import {
  createIdempotencyKey,
  type CoordinationId,
  type SessionKey,
  type StepId,
} from "../../contracts/ids.ts";
import type { Observation } from "../../contracts/observation.ts";
import { addTotals, countTokens, NO_USAGE, computeStepUsage, type UsageSum } from "../../ledger/bill.ts";
import { addSpent, spentFromUsage } from "../../ledger/plan-progress.ts";
import {
  findSessionOfPhase,
  type Coordination,
  type KnownCoordination,
  type SpentBudget,
  type Step,
} from "../../ledger/state.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

/** D3: the attempt whose child may have submitted plans. Those of another attempt are not its own. */
export interface SubmittingAttempt {
  readonly runId: CoordinationId;
  readonly stepId: StepId;
  readonly attempt: number;
  readonly session: SessionKey;
}

/** Returns what the agent of an ended run used, as its runner says. */
function readSpentByRunner(seen: Observation): SpentBudget {
  // Numbers that cannot be true could not be recorded at all.
  return spentFromUsage(seen.kind === "ended" ? usageSchema.safeParse(seen.usage).data : undefined);
}

/**
 * Returns what the agent of an attempt used, of tokens and costs the larger of what its runner and its recorded calls
 * say, after recording the calls not yet in the log. Its spawns the runner alone tells.
 */
export async function countAgentUse(
  { runs, usage }: Pick<RuntimeDependencies, "runs" | "usage">,
  attempt: SubmittingAttempt,
  seen: Observation,
): Promise<SpentBudget> {
  const { spawns, tokens, costMicroUsd } = readSpentByRunner(seen);
  await usage.flush(attempt.session);
  const calls = sumUncountedModelCalls(await runs.state(attempt.runId), attempt);
  return {
    spawns,
    tokens: Math.max(tokens, calls.tokens),
    costMicroUsd: Math.max(costMicroUsd, calls.costMicroUsd),
  };
}

const NO_CALLS: UsageSum = { tokens: 0, costMicroUsd: 0 };

/**
 * Returns what the recorded calls of a planned step used beyond what the ends of its attempts counted. Plans inside are counted
 * there, too, so it may be less than the calls used, and never more. While another agent of the step may be at work, only the calls
 * of the attempt's own run are surely not of that one.
 */
function sumUncountedModelCalls(state: Coordination, submitting: SubmittingAttempt): UsageSum {
  if (state.kind === "unopened") return NO_CALLS;
  const { stepId, session } = submitting;
  const step = state.steps.get(stepId);
  if (!step?.spec.planned) return NO_CALLS;
  const calls = computeStepUsage(state.bill, stepId, undefined);
  const counted = spentFromUsage(step.spent);
  const most = isOtherAgentAtWork(state, step, session) ? sumModelCallsOfRun(state, submitting) : calls;
  return {
    tokens: Math.min(most.tokens, calls.tokens - counted.tokens),
    costMicroUsd: Math.min(most.costMicroUsd, calls.costMicroUsd - counted.costMicroUsd),
  };
}

/** Sums the recorded calls of the run that the host has under the key of the attempt. */
function sumModelCallsOfRun(
  { bill }: KnownCoordination,
  { runId, stepId, attempt }: SubmittingAttempt,
): UsageSum {
  const key = createIdempotencyKey(runId, stepId, attempt);
  const totals = [...bill.runs.values()]
    .filter((run) => run.stepId === stepId && run.runId === key)
    .reduce(addTotals, NO_USAGE);
  return { tokens: countTokens(totals), costMicroUsd: totals.costMicroUsd };
}

/** True while another agent of the step than the one of this session is at work, or may be: a stray. */
function isOtherAgentAtWork(
  { plan }: KnownCoordination,
  { spec, phase }: Step,
  session: SessionKey,
): boolean {
  const isWorking = phase.status === "dispatched" || phase.status === "running";
  if (isWorking && findSessionOfPhase(phase) !== session) return true;
  return plan?.strays.some((stray, child) => stray.stepId === spec.stepId && child !== session) ?? false;
}

/**
 * Returns the sum of uses as the field `usage` of an attempt's outcome; an empty object where nothing is known to be
 * used.
 */
export function createUsageField(...uses: readonly SpentBudget[]): { readonly usage?: Usage } {
  const usage = uses.reduce(addSpent, spentFromUsage(undefined));
  return Object.values(usage).some((amount) => amount > 0) ? { usage } : {};
}
