/** Owns: what agents of plans spawn, with dice of their own, so that the other moves are what they are without them. */
import { deriveSeed, diceOf, type Dice } from "../crash/plan-dice.ts";
import type { Move, Schedule } from "./moves.ts";

/** In a fifth of all schedules that submit a plan, its agents spawn others. */
export function addSpawnsOfPlans(schedule: Schedule): Schedule {
  const { seed, moves } = schedule;
  const dice = diceOf(deriveSeed(seed, "spawns of plans"));
  const submitted = moves.findIndex(({ kind }) => kind === "submit");
  if (submitted < 0 || !dice.chance(0.2)) return schedule;
  const spawning = [...moves];
  const count = dice.int(1, 4);
  for (let index = 1; index <= count; index += 1) {
    const wait: Move = { kind: "wait", ms: dice.oneOf([0, 300, 2_000, 8_000]) };
    spawning.splice(dice.int(submitted + 1, spawning.length), 0, wait, makeSpawn(dice, index));
  }
  return { ...schedule, moves: spawning };
}

/** The numbers of its call and task are those of no other spawn. */
function makeSpawn(dice: Dice, index: number): Move {
  return {
    kind: "spawn",
    gateway: 0,
    call: 1_000 + index,
    task: 1_000 + index,
    trace: 1,
    agentOfPlan: dice.int(0, 9),
    agent: "main",
    fate: "makes a child",
  };
}
