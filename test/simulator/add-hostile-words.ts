/** Owns: hostile words of agents and people in a schedule, with dice of their own, so that the other moves are what they are without them. */
import { deriveSeed, diceOf } from "../crash/plan-dice.ts";
import { HOSTILE_STYLES } from "./hostile-words.ts";
import type { Move, Schedule } from "./moves.ts";

/** In an eighth of all schedules whatever is said has hostile words from some time on, once or in turns. */
export function addHostileWords(schedule: Schedule): Schedule {
  const { seed, moves } = schedule;
  const dice = diceOf(deriveSeed(seed, "strange texts"));
  if (!dice.chance(0.125)) return schedule;
  const spoiled: Move[] = [{ kind: "speak hostile", style: dice.oneOf(HOSTILE_STYLES) }, ...moves];
  for (let count = dice.int(0, 2); count > 0; count -= 1)
    spoiled.splice(dice.int(1, spoiled.length), 0, {
      kind: "speak hostile",
      style: dice.oneOf(HOSTILE_STYLES),
    });
  return { ...schedule, moves: spoiled };
}
