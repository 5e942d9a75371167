/**
 * Owns: where a submitted plan belongs: on its own, or inside of the step whose child submits it. There it is bounded: one at a
 * time, so many deep, and with no more budget than is left around it. Inside of a plan it may last only as long as the attempt.
 */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { SpendingLimit } from "../../contracts/fact-fields.ts";
import type { FactPayloads } from "../../contracts/facts.ts";
import type { SessionKey } from "../../contracts/ids.ts";
import { computeBudgetLeft, isAnyKindUsedUp, isPlanned } from "../../dispatch/plan-rules.ts";
import { isWorkingForNobody } from "../../ledger/given-up.ts";
import { NOTHING_SPENT, spentFromUsage } from "../../ledger/plan-progress.ts";
import {
  findSessionOfPhase,
  type Coordination,
  type OpenCoordination,
  type SpentBudget,
} from "../../ledger/state.ts";
import type { PlanProblem } from "../../plan/plan-problem.ts";
import type { StepGraph } from "../../plan/step-graph.ts";
import { draftLoan } from "../attempts/lend-to-open-plan.ts";
import { findNestedPlan, sumNestedUse, type NestedDependencies } from "../attempts/nested-plans.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { findStepOfChild, type OpenStep } from "../log/step-of-child.ts";
import { refuseUnstoppedTurn } from "../spawns/admit-spawn.ts";

/** A step whose agent submits a plan, named by its coordination, id and attempt. */
type ParentStep = NonNullable<FactPayloads["coordination.created"]["parent"]>;
/** An attempt whose agent submits a plan that runs inside its step. */
type ParentAttempt = ParentStep & { readonly attempt: number };

export type PlanPlace =
  | { readonly kind: "alone" }
  | { readonly kind: "inside"; readonly parent: ParentAttempt; readonly left: SpendingLimit }
  | { readonly kind: "nowhere"; readonly problem: PlanProblem };

type PlaceDependencies = NestedDependencies & Pick<RuntimeDependencies, "turns" | "clock">;

/**
 * Returns where a plan belongs: alone, inside of the step whose child submits it with the budget left there, or
 * nowhere with the problem.
 */
export async function findPlanPlace(dependencies: PlaceDependencies, graph: StepGraph): Promise<PlanPlace> {
  const around = await findStepAround(dependencies, graph.ownerSession);
  if (!around) return { kind: "alone" };
  const { state, step, isAtWork, isSpawnedInPlan } = around;
  if (isSpawnedInPlan)
    return createNowhere(
      "NESTED_SPAWN",
      "a subagent that was spawned inside of a plan can submit no plan, because its spawn would not wait for it; do the work in this session, or let the step's own agent submit the plan",
    );
  const late = isAtWork ? undefined : await findLatePlace(dependencies, around, graph.ownerSession);
  if (late) return late;
  const { attempt } = step.phase;
  const parent = { coordinationId: state.coordinationId, stepId: step.spec.stepId, attempt };
  if ((await countPlansAround(dependencies, parent)) >= BOUNDS.planNestingMax)
    return createNowhere(
      "NESTED_TOO_DEEP",
      `plans nest at most ${BOUNDS.planNestingMax} deep; do the work in this session`,
    );
  const usedBefore = await countUsedBefore(dependencies, around, graph.ownerSession);
  if (!usedBefore)
    return createNowhere(
      "NESTED_OPEN",
      "another plan of this session still runs; end your turn to be told its result, or cancel it, and submit this one then",
    );
  const left = computeBudgetLeft(state, step, usedBefore);
  if (isAnyKindUsedUp(left)) return createNowhereWithoutBudget();
  return { kind: "inside", parent: usedBefore === NOTHING_SPENT ? parent : { ...parent, usedBefore }, left };
}

/**
 * Records a loan of the plan around for a nested plan that is not opened yet, and returns the place with what is left
 * then; `nowhere` where the loan is refused, and the same place where no plan is around. A crash in between leaves a
 * loan that ends with the attempt.
 */
