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
import type { Coordination, Step } from "../../ledger/state.ts";
import type { Cancellation, Observation } from "../../contracts/observation.ts";
import type { AgentRunner, Attempt } from "../../ports/agent-runner.ts";
import { withRules } from "../environment/policy-rules.ts";
import { draftAdmission } from "../plans/admit-plan-steps.ts";
import { outcomeOf } from "../attempts/attempt-outcome.ts";
import { askWithin } from "../log/bounded-answer.ts";
import { filterObservation } from "../attempts/attempt-facts.ts";
import { mergeWorktree } from "../worktrees/merge-worktree.ts";
import { removeWorktree } from "../worktrees/remove-worktree.ts";
import { cancelNested } from "../attempts/nested-plans.ts";
import { judgePlan } from "../held-results/judge-plan.ts";
import type { EffectParts } from "./perform-effect.ts";
import { attemptOf } from "../attempts/prepare-attempt.ts";
import { chooseRunner } from "../environment/runtime-parts.ts";

/** An agent that is not stopped by then is out of reach. */
const CANCEL_MS_MAX = 30_000;
const ANSWER_MS_MAX = 10_000;

export async function performPlanEffect(
  parts: EffectParts,
  state: Coordination,
  effect: Exclude<PlanEffect, RunStep | { kind: "endCoordination" }>,
): Promise<void> {
  if (state.kind !== "open" || !isPlanned(state)) return;
  switch (effect.kind) {
    case "admitSteps":
      return admitSteps(parts, state, effect);
    case "skipSteps":
      return submit(parts, state, [{ type: "skipSteps", stepIds: effect.stepIds }]);
    case "judgePlan":
      return submit(parts, state, [{ type: "judgePlan", successCriteria: await judgePlan(parts, state) }]);
    case "tripBreaker":
      return submit(parts, state, [{ type: "tripBreaker" }]);
    case "stopStep":
      return stopStep(parts, state, effect);
    case "stopStray":
      return stopStray(parts, state, effect);
    case "mergeWorktree":
      return mergeWorktree(parts, state, effect);
    case "removeWorktree":
      return removeWorktree(parts, state, effect);
    default:
      return assertNever(effect, "effect on a plan");
  }
}

async function submit(
  parts: EffectParts,
  { coordinationId }: PlannedCoordination,
  commands: readonly Command[],
): Promise<void> {
  await parts.runs.submit(coordinationId, commands);
}

async function admitSteps(
  parts: EffectParts,
  state: PlannedCoordination,
  { from }: AdmitSteps,
): Promise<void> {
  const { graph } = await parts.plans.graphOf(state);
  const { forkedFrom, policy } = state.created;
  const ruled = withRules(parts, parts.policies?.find(policy));
  await submit(parts, state, [await draftAdmission(ruled, { graph, from, forkedFrom })]);
}

/** D1: no agent is stopped for a fact that may still fail to reach the disk. */
async function stateOnDisk(
  { runs }: EffectParts,
  { coordinationId }: PlannedCoordination,
): Promise<PlannedCoordination | undefined> {
  await runs.settled(coordinationId);
  const state = await runs.state(coordinationId);
  return state.kind === "open" && isPlanned(state) ? state : undefined;
}

interface Ended {
  readonly state: PlannedCoordination;
  readonly step: Step;
}

/** A child that ended before it could be stopped has done its work. */
async function stopStep(parts: EffectParts, planned: PlannedCoordination, effect: StopStep): Promise<void> {
  const due = findAttemptToStop(parts, await stateOnDisk(parts, planned), effect);
  if (!due) return;
  const { state, step, running } = due;
  await parts.halt(running.idempotencyKey);
  await cancelNested(parts, describePlaceOf(state, effect, running));
  const cancelled = await cancel(parts, running, chooseRunner(parts, step.spec));
  // Until then the child could submit another.
  await cancelNested(parts, describePlaceOf(state, effect, running));
  if (parts.stopping.aborted) return;
  const mayBeDone = cancelled === "already_ended" && step.phase.status === "running";
  if (mayBeDone && (await hasCompleted(parts, { state, step }, running))) return;
  const error = stepError("child_cancelled", describeCancellation(cancelled));
  const { stepId, attempt } = effect;
  await submit(parts, state, [{ type: "failStep", stepId, attempt, error, cancelled: true, via: "runner" }]);
}

