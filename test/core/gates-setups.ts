/** Owns: random plans and spawns with gates and doubts, and random moves about them, told by picks. */
import fc from "fast-check";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import { CHECKING, CHECKING_TWICE, DOUBTING } from "./gates-scene.ts";
import { openPlan, planStep } from "./planned-scene.ts";
import { timeAt, OPEN } from "./scene.ts";

export const GATES: readonly (Gate | undefined)[] = [
  undefined,
  DOUBTING,
  { ...DOUBTING, requireConfidence: true },
  CHECKING,
  CHECKING_TWICE,
  { ...CHECKING_TWICE, revisionsMax: 2, allowSelf: true },
  { ...CHECKING, revisionsMax: 0, requireConfidence: true },
];

const KINDS = [
  ...["effect", "dispatch", "ack", "finish", "fail", "timeOut", "report", "verdict", "none", "withhold"],
  ...[
    "answer",
    "ask",
    "expire",
    "cancel",
    "retry",
    "skip",
    "settle",
    "tell",
    "notice",
    "spawn",
    "time",
    "again",
  ],
] as const;
export type MoveKind = (typeof KINDS)[number];

const AIMS = ["right", "right", "right", "right", "right", "step", "attempt", "target"] as const;

export interface Move {
  readonly kind: MoveKind;
  /** Which of those that it can be about, and how. */
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly d: number;
  /** The problem of it. */
  readonly aim: (typeof AIMS)[number];
  readonly times: number;
  /** The process ends here: the state is folded anew from what is stored. */
  readonly crash: boolean;
}

export interface Setup {
  readonly isPlan: boolean;
  readonly gates: readonly number[];
  readonly doubts: readonly boolean[];
  readonly doubtsAll: boolean;
  readonly chained: boolean;
  readonly retryBudget: number;
  readonly asksPeople: boolean;
  readonly failsFast: boolean;
  readonly deadline: boolean;
  readonly different: boolean;
  readonly criteria: boolean;
  readonly moves: readonly Move[];
}

const nat = fc.nat({ max: 11 });
const weighMoves = (weight: number, ...kinds: readonly MoveKind[]) => ({
  weight,
  arbitrary: fc.constantFrom(...kinds),
});
const kind: fc.Arbitrary<MoveKind> = fc.oneof(
  weighMoves(6, "effect"),
  weighMoves(5, "finish"),
  weighMoves(8, "verdict"),
  weighMoves(4, "answer"),
  weighMoves(4, "ack", "dispatch"),
  weighMoves(4, "spawn"),
  weighMoves(2, "time"),
  weighMoves(1, "cancel"),
  weighMoves(2, "ask", "settle"),
  weighMoves(6, ...KINDS),
);
const move: fc.Arbitrary<Move> = fc.record({
  kind,
  a: nat,
  b: nat,
  c: nat,
  d: nat,
  aim: fc.constantFrom(...AIMS),
  times: fc.constantFrom(1, 1, 2),
  crash: fc.nat({ max: 4 }).map((pick) => pick === 0),
});

export const setups: fc.Arbitrary<Setup> = fc.record({
  isPlan: fc.boolean(),
  gates: fc.array(fc.nat({ max: GATES.length - 1 }), { minLength: 3, maxLength: 3 }),
  doubts: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
  doubtsAll: fc.nat({ max: 4 }).map((pick) => pick === 0),
  chained: fc.boolean(),
  retryBudget: fc.nat({ max: 1 }),
  asksPeople: fc.boolean(),
  failsFast: fc.nat({ max: 3 }).map((pick) => pick === 0),
  deadline: fc.nat({ max: 3 }).map((pick) => pick === 0),
  different: fc.boolean(),
  criteria: fc.boolean(),
  moves: fc.array(move, { minLength: 10, maxLength: 60, size: "max" }),
});

export function openingOf({ isPlan, ...setup }: Setup): Command {
  const questions = {
    answerMs: 120_000,
    notify: [
      { channel: "chat", afterMs: 0 },
      { channel: "cli", afterMs: 50_000 },
    ],
  };
  const asking = { ...questions, ...(setup.different && { requireDifferentApprover: true as const }) };
  if (!isPlan) return { ...OPEN, questions: asking } as Command;
  const opening = openPlan({
    steps: 3,
    policy: {
      escalationPolicy: setup.asksPeople ? "hitl" : "none",
      timeoutPolicy: setup.failsFast ? "fail_fast" : "continue_with_partial",
    },
    plan: {
      escalateMs: 120_000,
      ...(setup.doubtsAll && { decision: { confidence: 1_000, floor: 5_000 } }),
      ...(setup.deadline && { deadlineAtMs: timeAt(400_000) }),
      ...(setup.criteria && { successCriteria: [{ key: "goal" }] }),
    },
  });
  return { ...opening, questions: asking } as Command;
}

export function admissionOf({ gates, doubts, chained, retryBudget }: Setup): Command {
  const steps = ["a", "b", "c"].map((name, index) => {
    const gate = GATES[gates[index] ?? 0];
    return planStep(name, {
      retryBudget,
      ...(chained && index > 0 && { after: [["a", "b"][index - 1] ?? "a"] }),
      ...(gate && { gate }),
      ...(doubts[index] && { decision: { confidence: 2_000, floor: 5_000 } }),
    });
  });
  return { type: "admitPlanSteps", steps };
}
