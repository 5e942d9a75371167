/** Owns: plans that agents of plans submit, with dice of their own, so that the other moves are what they are without them. */
import { deriveSeed, diceOf, type Dice } from "../crash/plan-dice.ts";
import type { Move, Schedule } from "./moves.ts";

/** In a fifth of all schedules that submit a plan, its agents submit plans, too, under a budget that all of them share. */
export function addPlansInside(schedule: Schedule): Schedule {
  const { seed, moves, setup } = schedule;
  const dice = diceOf(deriveSeed(seed, "plans inside"));
  const submitted = moves.findIndex(({ kind }) => kind === "submit");
  if (submitted < 0 || !dice.chance(0.2)) return schedule;
  const nested = [...moves];
  const count = dice.int(1, 4);
  for (let index = 1; index <= count; index += 1) {
    const wait: Move = { kind: "wait", ms: dice.oneOf([0, 300, 2_000, 8_000]) };
    nested.splice(dice.int(submitted + 1, nested.length), 0, wait, makeNesting(dice, index));
  }
  return { ...schedule, moves: nested, setup: { ...setup, sharedSpawns: dice.int(2, 8) } };
}

function makeNesting(dice: Dice, plan: number): Move {
  return {
    kind: "nest",
    agent: dice.int(0, 9),
    plan,
    steps: dice.int(1, 3),
    ...(dice.chance(0.5) && { spawns: dice.int(1, 3) }),
  };
}
