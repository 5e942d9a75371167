/** Owns: what each effect on a plan does, but for running its steps. Every one may be cut off at any line and done again. */
import { stepError } from "../../contracts/fact-fields.ts";
import type { AdmitSteps, StopStep, StopStray } from "../../dispatch/effects/plan-effects.ts";
import { isPlanned, mustStop, type PlannedCoordination } from "../../dispatch/plan-rules.ts";
import { createIdempotencyKey } from "../../contracts/ids.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import type { Coordination, Step } from "../../ledger/state.ts";
import type { Cancellation } from "../../contracts/observation.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import { withRules } from "../environment/policy-rules.ts";
import { draftAdmission } from "../plans/admit-plan-steps.ts";
import { findStarter, nameStarter } from "../attempts/attempt-facts.ts";
import { recordCompletion } from "../attempts/record-completion.ts";
import { judgePlan } from "../held-results/judge-plan.ts";
import { submit, type EffectDependencies } from "./performer-dependencies.ts";
import { attemptOf } from "../attempts/prepare-attempt.ts";
import { countAgentUse, createUsage, type SubmittingAttempt } from "../attempts/attempt-use.ts";
import { stopAgent } from "../attempts/stop-agent.ts";
import { chooseRunner } from "../environment/runtime-dependencies.ts";

/** Records how far the plan reached its success criteria, as soon as that can be judged. */
export async function recordJudgement(
  dependencies: EffectDependencies,
  state: PlannedCoordination,
): Promise<void> {
  const successCriteria = await judgePlan(dependencies, state.coordinationId);
  if (successCriteria) await submit(dependencies, state, { type: "judgePlan", successCriteria });
}

/** Admits the next steps of the plan. */
export async function admitSteps(
  dependencies: EffectDependencies,
  state: PlannedCoordination,
  { from }: AdmitSteps,
): Promise<void> {
  const { graph } = await dependencies.plans.graphOf(state);
  const { forkedFrom, policy } = state.created;
  const ruled = withRules(dependencies, dependencies.policies?.find(policy));
  await submit(dependencies, state, await draftAdmission(ruled, { graph, from, forkedFrom }));
}

interface Stopped {
  readonly state: PlannedCoordination;
  readonly step: Step;
  readonly running: Attempt;
}

/** A child that ended before it could be stopped has done its work, unless it had only begun to wait. */
export async function stopStep(
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
  await submit(dependencies, state, {
    type: "failStep",
    stepId,
    attempt,
    error,
    cancelled: true,
    via: "runner",
    ...used,
  });
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

/** Stops a child that may be left of an attempt that was given up. */
export async function stopStray(
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
  await submit(dependencies, state, { type: "stopChild", childSessionKey, outcome, ...used });
}
