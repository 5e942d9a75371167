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

function findOverride({ overrides = [] }: ArbiterPolicy, resource: string): ConflictStrategy | undefined {
  return overrides.find(({ resource: pattern }) => isMatchingPattern(resource, pattern))?.strategy;
}
