/** Owns: what each effect on a plan does, but for running its steps. Every one may be cut off at any line and done again. */
import type { Command } from "../../contracts/commands.ts";
import { assertNever } from "../../contracts/errors.ts";
import { stepError } from "../../contracts/fact-fields.ts";
import type {
  AdmitSteps,
  PlanEffect,
  RunStep,
  StopStep,
  StopStray,
} from "../../dispatch/effects/plan-effects.ts";
import { isPlanned, mustStop, type PlannedCoordination } from "../../dispatch/plan-rules.ts";
import { createIdempotencyKey } from "../../contracts/ids.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import type { Coordination, Step } from "../../ledger/state.ts";
import type { Cancellation } from "../../contracts/observation.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import { withRules } from "../environment/policy-rules.ts";
import { draftAdmission } from "../plans/admit-plan-steps.ts";
import { findStarter, nameStarter } from "../attempts/attempt-facts.ts";
import { mergeWorktree } from "../worktrees/merge-worktree.ts";
import { removeWorktree } from "../worktrees/remove-worktree.ts";
import type { SubmittingAttempt } from "../attempts/nested-plans.ts";
import { recordCompletion } from "../attempts/record-completion.ts";
import { judgePlan } from "../held-results/judge-plan.ts";
import type { EffectDependencies } from "./perform-effect.ts";
import { attemptOf } from "../attempts/prepare-attempt.ts";
import { countAgentUse, createUsage, stopAgent } from "../attempts/stop-agent.ts";
import { chooseRunner } from "../environment/runtime-dependencies.ts";

export async function performPlanEffect(
  dependencies: EffectDependencies,
  state: Coordination,
  effect: Exclude<PlanEffect, RunStep | { kind: "endCoordination" }>,
): Promise<void> {
  if (state.kind !== "open" || !isPlanned(state)) return;
  switch (effect.kind) {
    case "admitSteps":
      return admitSteps(dependencies, state, effect);
    case "skipSteps":
      return submit(dependencies, state, [{ type: "skipSteps", stepIds: effect.stepIds }]);
    case "judgePlan":
      return recordJudgement(dependencies, state);
    case "tripBreaker":
      return submit(dependencies, state, [{ type: "tripBreaker" }]);
    case "stopStep":
      return stopStep(dependencies, state, effect);
    case "stopStray":
      return stopStray(dependencies, state, effect);
    case "mergeWorktree":
      return mergeWorktree(dependencies, state, effect);
    case "removeWorktree":
      return removeWorktree(dependencies, state, effect);
    default:
      return assertNever(effect, "effect on a plan");
  }
}

async function submit(
  dependencies: EffectDependencies,
  { coordinationId }: PlannedCoordination,
  commands: readonly Command[],
): Promise<void> {
  await dependencies.runs.submit(coordinationId, commands);
}

async function recordJudgement(dependencies: EffectDependencies, state: PlannedCoordination): Promise<void> {
  const successCriteria = await judgePlan(dependencies, state.coordinationId);
  if (successCriteria) await submit(dependencies, state, [{ type: "judgePlan", successCriteria }]);
}

async function admitSteps(
  dependencies: EffectDependencies,
  state: PlannedCoordination,
  { from }: AdmitSteps,
): Promise<void> {
  const { graph } = await dependencies.plans.graphOf(state);
  const { forkedFrom, policy } = state.created;
  const ruled = withRules(dependencies, dependencies.policies?.find(policy));
  await submit(dependencies, state, [await draftAdmission(ruled, { graph, from, forkedFrom })]);
}

interface Stopped {
  readonly state: PlannedCoordination;
  readonly step: Step;
  readonly running: Attempt;
}

