/** Owns: appends that lose a race in a schedule, with dice of their own, so that the other moves are what they are without them. */
import { deriveSeed, diceOf } from "../crash/plan-dice.ts";
import type { Move, PortFault, Schedule } from "./moves.ts";

/** In half of the schedules in which something fails, some appends are decided twice. */
export function addLostRaces(schedule: Schedule): Schedule {
  const { seed, moves, setup } = schedule;
  const dice = diceOf(deriveSeed(seed, "lost races"));
  if (!moves.some(({ kind }) => kind === "break") || !dice.chance(0.5)) return schedule;
  const raced: Move[] = [...moves];
  const count = dice.int(1, 4);
  for (let index = 0; index < count; index += 1) {
    const atCall = dice.oneOf([1, 2, 3, dice.int(1, 20)]);
    const fault: PortFault = { kind: "loses a race", group: "append", atCall, lastsMs: 0, downMs: 0 };
    const gateway = dice.int(0, setup.gateways - 1);
    raced.splice(dice.int(0, raced.length), 0, { kind: "break", gateway, fault });
  }
  return { ...schedule, moves: raced };
}
