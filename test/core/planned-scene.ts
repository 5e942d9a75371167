/** Owns: coordinations that run a plan, in every situation, made by the real core from commands at given times. */
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepAdmitted, StepError } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import type { Answerer, AnswerKind } from "../../src/agents/coordination/contracts/escalation.ts";
import {
  DELIVERY_STEP_ID,
  createEventId,
  type CoordinationId,
  type EventId,
  type SessionKey,
  type StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { Finding } from "../../src/agents/coordination/contracts/verification.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import type { Decision } from "../../src/agents/coordination/dispatch/decision.ts";
import { planDispatch, type Effect } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { isPlanned, type PlannedCoordination } from "../../src/agents/coordination/dispatch/plan-rules.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import {
  createUnopenedCoordination,
  type Coordination,
  type Step,
} from "../../src/agents/coordination/ledger/state.ts";
import { timeAt, createContentRef, MAIN, OPEN, OWNER, RUN } from "./scene.ts";

type CreationPayload = FactPayloads["coordination.created"];
type PlannedStep = (Command & { type: "admitPlanSteps" })["steps"][number];

export const PLAN_TIMEOUT_MS = 60_000;
export const ESCALATE_MS = 3_600_000;
export const BACKOFF_MS = 1_000;

/** The opening of a plan by a test; `policy` and `plan` change what a plan of that many steps says. */
export interface PlanSetup {
  readonly steps: number;
  readonly policy?: Partial<CreationPayload["failurePolicy"]>;
  readonly plan?: Partial<NonNullable<CreationPayload["plan"]>>;
  readonly questions?: NonNullable<CreationPayload["questions"]>;
  readonly forkedFrom?: NonNullable<CreationPayload["forkedFrom"]>;
}

export function openPlan({ steps, policy, plan, questions, forkedFrom }: PlanSetup): Command {
  const opening = OPEN as Command & { type: "openCoordination" };
  return {
    ...opening,
    origin: "plan",
    failurePolicy: { ...opening.failurePolicy, ...policy },
    plan: { content: createContentRef("plan"), steps, seed: "seed", escalateMs: ESCALATE_MS, ...plan },
    ...(questions && { questions }),
    ...(forkedFrom && { forkedFrom }),
  };
}

export interface StepFields extends Partial<Omit<StepAdmitted, "stepId" | "planned">> {
  readonly after?: readonly string[];
  readonly fanIn?: number;
  readonly backoffMs?: number;
  readonly budget?: NonNullable<StepAdmitted["planned"]>["budget"];
}

export function planStep(name: string, fields: StepFields = {}): PlannedStep {
  const { after = [], fanIn = after.length, backoffMs = BACKOFF_MS, budget, ...spec } = fields;
  const planned = { dependsOn: [...after] as StepId[], fanIn, backoffMs, criticalPathMs: PLAN_TIMEOUT_MS };
  return {
    stepId: name as StepId,
    lane: "data",
    runner: "subagent",
    agentId: MAIN,
    sourceSession: OWNER,
    deliveryMode: "at_least_once",
    priority: "normal",
    input: createContentRef(name),
    timeoutMs: PLAN_TIMEOUT_MS,
    retryBudget: 0,
    collect: false,
    call: {},
    ...spec,
    planned: { ...planned, ...(budget && { budget }) },
  };
}

export const admit = (...steps: readonly PlannedStep[]): Command => ({ type: "admitPlanSteps", steps });

const idOf = (name: string): StepId => name as StepId;
export const nameSessionOfAttempt = (name: string, attempt = 1): SessionKey =>
  (name === DELIVERY_STEP_ID ? OWNER : `agent:main:subagent:${name}-${attempt}`) as SessionKey;

export const dispatch = (name: string, attempt = 1): Command => ({
  type: "dispatchStep",
  stepId: idOf(name),
  attempt,
  targetSession: nameSessionOfAttempt(name, attempt),
});
export const startStep = (
  name: string,
  attempt = 1,
  session = nameSessionOfAttempt(name, attempt),
): Command => ({
  type: "acknowledgeStep",
  stepId: idOf(name),
  attempt,
  childSessionKey: session,
  childRunId: `run-of-${name}-${attempt}`,
  via: "runner",
});
export const finish = (
  name: string,
  attempt = 1,
  rest: Partial<Command & { type: "completeStep" }> = {},
): Command => ({ type: "completeStep", stepId: idOf(name), attempt, via: "runner", ...rest });

