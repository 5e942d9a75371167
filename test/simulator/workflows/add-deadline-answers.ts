/** Owns: answers at the deadline of a question in a schedule of runs, with dice of their own, so that the other moves are what they are without them. */
import { deriveSeed, diceOf } from "../../crash/plan-dice.ts";
import type { WorkflowMove, WorkflowSchedule } from "./workflow-moves.ts";

/** A quarter of all schedules has one to three of them. */
export function addDeadlineAnswers(schedule: WorkflowSchedule): WorkflowSchedule {
  const { seed, moves, setup } = schedule;
  const dice = diceOf(deriveSeed(seed, "answers at a deadline"));
  if (!dice.chance(0.25)) return schedule;
  const answered: WorkflowMove[] = [...moves];
  const count = dice.int(1, 3);
  for (let index = 0; index < count; index += 1)
    answered.splice(dice.int(1, answered.length), 0, {
      kind: "answer at the deadline",
      host: dice.int(0, setup.hosts - 1),
      question: dice.int(0, 3),
      afterMs: dice.oneOf([-1, 0, 1, 500]),
    });
  return { ...schedule, moves: answered };
}
