/** Owns: forks of plans in a schedule, with dice of their own, so that the other moves are what they are without them. */
import { deriveSeed, diceOf, type Dice } from "../crash/plan-dice.ts";
import type { Move, Schedule } from "./moves.ts";

/** A quarter of all schedules that submit a plan also fork it, once or more often. */
export function addForks(schedule: Schedule): Schedule {
  const { seed, moves, setup } = schedule;
  const dice = diceOf(deriveSeed(seed, "forks of plans"));
  const submitted = moves.findIndex(({ kind }) => kind === "submit");
  if (submitted < 0 || !dice.chance(0.25)) return schedule;
  const forked = [...moves];
  const count = dice.int(1, 4);
  for (let index = 0; index < count; index += 1) {
    const fork = makeFork(dice, setup.gateways);
    // A small schedule would be over at once.
    const wait: Move = { kind: "wait", ms: dice.oneOf([0, 300, 5_000, 30_000]) };
    forked.splice(dice.int(submitted + 1, forked.length), 0, wait, fork);
  }
  return { ...schedule, moves: forked };
}

function makeFork(dice: Dice, gateways: number): Move {
  return {
    kind: "fork",
    gateway: dice.int(0, gateways - 1),
    run: dice.int(0, 5),
    fork: dice.int(1, 3),
    // At the beginning a fork of a fork has results that are not in its log yet.
    ...(dice.chance(0.7) && {
      permille: dice.oneOf([dice.int(0, 1_000), dice.int(0, 1_000), dice.int(0, 150)]),
    }),
    isPreview: dice.chance(0.15),
  };
}