export const failStep = (
  name: string,
  attempt = 1,
  code: StepError["code"] = "child_failed",
  usage?: FactPayloads["step.failed"]["usage"],
): Command => ({
  type: "failStep",
  stepId: idOf(name),
  attempt,
  error: { code, message: "it went wrong" },
  cancelled: code === "child_cancelled",
  via: "runner",
  ...(usage && { usage }),
});
export const runOut = (
  name: string,
  attempt = 1,
  via: FactPayloads["step.timed_out"]["via"] = "deadline",
): Command => ({ type: "timeOutStep", stepId: idOf(name), attempt, via });
export const report = (
  name: string,
  attempt = 1,
  rest: Partial<Command & { type: "reportStep" }> = {},
): Command => ({
  type: "reportStep",
  stepId: idOf(name),
  attempt,
  outcome: "completed",
  output: createContentRef("out"),
  ...rest,
});
export const skip = (...names: readonly string[]): Command => ({
  type: "skipSteps",
  stepIds: names.map(idOf),
});
export const retry = (name?: string): Command => ({
  type: "retryStep",
  by: "operator",
  ...(name && { stepId: idOf(name) }),
});
export const cancel = (name?: string): Command => ({
  type: "cancelCoordination",
  by: "operator",
  ...(name && { stepId: idOf(name) }),
});
export const expire = (number = 1): Command => ({
  type: "expireEscalation",
  escalationId: `escalation-${number}`,
});
/** A check of the held result rules; `target` is what it ruled on. */
export const recordFinding = (
  { spec: { stepId }, phase }: Step,
  finding: Partial<Finding> = {},
): Command & { type: "recordFinding" } => ({
  type: "recordFinding",
  stepId,
  attempt: phase.attempt,
  target: targetOf(phase),
  finding: { check: "lint", agentId: "agent:critic", verdict: "pass", ...finding },
});
export const recordNoVerdict = (
  { spec: { stepId }, phase }: Step,
  check = "lint",
): Command & { type: "recordNoVerdict" } => ({
  type: "recordNoVerdict",
  stepId,
  attempt: phase.attempt,
  target: targetOf(phase),
  check,
  because: "timed_out",
});
function targetOf(phase: Step["phase"]): EventId {
  return phase.status === "held" ? phase.target : createEventId(RUN, 0);
}
export const answer = (
  number = 1,
  answerKind: AnswerKind = "approve",
  by: Answerer = { kind: "operator" },
): Command & { type: "answerEscalation" } => ({
  type: "answerEscalation",
  escalationId: `escalation-${number}`,
  answer: answerKind,
  ...(answerKind === "answer" && { text: createContentRef("theirs") }),
  by,
  through: "cli",
});
export const ask = (
  session: SessionKey,
  rest: Partial<Command & { type: "askPeople" }> = {},
): Command & { type: "askPeople" } => ({
  type: "askPeople",
  askedBy: session,
  kind: "clarification",
  question: createContentRef("question"),
  hasDefault: false,
  openMax: 8,
  ...rest,
});
export const withhold = (name: string, attempt = 1, text = "kept back"): Command => ({
  type: "withholdText",
  stepId: idOf(name),
  attempt,
  text: createContentRef(text),
});
export const recordNotice = (number = 1, place = 0): Command => ({
  type: "recordNotice",
  escalationId: `escalation-${number}`,
  notice: place,
  channel: "chat",
  outcome: "delivered",
});
export const recordTold = (tellingId: string): Command => ({
  type: "recordTelling",
  tellingId,
  delivery: "delivered",
});
export const judge = (met = true): Command => ({
  type: "judgePlan",
  successCriteria: [{ key: "shipped", met }],
});
export const stopChildOf = (name: string, attempt = 1): Command => ({
  type: "stopChild",
  childSessionKey: nameSessionOfAttempt(name, attempt),
  outcome: "stopped",
});
/** The agent of an attempt is about to submit a plan. */
export const lend = (
  name: string,
  attempt = 1,
  rest: Partial<Command & { type: "lendBudget" }> = {},
): Command => ({
  type: "lendBudget",
  stepId: idOf(name),
  attempt,
  to: "inside" as CoordinationId,
  budget: {},
  ...rest,
});
/** That plan has ended. */
export const giveBack = (
  name: string,
  attempt = 1,
  rest: Partial<Command & { type: "returnBudget" }> = {},
): Command => ({
  type: "returnBudget",
  stepId: idOf(name),
  attempt,
  to: "inside" as CoordinationId,
  budget: {},
  ...rest,
});
export const TRIP: Command = { type: "tripBreaker" };
export const SETTLE_PLAN: Command = { type: "settleCoordination" };
export const DELIVERY: string = DELIVERY_STEP_ID;

