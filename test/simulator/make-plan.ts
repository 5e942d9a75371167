/** Owns: the plans of a schedule: those of the sweep of plans, with resources, and ids and owners of their own. */
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { deriveSeed, diceOf } from "../crash/plan-dice.ts";
import { GOOD, mannerOf, type Manner } from "../crash/plan-manner.ts";
import { scheduleOf, type Fields } from "../crash/plan-schedule.ts";
import { makeSmallPlan, planIdOf } from "./make-small-plan.ts";
import type { Focus, Schedule } from "./moves.ts";

export interface PlanWish {
  readonly plan: number;
  readonly owner: SessionKey;
  /** Another plan under the same id. */
  readonly isOther: boolean;
}

/** The same wish of the same schedule is the same plan. */
export function planFor(schedule: Schedule, wish: PlanWish): Fields {
  const { focus, hasWorktrees, sharedSpawns: spawns } = schedule.setup;
  const made = focus ? makeSmallPlan(schedule.seed, focus, wish) : makeLargePlan(schedule, wish);
  const plan = { ...setCriteria(schedule.seed, made), ...(spawns !== undefined && { budget: { spawns } }) };
  return hasWorktrees ? isolateSteps(schedule.seed, plan) : plan;
}

/** Half of the plans say what they are for: that all steps complete, and that one of them says "good". */
function setCriteria(seed: number, plan: Fields): Fields {
  const steps = plan["steps"] as readonly Fields[];
  const dice = diceOf(deriveSeed(seed, `success criteria of ${String(plan["coordinationId"])}`));
  if (dice.chance(0.5)) return plan;
  const stepId = String(steps[dice.int(0, steps.length - 1)]?.["stepId"]);
  return {
    ...plan,
    successCriteria: [{ key: "all" }, { key: stepId, when: `{{steps.${stepId}.outputs.good}}` }],
  };
}

/** Most steps have a worktree, so that their files meet. */
function isolateSteps(seed: number, plan: Fields): Fields {
  const steps = plan["steps"] as readonly Fields[];
  const dice = diceOf(deriveSeed(seed, `worktrees of ${String(plan["coordinationId"])}`));
  return {
    ...plan,
    steps: steps.map((step) => ({ ...step, ...(dice.chance(0.7) && { isolate: "worktree" }) })),
  };
}

/** How often an attempt fails; among checks so often that the turn that revises a result may fail too. */
const FAILURES: Partial<Record<Focus, number>> = { retries: 0.6, checks: 0.3 };

/** How hosts and agents behave: in small schedules they are good hosts of agents that often fail. */
export function chooseManner({ seed, setup }: Schedule, key: string, isDelivery: boolean): Manner {
  if (!setup.focus) return mannerOf(seed, key, isDelivery);
  const dice = diceOf(deriveSeed(seed, `small ${key}`));
  if (isDelivery) return { ...GOOD, endsAfterMs: 0 };
  if (setup.focus === "claims")
    // One that ends early merges its worktree while the others hold what they wrote.
    return { ...GOOD, endsAfterMs: setup.hasWorktrees ? dice.oneOf([5_000, 40_000]) : 40_000 };
  const isFailing = dice.chance(FAILURES[setup.focus] ?? 0.15);
  return {
    ...GOOD,
    endsAfterMs: dice.oneOf([0, 200, 1_000, 7_000, 15_000]),
    ending: isFailing ? "failed" : "completed",
  };
}

function makeLargePlan({ seed }: Schedule, { plan, owner, isOther }: PlanWish): Fields {
  const name = `plan ${plan} ${isOther ? "other" : "first"}`;
  const dice = diceOf(deriveSeed(seed, name));
  const made = scheduleOf(deriveSeed(seed, name)).plan;
  const steps = made["steps"] as readonly Fields[];
  return {
    ...made,
    coordinationId: planIdOf(plan),
    ownerSession: owner,
    ...(isOther && { objective: "another one" }),
    ...(dice.chance(0.08) && { confidence: 0.3 }),
    conflictPolicy: dice.chance(0.3) ? { strategy: dice.oneOf(["owner_wins", "priority_wins"]) } : {},
    steps: steps.map((step) => ({
      ...step,
      ...adoptChecks(step),
      // Nobody states a confidence in these plans, so people are asked.
      ...(dice.chance(0.15) && { verify: { requireConfidence: true } }),
      ...(dice.chance(0.3) && { resources: [dice.oneOf(["file:/repo/a.md", "file:/repo/folder"])] }),
    })),
  };
}

/** The operator of these gateways defines the check "lint", so a plan may only use it. */
function adoptChecks({ verify }: Fields): Fields {
  const { checks, ...rest } = (verify ?? {}) as { readonly checks?: Fields };
  return checks ? { verify: { ...rest, checks: { ...checks, lint: true } } } : {};
}
