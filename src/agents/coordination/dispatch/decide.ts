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
import { stepError, type StepAdmitted } from "../contracts/fact-fields.ts";
import type { FactPayloads, TerminalStatus } from "../contracts/facts.ts";
import { addMs, idempotencyKey, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { ObservedChild } from "../contracts/observation.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import {
  childOf,
  openStepsOf,
  type Coordination,
  type OpenCoordination,
  type Step,
} from "../ledger/state.ts";
import { decideOnClaims, endOfClaims } from "./decide-claims.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import {
  admitPlanSteps,
  cancelCoordination,
  dispatchStep,
  doubt,
  reportStep,
  retryStep,
  skipSteps,
  stopChild,
  tripBreaker,
} from "./decide-plan.ts";
import { settlePlan } from "./settle-plan.ts";
import { holding } from "./decide-held.ts";
import { decideOnGates } from "./decide-gates.ts";
import { openQuestionsClosed } from "./decide-questions.ts";
import { asking } from "./ask-people.ts";
import { late } from "./late-outcome.ts";
import { nextTry } from "./next-try.ts";
import { isPlanned, isWorkedOff, limitIn, type PlannedCoordination } from "./plan-rules.ts";

export function decide(state: Coordination, command: Command, now: EpochMs): Decision {
  if (command.type === "openCoordination") return openCoordination(state, command, now);
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
      return endStep(state, command, now);
    case "reportStep":
      return reportStep(state, command);
    case "dispatchStep":
      return dispatchStep(state, command, now);
    case "cancelCoordination":
      return cancelCoordination(state, command);
    case "requestResources":
    case "releaseClaims":
    case "settleReview":
    case "recordChange":
    case "recordUndetermined":
      return decideOnClaims(state, command, now);
    case "settleCoordination":
      return isPlanned(state) ? settlePlan(state) : settle(state);
    case "withholdText":
    case "recordFinding":
    case "recordNoVerdict":
    case "answerEscalation":
    case "askPeople":
    case "expireEscalation":
    case "recordNotice":
    case "recordTelling":
      return decideOnGates(state, command, now);
    default:
      return decideOnPlan(state, command, now);
  }
}

type PlanCommand = Command & {
  type: "admitPlanSteps" | "stopChild" | "skipSteps" | "retryStep" | "judgePlan" | "tripBreaker";
};

/** Once, when nothing of the plan can change any more. */
function judgePlan(
  state: PlannedCoordination,
  { successCriteria }: Command & { type: "judgePlan" },
): Decision {
  if (state.successCriteria) return { kind: "replay" };
  if (!state.created.plan?.successCriteria || !isWorkedOff(state))
    return refuse("NOT_READY", "there is nothing to judge yet");
  return accept([{ type: "plan.judged", payload: { successCriteria } }]);
}

/** Commands about plans are refused where spawns are observed. */
function decideOnPlan(state: OpenCoordination, command: PlanCommand, now: EpochMs): Decision {
  if (!isPlanned(state)) return refuse("NOT_PLANNED", "the coordination runs no plan");
  switch (command.type) {
    case "admitPlanSteps":
      return admitPlanSteps(state, command, now);
    case "stopChild":
      return stopChild(state, command);
    case "skipSteps":
      return skipSteps(state, command, now);
    case "retryStep":
      return retryStep(state, command, now);
    case "judgePlan":
      return judgePlan(state, command);
    case "tripBreaker":
      return tripBreaker(state, now);
    default:
      return unreachable(command, "command");
  }
}

/** G2: where the planner doubts the whole plan, people are asked before anything else is recorded. */
function openCoordination(
  state: Coordination,
  command: Command & { type: "openCoordination" },
  now: EpochMs,
): Decision {
  if (state.kind !== "unopened") return refuse("ALREADY_OPENED", "a coordination with this id exists");
  const { type: _, ...payload } = command;
  const created: FactDraft = { type: "coordination.created", payload };
  const { decision } = payload.plan ?? {};
  return accept(
    decision
      ? [
          created,
          asking({ created: payload }, { askedBy: payload.ownerSession, ...doubt(decision) }, { now }),
        ]
      : [created],
  );
}

