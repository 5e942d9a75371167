/** Owns: which strategy holds for a resource. */
import type { AppliedStrategy } from "../contracts/arbitration.ts";
import type { ArbiterPolicy, ConflictStrategy } from "../contracts/plan.ts";
import { isMatchingPattern } from "./matches-pattern.ts";

/** An operator always has a default. */
export type OperatorPolicy = ArbiterPolicy & { readonly strategy: ConflictStrategy };

export interface Policies {
  readonly operator: OperatorPolicy;
  /** Rules of the plan that the requester is a step of. A model may have written it. */
  readonly plan?: ArbiterPolicy;
}

/**
 * Leaves a resource that is high-risk for the operator or the plan to people. Then the operator's exceptions count before the plan's, and
 * the plan's default before the operator's, but no plan loosens an operator's `manual_review`.
 */
export function chooseStrategy(resource: string, { operator, plan }: Policies): AppliedStrategy {
  const isHighRisk = [...(operator.highRisk ?? []), ...(plan?.highRisk ?? [])].some((pattern) =>
    isMatchingPattern(resource, pattern),
  );
  if (isHighRisk) return { strategy: "manual_review", from: "high_risk" };
  const exception = findOverride(operator, resource);
  if (exception) return { strategy: exception, from: "operator" };
  const planned = plan && (findOverride(plan, resource) ?? plan.strategy);
  return planned === undefined || operator.strategy === "manual_review"
    ? { strategy: operator.strategy, from: "default" }
    : { strategy: planned, from: "plan" };
}

/** The strictest first: people, then what leaves nobody's change out, then what is there before priority. */
const STRICTEST: readonly ConflictStrategy[] = [
  "manual_review",
  "merge_if_safe",
  "owner_wins",
  "priority_wins",
];

/**
 * Chooses the strategy for what several names of one file share: the strictest one that holds for any of the names. The shared name
 * counts where a pattern of the operator or a high-risk one is of it itself.
 */
export function chooseStrategyForNames(
  shared: string,
  names: readonly string[],
  policies: Policies,
): AppliedStrategy {
  const applied = chooseStrategy(shared, policies);
  const isNamed = applied.from === "high_risk" || applied.from === "operator";
  const [first, ...others] = names.map((name) => chooseStrategy(name, policies));
  if (!first) return applied;
  return [...others, ...(isNamed ? [applied] : [])].reduce(pickStricter, first);
}

function pickStricter(one: AppliedStrategy, other: AppliedStrategy): AppliedStrategy {
  return rankStrictness(other) < rankStrictness(one) ? other : one;
}

/** Plugins rule on what is for people, but not on what is high-risk. */
function rankStrictness({ strategy, from }: AppliedStrategy): number {
  return from === "high_risk" ? -1 : STRICTEST.indexOf(strategy);
}

function findOverride({ overrides = [] }: ArbiterPolicy, resource: string): ConflictStrategy | undefined {
  return overrides.find(({ resource: pattern }) => isMatchingPattern(resource, pattern))?.strategy;
}
