/** Owns: random histories: commands in any order, with duplicates, stale attempts and words of children that are not there. */
import fc from "fast-check";
import type { Command, StatedConfidence } from "../../src/agents/coordination/contracts/commands.ts";
import {
  createEventId,
  type AgentId,
  type CoordinationId,
  type EpochMs,
  type SessionKey,
  type StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import type { Decision } from "../../src/agents/coordination/dispatch/decision.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { createUnopenedCoordination, type Coordination } from "../../src/agents/coordination/ledger/state.ts";

export const RUN = "co-1" as CoordinationId;
const START_MS = 1_767_323_045_678;

const opening: fc.Arbitrary<Command> = fc.record({
  type: fc.constant("openCoordination" as const),
  origin: fc.constantFrom("observed" as const, "plan" as const),
  ownerSession: fc.constant("agent:main:main" as SessionKey),
  ownerAgent: fc.constant("main" as AgentId),
  objective: fc.constant({ sha256: "0".repeat(64), bytes: 1 }),
  trace: fc.constantFrom({}, { traceId: "trace-1" }, { traceId: "trace-1", runId: "run-1" }),
  failurePolicy: fc.constant({
    retryBudget: 0,
    timeoutPolicy: "continue_with_partial" as const,
    escalationPolicy: "none" as const,
  }),
  settleMs: fc.constantFrom(0, 3_000),
  acknowledgeMs: fc.constantFrom(1_000, 30_000),
});

const stepIds = fc.integer({ min: 1, max: 5 }).map((number) => `step-${number}` as StepId);
const attempts = fc.constantFrom(1, 1, 1, 1, 0, 2);
const children = fc.integer({ min: 1, max: 4 }).map((number) => ({
  childSessionKey: `agent:main:subagent:${number}` as SessionKey,
  childRunId: `run-of-${number}`,
}));
const via = fc.constantFrom("hook" as const, "reconciled" as const, "deadline" as const);

const GATES: readonly Gate[] = [
  { threshold: 7_000 },
  { threshold: 7_000, requireConfidence: true },
  { threshold: 7_000, checks: ["lint"], criticThreshold: 6_000, revisionsMax: 1 },
];

const spawning: fc.Arbitrary<Command> = fc
  .record({
    call: fc.integer({ min: 1, max: 6 }),
    parent: fc.option(stepIds, { nil: undefined }),
    child: fc.option(children, { nil: undefined, freq: 9 }),
    timeoutMs: fc.constantFrom(1, 60_000),
    gate: fc.constantFrom(undefined, undefined, undefined, undefined, ...GATES),
  })
  .map(({ call, parent, child, timeoutMs, gate }) => ({
    type: "admitSpawn",
    ...(gate && { gate }),
    ...(parent && { parentStepId: parent }),
    ...(child && { child }),
    runner: "subagent",
    agentId: "main" as AgentId,
    sourceSession: "agent:main:main" as SessionKey,
    input: { sha256: String(call).repeat(64), bytes: call },
    timeoutMs,
    collect: false,
    call: call === 6 ? {} : { toolCallId: `call-${call}`, runId: "run-1" },
  }));

const about = { stepId: stepIds, attempt: attempts, via };

const acknowledging: fc.Arbitrary<Command> = fc
  .record({ ...about, child: children })
  .map(({ child, ...rest }) => ({ type: "acknowledgeStep", ...rest, ...child }));

const failing: fc.Arbitrary<Command> = fc
  .record({
    ...about,
    code: fc.constantFrom("spawn_refused" as const, "child_failed" as const, "child_cancelled" as const),
  })
  .map(({ code, ...rest }) => ({
    type: "failStep",
    ...rest,
    error: { code, message: "x" },
    cancelled: code === "child_cancelled",
  }));

const outcome: fc.Arbitrary<Command> = fc.oneof(
  { weight: 2, arbitrary: acknowledging },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("completeStep" as const), ...about }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("timeOutStep" as const), ...about }) },
  { weight: 1, arbitrary: failing },
);

const reporting: fc.Arbitrary<Command> = fc.record({
  type: fc.constant("reportStep" as const),
  stepId: stepIds,
  attempt: attempts,
  outcome: fc.constantFrom("completed" as const, "failed" as const),
  output: fc.constantFrom("a", "b").map((letter) => ({ sha256: letter.repeat(64), bytes: 1 })),
});

const text = fc.constantFrom("c", "d").map((letter) => ({ sha256: letter.repeat(64), bytes: 1 }));
const stated: fc.Arbitrary<StatedConfidence> = fc.constantFrom(
  {},
  { confidence: 4_000 },
  { confidence: 9_000 },
  { confidenceUnreadable: true as const },
);

