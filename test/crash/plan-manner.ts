/** Owns: how the host and the agent behave in one attempt, good or bad, chosen by a seed. */
import { diceOf, deriveSeed, type Dice } from "./plan-dice.ts";

export interface Manner {
  /** The fault of the first `troubles` starts. */
  readonly start:
    | "prompt"
    | "refuses"
    | "throws before"
    | "throws after"
    | "hangs before"
    | "hangs after"
    | "unknown before"
    | "unknown after"
    /** Acts at once and answers after `delayMs`. */
    | "slow"
    /** Acts, and answers, after `delayMs`. */
    | "late"
    | "other session";
  readonly troubles: number;
  readonly delayMs: number;
  /** The answer about a start that is on its way. */
  readonly pendingIs: "unknown" | "absent";
  readonly observe: "true" | "unknown" | "throws" | "hangs" | "other session";
  /** The first so many questions are answered like that. */
  readonly evasions: number;
  readonly follow: "true" | "unknown" | "throws" | "hangs" | "other session" | "running";
  readonly cancel: "stops" | "stops and hangs" | "unreachable" | "throws" | "hangs";
  /** Absent: the agent never ends by itself. */
  readonly endsAfterMs?: number;
  readonly ending: "completed" | "prose" | "invalid" | "failed" | "timed_out" | "cancelled";
  readonly tokens?: number;
  readonly report?: {
    readonly afterMs: number;
    readonly says: "completed" | "failed" | "invalid" | "twice";
  };
  /** The agent dies then, and nobody knows of it any more. */
  readonly forgottenAfterMs?: number;
}

export const GOOD: Manner = {
  start: "prompt",
  troubles: 1,
  delayMs: 0,
  pendingIs: "unknown",
  observe: "true",
  evasions: 0,
  follow: "true",
  cancel: "stops",
  endsAfterMs: 1_000,
  ending: "completed",
};

/** The owner is told when its turn has begun, which is the end as far as plans care; a turn that fails has told nothing. */
export function mannerOf(seed: number, key: string, isDelivery: boolean): Manner {
  const dice = diceOf(deriveSeed(seed, key));
  const roughness = diceOf(seed ^ 0x5eed).oneOf([0.1, 0.35, 0.35, 1]);
  if (!dice.chance(roughness)) return { ...GOOD, endsAfterMs: dice.oneOf([0, 200, 1_000, 7_000]) };
  const common = { ...GOOD, ...startOf(dice), ...answersOf(dice) };
  if (isDelivery) {
    const ending = dice.oneOf(["completed", "completed", "completed", "completed", "failed"]);
    return dice.chance(0.06)
      ? withoutEnd({ ...common, ending })
      : { ...common, ending, endsAfterMs: dice.int(0, 5_000) };
  }
  return { ...common, ...workOf(dice) };
}

function startOf(dice: Dice): Partial<Manner> {
  if (dice.chance(0.55)) return {};
  return {
    start: dice.oneOf([
      ...(["refuses", "throws before", "throws after", "hangs before", "hangs after"] as const),
      ...(["unknown before", "unknown after", "slow", "late", "late", "other session"] as const),
    ]),
    troubles: dice.oneOf([1, 1, 2, 99]),
    delayMs: dice.oneOf([300, 2_000, 9_000, 25_000, 70_000]),
    pendingIs: dice.oneOf(["unknown", "unknown", "absent"]),
  };
}

function answersOf(dice: Dice): Partial<Manner> {
  return {
    ...(dice.chance(0.3) && {
      observe: dice.oneOf(["unknown", "throws", "hangs", "other session"]),
      evasions: dice.oneOf([1, 2, 5, 99]),
    }),
    ...(dice.chance(0.3) && {
      follow: dice.oneOf(["unknown", "throws", "hangs", "other session", "running"]),
    }),
  };
}

function workOf(dice: Dice): Partial<Manner> {
  const work: Partial<Manner> = {
    ending: dice.oneOf([
      ...(["completed", "completed", "completed", "completed", "prose"] as const),
      ...(["invalid", "failed", "failed", "timed_out", "cancelled"] as const),
    ]),
    endsAfterMs: dice.oneOf([0, 200, 3_000, 12_000, 30_000]),
    cancel: dice.oneOf([
      "stops",
      "stops",
      "stops",
      "stops",
      "stops and hangs",
      "unreachable",
      "throws",
      "hangs",
    ]),
    ...(dice.chance(0.3) && { tokens: dice.int(1, 40) }),
    ...(dice.chance(0.25) && {
      report: {
        afterMs: dice.oneOf([0, 100, 2_000, 15_000]),
        says: dice.oneOf(["completed", "completed", "failed", "invalid", "twice"]),
      },
    }),
    ...(dice.chance(0.06) && { forgottenAfterMs: dice.oneOf([100, 5_000]) }),
  };
  return dice.chance(0.12) ? withoutEnd(work) : work;
}

function withoutEnd<T extends Partial<Manner>>({
  endsAfterMs: _,
  ...rest
}: T): Omit<T, "endsAfterMs"> & { endsAfterMs?: never } {
  return rest;
}
