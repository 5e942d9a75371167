/** Owns: random plans, and random histories of them: what the runtime would do, in any order, and what it never would. */
import fc from "fast-check";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import {
  DELIVERY_STEP_ID,
  type CoordinationId,
  type EpochMs,
  type EventId,
  type StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import type { Decision } from "../../src/agents/coordination/dispatch/decision.ts";
import { planDispatch, type Effect } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import type { RunStep } from "../../src/agents/coordination/dispatch/effects/next-plan-effects.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { createUnopenedCoordination, type Coordination } from "../../src/agents/coordination/ledger/state.ts";
import { nameChild, createContentRef, RUN, spawn, START } from "./scene.ts";
import {
  createCommandForGate,
  DOUBT,
  createGateCommand,
  gateMoves,
  gates,
  questionPolicies,
  ruleBy,
  createStrayMoves,
  type GateMove,
} from "./planned-gate-moves.ts";
import {
  admit,
  cancel,
  dispatch,
  finish,
  failStep,
  giveBack,
  judge,
  lend,
  openPlan,
  planStep,
  report,
  retry,
  runOut,
  SETTLE_PLAN,
  skip,
  startStep,
  stopChildOf,
  TRIP,
} from "./planned-scene.ts";

type PlannedStep = ReturnType<typeof planStep>;

export interface RandomPlan {
  readonly opening: Command;
  readonly steps: readonly PlannedStep[];
}

const createMaybe = <T>(arbitrary: fc.Arbitrary<T>, freq = 3): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq });

const createRarely = <T>(arbitrary: fc.Arbitrary<T>, weight = 6): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const budgets = fc.record(
  {
    spawns: fc.integer({ min: 1, max: 4 }),
    tokens: fc.integer({ min: 1, max: 200 }),
    wallMs: fc.integer({ min: 1, max: 100_000 }),
  },
  { requiredKeys: [] },
);

const stepFields = fc.record({
  /** The steps before it that it waits for, as bits. */
  after: fc.integer({ min: 0, max: 63 }),
  fanIn: fc.integer({ min: 1, max: 6 }),
  retryBudget: fc.constantFrom(0, 0, 1, 2),
  backoffMs: fc.constantFrom(1, 1_000, 50_000),
  timeoutMs: fc.constantFrom(1, 20_000, 60_000),
  budget: createMaybe(budgets, 2),
  gate: createRarely(gates, 1),
  isDoubted: createRarely(fc.constant(true), 12),
  /** Where the plan is a fork: the step had completed in its source, perhaps with a result. */
  carried: fc.constantFrom(undefined, undefined, undefined, {}, { output: createContentRef("kept") }),
});
type StepFields = typeof stepFields extends fc.Arbitrary<infer T> ? T : never;

interface PlanTraits {
  readonly isTimeless: boolean;
  readonly isFork: boolean;
}

function stepsOf(fields: readonly StepFields[], { isTimeless, isFork }: PlanTraits): PlannedStep[] {
  return fields.map(({ after: bits, fanIn, budget, gate, isDoubted, carried, ...rest }, index) => {
    const after = fields.flatMap((_, other) => (other < index && bits & (1 << other) ? [`s${other}`] : []));
    const least = Math.min(fanIn, after.length);
    return planStep(`s${index}`, {
      ...rest,
      after,
      fanIn: least,
      ...(budget && !isTimeless && { budget: { ...budget } }),
      ...(isFork && carried
        ? { carried: { eventId: `${FORKED_FROM.coordinationId}:${index + 1}` as EventId, ...carried } }
        : { ...(gate && { gate }), ...(isDoubted && { decision: DOUBT }) }),
    });
  });
}

const FORKED_FROM = { coordinationId: "co-source" as CoordinationId, sequence: 12 };

const policies = fc.record({
  timeoutPolicy: fc.constantFrom("continue_with_partial" as const, "fail_fast" as const),
  escalationPolicy: fc.constantFrom("none" as const, "hitl" as const),
});

export const plans: fc.Arbitrary<RandomPlan> = fc
  .record({
    fields: fc.array(stepFields, { minLength: 1, maxLength: 6 }),
    policy: policies,
    deadlineMs: createMaybe(fc.integer({ min: 1, max: 300_000 })),
    budget: createMaybe(budgets),
    escalateMs: fc.constantFrom(1, 50_000, 50_000),
    questions: createMaybe(questionPolicies, 2),
    decision: createRarely(fc.constant(DOUBT), 15),
    successCriteria: createRarely(fc.constant([{ key: "shipped" }]), 3),
    isFork: fc.constantFrom(false, false, true),
  })
  .map(
    ({ fields, policy, deadlineMs, budget, escalateMs, questions, decision, successCriteria, isFork }) => ({
      steps: stepsOf(fields, { isTimeless: false, isFork }),
      opening: openPlan({
        steps: fields.length,
        policy,
        ...(isFork && { forkedFrom: FORKED_FROM }),
        ...(questions && { questions }),
        plan: {
          escalateMs,
          ...(decision && { decision }),
          ...(successCriteria && { successCriteria: [...successCriteria] }),
          ...(deadlineMs !== undefined && { deadlineAtMs: (START + deadlineMs) as EpochMs }),
          ...(budget && { budget: { ...budget } }),
        },
      }),
    }),
  );

