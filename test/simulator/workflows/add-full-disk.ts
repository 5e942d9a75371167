/** Owns: a storage that is full for long in a schedule of runs, with dice of their own, so that the other moves are what they are without it. */
import { deriveSeed, diceOf } from "../../crash/plan-dice.ts";
import type { WorkflowMove, WorkflowSchedule } from "./workflow-moves.ts";

const MINUTE_MS = 60_000;

/** In an eighth of all schedules nothing can be written for minutes to an hour, whoever tries and is started again. */
export function addFullDisk(schedule: WorkflowSchedule): WorkflowSchedule {
  const { seed, moves } = schedule;
  const dice = diceOf(deriveSeed(seed, "no more space"));
  if (!dice.chance(0.125)) return schedule;
  const ms = dice.oneOf([0.5, 3, 10, 60]) * MINUTE_MS;
  const filled: WorkflowMove[] = [...moves];
  const from = dice.int(1, moves.length);
  filled.splice(from, 0, { kind: "fill storage", ms });
  for (let count = dice.int(1, 4); count > 0; count -= 1)
    filled.splice(dice.int(from + 1, filled.length), 0, { kind: "wait", ms: dice.int(1, ms / 2) });
  return { ...schedule, moves: filled };
}