/** People are asked where a step has no attempt left. */
export const HITL = { policy: { escalationPolicy: "hitl" } } as const;

/** Each step is dispatched and at work. */
export const beginSteps = (...names: readonly string[]): Command[] =>
  names.flatMap((name) => [dispatch(name), startStep(name)]);

export interface PlanScene {
  /** The state; fails where the coordination is not open or runs no plan. */
  readonly open: PlannedCoordination;
  readonly state: Coordination;
  readonly log: readonly RunEvent[];
  readonly nowMs: number;
  /** Decides and records as the runtime does, a second after the command before, or at `ms`. */
  when(command: Command, ms?: number): Decision;
  /** Time goes by, and nothing happens. */
  passes(ms: number): void;
  /** As `when`, and says what came of it: the types of the facts, or the code, with the facts that record a refusal. */
  says(command: Command, ms?: number): string;
  /** Plays commands that are all accepted. */
  then(...commands: readonly Command[]): PlanScene;
  step(name: string): Step;
  status(name: string): string;
  effects(ms?: number): Effect[];
  /** The effects' kinds, with their steps. */
  plans(ms?: number): string[];
  last<T extends RunEvent["type"]>(type: T): Extract<RunEvent, { type: T }>;
}

export function describeDecision(decision: Decision): string {
  const types = "facts" in decision ? (decision.facts ?? []).map(({ type }) => type) : [];
  const head = decision.kind === "refused" ? [decision.code] : decision.kind === "replay" ? ["replay"] : [];
  return [...head, ...types].join(" ");
}

export function planScene(...commands: readonly Command[]): PlanScene {
  let state: Coordination = createUnopenedCoordination(RUN);
  let nowMs = 0;
  const log: RunEvent[] = [];
  const scene: PlanScene = {
    get state() {
      return state;
    },
    get open() {
      if (state.kind !== "open" || !isPlanned(state)) throw new Error(`no open plan, but ${state.kind}`);
      return state;
    },
    log,
    get nowMs() {
      return nowMs;
    },
    when: (command, ms = nowMs + 1_000) => {
      nowMs = ms;
      const decision = decide(state, command, timeAt(ms));
      const facts = "facts" in decision ? (decision.facts ?? []) : [];
      const recorded = recordFacts(state, facts, timeAt(ms));
      state = recorded.state;
      log.push(...recorded.events);
      return decision;
    },
    passes: (ms) => {
      nowMs += ms;
    },
    says: (command, ms) => describeDecision(scene.when(command, ms)),
    then: (...more) => {
      for (const command of more) {
        const decision = scene.when(command);
        if (decision.kind !== "accepted") throw new Error(`${command.type}: ${JSON.stringify(decision)}`);
      }
      return scene;
    },
    step: (name) => {
      const step = state.kind === "unopened" ? undefined : state.steps.get(idOf(name));
      if (!step) throw new Error(`no step ${name}`);
      return step;
    },
    status: (name) => scene.step(name).phase.status,
    effects: (ms = nowMs) => planDispatch(state, timeAt(ms)),
    plans: (ms) =>
      scene.effects(ms).map((effect) => {
        const about = "stepId" in effect ? ` ${effect.stepId} ${effect.attempt}` : "";
        return `${effect.kind}${about}${"stepIds" in effect ? ` ${effect.stepIds.join(",")}` : ""}`;
      }),
    last: (type) => {
      const event = log.findLast((each) => each.type === type);
      if (!event) throw new Error(`no ${type}`);
      return event as Extract<RunEvent, { type: typeof type }>;
    },
  };
  return scene.then(...commands);
}
