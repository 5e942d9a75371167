/**
 * Owns: which commands a coordination accepts and which facts they become. Does not own: when commands are sent.
 *
 * D1 a dispatch is recorded before the act; its outcome is another command. D2 a duplicate is a replay, never new work.
 * D3 the outcome of an older attempt is refused. D4 attempts never exceed `retryBudget + 1`. D5 exactly one
 * `coordination.terminal`, and nothing after it.
 */
import type {
  AcknowledgeStep,
  AdmitSpawn,
  Command,
  CompleteStep,
  FailStep,
  TimeOutStep,
} from "../contracts/commands.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import { unreachable } from "../contracts/errors.ts";
import type { FactPayloads, StepAdmitted, TerminalStatus } from "../contracts/facts.ts";
import { addMs, idempotencyKey, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { ObservedChild } from "../contracts/observation.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import {
  childOf,
  isEnded,
  openStepsOf,
  type Coordination,
  type OpenCoordination,
  type Step,
} from "../ledger/state.ts";

export type RefusalCode =
  | "NOT_OPENED"
  | "ALREADY_OPENED"
  | "COORDINATION_ENDED"
  | "UNKNOWN_STEP"
  | "STALE_ATTEMPT"
  | "NOT_DISPATCHED"
  | "STEP_ENDED"
  | "ALREADY_RUNNING"
  | "OTHER_CHILD"
  | "CHILD_TAKEN"
  | "TOO_MANY_STEPS"
  | "STEPS_OPEN";

export type Decision =
  /** The facts to append; `stepId` is the step that the command was about. */
  | { readonly kind: "accepted"; readonly facts: readonly FactDraft[]; readonly stepId?: StepId }
  /** D2: the log already says so. */
  | { readonly kind: "replay"; readonly stepId?: StepId }
  | { readonly kind: "refused"; readonly code: RefusalCode; readonly reason: string };

export function decide(state: Coordination, command: Command, now: EpochMs): Decision {
  if (command.type === "openCoordination") return openCoordination(state, command);
  if (state.kind === "unopened") return refuse("NOT_OPENED", "the coordination was never opened");
  if (state.kind === "ended") {
    if (command.type === "settleCoordination") return { kind: "replay" };
    return refuse("COORDINATION_ENDED", `the coordination ended as ${state.status}`);
  }
  switch (command.type) {
    case "admitSpawn":
      return admitSpawn(state, command, now);
    case "acknowledgeStep":
      return acknowledgeStep(state, command);
    case "completeStep":
    case "failStep":
    case "timeOutStep":
      return endStep(state, command);
    case "settleCoordination":
      return settle(state);
    default:
      return unreachable(command, "command");
  }
}

function openCoordination(state: Coordination, command: Command & { type: "openCoordination" }): Decision {
  if (state.kind !== "unopened") return refuse("ALREADY_OPENED", "a coordination with this id exists");
  const { type: _, ...payload } = command;
  return { kind: "accepted", facts: [{ type: "coordination.created", payload }] };
}

function admitSpawn(state: OpenCoordination, command: AdmitSpawn, now: EpochMs): Decision {
  const { type: _, child, ...given } = command;
  const earlier = child ? state.children.get(child.childSessionKey) : sameCall(state, command);
  if (earlier) return { kind: "replay", stepId: earlier };
  if (state.steps.size >= BOUNDS.stepsPerCoordinationMax) {
    return refuse("TOO_MANY_STEPS", `a coordination holds at most ${BOUNDS.stepsPerCoordinationMax} steps`);
  }
  const stepId = nextStepId(state);
  const spec: StepAdmitted = {
    ...given,
    stepId,
    lane: "data",
    deliveryMode: "at_least_once",
    priority: "normal",
    retryBudget: 0,
  };
  return {
    kind: "accepted",
    stepId,
    facts: [
      { type: "step.admitted", payload: spec },
      { type: "step.dispatched", payload: dispatchOf(state, spec, { attempt: 1, now }) },
      ...(child ? [acknowledged(stepId, child)] : []),
    ],
  };
}

function acknowledged(stepId: StepId, { childSessionKey, childRunId }: ObservedChild): FactDraft {
  return {
    type: "step.acknowledged",
    payload: { stepId, attempt: 1, childSessionKey, childRunId, via: "hook" },
  };
}

/** D2: the same tool call asking for the same work, which the host has not answered yet. */
function sameCall(state: OpenCoordination, command: AdmitSpawn): StepId | undefined {
  const { toolCallId, runId } = command.call;
  if (!toolCallId || !runId) return undefined;
  for (const step of openStepsOf(state)) {
    const { call, input, sourceSession } = step.spec;
    const same =
      call.toolCallId === toolCallId && call.runId === runId && sourceSession === command.sourceSession;
    if (same && step.phase.status === "dispatched" && input.sha256 === command.input.sha256)
      return step.spec.stepId;
  }
  return undefined;
}

