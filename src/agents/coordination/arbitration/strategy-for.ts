/** Owns: which strategy holds for a resource. */
import type { AppliedStrategy } from "../contracts/arbitration.ts";
import type { ArbiterPolicy, ConflictStrategy } from "../contracts/plan.ts";
import { isMatchingPattern } from "./matches-pattern.ts";

/** An operator always has a default. */
export type OperatorPolicy = ArbiterPolicy & { readonly strategy: ConflictStrategy };

/** The policies of the operator and of the plan, which name a strategy for a resource. */
export interface ConflictPolicies {
  readonly operator: OperatorPolicy;
  /** Rules of the plan that the requester is a step of. A model may have written it. */
  readonly plan?: ArbiterPolicy;
}

/**
 * Returns the arbitration strategy for one name of a resource and who set it: an exception by pattern, else a default.
 * Manual review comes first where operator or plan say that it is high-risk. Then the operator's exceptions count
 * before the plan's, and the plan's default before the operator's, but no plan loosens an operator's `manual_review`.
 */
export function chooseStrategy(resource: string, policies: ConflictPolicies): AppliedStrategy {
  const { operator, plan } = policies;
  const chosen = chooseByPattern(resource, policies);
  if (chosen) return chosen;
  return plan?.strategy === undefined || operator.strategy === "manual_review"
    ? { strategy: operator.strategy, from: "default" }
    : { strategy: plan.strategy, from: "plan" };
}

/** Chooses by the patterns of the policies; `undefined` where none decides about the resource. */
function chooseByPattern(
  resource: string,
  { operator, plan }: ConflictPolicies,
): AppliedStrategy | undefined {
  const isHighRisk = [...(operator.highRisk ?? []), ...(plan?.highRisk ?? [])].some((pattern) =>
    isMatchingPattern(resource, pattern),
  );
  if (isHighRisk) return { strategy: "manual_review", from: "high_risk" };
  const exception = findOverride(operator, resource);
  if (exception) return { strategy: exception, from: "operator" };
  const planned = plan && findOverride(plan, resource);
  return planned === undefined || operator.strategy === "manual_review"
    ? undefined
    : { strategy: planned, from: "plan" };
}

/** The strictest first: people, then what leaves nobody's change out, then what is there before priority. */
const STRICTEST: readonly ConflictStrategy[] = [
  "manual_review",
  "merge_if_safe",
  "owner_wins",
  "priority_wins",
];

/** The names of a resource that its strategy depends on. */
export interface RuledNames {
  /** The names that a call changes it by, at least one. */
  readonly names: readonly string[];
  /** Names that count only where a pattern is of them: by way of links, and the one that all hard links of a file share. */
  readonly aliases: readonly string[];
}

/**
 * Returns the strictest arbitration strategy that holds for any name or alias of a resource, and who set it. The
 * plan's exception for an alias does not count where the operator makes one for a name.
 */
export function chooseStrategyForNames(
  { names, aliases }: RuledNames,
  policies: ConflictPolicies,
): AppliedStrategy {
  const applied = names.map((name) => chooseStrategy(name, policies));
  const isOperators = applied.some(({ from }) => from === "operator");
  const appliedToAliases = aliases
    .flatMap((alias) => chooseByPattern(alias, policies) ?? [])
    .filter(({ from }) => from !== "plan" || !isOperators);
  return [...applied, ...appliedToAliases].reduce(pickStricter);
}

function pickStricter(one: AppliedStrategy, other: AppliedStrategy): AppliedStrategy {
  return rankAppliedStrategy(other) < rankAppliedStrategy(one) ? other : one;
}

/**
 * Ranks how strict a strategy is, the strictest lowest. High risk is before manual review, on which plugins may rule.
 */
function rankAppliedStrategy({ strategy, from }: AppliedStrategy): number {
  return from === "high_risk" ? -1 : STRICTEST.indexOf(strategy);
}

function findOverride({ overrides = [] }: ArbiterPolicy, resource: string): ConflictStrategy | undefined {
  return overrides.find(({ resource: pattern }) => isMatchingPattern(resource, pattern))?.strategy;
}
