/** Owns: what happens to held results and to questions, as commands; and reading off what became of them. */
import type {
  AnswerEscalation,
  AskPeople,
  Command,
} from "../../src/agents/coordination/contracts/commands.ts";
import type { Answerer } from "../../src/agents/coordination/contracts/escalation.ts";
import type { StepAdmitted } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { EventId, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type {
  Gate,
  Verdict,
  VerificationFailure,
} from "../../src/agents/coordination/contracts/verification.ts";
import type { Escalation } from "../../src/agents/coordination/ledger/state.ts";
import {
  admit,
  dispatch,
  finish,
  openPlan,
  planStep,
  planScene,
  nameSessionOfAttempt,
  startStep,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";
import { acknowledge, nameChild, complete, createContentRef, OPEN, OWNER, spawn } from "./scene.ts";

export const THRESHOLD = 7_000;
/** Holds what is stated to be below it, and asks people. */
export const DOUBTING: Gate = { threshold: THRESHOLD };
/** One check, `lint`, which may send the result back once. */
export const CHECKING: Gate = {
  threshold: THRESHOLD,
  checks: ["lint"],
  criticThreshold: THRESHOLD,
  revisionsMax: 1,
  verifyMs: 10_000,
};
export const CHECKING_TWICE: Gate = { ...CHECKING, checks: ["lint", "test"] };
export const VERIFY_MS = 10_000;
/** The least confidence that people demand of a decision. */
export const FLOOR = 5_000;

/** A plan whose first step `a` has a gate and runs; `others` come after it as they are. */
export function createRunningScene(
  gate: Gate,
  {
    others = [],
    fields = {},
    opened = {},
  }: {
    readonly others?: readonly ReturnType<typeof planStep>[];
    readonly fields?: StepFields;
    readonly opened?: Partial<PlanSetup>;
  } = {},
): PlanScene {
  return planScene(
    openPlan({ steps: 1 + others.length, ...opened }),
    admit(planStep("a", { gate, ...fields }), ...others),
    dispatch("a"),
    startStep("a"),
  );
}

/** As `running`, and the child of `a` has ended well and said how sure it is. */
export function createHeldScene(
  gate: Gate,
  confidence?: number,
  input: Parameters<typeof createRunningScene>[1] = {},
): PlanScene {
  return createRunningScene(gate, input).then(finishDone("a", confidence));
}

/** A spawn of a model with a gate, as `step-1`, whose child is `agent:main:subagent:1`. */
export function createSpawnedScene(gate: Gate, change: Partial<Pick<StepAdmitted, "name">> = {}): PlanScene {
  return planScene(OPEN, spawn("a", { gate, ...change }), acknowledge(1));
}

export function createHeldSpawn(gate: Gate, confidence?: number): PlanScene {
  return createSpawnedScene(gate).then({ ...complete(1), ...createStated(confidence) });
}

const createStated = (confidence: number | undefined) =>
  confidence === undefined ? {} : { stated: { confidence } };

/** The attempt ends well, with outputs. */
export const finishDone = (name: string, confidence?: number, attempt = 1): Command =>
  finish(name, attempt, { output: createContentRef("out"), ...createStated(confidence) });

interface RulingTarget {
  readonly check?: string;
  readonly attempt?: number;
  readonly target?: string;
}

function findTarget(scene: PlanScene, name: string, { attempt, target }: RulingTarget) {
  const { phase } = scene.step(name);
  const knownTarget = phase.status === "held" ? phase.target : "co-1:0";
  return {
    stepId: name as StepId,
    attempt: attempt ?? phase.attempt,
    target: (target ?? knownTarget) as EventId,
  };
}

export const ruleVerdict = (
  scene: PlanScene,
  name: string,
  ruling: Verdict,
  rest: RulingTarget & {
    readonly confidence?: number;
    readonly criteria?: string[];
    readonly agentId?: string;
    readonly self?: true;
  } = {},
): Command => {
  const { check = "lint", attempt: _, target: _target, ...finding } = rest;
  return {
    type: "recordFinding",
    ...findTarget(scene, name, rest),
    finding: { check, agentId: `check:${check}`, verdict: ruling, ...finding },
  };
};

export const ruleNoVerdict = (
  scene: PlanScene,
  name: string,
  because: VerificationFailure = "timed_out",
  rest: RulingTarget = {},
): Command => ({
  type: "recordNoVerdict",
  ...findTarget(scene, name, rest),
  check: rest.check ?? "lint",
  because,
});

export const PERSON: Answerer = { kind: "person", id: "ada" };

export const answer = (
  kind: AnswerEscalation["answer"],
  rest: Partial<Omit<AnswerEscalation, "type" | "answer">> & { readonly number?: number } = {},
): Command => {
  const { number = 1, ...input } = rest;
  return {
    type: "answerEscalation",
    escalationId: `escalation-${number}`,
    answer: kind,
    by: PERSON,
    through: "chat",
    ...(kind === "answer" && { text: createContentRef("replacement") }),
    ...input,
  };
};

export const ask = (rest: Partial<Omit<AskPeople, "type">> = {}): Command => ({
  type: "askPeople",
  askedBy: nameChild(1),
  kind: "clarification",
  question: createContentRef("question"),
  hasDefault: false,
  openMax: 256,
  ...rest,
});

export const recordTold = (tellingId: string): Command => ({
  type: "recordTelling",
  tellingId,
  delivery: "delivered",
});

export const findQuestion = (scene: PlanScene, number = 1): Escalation => {
  const found =
    scene.state.kind === "unopened" ? undefined : scene.state.escalations.get(`escalation-${number}`);
  if (!found) throw new Error(`no question ${number}`);
  return found;
};

/** The types of the events from the newest of a type on. */
export function listTypesFrom(scene: PlanScene, type: RunEvent["type"]): string[] {
  const at = scene.log.findLastIndex((event) => event.type === type);
  if (at < 0) throw new Error(`no ${type}`);
  return scene.log.slice(at).map((event) => event.type);
}

export const filterByType = <T extends RunEvent["type"]>(
  scene: Pick<PlanScene, "log">,
  type: T,
): Extract<RunEvent, { type: T }>[] =>
  scene.log.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);

export { createContentRef as contentRef, OWNER, nameSessionOfAttempt as sessionOfAttempt };
export type { SessionKey };
