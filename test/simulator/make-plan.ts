/** Owns: the plans of a schedule: those of the sweep of plans, with resources, and ids and owners of their own. */
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { deriveSeed, diceOf } from "../crash/plan-dice.ts";
import { scheduleOf, type Fields } from "../crash/plan-schedule.ts";
import type { Schedule } from "./moves.ts";

export function planIdOf(plan: number): string {
  return `plan-${plan}`;
}

interface PlanWish {
  readonly plan: number;
  readonly owner: SessionKey;
  /** Another plan under the same id. */
  readonly isOther: boolean;
}

/** The same wish of the same schedule is the same plan. */
export function planFor({ seed }: Schedule, { plan, owner, isOther }: PlanWish): Fields {
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
      // Nobody states a confidence in these plans, so people are asked.
      ...(dice.chance(0.15) && { verify: { requireConfidence: true } }),
      ...(dice.chance(0.3) && { resources: [dice.oneOf(["file:/repo/a.md", "file:/repo/folder"])] }),
    })),
  };
}
