/** Owns: schedules of a plan's life: the plan, how hosts and agents behave, what people ask for, and when the process ends. */
import type { AnswerKind } from "../../src/agents/coordination/contracts/escalation.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { diceOf, type Dice } from "./plan-dice.ts";
import { answersOf, addGates, rulerOf, type Ruler } from "./plan-gates.ts";
import { mannerOf, type Manner } from "./plan-manner.ts";
import { GROUPS, type Crash } from "./plan-process.ts";

export type Fields = Readonly<Record<string, unknown>>;

export interface ScheduledRequest {
  readonly afterMs: number;
  readonly subject: "cancel" | "retry" | "submit again" | "submit another" | AnswerKind;
  readonly stepId?: string;
}

export interface Schedule {
  readonly name: string;
  readonly plan: Fields;
  readonly mannerOf: (key: string, isDelivery: boolean) => Manner;
  readonly ruler: Ruler;
  readonly asked: readonly ScheduledRequest[];
  readonly crashes: readonly Crash[];
  readonly lanes: { readonly concurrency: number; readonly queueMax: number; readonly perAgentMax?: number };
}

export const PLAN_ID = "plan-1";

export function planOf(steps: readonly Fields[], fields: Fields = {}): Fields {
  return {
    coordinationId: PLAN_ID,
    objective: "sweep",
    ownerSession: OWNER,
    conflictPolicy: {},
    failurePolicy: { retryBudget: 2, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    steps,
    ...fields,
  };
}

export function stepOf(stepId: string, dependsOn: readonly string[] = [], fields: Fields = {}): Fields {
  return {
    stepId,
    agent: "main",
    task: `do ${stepId}`,
    ...(dependsOn.length > 0 && { dependsOn }),
    ...fields,
  };
}

/** The same seed gives the same schedule. */
export function scheduleOf(seed: number): Schedule {
  const dice = diceOf(seed);
  const plan = addGates(seed, createRandomPlan(dice));
  const answers = answersOf(seed).map(({ afterMs, answer }): ScheduledRequest => ({
    afterMs,
    subject: answer,
  }));
  return {
    name: `seed ${seed}`,
    plan,
    mannerOf: (key, isDelivery) => mannerOf(seed, key, isDelivery),
    ruler: rulerOf(seed),
    asked: [...createRequests(dice, plan), ...answers].toSorted((a, b) => a.afterMs - b.afterMs),
    crashes: createCrashes(dice),
    lanes: {
      concurrency: dice.int(1, 3),
      queueMax: dice.int(1, 4),
      ...(dice.chance(0.2) && { perAgentMax: dice.int(1, 2) }),
    },
  };
}

function createRandomPlan(dice: Dice): Fields {
  const retryBudget = dice.int(0, 2);
  const hasDeadline = dice.chance(0.25);
  const count = dice.oneOf([1, 2, 2, 3, 3, 4, 5, 6, 8]);
  const steps: Fields[] = [];
  for (let index = 0; index < count; index += 1)
    steps.push(
      createRandomStep(
        dice,
        steps.map(({ stepId }) => stepId as string),
        { retryBudget, hasDeadline },
      ),
    );
  const stated = steps.reduce((sum, { timeoutMs }) => sum + ((timeoutMs as number | undefined) ?? 0), 0);
  return planOf(steps, {
    failurePolicy: {
      retryBudget,
      timeoutPolicy: dice.oneOf(["fail_fast", "continue_with_partial", "continue_with_partial"]),
      escalationPolicy: dice.oneOf(["none", "hitl"]),
    },
    ...(hasDeadline && { deadlineMs: Math.max(20_000, stated + dice.int(0, 30_000)) }),
    ...(dice.chance(0.2) && { budget: createRandomBudget(dice, 6) }),
  });
}

interface Policy {
  readonly retryBudget: number;
  readonly hasDeadline: boolean;
}

function createRandomStep(
  dice: Dice,
  earlier: readonly string[],
  { retryBudget, hasDeadline }: Policy,
): Fields {
  const dependsOn = earlier.filter(() => dice.chance(0.4));
  const source = dependsOn[dice.int(0, dependsOn.length - 1)];
  const path = dice.chance(0.06) ? "missing" : "n";
  const min = dice.int(1, Math.max(1, dependsOn.length));
  return stepOf(`s${earlier.length + 1}`, dependsOn, {
    agent: dice.oneOf(["main", "coder", "acp"]),
    ...(dependsOn.length > 1 && dice.chance(0.6) && { fanIn: dice.oneOf(["all", "any", { min }]) }),
    ...(source && dice.chance(0.6) && { input: { v: `{{steps.${source}.outputs.${path}}}` } }),
    ...createPatience(dice, { retryBudget, hasDeadline }),
    ...createExtras(dice),
  });
}

function createPatience(dice: Dice, { retryBudget, hasDeadline }: Policy): Fields {
  return {
    ...(dice.chance(0.7) && {
      timeoutMs: hasDeadline ? dice.oneOf([2_000, 8_000]) : dice.oneOf([2_000, 10_000, 20_000, 75_000]),
    }),
    ...(dice.chance(0.2)
      ? { deliveryMode: "best_effort" }
      : { retry: { budget: dice.int(0, retryBudget), backoffMs: dice.oneOf([500, 3_000]) } }),
  };
}

function createExtras(dice: Dice): Fields {
  return {
    ...(dice.chance(0.3) && { lane: dice.oneOf(["control", "escalation", "data"]) }),
    ...(dice.chance(0.3) && { priority: dice.oneOf(["low", "high", "critical"]) }),
    ...(dice.chance(0.3) && { outputSchema: NUMBERED }),
    ...(dice.chance(0.1) && { budget: createRandomBudget(dice, 2) }),
  };
}

export const NUMBERED = { type: "object", required: ["n"], properties: { n: { type: "number" } } };

function createRandomBudget(dice: Dice, spawns: number): Fields {
  return dice.oneOf([
    { spawns: dice.int(1, spawns) },
    { tokens: dice.int(10, 60) },
    { wallMs: dice.int(5_000, 60_000) },
  ]);
}

function createRequests(dice: Dice, plan: Fields): ScheduledRequest[] {
  const steps = plan["steps"] as readonly { readonly stepId: string }[];
  const count = dice.oneOf([0, 0, 1, 2, 4]);
  return Array.from({ length: count }, (): ScheduledRequest => {
    const step = steps[dice.int(0, steps.length - 1)];
    return {
      afterMs: dice.oneOf([0, 50, 500, dice.int(0, 20_000), dice.int(0, 150_000)]),
      subject: dice.oneOf(["cancel", "retry", "retry", "submit again", "submit another"] as const),
      ...(dice.chance(0.6) && step && { stepId: step.stepId }),
    };
  }).toSorted((a, b) => a.afterMs - b.afterMs);
}

const REACH = { all: 150, append: 14, read: 25, runner: 12, clock: 90 } as const;

function createCrashes(dice: Dice): Crash[] {
  return Array.from({ length: dice.int(0, 4) }, (): Crash => {
    const group = dice.oneOf(GROUPS);
    const kind = dice.oneOf([
      "dies before",
      "dies before",
      "dies after",
      "dies after",
      "fails",
      "stops",
    ] as const);
    return {
      kind,
      group:
        kind === "fails" && (group === "all" || group === "clock" || group === "runner") ? "append" : group,
      atCall: 1 + Math.floor(dice.int(0, REACH[group]) * dice.oneOf([0.3, 1])),
      downMs: dice.oneOf([0, 10, 1_000, dice.int(0, 40_000)]),
    };
  });
}

/** Says the schedule so that it can be written down as a test. */
export function describeSchedule({ mannerOf: _, ruler: _ruler, ...rest }: Schedule): string {
  return JSON.stringify(rest);
}