/** A child that ended before it could be stopped has done its work, unless it had only begun to wait. */
async function stopStep(
  dependencies: EffectDependencies,
  planned: PlannedCoordination,
  effect: StopStep,
): Promise<void> {
  const due = await dependencies.runs.findOnDisk(planned.coordinationId, (state) =>
    findAttemptToStop(dependencies, state, effect),
  );
  if (!due) return;
  const { state, step, running } = due;
  await dependencies.halt(running.idempotencyKey);
  const submitting = describeSubmitting(state, effect, running);
  // A delivery is stopped only where its owner is the agent of a step, whose turns are ours to stop.
  const runner = isDelivery(step) ? dependencies.runners.subagent : chooseRunner(dependencies, step.spec);
  const waiting = { ...dependencies, signal: dependencies.stopping };
  const agent = { runner, attempt: running, starter: findStarter(dependencies, state, step) };
  const { cancelled, seen, nested } = await stopAgent(waiting, agent, submitting);
  const isStopping = (): boolean => dependencies.stopping.aborted;
  if (isStopping()) return;
  const mayBeDone = cancelled === "already_ended" && step.phase.status === "running";
  const isRecorded =
    mayBeDone && (await recordCompletion(waiting, due, { agent: { ...agent, submitting }, seen }));
  if (isRecorded || isStopping()) return;
  const error = stepError("child_cancelled", describeCancellation(cancelled));
  const used = createUsage(nested, await countAgentUse(dependencies, submitting, seen));
  const { stepId, attempt } = effect;
  await submit(dependencies, state, [
    { type: "failStep", stepId, attempt, error, cancelled: true, via: "runner", ...used },
  ]);
}

function describeSubmitting(
  { coordinationId: runId }: PlannedCoordination,
  { stepId, attempt }: StopStep | StopStray,
  { childSessionKey: session }: Attempt,
): SubmittingAttempt {
  return { runId, stepId, attempt, session };
}

function findAttemptToStop(
  { clock }: EffectDependencies,
  state: Coordination,
  { stepId, attempt }: StopStep,
): Stopped | undefined {
  if (state.kind !== "open" || !isPlanned(state)) return undefined;
  const step = state.plan.running.has(stepId) ? state.steps.get(stepId) : undefined;
  if (step?.phase.attempt !== attempt || !mustStop(state, step, clock.now())) return undefined;
  const running = attemptOf(state, step);
  return running && { state, step, running };
}

function describeCancellation(cancelled: Cancellation): string {
  return cancelled === "unreachable"
    ? "cancelled; the agent could not be told and may still be at work"
    : "cancelled before it was done";
}

async function stopStray(
  dependencies: EffectDependencies,
  planned: PlannedCoordination,
  effect: StopStray,
): Promise<void> {
  const { stepId, attempt, childSessionKey } = effect;
  const due = await dependencies.runs.findOnDisk(planned.coordinationId, (state) => {
    const stray = state.kind === "open" ? state.plan?.strays.get(childSessionKey) : undefined;
    const spec = state.kind === "open" ? state.steps.get(stepId)?.spec : undefined;
    return state.kind === "open" && isPlanned(state) && stray && spec ? { state, stray, spec } : undefined;
  });
  if (!due) return;
  const { state, spec } = due;
  const { dispatchedAtMs, childRunId, gateway } = due.stray;
  const stoppedAttempt: Attempt = {
    idempotencyKey: createIdempotencyKey(state.coordinationId, stepId, attempt),
    agentId: spec.agentId,
    childSessionKey,
    dispatchedAtMs,
    ...(childRunId && { childRunId }),
  };
  const submitting = describeSubmitting(state, effect, stoppedAttempt);
  const { cancelled: outcome, seen } = await stopAgent(
    { ...dependencies, signal: dependencies.stopping },
    {
      runner: chooseRunner(dependencies, spec),
      attempt: stoppedAttempt,
      starter: nameStarter(dependencies, state, gateway),
    },
    submitting,
  );
  if (dependencies.stopping.aborted) return;
  // The attempt has counted what its plans used.
  const used = createUsage(await countAgentUse(dependencies, submitting, seen));
  await submit(dependencies, state, [{ type: "stopChild", childSessionKey, outcome, ...used }]);
}
