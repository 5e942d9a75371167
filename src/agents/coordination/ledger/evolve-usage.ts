/** Owns: what each fact about usage and the operator's budget means for the bill of a coordination. */
import { assertInvariant } from "../contracts/errors.ts";
import type { StepAdmitted } from "../contracts/fact-fields.ts";
import { OWNER_STEP_ID, type AgentId, type StepId } from "../contracts/ids.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import { addRunUsage, changeSpawnCount, countTokens, replaceStepUsage, computeStepUsage } from "./bill.ts";
import { addPlanSpending } from "./plan-progress.ts";
import type { KnownCoordination, OpenCoordination, Step } from "./state.ts";

/**
 * Returns the state with what a run used added to the bill, and to the plan where a child outside of its steps used
 * it; throws for an unknown step. Also after the end of the coordination, which it does not change.
 */
export function evolveUsage<S extends KnownCoordination>(
  state: S,
  { payload, eventId }: FactEvent & { type: "usage.recorded" },
): S {
  const agentId = findSessionAgent(state, payload.stepId);
  assertInvariant(agentId !== undefined, `usage of no step: ${eventId}`);
  const { stepId } = payload;
  const step = state.steps.get(stepId);
  const counted = addRunUsage(state.bill, payload, agentId);
  const bill = replaceStepUsage(counted, {
    before: computeStepUsage(state.bill, stepId, step?.spent),
    after: computeStepUsage(counted, stepId, step?.spent),
  });
  if (!state.plan || !step || step.spec.planned) return { ...state, bill };
  // Runners of a plan's steps tell their usage themselves; for children of theirs only the calls tell it.
  const spent = {
    spawns: 0,
    tokens: countTokens(bill.total) - countTokens(state.bill.total),
    costMicroUsd: bill.total.costMicroUsd - state.bill.total.costMicroUsd,
  };
  return { ...state, bill, plan: addPlanSpending(state.plan, spent) };
}

/**
 * Returns the state `after` a fact with its bill updated where that fact changed what the runner of a plan's step says
 * it used.
 */
export function updateBillAfterSpending(
  before: OpenCoordination,
  after: OpenCoordination,
  stepId: StepId,
): OpenCoordination {
  const [spentBefore, spent] = [before.steps.get(stepId)?.spent, after.steps.get(stepId)?.spent];
  if (spentBefore === spent) return after;
  const { bill } = after;
  const sums = {
    before: computeStepUsage(bill, stepId, spentBefore),
    after: computeStepUsage(bill, stepId, spent),
  };
  return { ...after, bill: replaceStepUsage(bill, sums) };
}

/** Returns the state with one more spawn on the bill, for the agent whose model made it. */
export function addSpawnToBill(state: OpenCoordination, { spec }: Step): OpenCoordination {
  return { ...state, bill: changeSpawnCount(state.bill, findSpawningAgent(state, spec), 1) };
}

/**
 * Returns the state with one spawn less on the bill where it failed before the host made its child; otherwise
 * unchanged. The step is given as it was before that end.
 */
export function takeSpawnOffBill(state: OpenCoordination, { spec, phase }: Step): OpenCoordination {
  const endStatus = state.steps.get(spec.stepId)?.phase.status;
  const hasFailed = endStatus === "failed" || endStatus === "cancelled" || endStatus === "timed_out";
  const wasBeginning = phase.status === "dispatched" && phase.attempt === 1;
  if (spec.planned || !hasFailed || !wasBeginning) return state;
  return { ...state, bill: changeSpawnCount(state.bill, findSpawningAgent(state, spec), -1) };
}

function findSpawningAgent(state: OpenCoordination, { parentStepId }: StepAdmitted): AgentId {
  return findSessionAgent(state, parentStepId ?? OWNER_STEP_ID) ?? state.created.ownerAgent;
}

/** Returns the agent whose session works on a step, or the owner's agent; `undefined` for an unknown step. */
export function findSessionAgent({ created, steps }: KnownCoordination, stepId: StepId): AgentId | undefined {
  return stepId === OWNER_STEP_ID ? created.ownerAgent : steps.get(stepId)?.spec.agentId;
}
