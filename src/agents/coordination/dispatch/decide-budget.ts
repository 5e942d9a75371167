/**
 * Owns: what model calls used as facts, whom the operator's budget stops, and what of a plan's budget is set aside for plans inside.
 *
 * U1 a record counts once, however often and late it comes. U2 whoever is stopped is stopped by what the log says was used:
 * a model call that is under way when a bound is reached is the last one.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import type { Command, LendBudget, RecordUsage, StopAtBudget } from "../contracts/commands.ts";
import type { Usage } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { OWNER_STEP_ID, type AgentId, type StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import type { BudgetReached, RunUsage, TreeLimits, UsageTotals } from "../contracts/usage.ts";
import { addTotals, countTokens, mergeRunUsage, nameRun, NO_USAGE } from "../ledger/bill.ts";
import { findSessionAgent } from "../ledger/evolve-usage.ts";
import { spentFromUsage } from "../ledger/plan-progress.ts";
import type { KnownCoordination, OpenCoordination, Step } from "../ledger/state.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import {
  computeBudgetLeft,
  isAnyKindUsedUp,
  cutBudget,
  listLoans,
  mapBudget,
  type PlannedCoordination,
} from "./plan-rules.ts";

/**
 * Decides on the use that a run reports: accepted as a fact, a replay where it says nothing new, or refused for an
 * unknown step or too many runs. Also after the end (D5): a bill may come late.
 */
export function recordUsage(state: KnownCoordination, command: RecordUsage): Decision {
  const { type: _, ...usage } = command;
  if (findSessionAgent(state, usage.stepId) === undefined)
    return refuse("UNKNOWN_STEP", `there is no step ${usage.stepId}`);
  const counted = state.bill.runs.get(nameRun(usage));
  if (counted ? isKnownUsage(counted, usage) : usage.calls === 0) return { kind: "replay" };
  if (!counted && state.bill.runs.size >= BOUNDS.usageRunsMax)
    return refuse("TOO_MANY_RUNS", `the usage of at most ${BOUNDS.usageRunsMax} runs is recorded`);
  return accept([{ type: "usage.recorded", payload: usage }]);
}

/** True when a record adds nothing to what is counted of its run. */
function isKnownUsage(counted: RunUsage, usage: RunUsage): boolean {
  const merged = mergeRunUsage(counted, usage);
  const names = ["calls", "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"] as const;
  return (
    names.every((name) => merged[name] === counted[name]) &&
    merged.costMicroUsd === counted.costMicroUsd &&
    merged.models.length === counted.models.length
  );
}

/**
 * Decides on a budget that stops a session: accepted as facts, or a replay where no bound is reached or that is
 * recorded.
 */
export function stopAtBudget(state: OpenCoordination, { stepId, stopped }: StopAtBudget): Decision {
  const reached = findReachedBudget(state, { stepId, stopped });
  const facts = reached ? draftBudgetStop(state, reached) : [];
  return facts.length > 0 ? accept(facts) : { kind: "replay" };
}

/**
 * Returns the refusal of a spawn that the operator's budget does not allow, with the facts that record the stop;
 * `undefined` where it does.
 */
export function refuseSpawnByBudget(
  state: OpenCoordination,
  parentStepId: StepId | undefined,
): (Decision & { readonly kind: "refused" }) | undefined {
  const reached = findReachedBudget(state, { stepId: parentStepId ?? OWNER_STEP_ID, stopped: "spawn" });
  if (!reached) return undefined;
  return { ...refuse("BUDGET_SPENT", explainBudgetStop(reached)), facts: draftBudgetStop(state, reached) };
}

/** Drafts the fact that a bound stops a session; nothing where it is recorded already or too many are. */
function draftBudgetStop({ bill: { stops } }: OpenCoordination, reached: BudgetReached): FactDraft[] {
  const isRecorded = stops.some(
    ({ stepId, limit, agentId, stopped }) =>
      stepId === reached.stepId &&
      limit === reached.limit &&
      agentId === reached.agentId &&
      stopped === reached.stopped,
  );
  if (isRecorded || stops.length >= BOUNDS.budgetStopsMax) return [];
  return [{ type: "budget.reached", payload: reached }];
}

