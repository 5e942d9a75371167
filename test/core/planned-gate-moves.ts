/** Owns: what random plans have of gates, doubts and questions to people, and what happens to those. */
import fc from "fast-check";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { AnswerKind, QuestionPolicy } from "../../src/agents/coordination/contracts/escalation.ts";
import type { HeldDecision } from "../../src/agents/coordination/contracts/fact-fields.ts";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import type { GateEffect } from "../../src/agents/coordination/dispatch/effects/gate-effects.ts";
import {
  findSessionOfPhase,
  type Coordination,
  type Escalation,
  type Step,
} from "../../src/agents/coordination/ledger/state.ts";
import { OWNER, RUN } from "./scene.ts";
import {
  answer,
  ask,
  expire,
  judge,
  recordNotice,
  recordNoVerdict,
  recordTold,
  recordFinding,
  withhold,
} from "./planned-scene.ts";

const CHECKS = ["lint", "critic"] as const;

export const gates: fc.Arbitrary<Gate> = fc
  .record(
    {
      threshold: fc.constant(7_000),
      requireConfidence: fc.boolean(),
      checks: fc.subarray([...CHECKS]),
      criticThreshold: fc.constant(6_000),
      revisionsMax: fc.integer({ min: 0, max: 2 }),
    },
    { requiredKeys: ["threshold"] },
  )
  .map((gate) => ({ ...gate }));

export const DOUBT: HeldDecision = { confidence: 4_000, floor: 5_000 };

export const questionPolicies: fc.Arbitrary<QuestionPolicy> = fc
  .subarray([
    { channel: "chat", afterMs: 0 },
    { channel: "webhook:oncall", afterMs: 2_000 },
    { channel: "chat", afterMs: 5_000 },
  ])
  .map((notify) => ({ answerMs: 50_000, notify }));

/** The ruling of a check: `doubtful` is a pass of low confidence, `none` no verdict. */
export type CheckRuling = "pass" | "fail" | "revise" | "doubtful" | "own" | "none";
export const RULINGS = ["pass", "revise", "fail", "doubtful", "own", "none", "pass", "revise"] as const;
const rulings: fc.Arbitrary<CheckRuling> = fc.constantFrom(...RULINGS);

export type GateMove =
  | { readonly kind: "rule"; readonly pick: number; readonly ruling: CheckRuling }
  | { readonly kind: "answer"; readonly pick: number; readonly given: AnswerKind }
  | { readonly kind: "ask" | "withhold"; readonly pick: number };

const pick = fc.nat({ max: 20 });
export const answerKinds: fc.Arbitrary<AnswerKind> = fc.constantFrom("approve", "approve", "deny", "answer");

export const gateMoves: fc.Arbitrary<GateMove> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("rule" as const), pick, ruling: rulings }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("answer" as const), pick, given: answerKinds }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("ask" as const, "withhold" as const), pick }) },
);

/** Verdicts on something else, answers to what was not asked, words about sessions that wait for nothing. */
export const createStrayMoves = (
  names: fc.Arbitrary<string>,
  attempts: fc.Arbitrary<number>,
): fc.Arbitrary<Command> =>
  fc.oneof(
    fc.tuple(names, attempts, fc.nat({ max: 30 }), fc.constantFrom(...CHECKS)).map(
      ([stepId, attempt, sequence, check]) =>
        ({
          type: "recordFinding",
          stepId,
          attempt,
          target: createEventId(RUN, sequence),
          finding: { check, agentId: "agent:critic", verdict: "pass" },
        }) as Command,
    ),
    fc
      .tuple(fc.integer({ min: 1, max: 4 }), answerKinds)
      .map(([number, answerKind]) => answer(number, answerKind)),
    fc.integer({ min: 1, max: 3 }).map((number) => expire(number)),
    fc.integer({ min: 0, max: 3 }).map((place) => recordNotice(1, place)),
    fc.tuple(names, attempts).map(([name, attempt]) => withhold(name, attempt)),
    fc.constantFrom(recordTold("answer:escalation-1"), judge(false), ask(OWNER, { openMax: 1 })),
  );

const listKnownSteps = (state: Coordination): readonly Step[] =>
  state.kind === "open" ? [...state.steps.values()] : [];

/** The checks that have not answered, each with its step. */
export function openChecks(state: Coordination): { readonly step: Step; readonly check: string }[] {
  return listKnownSteps(state).flatMap((step) => {
    const { phase, spec } = step;
    if (phase.status !== "held") return [];
    const answered = new Set([...phase.findings.map(({ check }) => check), ...phase.failures.keys()]);
    const open = (spec.gate?.checks ?? []).filter((check) => !answered.has(check));
    return open.map((check) => ({ step, check }));
  });
}

export function openQuestions(state: Coordination): Escalation[] {
  if (state.kind !== "open") return [];
  return [...state.openQuestions.keys()].flatMap((id) => state.escalations.get(id) ?? []);
}

export function createRulingOn(step: Step, check: string, ruling: CheckRuling): Command {
  if (ruling === "none") return recordNoVerdict(step, check);
  if (ruling === "own") return recordFinding(step, { check, self: true });
  if (ruling === "doubtful") return recordFinding(step, { check, confidence: 4_000 });
  return recordFinding(step, { check, verdict: ruling, criteria: [`${check}-1`] });
}

export function answerTo({ escalationId }: Escalation, answerKind: AnswerKind): Command {
  return answer(Number(escalationId.slice("escalation-".length)), answerKind);
}

const pickNth = <T>(choices: readonly T[], at: number): T | undefined =>
  choices[at % Math.max(1, choices.length)];

export function createGateCommand(state: Coordination, move: GateMove): Command | undefined {
  if (move.kind === "rule") {
    const chosen = pickNth(openChecks(state), move.pick);
    return chosen && createRulingOn(chosen.step, chosen.check, move.ruling);
  }
  if (move.kind === "answer") {
    const question = pickNth(openQuestions(state), move.pick);
    return question && answerTo(question, move.given);
  }
  const step = pickNth(
    listKnownSteps(state).filter(({ phase }) => phase.status === "dispatched" || phase.status === "running"),
    move.pick,
  );
  const session = step && findSessionOfPhase(step.phase);
  if (!step || !session) return undefined;
  const { stepId } = step.spec;
  return move.kind === "ask" ? ask(session, { stepId }) : withhold(stepId, step.phase.attempt);
}

/** The result of one of the checks. */
export function ruleBy(
  { stepId, checks }: GateEffect & { readonly kind: "verifyResult" },
  state: Coordination,
  by: number,
): Command | undefined {
  const chosen = openChecks(state).find(
    ({ step, check }) => step.spec.stepId === stepId && checks.includes(check),
  );
  return chosen && createRulingOn(chosen.step, chosen.check, pickNth(RULINGS, by) ?? "pass");
}

/** Commands of the runtime when it performs an effect: from a check it hears that all is well. */
export function createCommandForGate(effect: GateEffect, state: Coordination): Command {
  switch (effect.kind) {
    case "verifyResult": {
      const chosen = openChecks(state).find(({ step }) => step.spec.stepId === effect.stepId);
      if (!chosen) throw new Error(`nothing is to be checked of ${effect.stepId}`);
      return createRulingOn(chosen.step, effect.checks[0] ?? "", "pass");
    }
    case "expireQuestion":
      return { type: "expireEscalation", escalationId: effect.escalationId };
    case "notifyPeople": {
      const { escalationId, notice: place, channel } = effect;
      return { type: "recordNotice", escalationId, notice: place, channel, outcome: "delivered", tries: 1 };
    }
    case "tellSession":
      return recordTold(effect.tellingId);
  }
}
