/** Owns: what one coordination adds to the statistics, counted from its log. Does not own: what they are compared with (`measures.ts`). */
import { isBudgetStop, type Answerer } from "../contracts/escalation.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID, type StepId } from "../contracts/ids.ts";
import { isFact, type FactEvent, type RunEvent } from "../contracts/run-event.ts";

/** Numbers of any set of coordinations. Durations in milliseconds, in no order. */
export interface CoordinationCounts {
  coordinations: number;
  ended: number;
  succeeded: number;
  /** Results, and answers that sessions waited for, that were to be told to somebody. */
  tellings: number;
  delivered: number;
  /** From the opening of a coordination to its first result. */
  readonly firstResultMs: number[];
  completed: number;
  /** Steps that completed more than once. */
  duplicates: number;
  /** Outcomes that came again, or too late, and did not count. */
  refusedOutcomes: number;
  conflicts: number;
  lostUpdates: number;
  /** Attempts that came to a result. */
  results: number;
  /** Those that did not pass by themselves: people were asked, or the result was revised or rejected. */
  held: number;
  questions: number;
  /** From when people were asked to their answer. */
  readonly answerMs: number[];
  expired: number;
}

/** Follows one log from its first event on. */
export interface CoordinationCounter {
  take(event: RunEvent): void;
  readonly counts: CoordinationCounts;
}

/** Creates the counts of no coordination at all: each is 0 or an empty list. */
export function createZeroCounts(): CoordinationCounts {
  return {
    coordinations: 0,
    ended: 0,
    succeeded: 0,
    tellings: 0,
    delivered: 0,
    firstResultMs: [],
    completed: 0,
    duplicates: 0,
    refusedOutcomes: 0,
    conflicts: 0,
    lostUpdates: 0,
    results: 0,
    held: 0,
    questions: 0,
    answerMs: [],
    expired: 0,
  };
}

/** The counts so far of one coordination, with the open matters that later facts end. */
interface CountingState {
  readonly counts: CoordinationCounts;
  openedAtMs: number;
  /** The step whose agent submitted the plan ended, and the plan with it. */
  endsWithParent: boolean;
  readonly completed: Set<StepId>;
  /** `STEP/ATTEMPT` of results that waited for a check, a merge or people. */
  readonly gated: Set<string>;
  /** Steps whose result waits and may still pass by itself. */
  readonly passing: Set<StepId>;
  readonly askedAtMs: Map<string, number>;
}

type Fact<T extends FactEvent["type"]> = Extract<FactEvent, { readonly type: T }>;
/** Adds a fact of one type to the counts. */
type FactCounter<T extends FactEvent["type"]> = (
  counting: CountingState,
  payload: Fact<T>["payload"],
  atMs: number,
) => void;

/**
 * Creates the counter of one coordination: `take` counts the next event of its log, and `counts` holds the sums so
 * far. Events that are no facts count for nothing.
 */
export function createCoordinationCounter(): CoordinationCounter {
  const counting: CountingState = {
    counts: createZeroCounts(),
    openedAtMs: 0,
    endsWithParent: false,
    completed: new Set(),
    gated: new Set(),
    passing: new Set(),
    askedAtMs: new Map(),
  };
  return {
    counts: counting.counts,
    take: (event) => {
      if (!isFact(event)) return;
      const count = COUNTS[event.type] as FactCounter<FactEvent["type"]> | undefined;
      count?.(counting, event.payload, Date.parse(event.timestamp));
    },
  };
}