function describePlaceOf(
  { coordinationId: runId }: PlannedCoordination,
  { stepId }: StopStep | StopStray,
  { childSessionKey: session }: Attempt,
) {
  return { runId, stepId, session };
}

function findAttemptToStop(
  { clock }: EffectParts,
  state: PlannedCoordination | undefined,
  { stepId, attempt }: StopStep,
): (Ended & { readonly running: Attempt }) | undefined {
  const step = state?.plan.running.has(stepId) ? state.steps.get(stepId) : undefined;
  if (!state || step?.phase.attempt !== attempt || !mustStop(state, step, clock.now())) return undefined;
  const running = attemptOf(state, step);
  return running && { state, step, running };
}

/** Asks, and records it if so. */
async function hasCompleted(parts: EffectParts, stopped: Ended, attempt: Attempt): Promise<boolean> {
  const bounds = { ...parts, waitMs: ANSWER_MS_MAX, signal: parts.stopping };
  const runner = chooseRunner(parts, stopped.step.spec);
  const unknown: Observation = { kind: "unknown" };
  const seen = filterObservation(attempt, await askWithin(bounds, () => runner.observe(attempt), unknown));
  if (seen.kind !== "ended" || seen.outcome !== "completed") return false;
  const { commands, contents } = await outcomeOf(parts, await readReportedState(parts, stopped), seen);
  await parts.runs.submit(stopped.state.coordinationId, commands, contents);
  return true;
}

/** The agent may have reported while it was stopped. */
async function readReportedState(parts: EffectParts, attempt: Ended): Promise<Ended> {
  const state = await parts.runs.state(attempt.state.coordinationId);
  if (state.kind !== "open" || !isPlanned(state)) return attempt;
  const step = state.steps.get(attempt.step.spec.stepId);
  return step?.phase.attempt === attempt.step.phase.attempt ? { state, step } : attempt;
}

function describeCancellation(cancelled: Cancellation): string {
  return cancelled === "unreachable"
    ? "cancelled; the agent could not be told and may still be at work"
    : "cancelled before it was done";
}

async function stopStray(parts: EffectParts, planned: PlannedCoordination, effect: StopStray): Promise<void> {
  const { stepId, attempt, childSessionKey } = effect;
  const state = await stateOnDisk(parts, planned);
  const stray = state?.plan.strays.get(childSessionKey);
  const spec = state?.steps.get(stepId)?.spec;
  if (!state || !stray || !spec) return;
  const { dispatchedAtMs, childRunId } = stray;
  const stoppedAttempt: Attempt = {
    idempotencyKey: createIdempotencyKey(state.coordinationId, stepId, attempt),
    agentId: spec.agentId,
    childSessionKey,
    dispatchedAtMs,
    ...(childRunId && { childRunId }),
  };
  await cancelNested(parts, describePlaceOf(state, effect, stoppedAttempt));
  const outcome = await cancel(parts, stoppedAttempt, chooseRunner(parts, spec));
  await cancelNested(parts, describePlaceOf(state, effect, stoppedAttempt));
  if (!parts.stopping.aborted) await submit(parts, state, [{ type: "stopChild", childSessionKey, outcome }]);
}

function cancel(parts: EffectParts, attempt: Attempt, runner: AgentRunner): Promise<Cancellation> {
  const waiting = { ...parts, waitMs: CANCEL_MS_MAX, signal: parts.stopping };
  return askWithin(waiting, () => runner.cancel(attempt), "unreachable");
}
