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
  plannedStep,
  planScene,
  sessionOfAttempt,
  started,
  type Opened,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";
import { ack, childKey, complete, contentRef, OPEN, OWNER, spawn } from "./scene.ts";

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
/** What people demand of a decision at the least. */
export const FLOOR = 5_000;

/** A plan whose first step `a` has a gate and runs; `others` come after it as they are. */
export function running(
  gate: Gate,
  {
    others = [],
    fields = {},
    opened = {},
  }: {
    readonly others?: readonly ReturnType<typeof plannedStep>[];
    readonly fields?: StepFields;
    readonly opened?: Partial<Opened>;
  } = {},
): PlanScene {
  return planScene(
    openPlan({ steps: 1 + others.length, ...opened }),
    admit(plannedStep("a", { gate, ...fields }), ...others),
    dispatch("a"),
    started("a"),
  );
}

/** As `running`, and the child of `a` has ended well and said how sure it is. */
export function held(gate: Gate, confidence?: number, given: Parameters<typeof running>[1] = {}): PlanScene {
  return running(gate, given).then(done("a", confidence));
}

/** A spawn of a model with a gate, as `step-1`, whose child is `agent:main:subagent:1`. */
export function spawned(gate: Gate, change: Partial<Pick<StepAdmitted, "name">> = {}): PlanScene {
  return planScene(OPEN, spawn("a", { gate, ...change }), ack(1));
}

export function heldSpawn(gate: Gate, confidence?: number): PlanScene {
  return spawned(gate).then({ ...complete(1), ...stating(confidence) });
}

const stating = (confidence: number | undefined) =>
  confidence === undefined ? {} : { stated: { confidence } };

/** The attempt ends well, with outputs. */
export const done = (name: string, confidence?: number, attempt = 1): Command =>
  finish(name, attempt, { output: contentRef("out"), ...stating(confidence) });

interface About {
  readonly check?: string;
  readonly attempt?: number;
  readonly target?: string;
}

function aboutWhat(scene: PlanScene, name: string, { attempt, target }: About) {
  const { phase } = scene.step(name);
  const known = phase.status === "held" ? phase.target : "co-1:0";
  return {
    stepId: name as StepId,
    attempt: attempt ?? phase.attempt,
    target: (target ?? known) as EventId,
  };
}

export const verdict = (
  scene: PlanScene,
  name: string,
  ruling: Verdict,
  rest: About & {
    readonly confidence?: number;
    readonly criteria?: string[];
    readonly agentId?: string;
    readonly self?: true;
  } = {},
): Command => {
  const { check = "lint", attempt: _, target: _target, ...finding } = rest;
  return {
    type: "recordFinding",
    ...aboutWhat(scene, name, rest),
    finding: { check, agentId: `check:${check}`, verdict: ruling, ...finding },
  };
};

export const noVerdict = (
  scene: PlanScene,
  name: string,
  because: VerificationFailure = "timed_out",
  rest: About = {},
): Command => ({
  type: "recordNoVerdict",
  ...aboutWhat(scene, name, rest),
  check: rest.check ?? "lint",
  because,
});

export const PERSON: Answerer = { kind: "person", id: "ada" };

export const answer = (
  kind: AnswerEscalation["answer"],
  rest: Partial<Omit<AnswerEscalation, "type" | "answer">> & { readonly number?: number } = {},
): Command => {
  const { number = 1, ...given } = rest;
  return {
    type: "answerEscalation",
    escalationId: `escalation-${number}`,
    answer: kind,
    by: PERSON,
    through: "chat",
    ...(kind === "answer" && { text: contentRef("replacement") }),
    ...given,
  };
};

export const ask = (rest: Partial<Omit<AskPeople, "type">> = {}): Command => ({
  type: "askPeople",
  askedBy: childKey(1),
  kind: "clarification",
  question: contentRef("question"),
  hasDefault: false,
  openMax: 256,
  ...rest,
});

export const told = (tellingId: string): Command => ({
  type: "recordTelling",
  tellingId,
  delivery: "delivered",
});

export const question = (scene: PlanScene, number = 1): Escalation => {
  const found =
    scene.state.kind === "unopened" ? undefined : scene.state.escalations.get(`escalation-${number}`);
  if (!found) throw new Error(`no question ${number}`);
  return found;
};

/** The types of the events from the newest of a type on. */
export function typesFrom(scene: PlanScene, type: RunEvent["type"]): string[] {
  const at = scene.log.findLastIndex((event) => event.type === type);
  if (at < 0) throw new Error(`no ${type}`);
  return scene.log.slice(at).map((event) => event.type);
}

export const ofType = <T extends RunEvent["type"]>(
  scene: Pick<PlanScene, "log">,
  type: T,
): Extract<RunEvent, { type: T }>[] =>
  scene.log.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);

export { contentRef, OWNER, sessionOfAttempt };
export type { SessionKey };
