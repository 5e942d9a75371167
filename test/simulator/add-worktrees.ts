/** Owns: worktrees in a schedule, with dice of their own, so that the other moves are what they are without them. */
import { deriveSeed, diceOf, type Dice } from "../crash/plan-dice.ts";
import type { Move, PortFault, Schedule } from "./moves.ts";

/** A fifth of all schedules has steps that work in worktrees, beside others that write what is to be merged. */
export function addWorktrees(schedule: Schedule): Schedule {
  const { seed, moves, setup } = schedule;
  const dice = diceOf(deriveSeed(seed, "git worktrees"));
  if (!dice.chance(0.2)) return schedule;
  const written = [...moves];
  const count = dice.int(2, 8);
  for (let index = 0; index < count; index += 1) {
    const wait: Move = { kind: "wait", ms: dice.oneOf([10, 1_000, 5_000]) };
    written.splice(dice.int(1, written.length), 0, makeWrite(dice), wait);
  }
  return {
    ...schedule,
    setup: { ...setup, hasWorktrees: true },
    moves: addFailingAppends(schedule, written),
  };
}

/** In a third of them the ledger fails for a while, so that what was decided may not reach the disk. */
function addFailingAppends({ seed, setup }: Schedule, moves: readonly Move[]): readonly Move[] {
  const dice = diceOf(deriveSeed(seed, "appends beside worktrees"));
  if (!dice.chance(0.35)) return moves;
  const fault: PortFault = {
    kind: "fails",
    group: "append",
    atCall: dice.int(1, 6),
    lastsMs: dice.oneOf([0, 2_000, 15_000]),
    downMs: 0,
  };
  const gateway = dice.int(0, setup.gateways - 1);
  return moves.toSpliced(dice.int(0, moves.length), 0, { kind: "break", gateway, fault });
}

/** Writes one of the committed files, by whoever is at work. */
function makeWrite(dice: Dice): Move {
  return {
    kind: "write",
    session: dice.int(0, 2),
    files: [dice.oneOf([0, 0, 4, 2])],
    hasRead: dice.chance(0.5),
    review: "approved",
    takesMs: dice.oneOf([0, 0, 3_000]),
  };
}
