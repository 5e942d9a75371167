/** Owns: deciding whether what a model spawns becomes a step, and under which id. Does not own: what holds its child. */
import type { AdmitSpawn } from "../contracts/commands.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import type { StepAdmitted } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { addMs, createIdempotencyKey, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { ObservedChild } from "../contracts/observation.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { listOpenSteps, type OpenCoordination, type Step } from "../ledger/state.ts";
import { findLoan, refuseSpawnByBudget } from "./decide-budget.ts";
import { refuse, type Decision } from "./decision.ts";
import {
  computeUseSinceAllowed,
  isPlanned,
  isBudgetRestLent,
  type PlannedCoordination,
} from "./plan-rules.ts";

/**
 * Decides on a model's spawn: accepted as a new step with the intent to begin it (D1); a replay of one that the log
 * already has (D2); or refused by a budget or the bound of steps. A child that is there already is admitted whatever
 * it costs.
 */
export function admitSpawn(state: OpenCoordination, command: AdmitSpawn, now: EpochMs): Decision {
  const { type: _, child, gateway, countsLoans: _countsLoans, ...admission } = command;
  const earlier = child ? state.children.get(child.childSessionKey) : findSameSpawn(state, command);
  if (earlier) return { kind: "replay", stepId: earlier };
  if (state.steps.size >= BOUNDS.stepsPerCoordinationMax) {
    return refuse("TOO_MANY_STEPS", `a coordination holds at most ${BOUNDS.stepsPerCoordinationMax} steps`);
  }
  // A child that is there already is recorded, whatever it costs.
  const exhausted = child ? undefined : explainExhaustedBudget(state, command);
  if (exhausted) return refuse("BUDGET_SPENT", `${exhausted}; finish without another subagent`);
  const overBudget = child ? undefined : refuseSpawnByBudget(state, command.parentStepId);
  if (overBudget) return overBudget;
  const stepId = createSpawnStepId(state);
  const spec: StepAdmitted = {
    ...admission,
    stepId,
    lane: "data",
    deliveryMode: "at_least_once",
    priority: "normal",
    retryBudget: 0,
  };
  return {
    kind: "accepted",
    stepId,
    facts: [
      { type: "step.admitted", payload: spec },
      { type: "step.dispatched", payload: createFirstDispatch(state, spec, { now, gateway }) },
      ...(child ? [draftAcknowledgedChild(stepId, child)] : []),
    ],
  };
}

/** Explains which budget allows no spawn, the plan's or the step's, where it comes from a child of a plan. */
function explainExhaustedBudget(
  state: OpenCoordination,
  { parentStepId, countsLoans }: AdmitSpawn,
): string | undefined {
  if (!isPlanned(state)) return undefined;
  if (isSpawnBudgetUsedUp(computeUseSinceAllowed(state.plan).spawns, state.created.plan?.budget))
    return "the spawn budget of the plan is spent";
  const parent = parentStepId && state.steps.get(parentStepId);
  if (hasUsedUpSpawns(parent)) return "the spawn budget of the step is spent";
  if (isBudgetRestLent(state)) return "plans of steps may use the rest of the plan's budget";
  const isStepLent = countsLoans && hasUsedUpSpawns(parent, countLentSpawns(state, parent));
  return isStepLent ? "plans of this step may use the rest of its budget" : undefined;
}

function countLentSpawns(state: PlannedCoordination, step: Step | undefined): number {
  return (step && findLoan(state, step.spec.stepId)?.budget.spawns) ?? 0;
}

function hasUsedUpSpawns(step: Step | undefined, lent = 0): boolean {
  return (
    step !== undefined && isSpawnBudgetUsedUp((step.spent?.spawns ?? 0) + lent, step.spec.planned?.budget)
  );
}

function isSpawnBudgetUsedUp(
  spawned: number,
  budget: { readonly spawns?: number | undefined } | undefined,
): boolean {
  return spawned >= (budget?.spawns ?? Number.POSITIVE_INFINITY);
}

function draftAcknowledgedChild(stepId: StepId, { childSessionKey, childRunId }: ObservedChild): FactDraft {
  return {
    type: "step.acknowledged",
    payload: { stepId, attempt: 1, childSessionKey, childRunId, via: "hook" },
  };
}

/**
 * Returns the id of the open step of the same tool call and work that the host has not acknowledged (D2); `undefined`
 * where there is none, or the command names no call and run.
 */
function findSameSpawn(state: OpenCoordination, command: AdmitSpawn): StepId | undefined {
  const { toolCallId, runId } = command.call;
  if (!toolCallId || !runId) return undefined;
  for (const step of listOpenSteps(state)) {
    const { call, input, sourceSession } = step.spec;
    const same =
      call.toolCallId === toolCallId && call.runId === runId && sourceSession === command.sourceSession;
    if (same && step.phase.status === "dispatched" && input.sha256 === command.input.sha256)
      return step.spec.stepId;
  }
  return undefined;
}

/**
 * Returns a free id for a spawn: no step ever goes, so the number is new. Ids of planned steps never begin with `@`, so
 * the id is also free of steps that are not admitted yet.
 */
function createSpawnStepId(state: OpenCoordination): StepId {
  return `${isPlanned(state) ? "@step-" : "step-"}${state.steps.size + 1}` as StepId;
}

/** Creates the payload that dispatches the first attempt of a spawn. */
function createFirstDispatch(
  state: OpenCoordination,
  spec: StepAdmitted,
  { now, gateway }: { readonly now: EpochMs; readonly gateway: string | undefined },
): FactPayloads["step.dispatched"] {
  return {
    stepId: spec.stepId,
    attempt: 1,
    lane: spec.lane,
    idempotencyKey: createIdempotencyKey(state.coordinationId, spec.stepId, 1),
    deadlineAtMs: addMs(now, spec.timeoutMs),
    ...(gateway !== undefined && { gateway }),
  };
}