/** An act that a session is about to do. */
interface IntendedAct {
  readonly stepId: StepId;
  readonly stopped: BudgetReached["stopped"];
}

/** Used by sessions of the coordination and not in the log yet, with the agents whose sessions they are. */
export type UnrecordedUsage = ReadonlyMap<AgentId, UsageTotals>;

/**
 * Returns the bound of the operator's budget that stops a session, of the whole coordination first, then of its agent;
 * `undefined` where none is reached. `unrecorded`: use of runs that the log does not have yet.
 */
export function findReachedBudget(
  state: KnownCoordination,
  wish: IntendedAct,
  unrecorded: UnrecordedUsage = new Map(),
): BudgetReached | undefined {
  const { budget } = state.created;
  const agentId = budget && findSessionAgent(state, wish.stepId);
  if (!budget || !agentId) return undefined;
  const depth = wish.stopped === "spawn" ? 1 + countSpawnLevels(state, wish.stepId) : 0;
  const { total, spawnCount: spawns } = state.bill;
  const totals = [...unrecorded.values()].reduce(addTotals, total);
  const reached = findReachedBound(budget, wish.stopped, { totals, spawns, depth });
  if (reached) return { ...wish, ...reached };
  const limits = budget.agents?.[agentId];
  const reachedByAgent =
    limits && findReachedBound(limits, wish.stopped, { ...sumAgentUsage(state, agentId, unrecorded), depth });
  return reachedByAgent && { ...wish, agentId, ...reachedByAgent };
}

function sumAgentUsage(
  { bill }: KnownCoordination,
  agentId: AgentId,
  unrecorded: UnrecordedUsage,
): Pick<BudgetUse, "totals" | "spawns"> {
  const totals = addTotals(bill.agents.get(agentId) ?? NO_USAGE, unrecorded.get(agentId) ?? NO_USAGE);
  return { totals, spawns: bill.spawns.get(agentId) ?? 0 };
}

/** The tokens, money and spawns that a coordination has used, with the depth of the new child. */
interface BudgetUse {
  readonly totals: UsageTotals;
  readonly spawns: number;
  /** The level on which the new child would be. */
  readonly depth: number;
}

/** A limit of the budget that is reached, and what was allowed and used. */
type ReachedLimit = Pick<BudgetReached, "limit" | "allowed" | "used">;

/** Finds the first limit that the use has reached; spawns and depth count only where a spawn is to be stopped. */
function findReachedBound(
  limits: TreeLimits,
  stopped: IntendedAct["stopped"],
  { totals, spawns, depth }: BudgetUse,
): ReachedLimit | undefined {
  const candidates: readonly ReachedLimit[] = [
    { limit: "tokens", allowed: limits.tokens ?? Infinity, used: countTokens(totals) },
    { limit: "costMicroUsd", allowed: limits.costMicroUsd ?? Infinity, used: totals.costMicroUsd },
    ...(stopped === "spawn"
      ? ([
          { limit: "spawns", allowed: limits.spawns ?? Infinity, used: spawns },
          // A child on the deepest level is allowed, one below it is not.
          { limit: "depth", allowed: limits.depth ?? Infinity, used: depth - 1 },
        ] as const)
      : []),
  ];
  return candidates.find(({ allowed, used }) => used >= allowed);
}

/** Counts the spawns between a session and the owner. */
function countSpawnLevels({ steps }: KnownCoordination, stepId: StepId): number {
  let levels = 0;
  for (let step = steps.get(stepId); step; levels += 1) {
    const { parentStepId } = step.spec;
    step = parentStepId && steps.get(parentStepId);
  }
  return levels;
}

const MICRO = 1_000_000;

/** Returns the text that tells a model which bound is reached, how much was used, and what to do. */
export function explainBudgetStop(reached: BudgetReached): string {
  const advice =
    reached.limit === "depth"
      ? "do the work yourself, or leave it to the session that spawned you"
      : "finish with what you have, without another subagent, and say that the budget stopped you";
  return `${describeReachedBound(reached)}; ${advice}`;
}

