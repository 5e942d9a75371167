import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chooseStrategy } from "../../src/agents/coordination/arbitration/strategy-for.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  type GatesConfig,
  gatesSchema,
} from "../../src/agents/coordination/contracts/config/gates-config.ts";
import { parsePlan, type CoordinationPlan } from "../../src/agents/coordination/contracts/plan.ts";
import { parseReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import { checkPlan } from "../../src/agents/coordination/plan/check-plan.ts";
import type { CompiledStep } from "../../src/agents/coordination/plan/step-graph.ts";
import { gateOf } from "../../src/agents/coordination/runtime/held-results/gate-of.ts";
import {
  planUnderPolicy,
  type OperatorRules,
} from "../../src/agents/coordination/replay/plan-under-policy.ts";
import { chooseStrategyUnderPolicy } from "../../src/agents/coordination/replay/under-policy.ts";
import { plan, retries, step, type Fields } from "./planned-world.ts";

const planOf = (steps: readonly Fields[], fields: Fields = {}): CoordinationPlan => {
  const parsed = parsePlan(plan(steps, fields));
  if (parsed.ok) return parsed.value;
  throw new Error(JSON.stringify(parsed.problems));
};

const operators = (given: object = {}): GatesConfig => gatesSchema.parse(given);
const rules = (gates: object = {}): OperatorRules => ({
  gates: operators(gates),
  escalateMs: 3_600_000,
  requireDifferentApprover: false,
});

const stepIdsOf = ({ steps }: CoordinationPlan): Set<StepId> => new Set(steps.map(({ stepId }) => stepId));

const under = (given: CoordinationPlan, policy: object, config: object = {}): CoordinationPlan =>
  planUnderPolicy({ plan: given, anew: stepIdsOf(given) }, parseReplayPolicy(policy), rules(config));

/** As they would be run. */
const stepsOf = (given: CoordinationPlan): readonly CompiledStep[] => {
  const checked = checkPlan(given);
  if (checked.kind === "refused") throw new Error(JSON.stringify(checked.problems));
  return checked.graph.steps;
};

const budgetsOf = (given: CoordinationPlan): Record<string, number> =>
  Object.fromEntries(stepsOf(given).map(({ stepId, retry }) => [stepId, retry.budget]));

describe("retries of a plan under a policy", () => {
  const given = planOf(
    [step("states", retries(3, 5_000)), step("once", { deliveryMode: "best_effort" }), step("silent")],
    {
      defaults: {},
      failurePolicy: { retryBudget: 3, timeoutPolicy: "fail_fast", escalationPolicy: "none" },
    },
  );

  it("are those of every step that may be tried again, where it speaks of every step", () => {
    expect(budgetsOf(under(given, { retry: { budget: 5 } }))).toEqual({ states: 5, once: 0, silent: 5 });
    expect(budgetsOf(under(given, { retry: { budget: 0 } }))).toEqual({ states: 0, once: 0, silent: 0 });
  });

  it("are those of the steps that state none, where it speaks of the plan", () => {
    expect(budgetsOf(under(given, { failurePolicy: { retryBudget: 1 } }))).toEqual({
      states: 3,
      once: 0,
      silent: 1,
    });
  });

  it("wait as long as it says, and else as the step or the plan does", () => {
    const waits = (policy: object, of = given): number[] =>
      stepsOf(under(of, policy)).map(({ retry }) => retry.backoffMs);
    const [own, , otherwise] = stepsOf(given).map(({ retry }) => retry.backoffMs);
    expect(waits({ retry: { backoffMs: 7 } })).toEqual([7, 7, 7]);
    expect(waits({ retry: { budget: 1 } })).toContain(own);
    expect(waits({ retry: { budget: 1 } })).toContain(otherwise);
    const ofPlan = { ...given, defaults: { retry: { budget: 2, backoffMs: 9 } } };
    expect(budgetsOf(under(ofPlan, { retry: { backoffMs: 7 } }))).toEqual({ states: 3, once: 0, silent: 2 });
    expect(waits({ retry: { budget: 1 } }, ofPlan)).toContain(9);
  });
});

describe("a plan under a policy", () => {
  const given = planOf([step("a"), step("b", { agent: "writer" })], {
    conflictPolicy: { strategy: "merge_if_safe", highRisk: ["file:/etc/**"] },
  });

  it("is what it was where the policy speaks of nothing in it", () => {
    expect(planUnderPolicy({ plan: given, anew: stepIdsOf(given) }, {}, rules())).toEqual(given);
  });

  it("fails, asks and rules on conflicts as it says, and else as it did", () => {
    const { failurePolicy, conflictPolicy } = under(given, {
      failurePolicy: { escalationPolicy: "hitl" },
      conflicts: { strategy: "manual_review" },
    });
    expect(failurePolicy).toEqual({ ...given.failurePolicy, escalationPolicy: "hitl" });
    expect(conflictPolicy).toEqual({
      strategy: "manual_review",
      overrides: [],
      highRisk: ["file:/etc/**"],
    });
  });

  it("rules on every resource as a replay under the policy does, beside an operator with the defaults", () => {
    const strategies = fc.constantFrom(
      "owner_wins",
      "priority_wins",
      "merge_if_safe",
      "manual_review" as const,
    );
    const resources = fc.constantFrom("q:a", "q:b", "db:x");
    const parts = {
      strategy: strategies,
      overrides: fc.array(fc.record({ resource: resources, strategy: strategies }), { maxLength: 2 }),
      highRisk: fc.array(resources, { maxLength: 1 }),
    };
    const conflicts = fc.record(parts, { requiredKeys: [] });
    const operator = { strategy: "owner_wins" } as const;
    fc.assert(
      fc.property(conflicts, conflicts, resources, (plans, policys, resource) => {
        const ruled = planOf([step("a")], { conflictPolicy: plans });
        const policy = parseReplayPolicy({ conflicts: policys });
        const applied = chooseStrategy(resource, { operator, plan: ruled.conflictPolicy });
        const forked = planUnderPolicy({ plan: ruled, anew: stepIdsOf(ruled) }, policy, rules());
        expect(chooseStrategy(resource, { operator, plan: forked.conflictPolicy }).strategy).toBe(
          chooseStrategyUnderPolicy(resource, applied, { policy, plan: ruled }).strategy,
        );
      }),
      { numRuns: 2_000 },
    );
  });

  it("is held as strictly as it says, by agent where it says so", () => {
    const { steps } = under(given, {
      gates: {
        confidenceThreshold: 0.8,
        agents: { Writer: { confidenceThreshold: 0.95, requireConfidence: true } },
      },
    });
    expect(steps.map(({ verify }) => verify)).toEqual([
      { confidenceThreshold: 0.8 },
      { confidenceThreshold: 0.95, requireConfidence: true },
    ]);
  });

  it("is held no less than a step itself asks for", () => {
    const strict = planOf([
      step("a", { verify: { confidenceThreshold: 0.99, requireConfidence: true, revisionsMax: 1 } }),
    ]);
    const { steps } = under(strict, {
      gates: { confidenceThreshold: 0.8, revisionsMax: 3, requireConfidence: false },
    });
    expect(steps[0]?.verify).toEqual({ confidenceThreshold: 0.99, requireConfidence: true, revisionsMax: 1 });
  });

  const LINT = { kind: "pattern", pattern: "^ok" } as const;

  it("has the operator's checks by their keys, and others as the policy states them", () => {
    const gates = {
      verifiers: { lint: LINT, own: { ...LINT, pattern: "^mine" } },
      agents: { main: { checks: ["lint", "own"] } },
    };
    const { steps } = under(given, { gates }, { verifiers: { lint: LINT } });
    expect(steps[0]?.verify).toEqual({ checks: { lint: true, own: { kind: "pattern", pattern: "^mine" } } });
    expect(steps[1]?.verify).toBeUndefined();
  });

  it("is held as its gate then says", () => {
    const config = { verifiers: { lint: LINT } };
    const gates = { verifiers: { lint: LINT }, agents: { main: { checks: ["lint"] } }, revisionsMax: 1 };
    const [verify] = under(given, { gates }, config).steps.map((each) => each.verify);
    const gated = {
      agentId: given.steps[0]!.agent,
      runner: "subagent",
      plugins: [],
      verify: verify!,
    } as const;
    expect(gateOf(operators(config), gated)).toMatchObject({ checks: ["lint"], revisionsMax: 1 });
  });

  it("may name what holds anyway", () => {
    const gates = { decisionFloor: 0.6, enabled: true };
    const policy = { gates, escalateMs: 3_600_000, escalations: { requireDifferentApprover: false } };
    expect(under(given, policy, { decisionFloor: 0.6 }).steps).toEqual(given.steps);
    expect(under(given, { gates: { enabled: false } }, { enabled: false })).toEqual(given);
  });

  it("asks nothing of steps that have their results already", () => {
    const policy = parseReplayPolicy({ gates: { confidenceThreshold: 0.9 }, retry: { budget: 7 } });
    const strict = rules({ agents: { writer: { confidenceThreshold: 0.95 } } });
    const anew = new Set(["a" as StepId]);
    const { steps, failurePolicy } = planUnderPolicy({ plan: given, anew }, policy, strict);
    expect(steps.map(({ verify, retry }) => [verify?.confidenceThreshold, retry?.budget])).toEqual([
      [0.9, 7],
      [undefined, 0],
    ]);
    expect(failurePolicy.retryBudget).toBe(7);
    const budget = parseReplayPolicy({ failurePolicy: { retryBudget: 0 } });
    const tried = planOf([step("a"), step("b", retries(4))], { defaults: {} });
    expect(planUnderPolicy({ plan: tried, anew }, budget, rules()).failurePolicy.retryBudget).toBe(0);
  });

  it("is put under checks in time, however many steps and checks there are, and refused where it grows too large", () => {
    const verifiers = Object.fromEntries(
      Array.from({ length: 16 }, (_, index) => [`c${index}`, { kind: "pattern", pattern: "x".repeat(500) }]),
    );
    const gates = { verifiers, agents: { main: { checks: Object.keys(verifiers) } } };
    const large = planOf(Array.from({ length: 10_000 }, (_, index) => step(`s${index}`)));
    const began = performance.now();
    expect(() => under(large, { gates })).toThrow("the plan is larger than a plan may be");
    expect(performance.now() - began).toBeLessThan(1_000);
    const { steps } = under(large, { gates: { confidenceThreshold: 0.9 } });
    expect(steps.at(-1)?.verify).toEqual({ confidenceThreshold: 0.9 });
  });

  it.each<[string, object, object, string]>([
    [
      "a floor for decisions",
      { gates: { decisionFloor: 0.9 } },
      {},
      "gates.decisionFloor: no plan can say that",
    ],
    ["how long people have", { escalateMs: 5_000 }, {}, "escalateMs: no plan can say that"],
    [
      "who may approve",
      { escalations: { requireDifferentApprover: true } },
      {},
      "escalations.requireDifferentApprover: no plan can say that",
    ],
    ["no gates", { gates: { enabled: false } }, {}, "gates.enabled: no plan can say that"],
    [
      "gates where there are none",
      { gates: { confidenceThreshold: 0.9 } },
      { enabled: false },
      "gates: the configuration has them switched off",
    ],
    [
      "a lower threshold",
      { gates: { confidenceThreshold: 0.3 } },
      {},
      "gates.confidenceThreshold: the configuration demands 0.7 of agent main, and a fork asks for no less",
    ],
    [
      "a lower threshold for one agent",
      { gates: { agents: { writer: { confidenceThreshold: 0.8 } } } },
      { agents: { writer: { confidenceThreshold: 0.9 } } },
      "the configuration demands 0.9 of agent writer",
    ],
    [
      "silence of an agent that must state a confidence",
      { gates: { requireConfidence: false } },
      { requireConfidence: true },
      "gates.requireConfidence: the configuration demands a confidence of agent main",
    ],
    [
      "fewer checks",
      { gates: { agents: { main: { checks: [] } } } },
      { verifiers: { lint: LINT }, agents: { main: { checks: ["lint"] } } },
      "gates.agents: the configuration has lint check what agent main comes to",
    ],
    [
      "another check under the operator's key",
      { gates: { verifiers: { lint: { ...LINT, pattern: "." } }, agents: { main: { checks: ["lint"] } } } },
      { verifiers: { lint: LINT } },
      "gates.verifiers.lint: the configuration defines another check under this key",
    ],
    [
      "a check in place of a step's own",
      { gates: { verifiers: { own: { ...LINT, pattern: "." } }, agents: { strict: { checks: ["own"] } } } },
      {},
      "gates.verifiers.own: step c states another check under this key",
    ],
    [
      "a check of nobody",
      { gates: { verifiers: { lint: LINT } } },
      {},
      "gates.verifiers.lint: gates.agents names it for no agent",
    ],
    [
      "another check under the operator's key, of nobody",
      { gates: { verifiers: { lint: { ...LINT, pattern: "." } } } },
      { verifiers: { lint: LINT } },
      "gates.verifiers.lint: the configuration defines another check under this key",
    ],
    [
      "a program",
      {
        gates: {
          verifiers: { run: { kind: "command", command: "/bin/true" } },
          agents: { main: { checks: ["run"] } },
        },
      },
      {},
      "gates.verifiers.run: only the configuration can have a program check results",
    ],
  ])("cannot ask for %s: it is refused, with what to do", (_, policy, config, why) => {
    const strict = step("c", { agent: "strict", verify: { checks: { own: LINT } } });
    const asked = (): unknown =>
      under(planOf([step("a"), step("b", { agent: "writer" }), strict]), policy, config);
    expect(asked).toThrow(why);
    expect(asked).toThrow("change the configuration and fork without it");
  });
});
