/** Owns: small schedules: one gateway, few moves, one subject, so that gates that are rarely reached are reached often. */
import { deriveSeed, diceOf, type Dice } from "../crash/plan-dice.ts";
import { STEPS_OF_CLAIMS } from "./make-small-plan.ts";
import type { Focus, Move, Schedule } from "./moves.ts";

export function makeSmallSchedule(seed: number): Schedule {
  const dice = diceOf(deriveSeed(seed, "small schedule"));
  const focus = dice.oneOf(["checks", "checks", "retries", "limits", "questions", "claims"] as const);
  return {
    seed,
    setup: {
      gateways: 1,
      isOneMachine: true,
      lanes: { concurrency: chooseConcurrency(dice, focus), queueMax: 4 },
      conflicts: {
        strategy: dice.oneOf(["owner_wins", "owner_wins", "priority_wins", "priority_wins", "manual_review"]),
        onConflict: "refuse",
      },
      requireDifferentApprover: false,
      isGated: true,
      focus,
    },
    moves: MOVES[focus](dice),
  };
}

/** The agents of two plans are at work at once where they claim what the others hold. */
function chooseConcurrency(dice: Dice, focus: Focus): number {
  if (focus === "limits") return dice.int(1, 2);
  return focus === "claims" ? 6 : 3;
}

type MakeMoves = (dice: Dice) => Move[];

const MOVES: { readonly [F in Exclude<Focus, "crowds">]: MakeMoves } = {
  checks: (dice) => makePlanMoves(dice, []),
  retries: (dice) => makePlanMoves(dice, []),
  limits: (dice) => makePlanMoves(dice, makeDelay(dice)),
  questions: makeQuestionMoves,
  claims: makeClaimMoves,
};

const SUBMIT: Extract<Move, { kind: "submit" }> = { kind: "submit", gateway: 0, plan: 1, as: "first" };

/** Time passes without the plan: a machine that slept, or a process that was down. */
function makeDelay(dice: Dice): Move[] {
  return dice.oneOf<[Move[], ...Move[][]]>([
    [],
    [{ kind: "jump", ms: 60_000 }],
    [{ kind: "kill", gateway: 0, downMs: 40_000 }],
    [{ kind: "pause", gateway: 0, ms: 60_000 }],
  ]);
}

/** Some schedules leave all questions unanswered. */
function makePlanMoves(dice: Dice, delay: readonly Move[]): Move[] {
  const answers = Array.from({ length: dice.oneOf([0, 0, 2, 4]) }, () => [
    makeWait(dice),
    makeAnswer(dice, "operator"),
  ]);
  return [SUBMIT, { kind: "wait", ms: dice.oneOf([0, 100, 2_000]) }, ...delay, ...answers.flat()];
}

function makeWait(dice: Dice): Move {
  return { kind: "wait", ms: dice.oneOf([10, 2_000, 10_000]) };
}

function makeAnswer(dice: Dice, by: "operator" | "stranger" | "owner"): Move {
  const answer = dice.oneOf(["approve", "approve", "approve", "deny"] as const);
  return {
    kind: "answer",
    gateway: 0,
    question: dice.int(0, 2),
    isOpen: true,
    // The model of a session only ever says something.
    answer: by === "stranger" ? "answer" : answer,
    text: 0,
    by,
    isContradicted: false,
  };
}

function makeQuestionMoves(dice: Dice): Move[] {
  const count = dice.int(1, 3);
  const spawns = Array.from({ length: count }, (_, index): Move => ({
    kind: "spawn",
    gateway: 0,
    call: index,
    task: index,
    trace: 1,
    agent: dice.oneOf(["main", "main", "checked", "careful"]),
    fate: "makes a child",
  }));
  const others = Array.from({ length: dice.int(2, 7) }, () => makeQuestionMove(dice, count));
  return [...spawns, ...others.flat()];
}

const QUESTION_MOVES = [
  ...(["ask", "ask", "ask", "answer", "answer"] as const),
  ...(["speak", "finish", "finish", "end", "cancel", "wait"] as const),
] as const;

function makeQuestionMove(dice: Dice, count: number): Move[] {
  const child = dice.int(0, count - 1);
  const kind = dice.oneOf(QUESTION_MOVES);
  const speak: Move = { kind: "speak", child, confidence: dice.oneOf([20, 20, 95]) };
  const end: Move = { kind: "end", child, ending: { outcome: "completed" }, heard: 1 };
  switch (kind) {
    case "ask": {
      const of = dice.oneOf(["people", "parent", "parent"]);
      const ask: Move = { kind, child, of, hasDefault: dice.chance(0.3) };
      return dice.chance(0.4) ? [ask, makeAnswer(dice, "stranger")] : [ask];
    }
    case "answer":
      return [makeAnswer(dice, dice.oneOf(["operator", "stranger", "stranger", "owner"]))];
    case "cancel":
      return [{ kind, gateway: 0, run: 0 }];
    case "end":
      return [end];
    case "speak":
      return [speak];
    case "finish":
      return [speak, end];
    case "wait":
      return [{ kind, ms: dice.oneOf([10, 2_000, 35_000]) }];
  }
}

/** Steps of one plan, or of two, write the same files, most of which people approve or a plan declares. */
function makeClaimMoves(dice: Dice): Move[] {
  const plans = dice.int(1, 2);
  const submissions = Array.from({ length: plans }, (_, index): Move => ({ ...SUBMIT, plan: index + 1 }));
  const count = dice.int(3, 9);
  const writes = Array.from({ length: count }, () => makeWrites(dice, plans * STEPS_OF_CLAIMS));
  return [...submissions, { kind: "wait", ms: 100 }, ...writes.flat()];
}

function makeWrites(dice: Dice, sessions: number): Move[] {
  const write: Move = {
    kind: "write",
    // The last one is the owner.
    session: dice.int(0, sessions),
    files: [dice.oneOf([0, 0, 3, 3, 1])],
    hasRead: dice.chance(0.3),
    review: dice.oneOf(["approved", "approved", "denied"]),
    takesMs: dice.oneOf([0, 200]),
  };
  return dice.chance(0.15) ? [write, makeAnswer(dice, "operator")] : [write];
}
