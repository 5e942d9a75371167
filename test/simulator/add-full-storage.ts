/** Owns: a storage that is full for long in a schedule, with dice of their own, so that the other moves are what they are without it. */
import { deriveSeed, diceOf } from "../crash/plan-dice.ts";
import type { Move, Schedule } from "./moves.ts";

const MINUTE_MS = 60_000;

/** In an eighth of all schedules nothing can be written for minutes to an hour, whoever tries and is started again. */
export function addFullStorage(schedule: Schedule): Schedule {
  const { seed, moves } = schedule;
  const dice = diceOf(deriveSeed(seed, "a full disk"));
  if (!dice.chance(0.125)) return schedule;
  const ms = dice.oneOf([0.5, 3, 10, 60]) * MINUTE_MS;
  const filled: Move[] = [...moves];
  const from = dice.int(1, moves.length);
  // A part of the time passes in between, else most moves would be made while nothing can be written.
  const waits = Array.from({ length: dice.int(1, 4) }, (): Move => ({
    kind: "wait",
    ms: dice.int(1, ms / 2),
  }));
  filled.splice(from, 0, { kind: "fill storage", ms });
  for (const wait of waits) filled.splice(dice.int(from + 1, filled.length), 0, wait);
  return { ...schedule, moves: filled };
}
