/**
 * Owns: deciding which commands a coordination accepts and which facts they become. Does not own: when commands are sent.
 *
 * D1 a dispatch is recorded before the host acts; its outcome is another command. D2 a duplicate is a replay, never new work.
 * D3 the outcome of an older attempt is refused. D4 attempts never exceed `retryBudget + 1`. D5 exactly one
 * `coordination.terminal`, and nothing after it but what was used.
 */
import type { AcknowledgeStep, Command, CompleteStep, FailStep, TimeOutStep } from "../contracts/commands.ts";
import { assertNever } from "../contracts/errors.ts";
import { createStepError } from "../contracts/fact-fields.ts";
import type { EpochMs } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { findChildOfPhase, type Coordination, type OpenCoordination, type Step } from "../ledger/state.ts";
import { recordWrite, requestResources, settleReview } from "./decide-claims.ts";
import { draftEndOfClaims, releaseClaims } from "./release-claims.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import {
  admitPlanSteps,
  cancelCoordination,
  dispatchStep,
  createDoubtQuestion,
  reportStep,
  retryStep,
  skipSteps,
  stopChild,
  tripBreaker,
} from "./decide-plan.ts";
import { recordProgress } from "./decide-progress.ts";
import { admitSpawn } from "./decide-spawn.ts";
import { settleObservedSpawns, settlePlan } from "./settle-plan.ts";
import { draftHeldResult, recordFinding, recordNoVerdict } from "./decide-held.ts";
import { lendBudget, recordUsage, returnBudget, stopAtBudget } from "./decide-budget.ts";
import { recordRefusedCall, recordCurtailedText, withholdText } from "./decide-words.ts";
import {
  answerEscalation,
  askPeople,
  expireQuestion,
  recordNotice,
  recordTelling,
} from "./decide-questions.ts";
import { decideOnWorktrees } from "./decide-worktrees.ts";
import { draftQuestion } from "./ask-people.ts";
import { refuseAndRecordLate } from "./late-outcome.ts";
import { chooseNextAttempt } from "./next-attempt.ts";
import { createRefusedRunError, observeChild } from "./observe-child.ts";
import { isPlanned, isWorkedOff, type PlannedCoordination } from "./plan-rules.ts";

/** Decides on a command: facts to append, a replay of what the log already says, or a refusal. Pure. */
export function decide(state: Coordination, command: Command, now: EpochMs): Decision {
  if (command.type === "openCoordination") return openCoordination(state, command, now);
  if (state.kind === "unopened") return refuse("NOT_OPENED", "the coordination was never opened");
  if (command.type === "recordUsage") return recordUsage(state, command);
  if (state.kind === "ended") {
    if (command.type === "settleCoordination") return { kind: "replay" };
    return refuse("COORDINATION_ENDED", `the coordination ended as ${state.status}`);
  }
  return decideOnOpenCoordination(state, command, now);
}

type CommandOnOpen = Exclude<Command, { type: "openCoordination" | "recordUsage" }>;

function decideOnOpenCoordination(state: OpenCoordination, command: CommandOnOpen, now: EpochMs): Decision {
  const decideOnType = DECIDERS[command.type] as CommandDecider<CommandOnOpen["type"]>;
  return decideOnType(state, command, now);
}

/** Decides on a command of one type. */
type CommandDecider<T extends CommandOnOpen["type"]> = (
  state: OpenCoordination,
  command: Command & { type: T },
  now: EpochMs,
) => Decision;

const DECIDERS: { readonly [T in CommandOnOpen["type"]]: CommandDecider<T> } = {
  admitSpawn,
  acknowledgeStep,
  completeStep: endStep,
  failStep: endStep,
  timeOutStep: endStep,
  reportStep,
  recordProgress,
  observeChild,
  dispatchStep,
  cancelCoordination,
  requestResources,
  releaseClaims,
  settleReview,
  recordChange: recordWrite,
  recordUndetermined: recordWrite,
  recordRefusedCall,
  stopAtBudget,
  openWorktree: decideOnWorktrees,
  beginMerge: decideOnWorktrees,
  finishMerge: decideOnWorktrees,
  askAboutMerge: decideOnWorktrees,
  failMerge: decideOnWorktrees,
  removeWorktree: decideOnWorktrees,
  settleCoordination: (state) => (isPlanned(state) ? settlePlan(state) : settleObservedSpawns(state)),
  withholdText,
  recordShortened: recordCurtailedText,
  recordSuppressed: recordCurtailedText,
  recordFinding,
  recordNoVerdict,
  answerEscalation,
  askPeople,
  expireEscalation: expireQuestion,
  recordNotice,
  recordTelling,
  admitPlanSteps: requirePlan(admitPlanSteps),
  stopChild: requirePlan(stopChild),
  skipSteps: requirePlan(skipSteps),
  retryStep: requirePlan(retryStep),
  judgePlan: requirePlan(judgePlan),
  tripBreaker: requirePlan((state, _, now) => tripBreaker(state, now)),
  lendBudget: requirePlan(lendBudget),
  returnBudget: requirePlan(returnBudget),
};

