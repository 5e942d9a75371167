/** Owns: the schedule of a seed: everything that will be done to the world, and in which order. */
import { deriveSeed, diceOf, type Dice } from "../crash/plan-dice.ts";
import { addClockDifferences } from "./add-clock-differences.ts";
import { addCrowds } from "./add-crowds.ts";
import { addFullStorage } from "./add-full-storage.ts";
import { addForks } from "./add-forks.ts";
import { addHostileWords } from "./add-hostile-words.ts";
import { addPlansInside } from "./add-plans-inside.ts";
import { addSpawnsOfPlans } from "./add-spawns-of-plans.ts";
import { addPrunes } from "./add-prunes.ts";
import { addReconfigurations } from "./add-reconfigurations.ts";
import { addLostRaces } from "./add-lost-races.ts";
import { addWorktrees } from "./add-worktrees.ts";
import { makeSmallSchedule } from "./make-small-schedule.ts";
import { GROUPS, type Move, type PortFault, type Schedule, type Setup } from "./moves.ts";

/** Each has dice of its own; what comes later sees what was added before. */
const ADDITIONS: readonly ((schedule: Schedule) => Schedule)[] = [
  ...[addCrowds, addForks, addWorktrees, addPlansInside, addSpawnsOfPlans, addLostRaces],
  ...[addReconfigurations, addPrunes, addClockDifferences, addFullStorage],
  addHostileWords,
];

/** The same seed gives the same schedule for ever. One in three is small, and about one subject. */
export function makeSchedule(seed: number): Schedule {
  const schedule = seed % 3 === 0 ? makeSmallSchedule(seed) : makeLargeSchedule(seed);
  return ADDITIONS.reduce((made, add) => add(made), schedule);
}

function makeLargeSchedule(seed: number): Schedule {
  const dice = diceOf(deriveSeed(seed, "schedule"));
  const setup = makeSetup(dice);
  const subjects = dice.oneOf(SUBJECTS);
  /** A third of all schedules has nothing that fails: what is promised there is promised strictly. */
  const roughness = setup.gateways > 1 ? dice.oneOf([0, 0.15, 0.3]) : dice.oneOf([0, 0.08, 0.2]);
  const count = dice.int(8, 28);
  const moves: Move[] = [];
  for (let index = 0; index < count; index += 1) {
    const isRough = dice.chance(roughness);
    moves.push(isRough ? makeTrouble(dice, setup) : makeMove(dice, { index, setup, subjects }));
    if (dice.chance(0.55)) moves.push({ kind: "wait", ms: makeWait(dice) });
  }
  return { seed, setup, moves };
}

function makeSetup(dice: Dice): Setup {
  return {
    gateways: dice.oneOf([1, 1, 1, 1, 1, 1, 2, 2, 3]),
    isOneMachine: dice.chance(0.5),
    lanes: {
      concurrency: dice.int(1, 3),
      queueMax: dice.int(1, 4),
      ...(dice.chance(0.2) && { perAgentMax: dice.int(1, 2) }),
    },
    conflicts: {
      strategy: dice.oneOf(["owner_wins", "priority_wins", "merge_if_safe", "manual_review"]),
      onConflict: dice.oneOf(["refuse", "refuse", "wait"]),
    },
    requireDifferentApprover: dice.chance(0.5),
    isGated: dice.chance(0.75),
  };
}

function makeWait(dice: Dice): number {
  return dice.oneOf([10, 300, 2_000, dice.int(0, 10_000), dice.int(0, 40_000), 70_000]);
}

type Subject = "plan" | "spawn" | "write" | "people";

/** The subjects that a schedule is mostly about. */
const SUBJECTS: readonly [readonly Subject[], ...(readonly Subject[])[]] = [
  ["plan", "people"],
  ["plan", "plan", "write", "people"],
  ["spawn", "people"],
  ["spawn", "spawn", "write", "write"],
  ["spawn", "plan", "write", "people"],
  ["plan", "write", "write", "write"],
  ["spawn", "write", "write", "write"],
];

interface MoveWish {
  readonly index: number;
  readonly setup: Setup;
  readonly subjects: readonly Subject[];
}

const oneOf = <T>(dice: Dice, items: readonly T[]): T => items[dice.int(0, items.length - 1)] as T;

function makeMove(dice: Dice, wish: MoveWish): Move {
  const isFirst = wish.index === 0;
  switch (oneOf(dice, wish.subjects)) {
    case "plan":
      return isFirst ? makeSubmission(dice, wish) : makePlanMove(dice, wish);
    case "spawn":
      return isFirst ? makeSpawn(dice, wish) : makeSpawnMove(dice, wish);
    case "write":
      return makeWrite(dice);
    case "people":
      return dice.chance(0.3) ? makeLastMoment(dice) : makeAnswer(dice, wish);
  }
}

function makeSubmission(dice: Dice, { setup }: MoveWish): Move {
  return {
    kind: "submit",
    gateway: dice.int(0, setup.gateways - 1),
    plan: dice.int(1, 3),
    as: dice.oneOf(["first", "first", "first", "again", "other"]),
  };
}