function nextStepId(state: OpenCoordination): StepId {
  let number = state.steps.size + 1;
  while (state.steps.has(`step-${number}` as StepId)) number += 1;
  return `step-${number}` as StepId;
}

function dispatchOf(
  state: OpenCoordination,
  spec: StepAdmitted,
  { attempt, now }: { attempt: number; now: EpochMs },
): FactPayloads["step.dispatched"] {
  return {
    stepId: spec.stepId,
    attempt,
    lane: spec.lane,
    idempotencyKey: idempotencyKey(state.coordinationId, spec.stepId, attempt),
    deadlineAtMs: addMs(now, spec.timeoutMs),
  };
}

function acknowledgeStep(state: OpenCoordination, command: AcknowledgeStep): Decision {
  const step = state.steps.get(command.stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${command.stepId}`);
  if (command.attempt !== step.phase.attempt) return stale(step, command.attempt);
  const child = childOf(step.phase);
  if (child) {
    if (child.childSessionKey === command.childSessionKey) return { kind: "replay", stepId: command.stepId };
    return refuse("OTHER_CHILD", `step ${command.stepId} already runs in ${child.childSessionKey}`);
  }
  if (step.phase.status !== "dispatched")
    return refuse("STEP_ENDED", `step ${command.stepId} is ${step.phase.status}`);
  const holder = state.children.get(command.childSessionKey);
  if (holder) return refuse("CHILD_TAKEN", `${command.childSessionKey} already works on ${holder}`);
  const { type: _, ...payload } = command;
  return { kind: "accepted", stepId: command.stepId, facts: [{ type: "step.acknowledged", payload }] };
}

/** H3: a child session works on one step; the reference for its key could name only one. */
function endStep(state: OpenCoordination, command: CompleteStep | FailStep | TimeOutStep): Decision {
  const step = state.steps.get(command.stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${command.stepId}`);
  const { phase } = step;
  if (command.attempt !== phase.attempt) return stale(step, command.attempt);
  if (phase.status === "waiting")
    return refuse("NOT_DISPATCHED", `step ${command.stepId} was not dispatched`);
  if (isEnded(phase)) {
    const same =
      phase.status === OUTCOME_STATUS[command.type] ||
      (command.type === "failStep" && phase.status === "cancelled");
    return same
      ? { kind: "replay", stepId: command.stepId }
      : refuse("STEP_ENDED", `step ${command.stepId} already ended as ${phase.status}`);
  }
  if (phase.status === "running" && neverSpawned(command))
    return refuse("ALREADY_RUNNING", `step ${command.stepId} runs in ${phase.childSessionKey}`);
  return { kind: "accepted", stepId: command.stepId, facts: [outcomeFact(step, command)] };
}

/** Says that the host made no child, which an acknowledgement contradicts: the word of another call, or an older one. */
function neverSpawned(command: CompleteStep | FailStep | TimeOutStep): boolean {
  if (command.type !== "failStep") return false;
  return command.error.code === "spawn_refused" || command.error.code === "spawn_not_confirmed";
}

const OUTCOME_STATUS = { completeStep: "completed", failStep: "failed", timeOutStep: "timed_out" } as const;

function outcomeFact(step: Step, command: CompleteStep | FailStep | TimeOutStep): FactDraft {
  const { stepId, attempt, via } = command;
  switch (command.type) {
    case "completeStep":
      return {
        type: "step.completed",
        payload: { stepId, attempt, via, ...(command.output && { output: command.output }) },
      };
    case "failStep":
      return {
        type: "step.failed",
        payload: { stepId, attempt, via, error: command.error, cancelled: command.cancelled },
      };
    case "timeOutStep": {
      const { phase } = step;
      const deadlineAtMs = "deadlineAtMs" in phase ? phase.deadlineAtMs : step.admittedAtMs;
      return { type: "step.timed_out", payload: { stepId, attempt, via, deadlineAtMs } };
    }
    default:
      return unreachable(command, "outcome command");
  }
}

function settle(state: OpenCoordination): Decision {
  const [open] = openStepsOf(state);
  if (open) return refuse("STEPS_OPEN", `step ${open.spec.stepId} is ${open.phase.status}`);
  const { completed, failed, cancelled, timed_out: timedOut } = state.endedSteps;
  const steps = { total: state.steps.size, completed, failed, timedOut, cancelled };
  return {
    kind: "accepted",
    facts: [{ type: "coordination.terminal", payload: { status: statusOf(steps), steps } }],
  };
}

function statusOf(counts: FactPayloads["coordination.terminal"]["steps"]): TerminalStatus {
  if (counts.completed === counts.total) return "success";
  if (counts.completed > 0) return "partial";
  return counts.cancelled === counts.total ? "cancelled" : "failed";
}

function stale(step: Step, attempt: number): Decision {
  return refuse(
    "STALE_ATTEMPT",
    `attempt ${attempt} is not attempt ${step.phase.attempt} of step ${step.spec.stepId}`,
  );
}

function refuse(code: RefusalCode, reason: string): Decision {
  return { kind: "refused", code, reason };
}
