import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  chooseStrategy,
  chooseStrategyForNames,
  type OperatorPolicy,
} from "../../src/agents/coordination/arbitration/strategy-for.ts";
import {
  conflictStrategySchema,
  type ArbiterPolicy,
  type ConflictStrategy,
} from "../../src/agents/coordination/contracts/plan.ts";
import { NOTES } from "./claims-scene.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 1_000);

const createPolicy = (
  strategy: ConflictStrategy,
  rest: Omit<ArbiterPolicy, "strategy"> = {},
): OperatorPolicy => ({
  strategy,
  ...rest,
});
const createOverride = (resource: string, strategy: ConflictStrategy): Pick<ArbiterPolicy, "overrides"> => ({
  overrides: [{ resource, strategy }],
});
const createHighRisk = (...highRisk: string[]): Pick<ArbiterPolicy, "highRisk"> => ({ highRisk });

interface Case {
  readonly when: string;
  readonly operator: OperatorPolicy;
  readonly plan?: ArbiterPolicy;
  /** `strategy from`. */
  readonly holds: string;
}

const CASES: readonly Case[] = [
  {
    when: "nobody says more, the operator's default holds",
    operator: createPolicy("priority_wins"),
    holds: "priority_wins default",
  },
  {
    when: "there is a plan, its default comes before the operator's",
    operator: createPolicy("owner_wins"),
    plan: createPolicy("merge_if_safe"),
    holds: "merge_if_safe plan",
  },
  {
    when: "the plan makes an exception, that comes before its default",
    operator: createPolicy("owner_wins"),
    plan: createPolicy("merge_if_safe", createOverride("*.md", "priority_wins")),
    holds: "priority_wins plan",
  },
  {
    when: "the plan makes an exception of something else, its default holds",
    operator: createPolicy("owner_wins"),
    plan: createPolicy("merge_if_safe", createOverride("*.txt", "priority_wins")),
    holds: "merge_if_safe plan",
  },
  {
    when: "the operator makes an exception, that comes before the operator's default",
    operator: createPolicy("owner_wins", createOverride("*.md", "merge_if_safe")),
    holds: "merge_if_safe operator",
  },
  {
    when: "the plan has no strategy of its own, the operator's default holds",
    operator: createPolicy("merge_if_safe"),
    plan: createOverride("*.txt", "manual_review"),
    holds: "merge_if_safe default",
  },
  {
    when: "both make an exception, the operator's comes first",
    operator: createPolicy("owner_wins", createOverride("*.md", "merge_if_safe")),
    plan: createPolicy("manual_review", createOverride("*.md", "priority_wins")),
    holds: "merge_if_safe operator",
  },
  {
    when: "several exceptions fit, the first one counts",
    operator: createPolicy("owner_wins", {
      overrides: [
        { resource: "/repo/**", strategy: "priority_wins" },
        { resource: NOTES, strategy: "manual_review" },
      ],
    }),
    holds: "priority_wins operator",
  },
  {
    when: "the operator's default is people, no default of a plan loosens it",
    operator: createPolicy("manual_review"),
    plan: createPolicy("owner_wins"),
    holds: "manual_review default",
  },
  {
    when: "the operator's default is people, no exception of a plan loosens it",
    operator: createPolicy("manual_review"),
    plan: createPolicy("owner_wins", createOverride(NOTES, "owner_wins")),
    holds: "manual_review default",
  },
  {
    when: "the operator excepts it from people, the exception holds",
    operator: createPolicy("manual_review", createOverride("*.md", "owner_wins")),
    plan: createPolicy("merge_if_safe"),
    holds: "owner_wins operator",
  },
  {
    when: "the operator's exception is people, no plan loosens it",
    operator: createPolicy("owner_wins", createOverride("*.md", "manual_review")),
    plan: createPolicy("owner_wins", createOverride(NOTES, "owner_wins")),
    holds: "manual_review operator",
  },
  {
    when: "it is high-risk for the operator, that comes before every exception",
    operator: createPolicy("owner_wins", {
      ...createOverride(NOTES, "owner_wins"),
      ...createHighRisk("*.md"),
    }),
    plan: createPolicy("owner_wins", createOverride(NOTES, "owner_wins")),
    holds: "manual_review high_risk",
  },
  {
    when: "it is high-risk for the plan, that comes before the operator's exceptions",
    operator: createPolicy("owner_wins", createOverride(NOTES, "owner_wins")),
    plan: createPolicy("owner_wins", createHighRisk("notes.md")),
    holds: "manual_review high_risk",
  },
  {
    when: "something else is high-risk, that changes nothing",
    operator: createPolicy("owner_wins", createHighRisk("*.txt", "queue:*")),
    holds: "owner_wins default",
  },
];

describe("which strategy holds", () => {
  it.each(CASES)("where $when", ({ operator, plan, holds }) => {
    const { strategy, from } = chooseStrategy(NOTES, { operator, ...(plan && { plan }) });
    expect(`${strategy} ${from}`).toBe(holds);
  });
});

