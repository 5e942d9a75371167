/** Owns: the plans of small schedules: few steps that reach the gates, the limits and the claims that a schedule is about. */
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { deriveSeed, diceOf, type Dice } from "../crash/plan-dice.ts";
import { LINT } from "../crash/plan-gates.ts";
import { planOf, stepOf, type Fields } from "../crash/plan-schedule.ts";
import type { Focus } from "./moves.ts";

/** How many steps a plan has that is about claims. */
export const STEPS_OF_CLAIMS = 3;

export function planIdOf(plan: number): string {
  return `plan-${plan}`;
}

export interface SmallPlanWish {
  readonly plan: number;
  readonly owner: SessionKey;
  readonly isOther: boolean;
}

/** The same wish of the same seed is the same plan. */
export function makeSmallPlan(seed: number, focus: Focus, { plan, owner, isOther }: SmallPlanWish): Fields {
  const dice = diceOf(deriveSeed(seed, `small plan ${plan} ${isOther}`));
  const count = COUNTS[focus] ?? dice.int(1, focus === "limits" ? 4 : 2);
  const steps = Array.from({ length: count }, (_, index) => makeStep(dice, focus, index + 1));
  return planOf(steps, {
    coordinationId: planIdOf(plan),
    ownerSession: owner,
    ...(isOther && { objective: "another one" }),
    conflictPolicy: {},
    failurePolicy: {
      retryBudget: 2,
      timeoutPolicy: "continue_with_partial",
      escalationPolicy: dice.oneOf(["none", "hitl", "hitl"]),
    },
    ...(focus === "limits" && makeLimits(dice)),
  });
}

const COUNTS: Partial<Record<Focus, number>> = { claims: STEPS_OF_CLAIMS, crowds: 4 };

function makeLimits(dice: Dice): Fields {
  return dice.oneOf([
    { deadlineMs: dice.oneOf([20_000, 30_000]) },
    { budget: { spawns: 1 } },
    { budget: { wallMs: 5_000 } },
  ]);
}

function makeStep(dice: Dice, focus: Focus, number: number): Fields {
  if (focus === "claims") return makeClaimingStep(dice, number);
  if (focus === "crowds") return stepOf(`s${number}`, [], { timeoutMs: 60_000 });
  const before = `s${number - 1}`;
  const isRetried = focus === "retries";
  const isAfter = number > 1 && dice.chance(isRetried ? 0.9 : 0.5);
  const input = { v: `{{steps.${before}.outputs.${dice.oneOf(["n", "missing"])}}}` };
  return stepOf(`s${number}`, isAfter ? [before] : [], {
    timeoutMs: 5_000,
    retry: { budget: dice.int(0, 2), backoffMs: 500 },
    ...(isAfter && isRetried && { input }),
    ...(dice.chance(focus === "checks" ? 0.9 : 0.3) && { verify: makeChecks(dice) }),
  });
}

/** All of them are at work at the same time, and some declare what others write. */
function makeClaimingStep(dice: Dice, number: number): Fields {
  return stepOf(`s${number}`, [], {
    timeoutMs: 60_000,
    priority: dice.oneOf(["normal", "normal", "high", "low"]),
    ...(dice.chance(0.5) && { resources: ["file:/repo/a.md"] }),
  });
}

function makeChecks(dice: Dice): Fields {
  return {
    checks: { lint: true, ...(dice.chance(0.3) && { critic: LINT }) },
    revisionsMax: dice.int(0, 2),
    ...(dice.chance(0.1) && { requireConfidence: true }),
  };
}
