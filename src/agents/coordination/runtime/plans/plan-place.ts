/**
 * Owns: where a submitted plan belongs: on its own, or inside of the step whose child submits it. There it is bounded: one at a
 * time, so many deep, only as long as the attempt lasts, and with no more budget than is left around it.
 */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { SpendingLimit } from "../../contracts/fact-fields.ts";
import type { FactPayloads } from "../../contracts/facts.ts";
import type { SessionKey } from "../../contracts/ids.ts";
import { isPlanned } from "../../dispatch/plan-rules.ts";
import { addSpent } from "../../ledger/plan-progress.ts";
import { sessionOf, type OpenCoordination, type Spent, type Step } from "../../ledger/state.ts";
import type { PlanProblem } from "../../plan/plan-problem.ts";
import type { StepGraph } from "../../plan/step-graph.ts";
import { findNestedPlan, sumNested, type NestedDependencies } from "../attempts/nested-plans.ts";
import { stepOfChild } from "../log/step-of-child.ts";

type Parent = NonNullable<FactPayloads["coordination.created"]["parent"]>;

export type PlanPlace =
  | { readonly kind: "alone" }
  | { readonly kind: "inside"; readonly parent: Parent; readonly left: SpendingLimit }
  | { readonly kind: "nowhere"; readonly problem: PlanProblem };

export async function placeOf(dependencies: NestedDependencies, graph: StepGraph): Promise<PlanPlace> {
  const around = await stepAround(dependencies, graph.ownerSession);
  if (!around) return { kind: "alone" };
  const { state, step, isAtWork, isSpawnedInPlan } = around;
  if (isSpawnedInPlan)
    return createNowhere(
      "NESTED_SPAWN",
      "a subagent that was spawned inside of a plan can submit no plan, because its spawn would not wait for it; do the work in this session, or let the step's own agent submit the plan",
    );
  if (!isAtWork)
    return step.spec.planned
      ? createNowhere(
          "NESTED_LATE",
          "the step that this session worked on is over; nothing it plans would be heard",
        )
      : { kind: "alone" };
  const { attempt } = step.phase;
  const parent = { coordinationId: state.coordinationId, stepId: step.spec.stepId, attempt };
  if ((await depthOf(dependencies, parent)) >= BOUNDS.planNestingMax)
    return createNowhere(
      "NESTED_TOO_DEEP",
      `plans nest at most ${BOUNDS.planNestingMax} deep; do the work in this session`,
    );
  const usedBefore = await countUsedBefore(dependencies, around, graph);
  if (!usedBefore)
    return createNowhere(
      "NESTED_OPEN",
      "another plan of this session still runs; end your turn to be told its result, or cancel it, and submit this one then",
    );
  const usedBeside = await countUsedBeside(dependencies, around);
  const left = computeBudgetLeft(state, step, { usedBefore, usedBeside });
  if (COUNTED.some((name) => (left[name] ?? 1) < 1))
    return createNowhere(
      "NESTED_BUDGET",
      "the budget of the plan around it is used up, or plans of other steps may use the rest; do the work in this session",
    );
  return { kind: "inside", parent: usedBefore === NOTHING ? parent : { ...parent, usedBefore }, left };
}

/** A budget within another one: no more than either allows. */
export function limitBudget(
  budget: SpendingLimit | undefined,
  left: SpendingLimit,
): SpendingLimit | undefined {
  const cut: SpendingLimit = { ...budget };
  for (const name of COUNTED) {
    const most = Math.min(cut[name] ?? Infinity, left[name] ?? Infinity);
    if (most < Infinity) cut[name] = most;
  }
  return Object.keys(cut).length > 0 ? cut : undefined;
}

const COUNTED = ["spawns", "tokens", "costMicroUsd"] as const;

function createNowhere(code: PlanProblem["code"], message: string): PlanPlace {
  return { kind: "nowhere", problem: { path: "ownerSession", code, message } };
}

interface Around {
  readonly state: OpenCoordination;
  readonly step: Step;
  /** The session works on the newest attempt, which is not over. */
  readonly isAtWork: boolean;
  /** A model spawned the session by itself inside of a plan, which still runs. */
  readonly isSpawnedInPlan: boolean;
}

