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
import { buildGate } from "../../src/agents/coordination/runtime/held-results/gate-of.ts";
import {
  rewritePlanUnderPolicy,
  type OperatorRules,
} from "../../src/agents/coordination/replay/plan-under-policy.ts";
import { chooseStrategyUnderPolicy } from "../../src/agents/coordination/replay/strategy-under-policy.ts";
import { plan, createRetries, step, type Fields } from "./planned-world.ts";

const planOf = (steps: readonly Fields[], fields: Fields = {}): CoordinationPlan => {
  const parsed = parsePlan(plan(steps, fields));
  if (parsed.ok) return parsed.value;
  throw new Error(JSON.stringify(parsed.problems));
};

const parseGates = (settings: object = {}): GatesConfig => gatesSchema.parse(settings);
const createRules = (gates: object = {}): OperatorRules => ({
  gates: parseGates(gates),
  escalateMs: 3_600_000,
  requireDifferentApprover: false,
});

const stepIdsOf = ({ steps }: CoordinationPlan): Set<StepId> => new Set(steps.map(({ stepId }) => stepId));

const applyPolicy = (fullPlan: CoordinationPlan, policy: object, config: object = {}): CoordinationPlan =>
  rewritePlanUnderPolicy(
    { plan: fullPlan, anew: stepIdsOf(fullPlan) },
    parseReplayPolicy(policy),
    createRules(config),
  );

/** As they would be run. */
const stepsOf = (fullPlan: CoordinationPlan): readonly CompiledStep[] => {
  const checked = checkPlan(fullPlan);
  if (checked.kind === "refused") throw new Error(JSON.stringify(checked.problems));
  return checked.graph.steps;
};

const budgetsOf = (fullPlan: CoordinationPlan): Record<string, number> =>
  Object.fromEntries(stepsOf(fullPlan).map(({ stepId, retry }) => [stepId, retry.budget]));

describe("retries of a plan under a policy", () => {
  const fullPlan = planOf(
    [step("states", createRetries(3, 5_000)), step("once", { deliveryMode: "best_effort" }), step("silent")],
    {
      defaults: {},
      failurePolicy: { retryBudget: 3, timeoutPolicy: "fail_fast", escalationPolicy: "none" },
    },
  );

  it("are those of every step that may be tried again, where it speaks of every step", () => {
    expect(budgetsOf(applyPolicy(fullPlan, { retry: { budget: 5 } }))).toEqual({
      states: 5,
      once: 0,
      silent: 5,
    });
    expect(budgetsOf(applyPolicy(fullPlan, { retry: { budget: 0 } }))).toEqual({
      states: 0,
      once: 0,
      silent: 0,
    });
  });

  it("are those of the steps that state none, where it speaks of the plan", () => {
    expect(budgetsOf(applyPolicy(fullPlan, { failurePolicy: { retryBudget: 1 } }))).toEqual({
      states: 3,
      once: 0,
      silent: 1,
    });
  });

  it("wait as long as it says, and else as the step or the plan does", () => {
    const listWaits = (policy: object, of = fullPlan): number[] =>
      stepsOf(applyPolicy(of, policy)).map(({ retry }) => retry.backoffMs);
    const [statedConfidence, , otherwise] = stepsOf(fullPlan).map(({ retry }) => retry.backoffMs);
    expect(listWaits({ retry: { backoffMs: 7 } })).toEqual([7, 7, 7]);
    expect(listWaits({ retry: { budget: 1 } })).toContain(statedConfidence);
    expect(listWaits({ retry: { budget: 1 } })).toContain(otherwise);
    const ofPlan = { ...fullPlan, defaults: { retry: { budget: 2, backoffMs: 9 } } };
    expect(budgetsOf(applyPolicy(ofPlan, { retry: { backoffMs: 7 } }))).toEqual({
      states: 3,
      once: 0,
      silent: 2,
    });
    expect(listWaits({ retry: { budget: 1 } }, ofPlan)).toContain(9);
  });
});

