/** Owns: plans whose steps could all be at work at once, in lanes that let one of an agent, with dice of their own. */
import { deriveSeed, diceOf } from "../crash/plan-dice.ts";
import type { Schedule } from "./moves.ts";

/** One in twelve of the small schedules. */
export function addCrowds(schedule: Schedule): Schedule {
  const { seed, setup } = schedule;
  const dice = diceOf(deriveSeed(seed, "crowds of steps"));
  if (!setup.focus || !dice.chance(1 / 12)) return schedule;
  const waitMs = dice.oneOf([100, 2_000, 10_000]);
  return {
    seed,
    setup: { ...setup, focus: "crowds", lanes: { concurrency: 3, queueMax: 4, perAgentMax: 1 } },
    moves: [
      { kind: "submit", gateway: 0, plan: 1, as: "first" },
      { kind: "wait", ms: 10 },
      { kind: "submit", gateway: 0, plan: 2, as: "first" },
      { kind: "wait", ms: waitMs },
    ],
  };
}
