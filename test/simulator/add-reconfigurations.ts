/** Owns: other configurations in a schedule, with dice of their own, so that the other moves are what they are without them. */
import { deriveSeed, diceOf, type Dice } from "../crash/plan-dice.ts";
import type { Configuration, Move, Schedule } from "./moves.ts";

/** A fifth of all schedules has processes that are started again with another configuration. */
export function addReconfigurations(schedule: Schedule): Schedule {
  const { seed, moves, setup } = schedule;
  const dice = diceOf(deriveSeed(seed, "new settings"));
  if (!dice.chance(0.2)) return schedule;
  const changed = [...moves];
  const count = dice.int(1, 3);
  for (let index = 0; index < count; index += 1) {
    const wait: Move = { kind: "wait", ms: dice.oneOf([0, 10, 2_000, 10_000]) };
    changed.splice(dice.int(1, changed.length), 0, makeReconfiguration(dice, setup.gateways), wait);
  }
  return { ...schedule, moves: changed };
}

function makeReconfiguration(dice: Dice, gateways: number): Move {
  return {
    kind: "reconfigure",
    gateway: dice.int(0, gateways - 1),
    downMs: dice.oneOf([0, 0, 10, 5_000, 40_000]),
    by: dice.oneOf(["reload", "reload", "restart", "crash"]),
    changes: makeChanges(dice),
  };
}

function makeChanges(dice: Dice): Partial<Configuration> {
  return {
    ...(dice.chance(0.4) && {
      lanes: {
        concurrency: dice.int(1, 3),
        queueMax: dice.int(1, 4),
        ...(dice.chance(0.3) && { perAgentMax: dice.int(1, 2) }),
      },
    }),
    ...(dice.chance(0.4) && {
      conflicts: {
        strategy: dice.oneOf(["owner_wins", "priority_wins", "merge_if_safe", "manual_review"]),
        onConflict: dice.oneOf(["refuse", "wait"]),
      },
    }),
    ...(dice.chance(0.5) && { requireDifferentApprover: dice.chance(0.5) }),
    ...(dice.chance(0.5) && { isGated: dice.chance(0.5) }),
    ...(dice.chance(0.6) && { gates: makeGates(dice) }),
    ...(dice.chance(0.3) && { noticesAfterMs: dice.oneOf([[], [0], [0, 5_000], [10_000, 0, 30_000]]) }),
    ...(dice.chance(0.5) && { limits: makeLimits(dice) }),
    ...(dice.chance(0.2) && { spawnsMax: dice.int(1, 4) }),
  };
}

function makeGates(dice: Dice): NonNullable<Configuration["gates"]> {
  return {
    confidenceThreshold: dice.oneOf([0, 0.5, 0.7, 0.96]),
    criticThreshold: dice.oneOf([0, 0.7, 0.95]),
    revisionsMax: dice.int(0, 3),
    verifyMs: dice.oneOf([1_000, 20_000, 60_000]),
    hasLint: dice.chance(0.7),
  };
}

function makeLimits(dice: Dice): NonNullable<Configuration["limits"]> {
  return {
    stepTimeoutMs: dice.oneOf([5_000, 60_000, 180_000]),
    escalateMs: dice.oneOf([5_000, 45_000, 120_000]),
    acknowledgeMs: dice.oneOf([1_000, 5_000, 30_000]),
    settleMs: dice.oneOf([0, 3_000, 20_000]),
    parentCharsMax: dice.oneOf([16, 16_000]),
    claimLeaseMs: dice.oneOf([5_000, 60_000, 300_000]),
    reviewMs: dice.oneOf([5_000, 30_000, 90_000]),
    waitMs: dice.oneOf([0, 5_000, 20_000]),
  };
}