describe("a plan under a policy", () => {
  const fullPlan = planOf([step("a"), step("b", { agent: "writer" })], {
    conflictPolicy: { strategy: "merge_if_safe", highRisk: ["file:/etc/**"] },
  });

  it("is what it was where the policy speaks of nothing in it", () => {
    expect(rewritePlanUnderPolicy({ plan: fullPlan, anew: stepIdsOf(fullPlan) }, {}, createRules())).toEqual(
      fullPlan,
    );
  });

  it("fails, asks and rules on conflicts as it says, and else as it did", () => {
    const { failurePolicy, conflictPolicy } = applyPolicy(fullPlan, {
      failurePolicy: { escalationPolicy: "hitl" },
      conflicts: { strategy: "manual_review" },
    });
    expect(failurePolicy).toEqual({ ...fullPlan.failurePolicy, escalationPolicy: "hitl" });
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
        const forked = rewritePlanUnderPolicy({ plan: ruled, anew: stepIdsOf(ruled) }, policy, createRules());
        expect(chooseStrategy(resource, { operator, plan: forked.conflictPolicy }).strategy).toBe(
          chooseStrategyUnderPolicy(resource, applied, { policy, plan: ruled }).strategy,
        );
      }),
      { numRuns: 2_000 },
    );
  });

  it("is held as strictly as it says, by agent where it says so", () => {
    const { steps } = applyPolicy(fullPlan, {
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
    const { steps } = applyPolicy(strict, {
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
    const { steps } = applyPolicy(fullPlan, { gates }, { verifiers: { lint: LINT } });
    expect(steps[0]?.verify).toEqual({ checks: { lint: true, own: { kind: "pattern", pattern: "^mine" } } });
    expect(steps[1]?.verify).toBeUndefined();
  });

  it("is held as its gate then says", () => {
    const config = { verifiers: { lint: LINT } };
    const gates = { verifiers: { lint: LINT }, agents: { main: { checks: ["lint"] } }, revisionsMax: 1 };
    const [verify] = applyPolicy(fullPlan, { gates }, config).steps.map((each) => each.verify);
    const gated = {
      agentId: fullPlan.steps[0]!.agent,
      runner: "subagent",
      plugins: [],
      verify: verify!,
    } as const;
    expect(buildGate(parseGates(config), gated)).toMatchObject({ checks: ["lint"], revisionsMax: 1 });
  });

  it("may name what holds anyway", () => {
    const gates = { decisionFloor: 0.6, enabled: true };
    const policy = { gates, escalateMs: 3_600_000, escalations: { requireDifferentApprover: false } };
    expect(applyPolicy(fullPlan, policy, { decisionFloor: 0.6 }).steps).toEqual(fullPlan.steps);
    expect(applyPolicy(fullPlan, { gates: { enabled: false } }, { enabled: false })).toEqual(fullPlan);
  });

  it("asks nothing of steps that have their results already", () => {
    const policy = parseReplayPolicy({ gates: { confidenceThreshold: 0.9 }, retry: { budget: 7 } });
    const strict = createRules({ agents: { writer: { confidenceThreshold: 0.95 } } });
    const anew = new Set(["a" as StepId]);
    const { steps, failurePolicy } = rewritePlanUnderPolicy({ plan: fullPlan, anew }, policy, strict);
    expect(steps.map(({ verify, retry }) => [verify?.confidenceThreshold, retry?.budget])).toEqual([
      [0.9, 7],
      [undefined, 0],
    ]);
    expect(failurePolicy.retryBudget).toBe(7);
    const budget = parseReplayPolicy({ failurePolicy: { retryBudget: 0 } });
    const tried = planOf([step("a"), step("b", createRetries(4))], { defaults: {} });
    expect(
      rewritePlanUnderPolicy({ plan: tried, anew }, budget, createRules()).failurePolicy.retryBudget,
    ).toBe(0);
  });

  it("is put under checks in time, however many steps and checks there are, and refused where it grows too large", () => {
    const verifiers = Object.fromEntries(
      Array.from({ length: 16 }, (_, index) => [`c${index}`, { kind: "pattern", pattern: "x".repeat(500) }]),
    );
    const gates = { verifiers, agents: { main: { checks: Object.keys(verifiers) } } };
    const large = planOf(Array.from({ length: 10_000 }, (_, index) => step(`s${index}`)));
    const began = performance.now();
    expect(() => applyPolicy(large, { gates })).toThrow("the plan is larger than a plan may be");
    expect(performance.now() - began).toBeLessThan(1_000);
    const { steps } = applyPolicy(large, { gates: { confidenceThreshold: 0.9 } });
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
    const applyAsked = (): unknown =>
      applyPolicy(planOf([step("a"), step("b", { agent: "writer" }), strict]), policy, config);
    expect(applyAsked).toThrow(why);
    expect(applyAsked).toThrow("change the configuration and fork without it");
  });

  it("cannot ask for a budget, which is the plan's own: it is refused, with what to do", () => {
    const applyBudget = (): unknown => applyPolicy(planOf([step("a")]), { budget: { spawns: 20 } });
    expect(applyBudget).toThrow(
      "policy: budget: it bounds coordinations that spawns open, and a plan states its own; fork without it",
    );
  });
});