async function stepAround(
  dependencies: NestedDependencies,
  session: SessionKey,
): Promise<Around | undefined> {
  const found = await stepOfChild(dependencies, session);
  if (!found) return undefined;
  const { state, step } = found;
  const { status } = step.phase;
  const isAtWork = state.kind === "open" && (status === "dispatched" || status === "running");
  return {
    state: state as OpenCoordination,
    step,
    isAtWork: isAtWork && sessionOf(step.phase) === session,
    isSpawnedInPlan: state.kind === "open" && isPlanned(state) && !step.spec.planned,
  };
}

/** Counts the plans around what the child of this step submits. */
async function depthOf({ runs }: NestedDependencies, innermost: Parent): Promise<number> {
  let depth = 0;
  for (let parent: Parent | undefined = innermost; parent && depth < BOUNDS.planNestingMax;) {
    const state = await runs.state(parent.coordinationId);
    if (state.kind === "unopened" || !state.plan) return depth;
    depth += 1;
    parent = state.created.parent;
  }
  return depth;
}

/**
 * Returns what the plans used that this attempt's child submitted before this one; `undefined` while one of them runs. One whose
 * result the child is being told runs no more. The same plan again is the same submission.
 */
async function countUsedBefore(
  dependencies: NestedDependencies,
  { state: { coordinationId: runId }, step }: Around,
  { ownerSession: session, coordinationId }: StepGraph,
): Promise<Spent | undefined> {
  const { stepId } = step.spec;
  const newest = await findNestedPlan(dependencies, { runId, stepId, attempt: step.phase.attempt, session });
  if (!newest) return NOTHING;
  if (newest.coordinationId === coordinationId) return newest.usedBefore;
  return newest.isOpen && !newest.isBeingTold ? undefined : sumNested(newest);
}

const NOTHING: Spent = { spawns: 0, tokens: 0, costMicroUsd: 0 };

/** Returns what the plans of the other steps at work may use together, and those before them used. */
async function countUsedBeside(
  dependencies: NestedDependencies,
  { state: { coordinationId: runId, created, plan, steps }, step }: Around,
): Promise<Spent> {
  let sum = NOTHING;
  if (!plan || !created.plan?.budget) return sum;
  for (const stepId of plan.running) {
    const phase = steps.get(stepId)?.phase;
    if (!phase || stepId === step.spec.stepId) continue;
    const { attempt } = phase;
    const session = sessionOf(phase);
    const nested = session && (await findNestedPlan(dependencies, { runId, stepId, attempt, session }));
    if (nested) sum = addSpent(sum, addSpent(nested.usedBefore, nested.mayUse));
  }
  return sum;
}

/** Plans inside that are not booked with the plan around them before the attempts end whose children submitted them. */
interface Unbooked {
  readonly usedBefore: Spent;
  readonly usedBeside: Spent;
}

/** Returns what the budgets of the step and of its plan leave. */
function computeBudgetLeft(
  state: OpenCoordination,
  { spec, spent = NOTHING }: Step,
  { usedBefore, usedBeside }: Unbooked,
): SpendingLimit {
  const ofStep = leftOf(spec.planned?.budget, addSpent(spent, usedBefore));
  if (!isPlanned(state)) return ofStep;
  const used = addSpent(state.plan.spent, addSpent(usedBefore, usedBeside));
  const { allowedFrom } = state.plan;
  const sinceAllowed = {
    spawns: used.spawns - allowedFrom.spawns,
    tokens: used.tokens - allowedFrom.tokens,
    costMicroUsd: used.costMicroUsd - allowedFrom.costMicroUsd,
  };
  return limitBudget(ofStep, leftOf(state.created.plan?.budget, sinceAllowed)) ?? {};
}

function leftOf(budget: SpendingLimit | undefined, used: Spent): SpendingLimit {
  const left: SpendingLimit = {};
  for (const name of COUNTED) {
    const limit = budget?.[name];
    if (limit !== undefined) left[name] = limit - used[name];
  }
  return left;
}