export async function borrowBudget(
  { runs }: NestedDependencies,
  { coordinationId: to, budget }: StepGraph,
  place: PlanPlace,
): Promise<PlanPlace> {
  if (place.kind !== "inside") return place;
  const { coordinationId, stepId, attempt, usedBefore } = place.parent;
  const around = await runs.state(coordinationId);
  // The step may be a spawn with no plan around it: then there is no budget.
  if (around.kind === "unopened" || !around.plan) return place;
  const stepBudget = around.steps.get(stepId)?.spec.planned?.budget;
  const loan = draftLoan({ stepId, attempt, to, budget, stepBudget, usedBefore });
  const submitted = await runs.submit(coordinationId, [loan]);
  if (submitted.kind === "refused")
    return submitted.code === "BUDGET_SPENT" ? createNowhereWithoutBudget() : createNowhereTooLate();
  const { state } = submitted;
  const step = state.kind === "open" && state.steps.get(stepId);
  return step
    ? { ...place, left: computeBudgetLeft(state, step, spentFromUsage(usedBefore)) }
    : createNowhereTooLate();
}

function createNowhereWithoutBudget(): PlanPlace {
  return createNowhere(
    "NESTED_BUDGET",
    "the budget of the plan around it is used up, or plans of other steps may use the rest; do the work in this session",
  );
}

function createNowhereTooLate(): PlanPlace {
  return createNowhere(
    "NESTED_LATE",
    "the step that this session worked on is over; nothing it plans would be heard",
  );
}

/** Creates the place of a plan that may run nowhere, with the problem in words for a model. */
export function createNowhere(code: PlanProblem["code"], message: string): PlanPlace {
  return { kind: "nowhere", problem: { path: "ownerSession", code, message } };
}

/**
 * Finds the place of a plan of a session whose step is over. `undefined` where it belongs inside of that step all the same: the
 * operator's budget holds for a spawned session also after its spawn. Nothing waits for the plan of a session that was given up, or
 * of a turn that goes on though its work was stopped.
 */
async function findLatePlace(
  dependencies: PlaceDependencies,
  { state, step }: EnclosingStep,
  session: SessionKey,
): Promise<PlanPlace | undefined> {
  if (step.spec.planned || isWorkingForNobody(state, session)) return createNowhereTooLate();
  if (refuseUnstoppedTurn(dependencies, { state, step }, session)) return createNowhereTooLate();
  if (!(await hasOperatorBudget(dependencies, state))) return { kind: "alone" };
  // Nothing waits for it either where the spawn was made inside of a plan that is over.
  return state.plan ? createNowhereTooLate() : undefined;
}

/** True when the operator's budget bounds a coordination, or the one whose child submitted it. */
async function hasOperatorBudget({ runs }: NestedDependencies, innermost: Coordination): Promise<boolean> {
  let state = innermost;
  while (state.kind !== "unopened" && !state.created.budget && state.created.parent)
    state = await runs.state(state.created.parent.coordinationId);
  return state.kind !== "unopened" && state.created.budget !== undefined;
}

/** The step that a session works or worked on, and whether the session may plan inside it. */
interface EnclosingStep extends OpenStep {
  /** The session works on the newest attempt, which is not over. */
  readonly isAtWork: boolean;
  /** A model spawned the session by itself inside of a plan, which still runs. */
  readonly isSpawnedInPlan: boolean;
}

async function findStepAround(
  dependencies: NestedDependencies,
  session: SessionKey,
): Promise<EnclosingStep | undefined> {
  const found = await findStepOfChild(dependencies, session);
  if (!found) return undefined;
  const { state, step } = found;
  const { status } = step.phase;
  const isAtWork = state.kind === "open" && (status === "dispatched" || status === "running");
  return {
    state: state as OpenCoordination,
    step,
    isAtWork: isAtWork && findSessionOfPhase(step.phase) === session,
    isSpawnedInPlan: state.kind === "open" && isPlanned(state) && !step.spec.planned,
  };
}

/** Counts the plans around what the child of this step submits. */
async function countPlansAround({ runs }: NestedDependencies, innermost: ParentStep): Promise<number> {
  let depth = 0;
  for (let parent: ParentStep | undefined = innermost; parent && depth < BOUNDS.planNestingMax;) {
    const state = await runs.state(parent.coordinationId);
    if (state.kind === "unopened" || !state.plan) return depth;
    depth += 1;
    parent = state.created.parent;
  }
  return depth;
}

/**
 * Returns what the plans used that this attempt's child submitted before; `undefined` while one of them runs. One whose result the
 * child is being told runs no more.
 */
async function countUsedBefore(
  dependencies: NestedDependencies,
  { state: { coordinationId: runId }, step }: EnclosingStep,
  session: SessionKey,
): Promise<SpentBudget | undefined> {
  const { stepId } = step.spec;
  const newest = await findNestedPlan(dependencies, { runId, stepId, attempt: step.phase.attempt, session });
  if (!newest) return NOTHING_SPENT;
  return newest.isOpen && !newest.isBeingTold ? undefined : sumNestedUse(newest);
}
