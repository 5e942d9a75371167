/** Owns: what must be true of a plan's budget and of those of its steps, by the log alone: spawns, tokens and time. */
import { DELIVERY_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { filterByType, timeOf, type Evidence, type FactOf } from "./plan-check.ts";

interface Use {
  readonly spawns: number;
  readonly tokens: number;
  readonly ms: number;
}

interface Limits {
  readonly spawns?: number | undefined;
  readonly tokens?: number | undefined;
  readonly wallMs?: number | undefined;
}

interface Books {
  readonly limits: Limits;
  /** Used since people last let the plan go on. */
  spawns: number;
  tokens: number;
  /** The plan's time counts from then; infinite where times cannot be compared. */
  fromMs: number;
  /** The plans of a step's agent may use so much, by the step. */
  readonly loans: Map<string, Limits>;
  /** The questions whether the plan is to begin. */
  readonly doubts: Set<string>;
}

/** Begun, used and lent together are never more than the budget, and people are asked no sooner than it is used up. */
export function checkBudget(evidence: Evidence): string[] {
  return [...checkPlanBudget(evidence), ...checkStepBudgets(evidence)];
}

function checkPlanBudget({ facts, created, hasGoneBack }: Evidence): string[] {
  const limits = created.plan?.budget;
  const [first] = facts;
  if (!limits || !first) return [];
  const fromMs = hasGoneBack ? Infinity : timeOf(first);
  const books: Books = { limits, spawns: 0, tokens: 0, fromMs, loans: new Map(), doubts: new Set() };
  return facts.flatMap((fact) => seeFact(books, fact));
}

function seeFact(books: Books, fact: FactEvent): string[] {
  switch (fact.type) {
    case "coordination.escalated":
      return seeQuestion(books, fact);
    case "escalation.closed":
      allowMore(books, fact);
      return [];
    case "step.dispatched":
      return beginAttempt(books, fact);
    case "budget.lent":
      books.loans.set(fact.payload.stepId, fact.payload.budget);
      return listOverdrawn(books).map((name) => `${fact.payload.to} was lent ${name} over the budget`);
    case "result.held":
    case "step.completed":
    case "step.failed":
    case "step.timed_out":
      return endAttempt(books, fact.payload);
    case "step.child_stopped":
      books.tokens += fact.payload.usage?.tokens ?? 0;
      return [];
    default:
      return [];
  }
}

const COUNTED = ["spawns", "tokens"] as const;
type CountedUnit = (typeof COUNTED)[number];

function sumLent({ loans }: Books, name: CountedUnit): number {
  return [...loans.values()].reduce((sum, loan) => sum + (loan[name] ?? 0), 0);
}

function listOverdrawn(books: Books): CountedUnit[] {
  return COUNTED.filter((name) => books[name] + sumLent(books, name) > (books.limits[name] ?? Infinity));
}

function findReachedLimit(limits: Limits, { spawns, tokens, ms }: Use): keyof Limits | undefined {
  if (spawns >= (limits.spawns ?? Infinity)) return "spawns";
  if (tokens >= (limits.tokens ?? Infinity)) return "tokens";
  return ms >= (limits.wallMs ?? Infinity) ? "wallMs" : undefined;
}

function seeQuestion(books: Books, fact: FactOf<"coordination.escalated">): string[] {
  const { cause, stepId, escalationId } = fact.payload;
  if (stepId !== undefined) return [];
  if (cause === "confidence") books.doubts.add(escalationId);
  if (cause !== "budget" || books.fromMs === Infinity) return [];
  const { spawns, tokens, fromMs, limits } = books;
  const reached = findReachedLimit(limits, { spawns, tokens, ms: timeOf(fact) - fromMs });
  return reached
    ? []
    : [`people were asked after ${spawns} spawns and ${tokens} tokens of ${JSON.stringify(limits)}`];
}

/** People let the plan go on, or begin: the time that they took to decide is none of the plan's. */
function allowMore(books: Books, fact: FactOf<"escalation.closed">): void {
  const { escalationId, resolution } = fact.payload;
  const isContinued = resolution === "continued";
  if (isContinued) {
    books.spawns = 0;
    books.tokens = 0;
  }
  const isBegun = resolution === "approved" && books.doubts.has(escalationId);
  if ((isContinued || isBegun) && books.fromMs !== Infinity) books.fromMs = timeOf(fact);
}

function beginAttempt(books: Books, fact: FactOf<"step.dispatched">): string[] {
  const { stepId, attempt } = fact.payload;
  if (stepId === DELIVERY_STEP_ID) return [];
  const reached = findReachedLimit(books.limits, {
    spawns: books.spawns + sumLent(books, "spawns"),
    tokens: books.tokens + sumLent(books, "tokens"),
    ms: timeOf(fact) - books.fromMs,
  });
  books.spawns += 1;
  return reached ? [`${stepId}:${attempt} began over the plan's budget: ${reached}`] : [];
}

interface EndedAttempt {
  readonly stepId: string;
  readonly usage?: { readonly spawns?: number | undefined; readonly tokens?: number | undefined } | undefined;
}

/** Nobody lets the plans inside go on, so they use no more than they were lent. */
function endAttempt(books: Books, { stepId, usage }: EndedAttempt): string[] {
  if (stepId === DELIVERY_STEP_ID) return [];
  const spawns = usage?.spawns ?? 0;
  const lent = books.loans.get(stepId)?.spawns ?? 0;
  books.loans.delete(stepId);
  books.spawns += spawns;
  books.tokens += usage?.tokens ?? 0;
  if (books.limits.spawns === undefined) return [];
  return spawns > lent ? [`plans of ${stepId} used ${spawns} spawns, and ${lent} were lent`] : [];
}

/** A step whose own budget is used up is not tried again, and its result is not revised, unless people let it. */
function checkStepBudgets(evidence: Evidence): string[] {
  const { dispatches, facts, hasGoneBack } = evidence;
  return dispatches.flatMap(({ sequence, payload: { stepId, attempt } }) => {
    const earlier = facts.filter((fact) => fact.sequence < sequence);
    const cause = earlier.findLast(
      (fact): fact is Cause => CAUSES.has(fact.type) && (fact as Cause).payload.stepId === stepId,
    );
    if (!cause || cause.type === "step.retry_granted") return [];
    const retryAtMs = "retryAtMs" in cause.payload ? cause.payload.retryAtMs : undefined;
    const limit = findStepLimit(evidence, cause, hasGoneBack ? -Infinity : (retryAtMs ?? timeOf(cause)));
    return limit ? [`${stepId}:${attempt} began over the step's budget: ${limit}`] : [];
  });
}

type Cause = FactOf<"step.failed" | "step.timed_out" | "result.revised" | "step.retry_granted">;

/** After one of them a step is begun again. */
const CAUSES: ReadonlySet<string> = new Set([
  ...(["step.failed", "step.timed_out", "result.revised", "step.retry_granted"] as const),
]);

/** Finds the limit of the step's own budget that was reached by a time, by what the log says up to one of its facts. */
export function findStepLimit(
  { facts, admitted, spawns = [] }: Evidence,
  { sequence, payload: { stepId } }: Cause,
  atMs: number,
): keyof Limits | undefined {
  const limits = admitted.get(stepId)?.planned?.budget;
  if (!limits) return undefined;
  const earlier = facts.filter((fact) => fact.sequence <= sequence);
  const attempts = filterByType(earlier, "step.dispatched").filter(
    ({ payload }) => payload.stepId === stepId,
  );
  const [first] = attempts;
  const ends = earlier.filter(
    ({ type, payload }) => ENDS.has(type) && "stepId" in payload && payload.stepId === stepId,
  );
  const sumUse = (name: CountedUnit): number =>
    ends.reduce((sum, { payload }) => sum + ((payload as EndedAttempt).usage?.[name] ?? 0), 0);
  return findReachedLimit(limits, {
    spawns:
      attempts.length +
      countSpawns(
        spawns.filter((fact) => fact.sequence <= sequence),
        stepId,
      ) +
      sumUse("spawns"),
    tokens: sumUse("tokens"),
    ms: first ? atMs - timeOf(first) : 0,
  });
}

/** Counts what the agents of a step spawned themselves, without what the host made no child of. */
function countSpawns(spawns: readonly FactEvent[], stepId: string): number {
  const unspawned = filterByType(spawns, "step.failed").flatMap(({ payload }) =>
    payload.unspawned ? payload.stepId : [],
  );
  return filterByType(spawns, "step.admitted").filter(
    ({ payload }) => payload.parentStepId === stepId && !unspawned.includes(payload.stepId),
  ).length;
}

/** The facts that say what an attempt used. */
const ENDS: ReadonlySet<string> = new Set([
  ...(["result.held", "step.completed", "step.failed", "step.timed_out", "step.child_stopped"] as const),
]);