function makePlanMove(dice: Dice, wish: MoveWish): Move {
  const { setup } = wish;
  const gateway = dice.int(0, setup.gateways - 1);
  const kind = dice.oneOf(["submit", "submit", "cancel", "retry", "retry", "late report"]);
  if (kind === "submit") return makeSubmission(dice, wish);
  if (kind === "late report") return { kind, gateway, attempt: dice.int(0, 20) };
  return {
    kind,
    gateway,
    run: dice.int(0, 5),
    ...(dice.chance(kind === "retry" ? 0.8 : 0.5) && { step: dice.int(0, 8) }),
  };
}

function makeSpawn(dice: Dice, { index, setup }: MoveWish): Move {
  return {
    kind: "spawn",
    gateway: dice.int(0, setup.gateways - 1),
    call: index,
    task: dice.chance(0.3) ? 0 : index,
    trace: dice.int(1, 2),
    ...(dice.chance(0.3) && { parent: dice.int(0, 6) }),
    agent: dice.oneOf(["main", "checked", "checked", "careful"]),
    fate: dice.oneOf([
      ...(["makes a child", "makes a child", "makes a child", "makes a child"] as const),
      ...(["makes a child and keeps silent", "makes a child and says that it failed"] as const),
      ...(["refuses", "forgets"] as const),
    ]),
  };
}

function makeSpawnMove(dice: Dice, wish: MoveWish): Move {
  const child = dice.int(0, 6);
  const kind = dice.oneOf(["spawn", "spawn", "end", "end", "speak", "ask", "cancel", "end turn"]);
  switch (kind) {
    case "spawn":
      return makeSpawn(dice, wish);
    case "end":
      return { kind, child, ending: makeEnding(dice), heard: dice.oneOf([0, 1, 1, 2]) };
    case "speak":
      return { kind, child, confidence: dice.oneOf([20, 69, 70, 95]) };
    case "ask":
      return { kind, child, of: dice.oneOf(["people", "parent", "parent"]), hasDefault: dice.chance(0.4) };
    case "cancel":
      return { kind, gateway: child, run: dice.int(0, 5), ...(dice.chance(0.5) && { step: dice.int(0, 5) }) };
    case "end turn":
      return { kind, gateway: dice.int(0, wish.setup.gateways - 1) };
  }
}

function makeEnding(dice: Dice) {
  return dice.oneOf([
    { outcome: "completed" },
    { outcome: "completed" },
    { outcome: "failed", message: "it went wrong" },
    { outcome: "cancelled" },
    { outcome: "timed_out" },
  ] as const);
}

function makeWrite(dice: Dice): Move {
  return {
    kind: "write",
    session: dice.chance(0.15) ? dice.int(8, 15) : dice.int(0, 7),
    files: dice.chance(0.25) ? [dice.int(0, 4), dice.int(0, 4)] : [dice.oneOf([0, 0, 0, 1, 2, 2, 3, 3, 4])],
    hasRead: dice.chance(0.5),
    review: dice.oneOf(["approved", "approved", "denied", "unanswered"]),
    takesMs: dice.oneOf([0, 0, 200, 3_000]),
  };
}

function makeAnswer(dice: Dice, { setup }: MoveWish): Move {
  return {
    kind: "answer",
    gateway: dice.int(0, setup.gateways - 1),
    question: dice.int(0, 4),
    isOpen: dice.chance(0.75),
    answer: dice.oneOf(["approve", "approve", "deny", "answer"]),
    text: dice.int(0, 3),
    by: dice.oneOf(["operator", "person", "asker", "asker", "owner"]),
    isContradicted: dice.chance(0.3),
  };
}

function makeLastMoment(dice: Dice): Move {
  return {
    kind: "answer at the deadline",
    question: dice.int(0, 3),
    afterMs: dice.oneOf([-1, 0, 1, 500]),
  };
}

function makeTrouble(dice: Dice, { gateways }: Setup): Move {
  const gateway = dice.int(0, gateways - 1);
  const downMs = dice.oneOf([0, 10, 1_000, 40_000, 200_000]);
  // A process that is paused for longer than its lease comes back with what it believed before.
  const kinds = ["break", "break", "break", "kill", "pause", "restart", "jump"] as const;
  const kind = gateways > 1 && dice.chance(0.4) ? "pause" : dice.oneOf(kinds);
  if (kind === "break") return { kind, gateway, fault: makeFault(dice, downMs) };
  if (kind === "pause") return { kind, gateway, ms: dice.oneOf([1_000, 30_000, 30_000, 120_000]) };
  if (kind === "jump") return { kind, ms: dice.oneOf([5_000, 60_000, 600_000, -2_000]) };
  return { kind, gateway, downMs };
}

function makeFault(dice: Dice, downMs: number): PortFault {
  const kind = dice.oneOf([
    ...(["dies before", "dies before", "dies after", "dies after"] as const),
    ...(["fails", "fails", "fails after", "answers late"] as const),
  ]);
  return {
    kind,
    group:
      kind === "fails" || kind === "fails after"
        ? dice.oneOf(["append", "read", "owners"])
        : dice.oneOf(GROUPS),
    atCall: dice.oneOf([1, 2, 3, dice.int(1, 12), dice.int(1, 40)]),
    lastsMs: dice.oneOf([0, 0, 2_000, 15_000]),
    downMs,
  };
}
