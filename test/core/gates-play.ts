/**
 * Owns: histories of held results, held decisions and questions, played by the real core. The subject of a move follows from
 * the state then, and often enough it is about the wrong thing, at the wrong time, or the same again.
 */
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import {
  addMs,
  type EpochMs,
  type EventId,
  type SessionKey,
} from "../../src/agents/coordination/contracts/ids.ts";
import { decodeEvent, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import type { Decision } from "../../src/agents/coordination/dispatch/decision.ts";
import {
  findNextDeadline,
  planDispatch,
  type Effect,
} from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import {
  findChildOfPhase,
  findSessionOfPhase,
  createUnopenedCoordination,
  type Coordination,
  type OpenCoordination,
  type Step,
  type StepPhase,
} from "../../src/agents/coordination/ledger/state.ts";
import { admissionOf, GATES, openingOf, type Move, type MoveKind, type Setup } from "./gates-setups.ts";
import { timeAt, nameChild, createContentRef, OWNER, RUN, spawn } from "./scene.ts";

/** One command, with what was known before and what came of it. */
export interface PlayedCommand {
  readonly command: Command;
  readonly now: EpochMs;
  readonly before: Coordination;
  readonly decision: Decision;
  readonly events: readonly RunEvent[];
}

export interface History {
  readonly setup: Setup;
  readonly played: readonly PlayedCommand[];
  readonly state: Coordination;
  readonly log: readonly RunEvent[];
  readonly now: EpochMs;
}

export function playGates(setup: Setup): History {
  const played: PlayedCommand[] = [];
  const log: RunEvent[] = [];
  let state: Coordination = createUnopenedCoordination(RUN);
  let now = timeAt(0);
  const submit = (command: Command): void => {
    const before = state;
    const decision = decide(state, command, now);
    const facts = "facts" in decision ? (decision.facts ?? []) : [];
    const recorded = recordFacts(state, facts, now);
    state = recorded.state;
    log.push(...recorded.events);
    played.push({ command, now, before, decision, events: recorded.events });
  };
  submit(openingOf(setup));
  if (setup.isPlan) submit(admissionOf(setup));
  for (const each of setup.moves) {
    if (state.kind !== "open") break;
    now = timeOf({ state, now, setup, played }, each);
    const command = commandOf({ state, now, setup, played }, each);
    for (let time = 0; command && time < each.times; time += 1) submit(command);
    if (each.crash)
      state = fold(
        RUN,
        log.map((event) => decodeEvent(JSON.parse(JSON.stringify(event)))),
      );
  }
  return { setup, played, state, log, now };
}

function timeOf(situation: Situation, each: Move): EpochMs {
  const { state, now } = situation;
  if (each.kind === "time") return pickLaterTime(state, now, each);
  const question = each.kind === "answer" && each.d % 6 === 0 ? pickQuestion(situation, each) : undefined;
  if (!question) return addMs(now, each.c % 3 === 1 ? 500 : 0);
  // An answer at the very deadline, or a moment before it.
  const deadline = addMs(question.deadlineAtMs, each.d === 0 ? -1 : 0);
  return deadline > now ? deadline : now;
}

/** Some time, or up to a moment before, at or after what is due next. */
function pickLaterTime(state: OpenCoordination, now: EpochMs, { a, b }: Move): EpochMs {
  const due = findNextDeadline(state, now);
  if (a % 3 === 0 || due === undefined) return addMs(now, [1, 1_000, 10_000, 61_000][b % 4] ?? 1);
  return addMs(due, (b % 3) - 1);
}

interface Situation {
  readonly state: OpenCoordination;
  readonly now: EpochMs;
  readonly setup: Setup;
  readonly played: readonly PlayedCommand[];
}

const pickOf = <T>(all: readonly T[], pick: number): T | undefined => all[pick % Math.max(1, all.length)];

function stepFor(
  { state }: Situation,
  { a, aim }: Move,
  ...statuses: readonly StepPhase["status"][]
): Step | undefined {
  const all = [...state.steps.values()];
  const fitting = all.filter(({ phase }) => statuses.includes(phase.status));
  return pickOf(aim === "step" || fitting.length === 0 ? all : fitting, a);
}

function describeTarget({ spec, phase }: Step, { aim, d }: Move) {
  const off = aim === "attempt" ? (d % 3) - 1 : 0;
  const attempt = Math.max(1, phase.attempt + off);
  return { stepId: spec.stepId, attempt };
}

const SHARES = [undefined, 0, 6_999, 7_000, 10_000, "unreadable"] as const;

function createStated(pick: number) {
  const share = SHARES[pick % SHARES.length];
  if (share === undefined) return {};
  return { stated: share === "unreadable" ? { confidenceUnreadable: true as const } : { confidence: share } };
}

/** A session of its own for every attempt; a spawn keeps the one that it has. */
function pickSession({ spec, phase }: Step, attempt: number): SessionKey {
  const knownSession = findChildOfPhase(phase)?.childSessionKey;
  return knownSession && !spec.planned
    ? knownSession
    : nameChild(`${spec.stepId.replace("@", "")}-${attempt}`);
}

function pickQuestion({ state }: Situation, { b, aim }: Move) {
  const all = [...state.escalations.values()];
  const open = all.filter(({ closed }) => !closed);
  return pickOf(aim === "step" || open.length === 0 ? all : open, b);
}

type Maker = (situation: Situation, move: Move) => Command | undefined;

function createOutcomeMaker(make: (of: ReturnType<typeof describeTarget>, move: Move) => Command): Maker {
  return (situation, each) => {
    const step = stepFor(situation, each, "running", "dispatched");
    return step && make(describeTarget(step, each), each);
  };
}

const MAKERS: Readonly<Record<MoveKind, Maker>> = {
  effect: ({ state, now, setup }, { a, d }) => {
    // Mostly checks have time to rule.
    const effects = planDispatch(state, now).filter(({ kind }) => kind !== "verifyResult" || d === 0);
    const effect = pickOf(effects, a);
    return effect && createCommandForEffect(state, effect, setup);
  },
  dispatch: (situation, each) => {
    const step = stepFor(situation, each, "waiting", "backoff");
    return step && createDispatch(step, step.phase.attempt + 1);
  },
  ack: (situation, each) => {
    const step = stepFor(situation, each, "dispatched");
    const session = step && (findSessionOfPhase(step.phase) ?? nameChild(step.spec.stepId));
    return step && session && createAcknowledgement(describeTarget(step, each), session);
  },
  finish: createOutcomeMaker((of, { b }) => ({
    type: "completeStep",
    ...of,
    via: "runner",
    output: createContentRef("o"),
    ...createStated(b),
  })),
  fail: createOutcomeMaker((of) => ({
    type: "failStep",
    ...of,
    via: "runner",
    cancelled: false,
    error: { code: "child_failed", message: "no" },
  })),
  timeOut: createOutcomeMaker((of) => ({ type: "timeOutStep", ...of, via: "deadline" })),
  report: createOutcomeMaker((of, { b }) => {
    const confidence = [undefined, 0, 6_999, 7_000, 10_000][b % 5];
    const statement = { outcome: b === 11 ? "failed" : "completed", output: createContentRef("r") } as const;
    return { type: "reportStep", ...of, ...statement, ...(confidence !== undefined && { confidence }) };
  }),
  verdict: (situation, each) => {
    const step = stepFor(situation, each, "held");
    return step && createFinding(step, each);
  },
  none: (situation, each) => {
    const step = stepFor(situation, each, "held");
    if (!step) return undefined;
    const check = pickOf(["lint", "test"], each.b) ?? "lint";
    return {
      type: "recordNoVerdict",
      ...describeTarget(step, each),
      target: pickTarget(step, each),
      check,
      because: "failed",
    };
  },
  withhold: createOutcomeMaker((of, { b }) => {
    const text = { sha256: b.toString(16).repeat(64), bytes: 1 };
    return {
      type: "withholdText",
      ...of,
      text,
      ...(b % 2 === 0 && { confidence: b % 4 === 0 ? 100 : 9_000 }),
    };
  }),
  answer: (situation, each) => {
    const question = pickQuestion(situation, each);
    const answer = pickOf(["approve", "approve", "deny", "answer"] as const, each.a) ?? "approve";
    const hasText = (answer === "answer") !== (each.aim === "target");
    const session = [OWNER, question?.askedBy][each.c % 4];
    return {
      type: "answerEscalation",
      escalationId: question?.escalationId ?? "escalation-9",
      answer,
      through: "chat",
      by: { kind: each.c === 11 ? "plugin" : "person", ...(session && { session }) },
      ...(hasText && { text: createContentRef("text") }),
    };
  },
  ask: (situation, each) => {
    const step = stepFor(situation, each, "running");
    const session = step && findSessionOfPhase(step.phase);
    const question = { sha256: (each.b % 3).toString().repeat(64), bytes: 1 };
    return {
      type: "askPeople",
      askedBy: session ?? OWNER,
      question,
      openMax: 1 + (each.c % 3),
      hasDefault: each.b % 2 === 0,
      kind: each.c % 2 === 0 ? "approval" : "clarification",
      ...(step && session && { stepId: step.spec.stepId }),
      ...(each.c > 8 && { answerMs: 5_000 }),
    };
  },
  expire: (situation, each) => ({
    type: "expireEscalation",
    escalationId: pickQuestion(situation, each)?.escalationId ?? "escalation-9",
  }),
  cancel: (situation, each) => {
    if (each.c % 4 !== 0) return undefined;
    const step = stepFor(situation, each, "held", "backoff", "waiting", "dispatched", "running");
    return {
      type: "cancelCoordination",
      by: "operator",
      ...(each.b > 3 && step && { stepId: step.spec.stepId }),
    };
  },
  retry: (situation, each) => {
    const step = stepFor(situation, each, "blocked", "backoff");
    return { type: "retryStep", by: "operator", ...(each.b > 3 && step && { stepId: step.spec.stepId }) };
  },
  skip: ({ state }) => ({ type: "skipSteps", stepIds: [...state.steps.keys()] }),
  settle: () => ({ type: "settleCoordination" }),
  tell: ({ state }, { a }) => {
    const tellingId = pickOf([...state.tellings.keys()], a) ?? "answer:escalation-1";
    return { type: "recordTelling", tellingId, delivery: "delivered" };
  },
  notice: (situation, each) => {
    const escalationId = pickQuestion(situation, each)?.escalationId ?? "escalation-1";
    return {
      type: "recordNotice",
      escalationId,
      notice: each.a % 3,
      channel: "chat",
      outcome: "failed",
      tries: 1,
    };
  },
  spawn: ({ state, setup }, { a, b }) => {
    if (state.steps.size >= 6) return undefined;
    const gate = GATES[setup.gates[a % 3] ?? 0];
    const parent = setup.isPlan
      ? [...state.steps.values()].find(({ phase }) => phase.status === "running")
      : undefined;
    if (setup.isPlan && !parent) return undefined;
    const parentFields = parent && {
      parentStepId: parent.spec.stepId,
      sourceSession: findSessionOfPhase(parent.phase) ?? OWNER,
    };
    return spawn(`call-${b}`, { ...(gate && { gate }), ...parentFields });
  },
  time: () => undefined,
  again: ({ played }, { a, b, c }) => played[(a * 13 + b * 5 + c) % Math.max(1, played.length)]?.command,
};

function commandOf(situation: Situation, each: Move): Command | undefined {
  return MAKERS[each.kind](situation, each);
}

const createDispatch = (step: Step, attempt: number): Command => ({
  type: "dispatchStep",
  stepId: step.spec.stepId,
  attempt,
  targetSession: pickSession(step, attempt),
});

const createAcknowledgement = (
  of: ReturnType<typeof describeTarget>,
  childSessionKey: SessionKey,
): Command => ({
  type: "acknowledgeStep",
  ...of,
  childSessionKey,
  childRunId: `run-${of.stepId}-${of.attempt}`,
  via: "hook",
});

/** The event that the result is held for; or another one. */
function pickTarget({ phase, lastFactId }: Step, { aim, d }: Move): EventId {
  if (phase.status === "held" && aim !== "target") return phase.target;
  return d % 2 === 0 ? (`${RUN}:1` as EventId) : lastFactId;
}

function createFinding(step: Step, each: Move): Command {
  const check = pickOf(["lint", "test"], each.b) ?? "lint";
  const verdict = pickOf(["pass", "pass", "pass", "fail", "revise", "revise"] as const, each.c) ?? "pass";
  const share = [undefined, 6_999, 7_000, 10_000][(each.d + each.b) % 4];
  return {
    type: "recordFinding",
    ...describeTarget(step, each),
    target: pickTarget(step, each),
    finding: {
      check,
      verdict,
      agentId: `check:${check}`,
      ...(share !== undefined && { confidence: share }),
      ...(each.d % 4 === 3 && { self: true as const }),
      ...(each.b % 2 === 0 && { criteria: ["style"] }),
    },
  };
}

/** The command that the runtime would submit where nobody answers, no check rules, and the host makes no agent finish. */
export function createCommandForEffect(
  state: OpenCoordination,
  effect: Effect,
  setup: Setup,
): Command | undefined {
  const step = "stepId" in effect ? state.steps.get(effect.stepId) : undefined;
  switch (effect.kind) {
    case "runStep":
      return step && step.phase.attempt < effect.attempt ? createDispatch(step, effect.attempt) : undefined;
    case "askHost":
    case "stopStep":
    case "stopObserved": {
      const { stepId, attempt } = effect;
      const code = effect.kind === "askHost" ? "child_lost" : "child_cancelled";
      const cancelled = code === "child_cancelled";
      return {
        type: "failStep",
        stepId,
        attempt,
        error: { code, message: "gone" },
        cancelled,
        via: "runner",
      };
    }
    case "stopStray":
      return { type: "stopChild", childSessionKey: effect.childSessionKey, outcome: "stopped" };
    case "admitSteps":
      return admissionOf(setup);
    case "skipSteps":
      return { type: "skipSteps", stepIds: effect.stepIds };
    case "expireQuestion":
      return { type: "expireEscalation", escalationId: effect.escalationId };
    case "tripBreaker":
      return { type: "tripBreaker" };
    case "endCoordination":
      return { type: "settleCoordination" };
    case "judgePlan":
      return { type: "judgePlan", successCriteria: [{ key: "goal", met: setup.chained }] };
    case "verifyResult": {
      const check = effect.checks[0] ?? "lint";
      const target = step?.phase.status === "held" ? step.phase.target : (`${RUN}:0` as EventId);
      const { stepId, attempt } = effect;
      return { type: "recordNoVerdict", stepId, attempt, target, check, because: "timed_out" };
    }
    case "notifyPeople": {
      const { escalationId, notice, channel } = effect;
      return { type: "recordNotice", escalationId, notice, channel, outcome: "failed", tries: 1 };
    }
    case "tellSession":
      return { type: "recordTelling", tellingId: effect.tellingId, delivery: "unknown" };
    case "closeReview":
      return { type: "settleReview", conflictId: effect.conflictId, answer: "unanswered" };
    case "mergeWorktree":
      return { type: "failMerge", stepId: effect.stepId, attempt: effect.attempt, message: "gone" };
    case "removeWorktree":
      return { type: "removeWorktree", stepId: effect.stepId, attempt: effect.attempt, outcome: "removed" };
  }
}
