/** Owns: what each fact about usage and the operator's budget means for the bill of a coordination. */
import { assertInvariant } from "../contracts/errors.ts";
import type { StepAdmitted } from "../contracts/fact-fields.ts";
import { OWNER_STEP_ID, type AgentId, type StepId } from "../contracts/ids.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import { addRunUsage, changeSpawnCount, countTokens, replaceSum, sumOfStep } from "./bill.ts";
import { addPlanSpending } from "./plan-progress.ts";
import type { KnownCoordination, OpenCoordination, Step } from "./state.ts";

/** Books what a run used. Also after the end of the coordination, which it does not change. */
export function evolveUsage<S extends KnownCoordination>(
  state: S,
  { payload, eventId }: FactEvent & { type: "usage.recorded" },
): S {
  const agentId = findSessionAgent(state, payload.stepId);
  assertInvariant(agentId !== undefined, `usage of no step: ${eventId}`);
  const { stepId } = payload;
  const step = state.steps.get(stepId);
  const counted = addRunUsage(state.bill, payload, agentId);
  const bill = replaceSum(counted, {
    before: sumOfStep(state.bill, stepId, step?.spent),
    after: sumOfStep(counted, stepId, step?.spent),
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

/** Sums again after the runner of a plan's step said what it used. */
export function sumAfterSpending(
  before: OpenCoordination,
  after: OpenCoordination,
  stepId: StepId,
): OpenCoordination {
  const [spentBefore, spent] = [before.steps.get(stepId)?.spent, after.steps.get(stepId)?.spent];
  if (spentBefore === spent) return after;
  const { bill } = after;
  const sums = { before: sumOfStep(bill, stepId, spentBefore), after: sumOfStep(bill, stepId, spent) };
  return { ...after, bill: replaceSum(bill, sums) };
}

/** Counts a spawn that a model made. */
export function addSpawn(state: OpenCoordination, { spec }: Step): OpenCoordination {
  return { ...state, bill: changeSpawnCount(state.bill, findSpawner(state, spec), 1) };
}

/** Takes a spawn off the bill that ended before the host made its child. `before`: the step as it was until then. */
export function takeBackSpawn(state: OpenCoordination, { spec, phase }: Step): OpenCoordination {
  const endStatus = state.steps.get(spec.stepId)?.phase.status;
  const hasFailed = endStatus === "failed" || endStatus === "cancelled" || endStatus === "timed_out";
  const wasBeginning = phase.status === "dispatched" && phase.attempt === 1;
  if (spec.planned || !hasFailed || !wasBeginning) return state;
  return { ...state, bill: changeSpawnCount(state.bill, findSpawner(state, spec), -1) };
}

function findSpawner(state: OpenCoordination, { parentStepId }: StepAdmitted): AgentId {
  return findSessionAgent(state, parentStepId ?? OWNER_STEP_ID) ?? state.created.ownerAgent;
}

/** Returns the agent of the session that works on a step, or of the owner's; `undefined` for a step that there is not. */
export function findSessionAgent({ created, steps }: KnownCoordination, stepId: StepId): AgentId | undefined {
  return stepId === OWNER_STEP_ID ? created.ownerAgent : steps.get(stepId)?.spec.agentId;
}