/** Returns a decider that refuses its command where the coordination runs no plan. */
function requirePlan<T extends CommandOnOpen["type"]>(
  decideOnPlan: (state: PlannedCoordination, command: Command & { type: T }, now: EpochMs) => Decision,
): CommandDecider<T> {
  return (state, command, now) =>
    isPlanned(state)
      ? decideOnPlan(state, command, now)
      : refuse("NOT_PLANNED", "the coordination runs no plan");
}

/** Records how far the plan reached its success criteria: once, when no step of it can change any more. */
function judgePlan(
  state: PlannedCoordination,
  { successCriteria }: Command & { type: "judgePlan" },
): Decision {
  if (state.successCriteria) return { kind: "replay" };
  if (!state.created.plan?.successCriteria || !isWorkedOff(state))
    return refuse("NOT_READY", "the plan has no success criteria, or not all of its steps have ended");
  return accept([{ type: "plan.judged", payload: { successCriteria } }]);
}

/** Opens the coordination. Where the planner doubts the whole plan, people are asked before anything else is recorded (G2). */
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
          draftQuestion(
            { created: payload },
            { askedBy: payload.ownerSession, ...createDoubtQuestion(decision) },
            { now },
          ),
        ]
      : [created],
  );
}

/**
 * Records which child session works on an attempt. It works on one step: the reference for its key can name only one
 * (H3).
 */
function acknowledgeStep(state: OpenCoordination, command: AcknowledgeStep): Decision {
  const step = state.steps.get(command.stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${command.stepId}`);
  if (command.attempt !== step.phase.attempt) return refuseStaleAttempt(step, command.attempt);
  const child = findChildOfPhase(step.phase);
  if (child) {
    if (child.childSessionKey === command.childSessionKey) return { kind: "replay", stepId: command.stepId };
    return refuse("OTHER_CHILD", `step ${command.stepId} already runs in session ${child.childSessionKey}`);
  }
  if (step.phase.status !== "dispatched")
    return refuse("STEP_ENDED", `step ${command.stepId} is ${step.phase.status}`);
  const { targetSession } = step.phase;
  if (targetSession && targetSession !== command.childSessionKey)
    return refuse("OTHER_CHILD", `step ${command.stepId} was dispatched to session ${targetSession}`);
  const holder = state.children.get(command.childSessionKey);
  if (holder && holder !== command.stepId)
    return refuse("CHILD_TAKEN", `session ${command.childSessionKey} already works on step ${holder}`);
  const { type: _, ...payload } = command;
  return { kind: "accepted", stepId: command.stepId, facts: [{ type: "step.acknowledged", payload }] };
}

/**
 * Records the outcome of an attempt, and what follows for its step. An outcome that the log already has is a replay
 * (D2), and one of an older attempt is refused (D3).
 */
function endStep(state: OpenCoordination, ending: EndingCommand, now: EpochMs): Decision {
  const step = state.steps.get(ending.stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${ending.stepId}`);
  const { phase } = step;
  const command = replaceEndingByReport(step, replaceEndingOfRefusedRun(step, ending));
  if (phase.status === "waiting" && command.attempt === phase.attempt)
    return refuse("NOT_DISPATCHED", `step ${command.stepId} was not dispatched`);
  const isAttemptOver =
    command.attempt !== phase.attempt || (phase.status !== "dispatched" && phase.status !== "running");
  if (isAttemptOver)
    return isRecordedOutcome(step, command)
      ? { kind: "replay", stepId: command.stepId }
      : refuseLateOutcome(step, command);
  if (phase.status === "running" && isNeverSpawned(command))
    return refuse(
      "ALREADY_RUNNING",
      `step ${command.stepId} already runs in session ${phase.childSessionKey}`,
    );
  return { kind: "accepted", stepId: command.stepId, facts: draftEndingFacts(state, step, { command, now }) };
}

/** A command that ends a step. */
type EndingCommand = CompleteStep | FailStep | TimeOutStep;

/**
 * Returns a failure in place of the outcome of the current attempt where its run was refused; a timeout, and any other
 * outcome, as it is.
 */
function replaceEndingOfRefusedRun(step: Step, ending: EndingCommand): EndingCommand {
  const refusedRun = createRefusedRunError(step);
  if (!refusedRun || ending.attempt !== step.phase.attempt || ending.type === "timeOutStep") return ending;
  const { stepId, attempt, via } = ending;
  const cancelled = ending.type === "failStep" && ending.cancelled;
  return { type: "failStep", stepId, attempt, via, error: refusedRun, cancelled };
}

