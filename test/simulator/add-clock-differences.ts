/** Owns: clocks of gateways that differ in a schedule, with dice of their own, so that the other moves are what they are without them. */
import { deriveSeed, diceOf, type Dice } from "../crash/plan-dice.ts";
import type { Move, Schedule } from "./moves.ts";

const SECOND_MS = 1_000;

/** In half of the schedules of several gateways these are on machines whose clocks differ by seconds to minutes. */
export function addClockDifferences(schedule: Schedule): Schedule {
  const { seed, moves, setup } = schedule;
  const dice = diceOf(deriveSeed(seed, "skewed gateways"));
  if (setup.gateways < 2 || !dice.chance(0.5)) return schedule;
  const first = Array.from({ length: dice.int(1, setup.gateways) }, () => makeSetting(dice, setup.gateways));
  const set = [...first, ...moves];
  for (let index = dice.int(0, 2); index > 0; index -= 1)
    set.splice(dice.int(first.length, set.length), 0, makeSetting(dice, setup.gateways));
  return { ...schedule, moves: set };
}

function makeSetting(dice: Dice, gateways: number): Move {
  const offsetMs = SECOND_MS * dice.oneOf([1, 3, 20, 45, 120]);
  return {
    kind: "set clock",
    gateway: dice.int(0, gateways - 1),
    offsetMs: dice.chance(0.5) ? offsetMs : -offsetMs,
  };
}