const COUNTS: { readonly [T in FactEvent["type"]]?: FactCounter<T> } = {
  "coordination.created": (counting, _, atMs) => {
    counting.counts.coordinations = 1;
    counting.openedAtMs = atMs;
  },
  "step.completed": (counting, { stepId, attempt }, atMs) => {
    // Telling the owner of a plan is no step of it.
    if (stepId === DELIVERY_STEP_ID) return;
    const { counts, completed, openedAtMs } = counting;
    if (completed.has(stepId)) counts.duplicates += 1;
    if (completed.size === 0) counts.firstResultMs.push(Math.max(0, atMs - openedAtMs));
    completed.add(stepId);
    counts.completed += 1;
    // A result that waited is counted already.
    if (!counting.gated.has(`${stepId}/${attempt}`)) counts.results += 1;
    counting.passing.delete(stepId);
  },
  "step.failed": (counting, { stepId, via, error, cancelled }) => {
    // Files that cannot be merged say nothing of the result.
    if (via === "gate" && !cancelled && error.code !== "worktree_failed") countHeldOnce(counting, stepId);
    counting.passing.delete(stepId);
  },
  "step.outcome_refused": ({ counts }) => {
    counts.refusedOutcomes += 1;
  },
  "result.held": ({ counts, gated, passing }, { stepId, attempt }) => {
    gated.add(`${stepId}/${attempt}`);
    passing.add(stepId);
    counts.results += 1;
  },
  "result.revised": (counting, { stepId }) => {
    countHeldOnce(counting, stepId);
  },
  "conflict.detected": ({ counts }, { contest }) => {
    counts.conflicts += 1;
    if (contest?.cause === "overwritten") counts.lostUpdates += 1;
  },
  "session.told": ({ counts }, { tellingId, delivery }) => {
    // A session that is asked in place of people is told a question, and no result.
    if (!tellingId.startsWith("question:")) countTelling(counts, delivery);
  },
  "coordination.cancel_requested": (counting, { by, stepId }) => {
    if (by === "parent" && stepId === undefined) counting.endsWithParent = true;
  },
  "coordination.escalated": (counting, question, atMs) => {
    if (isBudgetStop(question)) return;
    const { escalationId, stepId } = question;
    counting.counts.questions += 1;
    counting.askedAtMs.set(escalationId, atMs);
    if (stepId !== undefined) countHeldOnce(counting, stepId);
  },
  // The parent of an agent was asked before: now people are.
  "escalation.forwarded": ({ askedAtMs }, { escalationId }, atMs) => {
    askedAtMs.set(escalationId, atMs);
  },
  "escalation.answered": ({ counts, askedAtMs }, { escalationId, by, refused }, atMs) => {
    const sinceMs = askedAtMs.get(escalationId);
    if (refused || sinceMs === undefined || !PEOPLE.has(by.kind)) return;
    counts.answerMs.push(Math.max(0, atMs - sinceMs));
  },
  "escalation.closed": ({ counts }, { resolution }) => {
    if (resolution === "expired") counts.expired += 1;
  },
  "coordination.terminal": ({ counts, endsWithParent }, { status, delivery }) => {
    // A plan that ends with its parent has nobody left to tell.
    if (delivery !== undefined && !endsWithParent) countTelling(counts, delivery);
    // Whoever cancels wants no success.
    if (status === "cancelled") return;
    counts.ended += 1;
    if (status === "success") counts.succeeded += 1;
  },
};

const PEOPLE: ReadonlySet<Answerer["kind"]> = new Set(["operator", "person"]);

/** Counts a result that does not pass by itself, once. */
function countHeldOnce({ counts, passing }: CountingState, stepId: StepId): void {
  if (passing.delete(stepId)) counts.held += 1;
}

/** Counts a message that was to be told to somebody, and whether it was delivered. */
function countTelling(counts: CoordinationCounts, delivery: FactPayloads["session.told"]["delivery"]): void {
  counts.tellings += 1;
  if (delivery === "delivered") counts.delivered += 1;
}

/** Adds counts to the counts `sum`, which is changed; lists of durations are joined. */
export function addCounts(sum: CoordinationCounts, counts: CoordinationCounts): void {
  for (const name of Object.keys(counts) as (keyof CoordinationCounts)[]) {
    const value = counts[name];
    const total = sum[name];
    if (Array.isArray(total) && Array.isArray(value)) for (const ms of value) total.push(ms);
    else Object.assign(sum, { [name]: (total as number) + (value as number) });
  }
}