function admitSpawn(state: OpenCoordination, command: AdmitSpawn, now: EpochMs): Decision {
  const { type: _, child, ...given } = command;
  const earlier = child ? state.children.get(child.childSessionKey) : sameCall(state, command);
  if (earlier) return { kind: "replay", stepId: earlier };
  if (state.steps.size >= BOUNDS.stepsPerCoordinationMax) {
    return refuse("TOO_MANY_STEPS", `a coordination holds at most ${BOUNDS.stepsPerCoordinationMax} steps`);
  }
  const spentOn = spentBudget(state, command);
  if (spentOn) return refuse("BUDGET_SPENT", `${spentOn} may spawn no more; finish without another subagent`);
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

/** Whose budget of spawns is spent, where the spawn comes from a plan's child. */
function spentBudget(state: OpenCoordination, { parentStepId }: AdmitSpawn): string | undefined {
  if (!isPlanned(state)) return undefined;
  const { spawns } = state.created.plan?.budget ?? {};
  const { spent, allowedFrom } = state.plan;
  if (spawns !== undefined && spent.spawns - allowedFrom.spawns >= spawns) return "the plan";
  const parent = parentStepId && state.steps.get(parentStepId);
  return parent && hasSpentSpawns(parent) ? "the step" : undefined;
}

function hasSpentSpawns({ spec, spent }: Step): boolean {
  const budget = spec.planned?.budget;
  return spent !== undefined && limitIn(spent, { spawns: budget?.spawns }) !== undefined;
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

/** No step of a plan has an id that begins with `@`, also none that is not admitted yet. */
function nextStepId(state: OpenCoordination): StepId {
  const prefix = isPlanned(state) ? "@step-" : "step-";
  let number = state.steps.size + 1;
  while (state.steps.has(`${prefix}${number}` as StepId)) number += 1;
  return `${prefix}${number}` as StepId;
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
  const { targetSession } = step.phase;
  if (targetSession && targetSession !== command.childSessionKey)
    return refuse("OTHER_CHILD", `step ${command.stepId} was given to ${targetSession}`);
  const holder = state.children.get(command.childSessionKey);
  if (holder && holder !== command.stepId)
    return refuse("CHILD_TAKEN", `${command.childSessionKey} already works on ${holder}`);
  const { type: _, ...payload } = command;
  return { kind: "accepted", stepId: command.stepId, facts: [{ type: "step.acknowledged", payload }] };
}

/** H3: a child session works on one step; the reference for its key could name only one. */
function endStep(
  state: OpenCoordination,
  given: CompleteStep | FailStep | TimeOutStep,
  now: EpochMs,
): Decision {
  const step = state.steps.get(given.stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${given.stepId}`);
  const { phase } = step;
  const command = asReported(step, given);
  if (phase.status === "waiting" && command.attempt === phase.attempt)
    return refuse("NOT_DISPATCHED", `step ${command.stepId} was not dispatched`);
  const isOver =
    command.attempt !== phase.attempt || (phase.status !== "dispatched" && phase.status !== "running");
  if (isOver)
    return isSaid(step, command) ? { kind: "replay", stepId: command.stepId } : overlate(step, command);
  if (phase.status === "running" && neverSpawned(command))
    return refuse("ALREADY_RUNNING", `step ${command.stepId} runs in ${phase.childSessionKey}`);
  return { kind: "accepted", stepId: command.stepId, facts: endingFacts(state, step, { command, now }) };
}

/** A run that ended well is no success where its child reported that it could not do the work. */
function asReported(
  { report }: Step,
  given: CompleteStep | FailStep | TimeOutStep,
): CompleteStep | FailStep | TimeOutStep {
  const isFailure = report?.outcome === "failed" && report.attempt === given.attempt;
  if (given.type !== "completeStep" || !isFailure) return given;
  const { stepId, attempt, via, usage } = given;
  const error = stepError("reported_failed", "the agent reported that it could not do it");
  return { type: "failStep", stepId, attempt, via, error, cancelled: false, ...(usage && { usage }) };
}

/** D2: the log says the same of this attempt. */
function isSaid({ phase }: Step, command: CompleteStep | FailStep | TimeOutStep): boolean {
  if (command.attempt !== phase.attempt) return false;
  const isRevised = phase.status === "backoff" && phase.revision !== undefined;
  if (phase.status === "held" || isRevised) return command.type === "completeStep";
  const status = phase.status === "backoff" || phase.status === "blocked" ? phase.cause : phase.status;
  return status === OUTCOME_STATUS[command.type] || (command.type === "failStep" && status === "cancelled");
}

/** Of a spawn that we only observe, a stale outcome is the host's repetition and no news. */
function overlate(step: Step, command: CompleteStep | FailStep | TimeOutStep): Decision {
  if (step.spec.planned)
    return late(step, { attempt: command.attempt, outcome: OUTCOME_STATUS[command.type] });
  if (command.attempt !== step.phase.attempt) return stale(step, command.attempt);
  return refuse("STEP_ENDED", `step ${command.stepId} already ended as ${step.phase.status}`);
}

/** The outcome, what follows for the step, and the question to people where one follows. */
function endingFacts(
  state: OpenCoordination,
  step: Step,
  { command, now }: { readonly command: CompleteStep | FailStep | TimeOutStep; readonly now: EpochMs },
): FactDraft[] {
  const fact = outcomeFact(step, command);
  if (command.type === "completeStep") {
    const output = command.output ?? step.report?.output;
    const held = holding(state, step, { command, now, ...(output && { output }) });
    if (held) return held;
  }
  const claims = endOfClaims(state, "step_ended", command.stepId);
  if (command.type === "completeStep" || !isPlanned(state)) return [fact, ...claims];
  const next = nextTry(state, step, { command, now });
  const ended = { ...fact, payload: { ...fact.payload, ...next.after } } as FactDraft;
  return [ended, ...(next.asked ? [next.asked] : []), ...claims];
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
    case "completeStep": {
      const output = command.output ?? step.report?.output;
      const used = command.usage ? { usage: command.usage } : {};
      return {
        type: "step.completed",
        payload: { stepId, attempt, via, ...(output && { output }), ...used },
      };
    }
    case "failStep": {
      const used = command.usage ? { usage: command.usage } : {};
      return {
        type: "step.failed",
        payload: { stepId, attempt, via, error: command.error, cancelled: command.cancelled, ...used },
      };
    }
    case "timeOutStep": {
      const { phase } = step;
      const deadlineAtMs = "deadlineAtMs" in phase ? phase.deadlineAtMs : step.admittedAtMs;
      return { type: "step.timed_out", payload: { stepId, attempt, via, deadlineAtMs } };
    }
    default:
      return unreachable(command, "outcome command");
  }
}

/** Observed spawns: the coordination ends when nothing is open. */
function settle(state: OpenCoordination): Decision {
  const [open] = openStepsOf(state);
  if (open) return refuse("STEPS_OPEN", `step ${open.spec.stepId} is ${open.phase.status}`);
  if (state.tellings.size > 0) return refuse("STEPS_OPEN", "a session is still to be told");
  // Whoever cancelled does not wait for answers.
  if (state.openQuestions.size > 0 && !state.cancelledBy)
    return refuse("QUESTIONS_OPEN", "people were asked, and have not answered");
  const { completed, failed, cancelled, timed_out: timedOut } = state.endedSteps;
  const steps = { total: state.steps.size, completed, failed, timedOut, cancelled };
  return {
    kind: "accepted",
    facts: [
      ...openQuestionsClosed(state),
      ...endOfClaims(state, "coordination_ended"),
      {
        type: "coordination.terminal",
        payload: { status: state.cancelledBy ? "cancelled" : statusOf(steps), steps },
      },
    ],
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