/** Commands about held results, and about sessions that wait to be told. */
const gated: fc.Arbitrary<Command> = fc.oneof(
  fc.record({ ...about, stated }).map((statement): Command => ({ type: "completeStep", ...statement })),
  fc.tuple(stepIds, attempts, text, stated).map(([stepId, attempt, kept, statement]): Command => ({
    type: "withholdText",
    stepId,
    attempt,
    text: kept,
    ...statement,
  })),
  fc
    .record({
      stepId: stepIds,
      attempt: attempts,
      sequence: fc.nat({ max: 40 }),
      verdict: fc.constantFrom("pass" as const, "fail" as const, "revise" as const),
    })
    .map(({ stepId, attempt, sequence, verdict }): Command => ({
      type: "recordFinding",
      stepId,
      attempt,
      target: createEventId(RUN, sequence),
      finding: { check: "lint", agentId: "agent:critic", verdict },
    })),
  fc
    .record({
      number: fc.integer({ min: 1, max: 3 }),
      answer: fc.constantFrom("approve" as const, "deny" as const),
    })
    .map(({ number, answer }): Command => ({
      type: "answerEscalation",
      escalationId: `escalation-${number}`,
      answer,
      by: { kind: "operator" },
      through: "cli",
    })),
  fc
    .integer({ min: 1, max: 3 })
    .map((number): Command => ({ type: "expireEscalation", escalationId: `escalation-${number}` })),
  stepIds.map((stepId): Command => ({
    type: "recordTelling",
    tellingId: `result:${stepId}:1`,
    delivery: "delivered",
  })),
);

const cancelling: fc.Arbitrary<Command> = fc
  .option(stepIds, { nil: undefined, freq: 4 })
  .map((stepId) => ({ type: "cancelCoordination", by: "operator", ...(stepId && { stepId }) }));

const settling: fc.Arbitrary<Command> = fc.constant({ type: "settleCoordination" });

const anyCommand = fc.oneof(
  { weight: 6, arbitrary: spawning },
  { weight: 12, arbitrary: outcome },
  { weight: 3, arbitrary: gated },
  { weight: 2, arbitrary: reporting },
  { weight: 1, arbitrary: cancelling },
  { weight: 3, arbitrary: settling },
  { weight: 1, arbitrary: opening },
);

export interface Move {
  readonly command: Command;
  /** How often the same command arrives in a row. */
  readonly times: number;
  /** Time that passes first; a clock may be put back. */
  readonly afterMs: number;
}

const moveOf = (command: fc.Arbitrary<Command>): fc.Arbitrary<Move> =>
  fc.record({
    command,
    times: fc.constantFrom(1, 1, 1, 2, 3),
    afterMs: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: -5_000, max: 0 })),
  });

/** Mostly opened first; sometimes not. */
export const histories: fc.Arbitrary<Move[]> = fc
  .tuple(
    fc.array(moveOf(anyCommand), { maxLength: 2 }),
    moveOf(opening),
    fc.array(moveOf(spawning), { maxLength: 4 }),
    fc.array(moveOf(anyCommand), { maxLength: 40 }),
    fc.boolean(),
  )
  .map(([before, first, spawns, after, early]) => [...(early ? before : []), first, ...spawns, ...after]);

/** A coordination after a series of moves, with its log and each command on the way. */
export interface PlayedMoves {
  readonly state: Coordination;
  readonly log: readonly RunEvent[];
  readonly steps: readonly {
    readonly before: Coordination;
    readonly command: Command;
    readonly now: EpochMs;
    readonly decision: Decision;
    readonly after: Coordination;
  }[];
}

export function playMoves(moves: readonly Move[]): PlayedMoves {
  let state: Coordination = createUnopenedCoordination(RUN);
  let now = START_MS;
  const log: RunEvent[] = [];
  const steps: PlayedMoves["steps"][number][] = [];
  for (const { command, times, afterMs } of moves) {
    now += afterMs;
    for (let time = 0; time < times; time += 1) {
      const before = state;
      const decision = decide(before, command, now as EpochMs);
      const facts = "facts" in decision ? (decision.facts ?? []) : [];
      if (facts.length > 0) {
        const recorded = recordFacts(before, facts, now as EpochMs);
        log.push(...recorded.events);
        state = recorded.state;
      }
      steps.push({ before, command, now: now as EpochMs, decision, after: state });
    }
  }
  return { state, log, steps };
}
