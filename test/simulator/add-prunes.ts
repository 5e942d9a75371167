/** Owns: prunes of the ledger in a schedule, with dice of their own, so that the other moves are what they are without them. */
import { deriveSeed, diceOf, type Dice } from "../crash/plan-dice.ts";
import type { Move, Schedule } from "./moves.ts";

/** As long as runs are kept at least. */
const DAY_MS = 86_400_000;

/** A fifth of all schedules has a night in the middle, after which old runs are removed while others are at work. */
export function addPrunes(schedule: Schedule): Schedule {
  const { seed, moves, setup } = schedule;
  const dice = diceOf(deriveSeed(seed, "old runs go"));
  if (!dice.chance(0.2)) return schedule;
  const pruned = [...moves];
  const night = dice.int(Math.ceil(moves.length / 2), moves.length);
  const afterwards = makeLaterMoves(dice, moves.slice(0, night));
  const prunes = Array.from({ length: dice.int(1, 3) }, () => makePrune(dice, setup.gateways));
  pruned.splice(
    night,
    0,
    { kind: "wait", ms: dice.oneOf([10_000, 90_000, 300_000]) },
    { kind: "jump", ms: DAY_MS + dice.oneOf([0, 60_000, 3_600_000]) },
    { kind: "wait", ms: dice.oneOf([10, 5_000, 60_000]) },
  );
  for (const move of [...prunes, ...afterwards])
    pruned.splice(
      dice.int(night + 3, pruned.length),
      0,
      { kind: "wait", ms: dice.oneOf([0, 10, 500]) },
      move,
    );
  return { ...schedule, moves: pruned };
}

function makePrune(dice: Dice, gateways: number): Move {
  return {
    kind: "prune",
    gateway: dice.int(0, gateways - 1),
    callMs: dice.oneOf([0, 0, 100, 2_000]),
    isDryRun: dice.chance(0.1),
  };
}

/** Moves of the day before again, which are about runs that may be gone, and forks and plans inside of what may go. */
function makeLaterMoves(dice: Dice, earlier: readonly Move[]): Move[] {
  const again = earlier.filter(({ kind }) => AGAIN.has(kind) && dice.chance(0.5));
  const fork: Move = {
    kind: "fork",
    gateway: 0,
    run: dice.int(0, 5),
    fork: dice.int(1, 3),
    ...(dice.chance(0.5) && { permille: dice.int(0, 1_000) }),
    isPreview: false,
  };
  const submission: Move = { kind: "submit", gateway: 0, plan: dice.int(1, 4), as: "first" };
  const forks = dice.chance(0.5) ? [fork] : [];
  return [...again, ...forks, ...(dice.chance(0.7) ? [submission] : [])];
}

const AGAIN: ReadonlySet<Move["kind"]> = new Set([
  ...(["submit", "spawn", "write", "fork", "retry", "cancel"] as const),
  ...(["answer", "late report", "ask", "speak", "end"] as const),
]);
