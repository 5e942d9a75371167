/** Owns: clocks of hosts that differ in a schedule of runs, with dice of their own, so that the other moves are what they are without them. */
import { deriveSeed, diceOf, type Dice } from "../../crash/plan-dice.ts";
import type { WorkflowMove, WorkflowSchedule } from "./workflow-moves.ts";

const SECOND_MS = 1_000;

/** In half of the schedules of several hosts these are on machines whose clocks differ by seconds to minutes. */
export function addHostClocks(schedule: WorkflowSchedule): WorkflowSchedule {
  const { seed, moves, setup } = schedule;
  const dice = diceOf(deriveSeed(seed, "hours that disagree"));
  if (setup.hosts < 2 || !dice.chance(0.5)) return schedule;
  const first = Array.from({ length: dice.int(1, setup.hosts) }, () => makeSetting(dice, setup.hosts));
  const set = [...first, ...moves];
  for (let index = dice.int(0, 2); index > 0; index -= 1)
    set.splice(dice.int(first.length, set.length), 0, makeSetting(dice, setup.hosts));
  return { ...schedule, moves: set };
}

function makeSetting(dice: Dice, hosts: number): WorkflowMove {
  const offsetMs = SECOND_MS * dice.oneOf([1, 3, 20, 45, 120]);
  return {
    kind: "set clock",
    host: dice.int(0, hosts - 1),
    offsetMs: dice.chance(0.5) ? offsetMs : -offsetMs,
  };
}