/** Returns the text that says which bound of the operator's budget is reached and how much was used. */
export function describeReachedBound({ limit, agentId, allowed, used }: BudgetReached): string {
  const of = agentId ? `agent ${agentId} in this coordination` : "this coordination";
  return `the operator's budget of ${of} is reached: ${describeBoundUse(limit, used, allowed)}`;
}

function describeBoundUse(limit: BudgetReached["limit"], used: number, allowed: number): string {
  switch (limit) {
    case "tokens":
      return `${used} of ${allowed} tokens are used`;
    case "costMicroUsd":
      return `${used / MICRO} of ${allowed / MICRO} USD are spent`;
    case "spawns":
      return `${used} of ${allowed} subagents were spawned`;
    case "depth":
      return `subagents may be spawned ${allowed} level${allowed === 1 ? "" : "s"} deep, and this session is on level ${used}`;
  }
}

/**
 * Decides on a loan of budget to a plan that the child of a step submitted: accepted with no more than is left, a
 * replay where it has that already, or refused. Whatever earlier plans of the attempt used stays set aside: the end of
 * the attempt books it.
 */
export function lendBudget(
  state: PlannedCoordination,
  { stepId, attempt, to, usedBefore, budget: wanted }: LendBudget,
): Decision {
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  if (attempt !== step.phase.attempt || !state.plan.running.has(stepId))
    return refuse("STALE_ATTEMPT", `attempt ${attempt} of step ${stepId} is not at work`);
  const before = spentFromUsage(usedBefore);
  const budgetLeft = computeBudgetLeft(state, step, before);
  if (isAnyKindUsedUp(budgetLeft))
    return refuse("BUDGET_SPENT", "the budget is used up, or plans of other steps may use the rest");
  const most = spentFromUsage(cutBudget(wanted, budgetLeft));
  const limits = listLoanLimits(state, step, wanted);
  const budget = mapBudget(limits, (_, name) => before[name] + most[name]);
  const loan = findLoan(state, stepId);
  const isLent = Object.keys(budget).length === 0 || (loan?.to === to && isSameBudget(loan.budget, budget));
  return isLent ? { kind: "replay", stepId } : acceptLoan({ stepId, attempt, to, budget });
}

/**
 * Returns the limits that a loan counts for: the plan's, and those of the step whose kinds the request names. Requests in logs of
 * earlier releases name none of these.
 */
function listLoanLimits({ created }: PlannedCoordination, { spec }: Step, wanted: Usage): Usage {
  const ofStep = Object.entries(spec.planned?.budget ?? {}).filter(([name]) => Object.hasOwn(wanted, name));
  return { ...Object.fromEntries(ofStep), ...created.plan?.budget };
}

/**
 * Decides on the end of the work of a plan inside: accepted as a fact that sets its loan to what it used, which may be
 * more; a replay where that is so, or the loan is another one by now.
 */
export function returnBudget(
  state: PlannedCoordination,
  { stepId, attempt, to, budget }: Command & { type: "returnBudget" },
): Decision {
  const loan = findLoan(state, stepId);
  if (loan?.to !== to || loan.attempt !== attempt) return { kind: "replay" };
  const used = spentFromUsage(budget);
  // It may be more than was lent, where people let the plan go on.
  const rest = mapBudget(loan.budget, (_, name) => used[name]);
  return isSameBudget(loan.budget, rest)
    ? { kind: "replay", stepId }
    : acceptLoan({ stepId, attempt, to, budget: rest });
}

/** Returns the loan of budget that is set aside for the plans of a step's attempt; `undefined` where there is none. */
export function findLoan(
  state: PlannedCoordination,
  stepId: StepId,
): FactPayloads["budget.lent"] | undefined {
  return listLoans(state).find((loan) => loan.stepId === stepId);
}

function acceptLoan(payload: FactPayloads["budget.lent"]): Decision {
  return accept([{ type: "budget.lent", payload }], payload.stepId);
}

function isSameBudget(one: Usage, other: Usage): boolean {
  return (
    one.spawns === other.spawns && one.tokens === other.tokens && one.costMicroUsd === other.costMicroUsd
  );
}
