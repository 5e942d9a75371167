/** Owns: what each effect on a plan does, but for running its steps. Every one may be cut off at any line and done again. */
import { createStepError } from "../../contracts/fact-fields.ts";
import type { AdmitSteps, StopStep, StopStray } from "../../dispatch/effects/next-plan-effects.ts";
import { isPlanned, mustStopStep, type PlannedCoordination } from "../../dispatch/plan-rules.ts";
import { createIdempotencyKey } from "../../contracts/ids.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import type { Coordination, Step } from "../../ledger/state.ts";
import type { Cancellation } from "../../contracts/observation.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import { withRules } from "../environment/policy-rules.ts";
import { draftAdmission } from "../plans/admit-plan-steps.ts";
import { findStarterGateway, inferStarterGateway } from "../attempts/attempt-facts.ts";
import { recordCompletion } from "../attempts/record-completion.ts";
import { judgePlan } from "../held-results/judge-plan.ts";
import { submitCommand, type EffectDependencies } from "./performer-dependencies.ts";
import { findNewestAttempt } from "../attempts/prepare-attempt.ts";
import { countAgentUse, createUsageField, type SubmittingAttempt } from "../attempts/attempt-use.ts";
import { stopAgent } from "../attempts/stop-agent.ts";
import { chooseRunner } from "../environment/runtime-dependencies.ts";

/** Judges a plan whose work is done, and records which of its success criteria are met; does nothing before that. */
export async function recordJudgement(
  dependencies: EffectDependencies,
  state: PlannedCoordination,
): Promise<void> {
  const successCriteria = await judgePlan(dependencies, state.coordinationId);
  if (successCriteria) await submitCommand(dependencies, state, { type: "judgePlan", successCriteria });
}

/** Admits the next steps of a plan, as many as one append takes, under the rules of the coordination's policy. */
export async function admitSteps(
  dependencies: EffectDependencies,
  state: PlannedCoordination,
  { from }: AdmitSteps,
): Promise<void> {
  const { graph } = await dependencies.plans.graphOf(state);
  const { forkedFrom, policy } = state.created;
  const ruled = withRules(dependencies, dependencies.policies?.find(policy));
  await submitCommand(dependencies, state, await draftAdmission(ruled, { graph, from, forkedFrom }));
}

/** An attempt of a plan's step that is to be stopped. */
interface AttemptToStop {
  readonly state: PlannedCoordination;
  readonly step: Step;
  readonly running: Attempt;
}

/**
 * Stops the agent of a plan's step and records the step as failed, or as completed where it had ended before; does
 * nothing where the step is not to be stopped any more, and records nothing once this process stops. A child that
 * ended before it could be stopped has done its work, unless it had only begun to wait.
 */
export async function stopStep(
  dependencies: EffectDependencies,
  planned: PlannedCoordination,
  effect: StopStep,
): Promise<void> {
  const attemptToStop = await dependencies.runs.findOnDisk(planned.coordinationId, (state) =>
    findAttemptToStop(dependencies, state, effect),
  );
  if (!attemptToStop) return;
  const { state, step, running } = attemptToStop;
  await dependencies.halt(running.idempotencyKey);
  const submitting = createSubmittingAttempt(state, effect, running);
  // A delivery is stopped only where its owner is the agent of a step, whose turns are ours to stop.
  const runner = isDelivery(step) ? dependencies.runners.subagent : chooseRunner(dependencies, step.spec);
  const waiting = { ...dependencies, signal: dependencies.stopping };
  const agent = { runner, attempt: running, starter: findStarterGateway(dependencies, state, step) };
  const { cancelled, seen, nested } = await stopAgent(waiting, agent, submitting);
  const isStopping = (): boolean => dependencies.stopping.aborted;
  if (isStopping()) return;
  const mayBeDone = cancelled === "already_ended" && step.phase.status === "running";
  const isRecorded =
    mayBeDone && (await recordCompletion(waiting, attemptToStop, { agent: { ...agent, submitting }, seen }));
  if (isRecorded || isStopping()) return;
  const error = createStepError("child_cancelled", describeCancellation(cancelled));
  const used = createUsageField(nested, await countAgentUse(dependencies, submitting, seen));
  const { stepId, attempt } = effect;
  await submitCommand(dependencies, state, {
    type: "failStep",
    stepId,
    attempt,
    error,
    cancelled: true,
    via: "runner",
    ...used,
  });
}

function createSubmittingAttempt(
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
): AttemptToStop | undefined {
  if (state.kind !== "open" || !isPlanned(state)) return undefined;
  const step = state.plan.running.has(stepId) ? state.steps.get(stepId) : undefined;
  if (step?.phase.attempt !== attempt || !mustStopStep(state, step, clock.now())) return undefined;
  const running = findNewestAttempt(state, step);
  return running && { state, step, running };
}

function describeCancellation(cancelled: Cancellation): string {
  return cancelled === "unreachable"
    ? "cancelled; the agent could not be told and may still be at work"
    : "cancelled before it was done";
}

/**
 * Stops a child that may be left of a given-up attempt at a plan's step, and records how that went; does nothing where
 * the log has no such child any more.
 */
export async function stopStray(
  dependencies: EffectDependencies,
  planned: PlannedCoordination,
  effect: StopStray,
): Promise<void> {
  const { stepId, attempt, childSessionKey } = effect;
  const strayToStop = await dependencies.runs.findOnDisk(planned.coordinationId, (state) => {
    const stray = state.kind === "open" ? state.plan?.strays.get(childSessionKey) : undefined;
    const spec = state.kind === "open" ? state.steps.get(stepId)?.spec : undefined;
    return state.kind === "open" && isPlanned(state) && stray && spec ? { state, stray, spec } : undefined;
  });
  if (!strayToStop) return;
  const { state, spec } = strayToStop;
  const { dispatchedAtMs, childRunId, gateway } = strayToStop.stray;
  const stoppedAttempt: Attempt = {
    idempotencyKey: createIdempotencyKey(state.coordinationId, stepId, attempt),
    agentId: spec.agentId,
    childSessionKey,
    dispatchedAtMs,
    ...(childRunId && { childRunId }),
  };
  const submitting = createSubmittingAttempt(state, effect, stoppedAttempt);
  const { cancelled: outcome, seen } = await stopAgent(
    { ...dependencies, signal: dependencies.stopping },
    {
      runner: chooseRunner(dependencies, spec),
      attempt: stoppedAttempt,
      starter: inferStarterGateway(dependencies, state, gateway),
    },
    submitting,
  );
  if (dependencies.stopping.aborted) return;
  // The attempt has counted what its plans used.
  const used = createUsageField(await countAgentUse(dependencies, submitting, seen));
  await submitCommand(dependencies, state, { type: "stopChild", childSessionKey, outcome, ...used });
}