const ALIAS = "file:/link/notes.md";

interface NamesCase {
  readonly when: string;
  readonly operator: OperatorPolicy;
  readonly plan?: ArbiterPolicy;
  readonly names?: readonly string[];
  /** `strategy from`. */
  readonly holds: string;
}

const NAMES_CASES: readonly NamesCase[] = [
  {
    when: "no pattern is of the alias, that of the name holds",
    operator: createPolicy("merge_if_safe", createOverride("/repo", "priority_wins")),
    holds: "priority_wins operator",
  },
  {
    when: "a high-risk pattern is of the alias, it is for people",
    operator: createPolicy("owner_wins", {
      ...createOverride("/repo", "manual_review"),
      ...createHighRisk("/link"),
    }),
    holds: "manual_review high_risk",
  },
  {
    when: "the plan has a high-risk pattern of the alias, that comes before the operator's exceptions",
    operator: createPolicy("owner_wins", createOverride("*.md", "priority_wins")),
    plan: createHighRisk("/link"),
    holds: "manual_review high_risk",
  },
  {
    when: "the operator's exception for the alias is stricter, it holds",
    operator: createPolicy("owner_wins", createOverride("/link", "merge_if_safe")),
    holds: "merge_if_safe operator",
  },
  {
    when: "the operator's exception for the alias is looser, it does not hold",
    operator: createPolicy("owner_wins", createOverride("/link", "priority_wins")),
    holds: "owner_wins default",
  },
  {
    when: "the plan's exception for the alias is stricter, it holds",
    operator: createPolicy("priority_wins"),
    plan: createPolicy("priority_wins", createOverride("/link", "owner_wins")),
    holds: "owner_wins plan",
  },
  {
    when: "the operator makes an exception for the name, the plan's for the alias does not hold",
    operator: createPolicy("owner_wins", createOverride("/repo", "priority_wins")),
    plan: createOverride("/link", "manual_review"),
    holds: "priority_wins operator",
  },
  {
    when: "the operator's default is people, the plan's exception for the alias does not hold",
    operator: createPolicy("manual_review"),
    plan: createOverride("/link", "priority_wins"),
    holds: "manual_review default",
  },
  {
    when: "one of several names has a looser exception, the strictest one holds",
    operator: createPolicy("owner_wins", createOverride("/repo", "priority_wins")),
    names: [NOTES, "file:/other/notes.md"],
    holds: "owner_wins default",
  },
];

describe("which strategy holds for a resource that has an alias", () => {
  it.each(NAMES_CASES)("where $when", ({ operator, plan, names = [NOTES], holds }) => {
    for (const ordered of [names, names.toReversed()]) {
      const ruled = { names: ordered, aliases: [ALIAS] };
      const { strategy, from } = chooseStrategyForNames(ruled, { operator, ...(plan && { plan }) });
      expect(`${strategy} ${from}`).toBe(holds);
    }
  });
});

const patterns = fc.constantFrom("*.md", "/repo/**", NOTES, "*.txt", "queue:*");
const strategies = fc.constantFrom(...conflictStrategySchema.options);
const policies: fc.Arbitrary<OperatorPolicy> = fc.record(
  {
    strategy: strategies,
    overrides: fc.array(fc.record({ resource: patterns, strategy: strategies }), { maxLength: 3 }),
    highRisk: fc.array(patterns, { maxLength: 2 }),
  },
  { requiredKeys: ["strategy"] },
);

describe("for every two policies", () => {
  it("what is for people without a plan is for people with every plan", () => {
    fc.assert(
      fc.property(policies, policies, (operator, plan) => {
        const alone = chooseStrategy(NOTES, { operator });
        const together = chooseStrategy(NOTES, { operator, plan });
        if (alone.strategy === "manual_review") expect(together.strategy).toBe("manual_review");
      }),
      { numRuns: RUNS },
    );
  });

  it("where an exception of the operator fits, a plan can only ask for people", () => {
    fc.assert(
      fc.property(policies, policies, (operator, plan) => {
        const alone = chooseStrategy(NOTES, { operator });
        const together = chooseStrategy(NOTES, { operator, plan });
        if (alone.from !== "operator") return;
        expect([alone, { strategy: "manual_review", from: "high_risk" }]).toContainEqual(together);
      }),
      { numRuns: RUNS },
    );
  });

  it("high-risk is for people, whoever says so", () => {
    fc.assert(
      fc.property(policies, policies, fc.boolean(), (operator, plan, isPlans) => {
        const [first, second] = isPlans ? [operator, plan] : [plan, operator];
        const risk = { ...second, highRisk: ["/repo/*"] };
        const input = isPlans ? { operator: first, plan: risk } : { operator: risk, plan: first };
        expect(chooseStrategy(NOTES, input)).toEqual({ strategy: "manual_review", from: "high_risk" });
      }),
      { numRuns: RUNS },
    );
  });
});
