/**
 * Owns: what must not compile. Checked by `tsc`, never run: each `@ts-expect-error` fails the build once the line below it
 * compiles.
 */
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { ErrorCode, Recovery } from "../../src/agents/coordination/contracts/errors.ts";
import type { FactPayloads, FactType } from "../../src/agents/coordination/contracts/facts.ts";
import type {
  CoordinationId,
  EpochMs,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { AnswerKind } from "../../src/agents/coordination/contracts/escalation.ts";
import type { Gate, Verdict } from "../../src/agents/coordination/contracts/verification.ts";
import type { FactEvent, RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { OpenCoordination, StepPhase } from "../../src/agents/coordination/ledger/state.ts";

declare const stepId: StepId;
declare const runId: CoordinationId;
declare const session: SessionKey;
declare const now: EpochMs;
declare const event: RunEvent;
declare const fact: FactEvent;
declare const state: OpenCoordination;
declare const phase: StepPhase;

/** Ids and times are branded: one is not another, and a plain value is none. */
export const brands = {
  // @ts-expect-error a step id is no coordination id
  run: stepId satisfies CoordinationId,
  // @ts-expect-error a coordination id is no session key
  session: runId satisfies SessionKey,
  // @ts-expect-error a text is no step id
  step: "step-1" satisfies StepId,
  // @ts-expect-error a number is no time
  time: 5 satisfies EpochMs,
};

/** A command has every field of its kind, and no other kind's. */
export const commands: readonly Command[] = [
  { type: "settleCoordination" },
  // @ts-expect-error without an attempt nothing can be fenced (D3)
  { type: "completeStep", stepId, via: "hook" },
  // @ts-expect-error a failure has an error
  { type: "failStep", stepId, attempt: 1, cancelled: false, via: "hook" },
  // @ts-expect-error a verdict is about something (G1)
  { type: "recordNoVerdict", stepId, attempt: 1, check: "lint", because: "timed_out" },
  // @ts-expect-error an answer has somebody who gave it
  { type: "answerEscalation", escalationId: "escalation-1", answer: "approve", through: "cli" },
  // @ts-expect-error the ways to learn a fact are closed
  { type: "timeOutStep", stepId, attempt: 1, via: "rumour" },
];

/** A table by error code or by fact type is total. */
export const totals = {
  // @ts-expect-error codes are missing
  recoveries: { LEDGER_BUSY: "back-off" } satisfies Record<ErrorCode, Recovery>,
  // @ts-expect-error types are missing
  facts: { "step.completed": 1 } satisfies Record<FactType, number>,
};

export function readOnly(): void {
  // @ts-expect-error an event is never changed (L1)
  event.sequence = 1;
  // @ts-expect-error a state is never changed
  state.nextSequence = 1;
  // @ts-expect-error nor are its steps
  state.steps = new Map();
}

/** The gate of a result and the ruling on it are told apart. */
export const gated = {
  // @ts-expect-error there is no fourth verdict
  verdict: "maybe" satisfies Verdict,
  // @ts-expect-error nobody answers so
  answer: "later" satisfies AnswerKind,
  // @ts-expect-error a gate has a threshold
  gate: { checks: ["lint"] } satisfies Gate,
};

export function listSituations(): unknown[] {
  return [
    // @ts-expect-error a phase has a deadline only while it is dispatched or running
    phase.deadlineAtMs,
    // @ts-expect-error a payload belongs to its type
    (fact.type === "step.completed" && fact.payload.error) as unknown,
    { type: "step.timed_out", deadlineAtMs: now, session } satisfies Partial<Record<string, unknown>>,
    null as FactPayloads["step.failed"] | null,
  ];
}