/**
 * Returns the outcome that the child reported in place of the one read from its last words. The newest report counts,
 * also where it came while those were read.
 */
function replaceEndingByReport({ report }: Step, ending: EndingCommand): EndingCommand {
  if (report?.attempt !== ending.attempt || !isEndingByWords(ending)) return ending;
  const { stepId, attempt, via, usage, asEarlier } = ending;
  const about = { stepId, attempt, via, ...(usage && { usage }), ...(asEarlier && { asEarlier }) };
  if (report.outcome === "failed") {
    const error = createStepError("reported_failed", "the agent reported that it could not do it");
    return { ...about, type: "failStep", error, cancelled: false };
  }
  const stated = ending.type === "completeStep" ? ending.stated : undefined;
  return { ...about, type: "completeStep", output: report.output, ...(stated && { stated }) };
}

/** True for an outcome that was read from the words of the child or from an earlier report. */
function isEndingByWords(ending: EndingCommand): ending is CompleteStep | FailStep {
  if (ending.type !== "failStep") return ending.type === "completeStep";
  return ending.error.code === "output_invalid" || ending.error.code === "reported_failed";
}

/** True when the log already records this outcome of the attempt (D2). */
function isRecordedOutcome({ phase }: Step, command: EndingCommand): boolean {
  if (command.attempt !== phase.attempt) return false;
  const isRevised = phase.status === "backoff" && phase.revision !== undefined;
  if (phase.status === "held" || isRevised) return command.type === "completeStep";
  const status = phase.status === "backoff" || phase.status === "blocked" ? phase.cause : phase.status;
  return status === OUTCOME_STATUS[command.type] || (command.type === "failStep" && status === "cancelled");
}

/** Refuses an outcome of an attempt that is over. For an observed spawn it is only a repetition by the host and is not recorded. */
function refuseLateOutcome(step: Step, command: EndingCommand): Decision {
  if (step.spec.planned)
    return refuseAndRecordLate(step, { attempt: command.attempt, outcome: OUTCOME_STATUS[command.type] });
  if (command.attempt !== step.phase.attempt) return refuseStaleAttempt(step, command.attempt);
  return refuse("STEP_ENDED", `step ${command.stepId} already ended as ${step.phase.status}`);
}

/**
 * Drafts how an attempt ended, what follows for its step, a question where one is due, and the end of its claims; for
 * a result that is held, that instead.
 */
function draftEndingFacts(
  state: OpenCoordination,
  step: Step,
  { command, now }: { readonly command: EndingCommand; readonly now: EpochMs },
): FactDraft[] {
  const fact = draftOutcome(step, command);
  if (command.type === "completeStep") {
    const { output } = command;
    const holdFacts = draftHeldResult(state, step, { command, now, ...(output && { output }) });
    if (holdFacts) return holdFacts;
  }
  const claims = draftEndOfClaims(state, "step_ended", command.stepId);
  if (command.type === "completeStep" || !isPlanned(state)) return [fact, ...claims];
  const nextAttempt = chooseNextAttempt(state, step, { command, now });
  const ended = { ...fact, payload: { ...fact.payload, ...nextAttempt.after } } as FactDraft;
  return [ended, ...(nextAttempt.asked ? [nextAttempt.asked] : []), ...claims];
}

/** True when the outcome says that the host made no child. An acknowledged step contradicts it: it is about another or older call. */
function isNeverSpawned(command: EndingCommand): boolean {
  if (command.type !== "failStep") return false;
  return command.error.code === "spawn_refused" || command.error.code === "spawn_not_confirmed";
}

const OUTCOME_STATUS = { completeStep: "completed", failStep: "failed", timeOutStep: "timed_out" } as const;

function draftOutcome(step: Step, command: EndingCommand): FactDraft {
  const { stepId, attempt, via } = command;
  const used = command.usage ? { usage: command.usage } : {};
  switch (command.type) {
    case "completeStep": {
      const { output } = command;
      return {
        type: "step.completed",
        payload: { stepId, attempt, via, ...(output && { output }), ...used },
      };
    }
    case "failStep": {
      const { error, cancelled, unspawned } = command;
      const payload = { stepId, attempt, via, error, cancelled, ...used, ...(unspawned && { unspawned }) };
      return { type: "step.failed", payload };
    }
    case "timeOutStep": {
      const { phase } = step;
      const deadlineAtMs = "deadlineAtMs" in phase ? phase.deadlineAtMs : step.admittedAtMs;
      return { type: "step.timed_out", payload: { stepId, attempt, via, deadlineAtMs, ...used } };
    }
    default:
      return assertNever(command, "outcome command");
  }
}

function refuseStaleAttempt(step: Step, attempt: number): Decision {
  return refuse(
    "STALE_ATTEMPT",
    `attempt ${attempt} of step ${step.spec.stepId} is not the current attempt, which is ${step.phase.attempt}`,
  );
}
