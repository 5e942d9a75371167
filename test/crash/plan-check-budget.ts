/** Owns: what must be true of a plan's number of spawns, by the log alone: of its own attempts, and of the plans of its agents. */
import { DELIVERY_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Evidence } from "./plan-check.ts";

interface Books {
  readonly max: number;
  used: number;
  /** The spawns that plans of a step's agent may use, by the step. */
  readonly loans: Map<string, number>;
}

/** Begun, used and lent together are never more than the budget, and people are asked no sooner than it is used up. */
export function checkBudget({ facts, created }: Evidence): string[] {
  const max = created.plan?.budget?.spawns;
  if (max === undefined) return [];
  const books: Books = { max, used: 0, loans: new Map() };
  return facts.flatMap((fact) => seeFact(books, fact));
}

function seeFact(books: Books, fact: FactEvent): string[] {
  if (isAllowance(fact)) books.used = 0;
  switch (fact.type) {
    case "coordination.escalated":
      return isBudgetQuestion(fact) && books.used < books.max
        ? [`people were asked after ${books.used} of ${books.max} spawns`]
        : [];
    case "step.dispatched":
      if (fact.payload.stepId === DELIVERY_STEP_ID) return [];
      books.used += 1;
      return checkSum(books, `${fact.payload.stepId} began`);
    case "budget.lent":
      books.loans.set(fact.payload.stepId, fact.payload.budget.spawns ?? 0);
      return checkSum(books, `${fact.payload.to} was lent to`);
    case "result.held":
    case "step.completed":
    case "step.failed":
    case "step.timed_out":
      return endAttempt(books, fact.payload);
    default:
      return [];
  }
}

function checkSum({ max, used, loans }: Books, event: string): string[] {
  const lent = [...loans.values()].reduce((sum, spawns) => sum + spawns, 0);
  return used + lent > max ? [`${event} over the budget of ${max}`] : [];
}

interface Ended {
  readonly stepId: string;
  readonly usage?: { readonly spawns?: number | undefined } | undefined;
}

/** Nobody lets the plans inside go on, so they use no more than they were lent. */
function endAttempt(books: Books, { stepId, usage }: Ended): string[] {
  const spawns = usage?.spawns ?? 0;
  const lent = books.loans.get(stepId) ?? 0;
  books.loans.delete(stepId);
  books.used += spawns;
  return spawns > lent ? [`plans of ${stepId} used ${spawns} spawns, and ${lent} were lent`] : [];
}

function isAllowance({ type, payload }: FactEvent): boolean {
  return type === "escalation.closed" && payload.resolution === "continued";
}

function isBudgetQuestion({ payload }: FactEvent & { type: "coordination.escalated" }): boolean {
  return payload.cause === "budget" && !payload.stepId;
}