/** Plans without a rule that time or order has a part in. */
export const timelessPlans: fc.Arbitrary<RandomPlan> = fc
  .tuple(fc.array(stepFields, { minLength: 1, maxLength: 6 }), fc.boolean())
  .map(([fields, isFork]) => ({
    steps: stepsOf(fields, { isTimeless: true, isFork }),
    opening: openPlan({ steps: fields.length, ...(isFork && { forkedFrom: FORKED_FROM }) }),
  }));

/** The end of an attempt. `doubted`: completed, and its agent states a low confidence. */
export type AttemptEnding = "completed" | "doubted" | "failed" | "cancelled" | "timed_out";
export const endings: fc.Arbitrary<AttemptEnding> = fc.constantFrom(
  "completed",
  "completed",
  "doubted",
  "failed",
  "cancelled",
  "timed_out",
);

export function createEndingCommand(stepId: string, attempt: number, ending: AttemptEnding): Command {
  const usage = { usage: { tokens: 50 } };
  if (ending === "completed") return finish(stepId, attempt, usage);
  if (ending === "doubted") return finish(stepId, attempt, { ...usage, stated: { confidence: 4_000 } });
  if (ending === "timed_out") return runOut(stepId, attempt);
  return failStep(stepId, attempt, ending === "cancelled" ? "child_cancelled" : "child_failed", usage.usage);
}

/** Commands of the runtime when it performs an effect; admission two by two. */
export function createCommandFor(effect: Effect, { steps }: RandomPlan, state: Coordination): Command {
  switch (effect.kind) {
    case "runStep":
      return runOrFollow(effect, state);
    case "stopStep":
    case "stopObserved":
      return failStep(effect.stepId, effect.attempt, "child_cancelled");
    case "stopStray":
      return { type: "stopChild", childSessionKey: effect.childSessionKey, outcome: "stopped" };
    case "admitSteps":
      return admit(...steps.slice(effect.from, effect.from + 2));
    case "skipSteps":
      return skip(...effect.stepIds);
    case "judgePlan":
      return judge();
    case "tripBreaker":
      return TRIP;
    case "closeReview":
      return { type: "settleReview", conflictId: effect.conflictId, answer: "unanswered" };
    case "endCoordination":
      return SETTLE_PLAN;
    case "mergeWorktree":
      return { type: "finishMerge", stepId: effect.stepId, attempt: effect.attempt, changed: [] };
    case "removeWorktree":
      return { type: "removeWorktree", stepId: effect.stepId, attempt: effect.attempt, outcome: "removed" };
    case "askHost":
      return finish(effect.stepId, effect.attempt);
    case "verifyResult":
    case "expireQuestion":
    case "notifyPeople":
    case "tellSession":
      return createCommandForGate(effect, state);
  }
}

/** Work that began already is followed to its end by whoever takes it up. */
function runOrFollow({ stepId, attempt }: RunStep, state: Coordination): Command {
  const hasBegun = state.kind === "open" && state.steps.get(stepId)?.phase.attempt === attempt;
  return hasBegun ? finish(stepId, attempt) : dispatch(stepId, attempt);
}

/** One thing that happens; which step it is about depends on what there is then. */
export type PlanMove = { readonly afterMs: number; readonly times: number } & (
  | { readonly kind: "effect"; readonly pick: number }
  | { readonly kind: "start" | "report"; readonly pick: number }
  | { readonly kind: "end"; readonly pick: number; readonly ending: AttemptEnding }
  | { readonly kind: "gate"; readonly move: GateMove }
  | { readonly kind: "any"; readonly command: Command }
);

const names = fc.constantFrom("s0", "s1", "s2", "s3", "s4", "s5", DELIVERY_STEP_ID, "@step-3", "nobody");
const attempts = fc.constantFrom(0, 1, 1, 2, 2, 3, 7);
const hostile: fc.Arbitrary<Command> = fc.oneof(
  fc.tuple(names, attempts).map(([name, attempt]) => dispatch(name, attempt)),
  fc.tuple(names, attempts, attempts).map(([name, attempt, other]) => ({
    ...startStep(name, attempt),
    childSessionKey: nameChild(`${name}-${other}`),
  })),
  fc
    .tuple(names, attempts, endings)
    .map(([name, attempt, ending]) => createEndingCommand(name, attempt, ending)),
  fc
    .tuple(names, attempts, fc.constantFrom("spawn_refused", "child_lost", "input_unavailable"))
    .map(([name, attempt, code]) => failStep(name, attempt, code)),
  fc
    .tuple(names, attempts, fc.constantFrom("a", "b"))
    .map(([name, attempt, text]) => report(name, attempt, { output: createContentRef(text) })),
  fc.tuple(names, attempts).map(([name, attempt]) => stopChildOf(name, attempt)),
  fc.array(names, { maxLength: 3 }).map((some) => skip(...some)),
  names.map((name) => retry(name)),
  names.map((name) => cancel(name)),
  createStrayMoves(names, attempts),
  fc
    .tuple(names, attempts, budgets, fc.constantFrom("inside", "later"))
    .map(([name, attempt, { spawns, tokens }, to]) =>
      lend(name, attempt, { to: to as CoordinationId, budget: { spawns, tokens } }),
    ),
  fc
    .tuple(names, attempts, fc.nat({ max: 3 }))
    .map(([name, attempt, spawns]) => giveBack(name, attempt, { budget: { spawns } })),
  fc.constantFrom(TRIP, SETTLE_PLAN, retry(), retry()),
  fc
    .tuple(names, fc.integer({ min: 1, max: 3 }), createRarely(gates, 1))
    .map(([name, call, gate]): Command => ({
      ...(spawn(`c${call}`) as Command & { type: "admitSpawn" }),
      parentStepId: name as StepId,
      ...(gate && { gate }),
    })),
);

