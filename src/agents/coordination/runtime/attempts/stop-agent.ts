/**
 * Owns: stopping the agent of an attempt with the plans that it submitted, and what an attempt used that does not end by
 * itself.
 */
import { usageSchema, type Usage } from "../../contracts/fact-fields.ts";
import { addMs, createIdempotencyKey, type SessionKey } from "../../contracts/ids.ts";
import type { Cancellation, Observation } from "../../contracts/observation.ts";
import { addTotals, countTokens, NO_USAGE, sumOfStep, type UsageSum } from "../../ledger/bill.ts";
import { addSpent, spentFromUsage } from "../../ledger/plan-progress.ts";
import {
  sessionOf,
  type Coordination,
  type KnownCoordination,
  type Spent,
  type Step,
} from "../../ledger/state.ts";
import type { AgentRunner, Attempt } from "../../ports/agent-runner.ts";
import { askWithin, limitWait, type Stoppable } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { isElsewhere, observeAttempt } from "./attempt-facts.ts";
import {
  CANCEL_MS_MAX,
  cancelNested,
  endNested,
  type NestedDependencies,
  type SubmittingAttempt,
} from "./nested-plans.ts";
import { combineCancellations, stopToldTurns } from "./told-turns.ts";

/** How long the runner has at least to say how a stopped agent ended, because what it used counts. */
const LAST_ANSWER_MS = 1_000;

interface AgentToStop {
  readonly runner: AgentRunner;
  readonly attempt: Attempt;
  /** The gateway that started it, where several share the ledger. */
  readonly starter?: string | undefined;
  /** How long all of the stopping may take but for the last answer, at most and without a word 30 s. */
  readonly waitMs?: number;
}

interface StoppedAgent {
  /** `unreachable` where the agent may go on, also in a turn in which it is told something. */
  readonly cancelled: Cancellation;
  /** True where it ran in another gateway, which is gone: nobody can stop it, or ask what it used, any more. */
  readonly isLost: boolean;
  /** The answer of the runner about the agent after it was stopped. */
  readonly seen: Observation;
  /** The sum of what the plans used that the agent submitted. */
  readonly nested: Spent;
}

/** Stops the agent, the turns in which it is told something and the plans that it submitted, and asks the runner how it ended. */
export async function stopAgent(
  dependencies: NestedDependencies & Stoppable & Pick<RuntimeDependencies, "runners" | "settings">,
  agent: AgentToStop,
  submitting: SubmittingAttempt,
): Promise<StoppedAgent> {
  await cancelNested(dependencies, submitting);
  const untilMs = addMs(dependencies.clock.now(), agent.waitMs ?? CANCEL_MS_MAX);
  const isLost = isElsewhere(dependencies, agent.starter);
  if (isLost) {
    const nested = await endNested(limitWait(dependencies, untilMs), submitting);
    return { cancelled: "unreachable", isLost, seen: { kind: "unknown" }, nested };
  }
  const stop = (): Promise<Cancellation> => agent.runner.cancel(agent.attempt);
  const stopping = [
    askWithin<Cancellation>(limitWait(dependencies, untilMs), stop, "unreachable"),
    stopToldTurns(dependencies, submitting, untilMs),
  ];
  const cancelled = combineCancellations(await Promise.all(stopping));
  // Until then the child could submit another plan.
  const nested = await endNested(limitWait(dependencies, untilMs), submitting);
  const lastMs = addMs(dependencies.clock.now(), LAST_ANSWER_MS);
  const seen = await observeAttempt(limitWait(dependencies, lastMs > untilMs ? lastMs : untilMs), agent);
  return { cancelled, isLost, seen, nested };
}

/** Returns what the agent of an ended run used, as its runner says. */
export function readSpent(seen: Observation): Spent {
  // Numbers that cannot be true could not be recorded at all.
  return spentFromUsage(seen.kind === "ended" ? usageSchema.safeParse(seen.usage).data : undefined);
}

/**
 * Returns what the agent of an attempt used: the larger of what its runner says and what its recorded calls say, because a runner
 * that forgot the agent or cannot be asked says nothing.
 */
export async function countAgentUse(
  { runs }: NestedDependencies,
  attempt: SubmittingAttempt,
  seen: Observation,
): Promise<Spent> {
  const { spawns, tokens, costMicroUsd } = readSpent(seen);
  const calls = sumUncountedCalls(await runs.state(attempt.runId), attempt);
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
function sumUncountedCalls(state: Coordination, submitting: SubmittingAttempt): UsageSum {
  if (state.kind === "unopened") return NO_CALLS;
  const { stepId, session } = submitting;
  const step = state.steps.get(stepId);
  if (!step?.spec.planned) return NO_CALLS;
  const calls = sumOfStep(state.bill, stepId, undefined);
  const counted = spentFromUsage(step.spent);
  const most = isOtherAtWork(state, step, session) ? sumOwnRun(state, submitting) : calls;
  return {
    tokens: Math.min(most.tokens, calls.tokens - counted.tokens),
    costMicroUsd: Math.min(most.costMicroUsd, calls.costMicroUsd - counted.costMicroUsd),
  };
}

/** Sums the recorded calls of the run that the host has under the key of the attempt. */
function sumOwnRun({ bill }: KnownCoordination, { runId, stepId, attempt }: SubmittingAttempt): UsageSum {
  const key = createIdempotencyKey(runId, stepId, attempt);
  const totals = [...bill.runs.values()]
    .filter((run) => run.stepId === stepId && run.runId === key)
    .reduce(addTotals, NO_USAGE);
  return { tokens: countTokens(totals), costMicroUsd: totals.costMicroUsd };
}

/** True while another agent of the step than the one of this session is at work, or may be: a stray. */
function isOtherAtWork({ plan }: KnownCoordination, { spec, phase }: Step, session: SessionKey): boolean {
  const isWorking = phase.status === "dispatched" || phase.status === "running";
  if (isWorking && sessionOf(phase) !== session) return true;
  return plan?.strays.some((stray, child) => stray.stepId === spec.stepId && child !== session) ?? false;
}

/** Returns the field of an outcome that says what was used; nothing where nothing is known to be. */
export function createUsage(...uses: readonly Spent[]): { readonly usage?: Usage } {
  const usage = uses.reduce(addSpent, spentFromUsage(undefined));
  return Object.values(usage).some((amount) => amount > 0) ? { usage } : {};
}
