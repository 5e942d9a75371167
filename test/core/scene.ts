/** Owns: coordinations in every situation, made by the real core from commands at given times. */
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import type {
  AgentId,
  CoordinationId,
  EpochMs,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { FactDraft, RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import type { Decision } from "../../src/agents/coordination/dispatch/decision.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { createUnopenedCoordination, type Coordination } from "../../src/agents/coordination/ledger/state.ts";

export const RUN = "co-1" as CoordinationId;
export const OWNER = "agent:main:main" as SessionKey;
export const MAIN = "main" as AgentId;
export const START = 1_767_323_045_678 as EpochMs;
export const TIMEOUT_MS = 60_000;
export const ACKNOWLEDGE_MS = 30_000;
export const SETTLE_MS = 3_000;

export const stepId = (number: number): StepId => `step-${number}` as StepId;
export const nameChild = (name: string | number): SessionKey => `agent:main:subagent:${name}` as SessionKey;
export const timeAt = (ms: number): EpochMs => (START + ms) as EpochMs;
export const createContentRef = (name: string): FactPayloads["coordination.created"]["objective"] => ({
  sha256: name.charCodeAt(0).toString(16).padStart(2, "0").repeat(32),
  bytes: name.length,
});

export const OPEN: Command = {
  type: "openCoordination",
  origin: "observed",
  ownerSession: OWNER,
  ownerAgent: MAIN,
  objective: createContentRef("objective"),
  trace: { traceId: "trace-1", runId: "run-1" },
  failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
  settleMs: SETTLE_MS,
  acknowledgeMs: ACKNOWLEDGE_MS,
};

export const spawn = (call: string, change: Partial<Command & { type: "admitSpawn" }> = {}): Command => ({
  type: "admitSpawn",
  runner: "subagent",
  agentId: MAIN,
  sourceSession: OWNER,
  input: createContentRef(call),
  timeoutMs: TIMEOUT_MS,
  collect: false,
  call: { toolCallId: call, runId: "run-1", spanId: "span-1" },
  ...change,
});

export const acknowledge = (step: number, child: string | number = step, attempt = 1): Command => ({
  type: "acknowledgeStep",
  stepId: stepId(step),
  attempt,
  childSessionKey: nameChild(child),
  childRunId: `run-of-${child}`,
  via: "hook",
});
export const complete = (step: number, attempt = 1): Command => ({
  type: "completeStep",
  stepId: stepId(step),
  attempt,
  via: "hook",
});
export const fail = (
  step: number,
  code: FactPayloads["step.failed"]["error"]["code"] = "child_failed",
): Command => ({
  type: "failStep",
  stepId: stepId(step),
  attempt: 1,
  error: { code, message: "it went wrong" },
  cancelled: code === "child_cancelled",
  via: "hook",
});
export const timeOut = (step: number, attempt = 1): Command => ({
  type: "timeOutStep",
  stepId: stepId(step),
  attempt,
  via: "deadline",
});
export const SETTLE: Command = { type: "settleCoordination" };

export interface Scene {
  readonly state: Coordination;
  readonly log: readonly RunEvent[];
  /** Decides, and records what was accepted. */
  when(command: Command, ms?: number): Decision;
  /** Records facts that no command of this release makes. */
  happened(facts: readonly FactDraft[], ms?: number): void;
}

/** A coordination to which these commands have happened, each a second after the one before. */
export function openScene(...commands: readonly Command[]): Scene {
  let state: Coordination = createUnopenedCoordination(RUN);
  const log: RunEvent[] = [];
  let clock = 0;
  const recordHappened = (facts: readonly FactDraft[], ms: number): void => {
    const recorded = recordFacts(state, facts, timeAt(ms));
    state = recorded.state;
    log.push(...recorded.events);
  };
  const decideWhen = (command: Command, ms = clock): Decision => {
    const decision = decide(state, command, timeAt(ms));
    if (decision.kind === "accepted") recordHappened(decision.facts, ms);
    clock = ms + 1_000;
    return decision;
  };
  for (const command of commands) {
    const { kind } = decideWhen(command);
    if (kind !== "accepted") throw new Error(`given ${command.type}, which is ${kind}`);
  }
  return {
    get state() {
      return state;
    },
    log,
    when: decideWhen,
    happened: (facts, ms = clock) => {
      recordHappened(facts, ms);
    },
  };
}

/** A step that is admitted and not dispatched, as a plan's steps will be. */
export function openWaitingScene(retryBudget = 0): Scene {
  const scene = openScene(OPEN);
  scene.happened([
    {
      type: "step.admitted",
      payload: {
        stepId: stepId(1),
        lane: "data",
        runner: "subagent",
        agentId: MAIN,
        sourceSession: OWNER,
        deliveryMode: "at_least_once",
        priority: "normal",
        input: createContentRef("a"),
        timeoutMs: TIMEOUT_MS,
        retryBudget,
        collect: false,
        call: {},
      },
    },
  ]);
  return scene;
}

export function createDispatched(attempt: number): FactDraft {
  return {
    type: "step.dispatched",
    payload: {
      stepId: stepId(1),
      attempt,
      lane: "data",
      idempotencyKey: `co-1:step-1:${attempt}`,
      deadlineAtMs: timeAt(TIMEOUT_MS),
    },
  };
}

/** The code and the words of a refusal, or the kind of another decision. */
export function describeReason(decision: Decision): string {
  return decision.kind === "refused" ? `${decision.code}: ${decision.reason}` : decision.kind;
}