const pick = fc.nat({ max: 20 });
const times = fc.constantFrom(1, 1, 1, 2);
const afterMs = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 3_000, max: 100_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: -2_000, max: 0 }) },
);
const moves: fc.Arbitrary<PlanMove> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({ kind: fc.constant("effect" as const), pick, times, afterMs }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("start" as const), pick, times, afterMs }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("report" as const), pick, times, afterMs }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("end" as const), pick, ending: endings, times, afterMs }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("gate" as const), move: gateMoves, times, afterMs }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("any" as const), command: hostile, times, afterMs }),
  },
);

export interface PlanHistory {
  readonly plan: RandomPlan;
  readonly moves: readonly PlanMove[];
}

export const planHistories: fc.Arbitrary<PlanHistory> = fc
  .record({
    plan: plans,
    moves: fc.array(moves, { maxLength: 60, size: "max" }),
    cancelAt: createRarely(fc.nat({ max: 40 }), 4),
  })
  .map(({ plan, moves: some, cancelAt }) => {
    const cancelled: PlanMove = { kind: "any", command: cancel(), times: 2, afterMs: 0 };
    return { plan, moves: cancelAt === undefined ? some : some.toSpliced(cancelAt, 0, cancelled) };
  });

export interface PlannedHistory {
  readonly plan: RandomPlan;
  readonly state: Coordination;
  readonly log: readonly RunEvent[];
  readonly nowMs: EpochMs;
  readonly steps: readonly {
    readonly before: Coordination;
    readonly command: Command;
    readonly now: EpochMs;
    readonly decision: Decision;
    readonly after: Coordination;
  }[];
}

/** The steps of the plan that are dispatched or running, in order of admission. */
function listAtWork(state: Coordination): { readonly stepId: string; readonly attempt: number }[] {
  if (state.kind !== "open") return [];
  return [...state.steps.values()]
    .filter(({ phase }) => phase.status === "dispatched" || phase.status === "running")
    .map(({ spec, phase }) => ({ stepId: spec.stepId, attempt: phase.attempt }));
}

function commandOf(move: PlanMove, plan: RandomPlan, at: { state: Coordination; now: EpochMs }) {
  if (move.kind === "any") return move.command;
  if (move.kind === "gate") return createGateCommand(at.state, move.move);
  const effects = move.kind === "effect" ? planDispatch(at.state, at.now) : [];
  const effect = effects[move.pick % Math.max(1, effects.length)];
  if (effect?.kind === "verifyResult") return ruleBy(effect, at.state, move.pick);
  return effect ? createCommandFor(effect, plan, at.state) : createCommandAtWork(move, at.state);
}

function createCommandAtWork(
  move: PlanMove & { readonly pick: number },
  state: Coordination,
): Command | undefined {
  const working = listAtWork(state);
  const one = working[move.pick % Math.max(1, working.length)];
  if (!one) return undefined;
  if (move.kind === "start") return startStep(one.stepId, one.attempt);
  if (move.kind === "report") return report(one.stepId, one.attempt);
  return move.kind === "end" ? createEndingCommand(one.stepId, one.attempt, move.ending) : undefined;
}

export function playPlan({ plan, moves: some }: PlanHistory): PlannedHistory {
  let state: Coordination = createUnopenedCoordination(RUN);
  let now: EpochMs = START;
  const log: RunEvent[] = [];
  const steps: PlannedHistory["steps"][number][] = [];
  const submit = (command: Command): void => {
    const before = state;
    const decision = decide(before, command, now);
    const facts = "facts" in decision ? (decision.facts ?? []) : [];
    if (facts.length > 0) {
      const recorded = recordFacts(before, facts, now);
      log.push(...recorded.events);
      state = recorded.state;
    }
    steps.push({ before, command, now, decision, after: state });
  };
  submit(plan.opening);
  for (const move of some) {
    now = (now + move.afterMs) as EpochMs;
    const command = commandOf(move, plan, { state, now });
    for (let time = 0; command && time < move.times; time += 1) submit(command);
  }
  return { plan, state, log, nowMs: now, steps };
}
