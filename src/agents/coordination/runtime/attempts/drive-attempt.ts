/**
 * Owns: bringing one attempt of a planned step from its dispatch to its end. The work may be cut off at any line and taken
 * up again from the ledger.
 *
 * D1 the dispatch is on disk before the agent is started, and its outcome after it. D2 an attempt whose start is unknown is
 * started again under the same key, and only when the host surely has no record of it.
 */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { Command } from "../../contracts/commands.ts";
import { createStepError, type StepError } from "../../contracts/fact-fields.ts";
import { addMs } from "../../contracts/ids.ts";
import type { ChildEnding, Observation } from "../../contracts/observation.ts";
import { isPlanned } from "../../dispatch/plan-rules.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import type { Step } from "../../ledger/state.ts";
import type { Start } from "../../ports/agent-runner.ts";
import { createFailureOutcome, readNewestOutcome, type AttemptOutcome } from "./attempt-outcome.ts";
import {
  acknowledgeStart,
  isAttemptOver,
  readCurrentAttempt,
  submitOrLog,
  submitOutcome,
  type CurrentAttempt,
  type AttemptDrive,
  type DrivenAttempt,
} from "./current-attempt.ts";
import { countAgentUse, createUsageField } from "./attempt-use.ts";
import {
  explainLostElsewhere,
  findStarterGateway,
  isAwaitingAnswer,
  isResultToldToAttempt,
  observeAttempt,
} from "./attempt-facts.ts";
import { askWithin, limitWait } from "../environment/bounded-answer.ts";
import { lendToOpenPlan } from "./lend-to-open-plan.ts";
import {
  CANCEL_MS_MAX,
  cancelPlanOfGivenUpAgent,
  endNestedPlans,
  readEndAfterPlan,
  type EndedObservation,
} from "./nested-plans.ts";
import { createAttemptMessage, draftDispatch, createStartOrder, readSentMessage } from "./prepare-attempt.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { createWorktreeFailure, prepareWorkFolder, type WorkFolderOutcome } from "./open-worktree.ts";
import { createSharedWait, mustStopFollowing, observeOrWait } from "./shared-wait.ts";
import { recordCompletion } from "./record-completion.ts";
import { stopAgent } from "./stop-agent.ts";
import { describeError } from "../../std/describe-error.ts";
import { waitForDuration, waitWithin } from "../../std/wait-for.ts";

/** A start that has not answered by then, beyond what the host is given to acknowledge, may have happened. */
const START_GRACE_MS = 15_000;
/** Between two questions about an attempt that the host does not know of yet. */
const ASK_AGAIN_MS = 1_000;
/** How long each answer may take at the deadline that says whether the agent has completed, before it is told to stop. */
const LAST_LOOK_MS = 1_000;
/** A worktree that is made too late is removed like any other (W1). */
const LATE: WorkFolderOutcome = { kind: "late" };
/** The host may be writing the record of a run that it has only just accepted. */
const ABSENCES_MIN = 2;

/**
 * Brings an attempt to its recorded end: dispatches it and starts its agent, or takes it up where a crash left it,
 * follows it, and stops it at its deadline. Resolves earlier when `signal` aborts or it cannot begin. @throws
 * CoordinationError when the ledger cannot be read or written.
 */
export async function driveAttempt(
  dependencies: RuntimeDependencies,
  driven: DrivenAttempt,
  signal: AbortSignal,
): Promise<void> {
  const over = Promise.withResolvers<undefined>();
  const begun = await beginDispatchedAttempt({ ...driven, dependencies, signal, over: over.promise });
  if (!begun || !("deadlineAtMs" in begun.step.phase)) return;
  const { deadlineAtMs } = begun.step.phase;
  const deadline = new AbortController();
  const cancel = dependencies.clock.wakeAt(deadlineAtMs, () => deadline.abort());
  const ended = new AbortController();
  const drive: AttemptDrive = {
    ...driven,
    dependencies,
    over: over.promise,
    signal: AbortSignal.any([signal, deadline.signal, ended.signal]),
  };
  try {
    if (begun.message !== undefined) await startAgentOfAttempt(drive, begun.message);
    await followToEnd(drive);
    const isOverdue = deadline.signal.aborted || dependencies.clock.now() >= deadlineAtMs;
    if (isOverdue && !signal.aborted)
      await timeOutUnlessCompleted({ ...drive, signal: AbortSignal.any([signal, ended.signal]) });
  } finally {
    cancel();
    ended.abort();
    over.resolve(undefined);
  }
}

interface BegunAttempt {
  readonly step: Step;
  /** The message to start the agent with; absent where an earlier process may have started it. */
  readonly message?: string;
}

/** D1: records the dispatch, or finds it recorded. A message that was made of what came to nothing is not sent. */
async function beginDispatchedAttempt(drive: AttemptDrive): Promise<BegunAttempt | undefined> {
  const current = await readCurrentAttempt(drive);
  if (current) {
    await lendToOpenPlan(drive.dependencies, current);
    return { step: current.step };
  }
  const { state, basis } = await drive.dependencies.runs.stateOnBasis(drive.runId);
  const step = state.kind === "open" ? state.steps.get(drive.stepId) : undefined;
  if (!step || state.kind !== "open" || step.phase.attempt + 1 !== drive.attempt) return undefined;
  const message = await createAttemptMessage(drive.dependencies, state, step);
  const { commands, contents } = draftDispatch(drive.dependencies, { state, step, message });
  const submitted = await submitOrLog(drive, commands, contents, { madeOn: basis });
  if (submitted.kind === "refused" || message.kind === "unfillable") return undefined;
  const dispatched = await readCurrentAttempt(drive);
  return dispatched && { step: dispatched.step, message: message.text };
}

async function startAgentOfAttempt(drive: AttemptDrive, message: string): Promise<void> {
  const current = await readCurrentAttempt(drive);
  const order =
    current &&
    (await createStartOrder(drive.dependencies, current.state, {
      step: current.step,
      message,
    }));
  const { dependencies, signal } = drive;
  if (!current || !order || signal.aborted) return;
  const leftMs = Math.max(0, order.deadlineAtMs - dependencies.clock.now());
  const preparing = prepareWorkFolder(dependencies, current, signal);
  const place = await waitWithin(dependencies.clock, leftMs, preparing, LATE);
  if (place.kind === "refused" && !drive.signal.aborted)
    await submitOutcome(drive, createWorktreeFailure(drive, place.message));
  if (place.kind !== "ready" || drive.signal.aborted) return;
  const waitMs = current.state.created.acknowledgeMs + START_GRACE_MS;
  const starting = Promise.resolve({ ...order, ...place.order }).then((placed) =>
    current.runner.start(placed),
  );
  drive.starts.starting = starting;
  const unknown: Start = { kind: "unknown", message: "the runner did not answer in time" };
  const started = await askWithin({ ...dependencies, waitMs, signal }, () => starting, unknown);
  void starting.then(
    (answer) => {
      if (answer.kind === "refused" && drive.starts.starting === starting) drive.starts.refusal = answer;
      return stopLateAgent(drive, current);
    },
    () => undefined,
  );
  await recordStart(drive, current, started);
}

async function stopLateAgent(drive: AttemptDrive, { runner, attempt, step }: CurrentAttempt): Promise<void> {
  if (!drive.signal.aborted || isDelivery(step)) return;
  await drive.over;
  try {
    const isGivenUp = await drive.dependencies.runs.findOnDisk(drive.runId, (state) =>
      isAttemptOver(drive, state) ? true : undefined,
    );
    if (isGivenUp) await runner.cancel(attempt);
  } catch (error) {
    const message = describeError(error);
    drive.dependencies.logger.warn(
      { runId: drive.runId, stepId: drive.stepId },
      `could not stop a late agent: ${message}`,
    );
  }
}

/** Records what the runner answered. Nothing is concluded from an unknown start. */
async function recordStart(drive: AttemptDrive, now: CurrentAttempt, started: Start): Promise<void> {
  const about = { stepId: drive.stepId, attempt: drive.attempt };
  if (started.kind === "unknown") return;
  if (started.kind === "refused") {
    await submitOutcome(
      drive,
      createFailureOutcome(about, createStepError("spawn_refused", started.message)),
    );
    return;
  }
  if (started.child.childSessionKey !== now.attempt.childSessionKey) {
    drive.dependencies.logger.warn(
      { runId: drive.runId, stepId: drive.stepId },
      "a runner answered for another session",
    );
    return;
  }
  const acknowledged: Command = { type: "acknowledgeStep", ...about, ...started.child, via: "runner" };
  const ended: EndedObservation | undefined = started.ending && {
    kind: "ended",
    ...started.child,
    ...started.ending,
  };
  const outcome = ended && (await readEndedOutcome(drive, now, ended));
  const { commands = [], contents } = outcome ?? {};
  const submitted = await submitOrLog(drive, [acknowledged, ...commands], contents);
  // D3: what came too late is recorded, too.
  if (submitted.kind === "refused" && outcome) await submitOutcome(drive, outcome);
}

/** Reads what to record of an agent that ended, with what it and its plans used; `undefined` while one of its plans goes on. */
async function readEndedOutcome(
  drive: AttemptDrive,
  now: CurrentAttempt,
  seen: EndedObservation,
): Promise<AttemptOutcome | undefined> {
  const submitting = { ...drive, session: now.attempt.childSessionKey };
  const waiting = { ...drive.dependencies, signal: drive.signal };
  const ending = await readEndAfterPlan(waiting, { ...now, submitting }, seen);
  return ending && readOutcome(drive, now, ending);
}

function readOutcome(
  drive: AttemptDrive,
  current: CurrentAttempt,
  ending: ChildEnding,
): Promise<AttemptOutcome> {
  const readAttempt = (): Promise<CurrentAttempt | undefined> => readCurrentAttempt(drive);
  return readNewestOutcome(drive.dependencies, { current, readAttempt }, ending);
}

/** Follows the attempt to its end, and now and then asks whether the host still knows of it. */
async function followToEnd(drive: AttemptDrive): Promise<void> {
  const { dependencies, signal } = drive;
  const waitForEnd = createSharedWait(drive);
  let absences = 0;
  for (let current = await readCurrentAttempt(drive); current; current = await readCurrentAttempt(drive)) {
    const askedAtMs = dependencies.clock.now();
    const elsewhere = explainLostElsewhere(dependencies, current.state, current.step);
    if (elsewhere) return giveUpAttempt(drive, current, elsewhere);
    await cancelPlanOfGivenUpAgent(dependencies, current);
    const seen = await observeOrWait(drive, current, waitForEnd);
    if (mustStopFollowing(drive, current, seen)) return;
    absences = seen.kind === "absent" ? absences + 1 : 0;
    if (seen.kind === "ended") await recordEnd(drive, current, seen);
    else if (absences >= ABSENCES_MIN) {
      await restartOrGiveUp(drive, current);
      absences = 0;
      // A host that neither takes the start nor knows of it is not asked for it again and again.
      await waitForDuration(dependencies.clock, ASK_AGAIN_MS, signal);
    } else if (seen.kind === "running" && current.step.phase.status === "dispatched")
      await acknowledgeStart(drive, seen);
    else if (dependencies.clock.now() < addMs(askedAtMs, ASK_AGAIN_MS))
      await waitForDuration(dependencies.clock, ASK_AGAIN_MS, signal);
  }
}

async function recordEnd(drive: AttemptDrive, now: CurrentAttempt, seen: EndedObservation): Promise<void> {
  if (now.step.phase.status === "dispatched") return acknowledgeStart(drive, seen);
  if (await pauseIfPeopleAreAsked(drive)) return;
  const outcome = await readEndedOutcome(drive, now, seen);
  if (outcome) {
    await submitOutcome(drive, outcome);
    return;
  }
  drive.dependencies.giveBack(drive.runId, drive.stepId);
  await waitForDuration(drive.dependencies.clock, ASK_AGAIN_MS, drive.signal);
}

async function pauseIfPeopleAreAsked(drive: AttemptDrive): Promise<boolean> {
  // It may have asked while its end was waited for.
  const now = await readCurrentAttempt(drive);
  if (!now || !isAwaitingAnswer(now.state, now.attempt)) return false;
  drive.dependencies.giveBack(drive.runId, drive.stepId);
  await waitForDuration(drive.dependencies.clock, ASK_AGAIN_MS, drive.signal);
  return true;
}

/** Records that nobody hears the child any more, with what it and its plans used as far as the ledger says. */
async function giveUpAttempt(
  drive: AttemptDrive,
  { attempt }: CurrentAttempt,
  error: StepError,
): Promise<void> {
  const submitting = { ...drive, session: attempt.childSessionKey };
  const waiting = { ...drive.dependencies, signal: drive.signal, waitMs: CANCEL_MS_MAX };
  const nested = await endNestedPlans(waiting, submitting);
  // The time-out counts what its plans used, or whoever takes the attempt up then.
  if (drive.signal.aborted) return;
  const agent = await countAgentUse(drive.dependencies, submitting, { kind: "absent" });
  await submitOutcome(drive, createFailureOutcome(drive, error, createUsageField(nested, agent)));
}

/**
 * Starts again, under the same key, an attempt that the host surely does not know (D2); records it as failed where it
 * had been running, its start was refused, it is sent only once or its input is lost.
 */
async function restartOrGiveUp(drive: AttemptDrive, lostAttempt: CurrentAttempt): Promise<void> {
  const { step, state } = lostAttempt;
  if (step.phase.status === "running") {
    await giveUpAttempt(
      drive,
      lostAttempt,
      createStepError("child_lost", "the host no longer knows the agent's run"),
    );
    return;
  }
  if (drive.starts.refusal) return recordStart(drive, lostAttempt, drive.starts.refusal);
  if (step.spec.deliveryMode === "best_effort") {
    const unconfirmed = createStepError(
      "spawn_not_confirmed",
      "the host has no record of the start, and it is sent only once",
    );
    await submitOutcome(drive, createFailureOutcome(drive, unconfirmed));
    return;
  }
  const message = await readSentMessage(drive.dependencies, state, step);
  if (message.kind === "message") await startAgentOfAttempt(drive, message.text);
  else
    await submitOutcome(
      drive,
      createFailureOutcome(drive, createStepError("input_unavailable", message.why)),
    );
}

/** Times the attempt out, unless its agent had completed before: then it has done its work, and what it left at work goes on. */
async function timeOutUnlessCompleted(drive: AttemptDrive): Promise<void> {
  const overdueAttempt = await readCurrentAttempt(drive);
  if (!overdueAttempt) return;
  if (isDelivery(overdueAttempt.step)) return timeOutDelivery(drive, overdueAttempt);
  const waiting = { ...drive.dependencies, signal: drive.signal, waitMs: LAST_LOOK_MS };
  const stopByMs = addMs(waiting.clock.now(), BOUNDS.stopAgentMsMax);
  const seen = await observeAttempt(waiting, overdueAttempt);
  // How long it takes to record the work of an agent is no part of the time for stopping it.
  const { waitMs } = limitWait(waiting, stopByMs);
  if (!(await recordCompletedWork(drive, overdueAttempt, seen)))
    await stopAndTimeOut(drive, overdueAttempt, waitMs);
}

/**
 * Times the attempt out, once its agent is stopped: what it used decides what follows. Where `signal` is aborted meanwhile, whoever
 * takes the attempt up again does so.
 */
async function stopAndTimeOut(
  drive: AttemptDrive,
  lateAttempt: CurrentAttempt,
  waitMs: number,
): Promise<void> {
  const { stepId, attempt, signal } = drive;
  const waiting = { ...drive.dependencies, signal };
  const { childSessionKey } = lateAttempt.attempt;
  const submitting = { ...drive, session: childSessionKey };
  const agent = {
    ...lateAttempt,
    starter: findStarterGateway(waiting, lateAttempt.state, lateAttempt.step),
    waitMs,
  };
  const { cancelled, isLost, seen, nested } = await stopAgent(waiting, agent, submitting);
  // The host may say only now that it had completed.
  if (
    signal.aborted ||
    (cancelled === "already_ended" && (await recordCompletedWork(drive, lateAttempt, seen)))
  )
    return;
  // An agent that is out of reach is left as a stray: it is told to stop once more, and what it used counts then.
  const isStray = isPlanned(lateAttempt.state) && cancelled === "unreachable" && !isLost;
  const used = createUsageField(nested, ...(isStray ? [] : [await countAgentUse(waiting, submitting, seen)]));
  const commands: Command[] = [{ type: "timeOutStep", stepId, attempt, via: "deadline", ...used }];
  if (isPlanned(lateAttempt.state) && !isStray)
    commands.push({ type: "stopChild", childSessionKey, outcome: cancelled });
  await submitOrLog(drive, commands);
}

/** Records what the agent had completed. Returns true where it had, and where `signal` is aborted. */
async function recordCompletedWork(
  drive: AttemptDrive,
  now: CurrentAttempt,
  seen: Observation,
): Promise<boolean> {
  if (seen.kind !== "ended" || seen.outcome !== "completed") return drive.signal.aborted;
  if (now.step.phase.status === "dispatched") await acknowledgeStart(drive, seen);
  const waiting = { ...drive.dependencies, signal: drive.signal, waitMs: LAST_LOOK_MS };
  const agent = { ...now, submitting: { ...drive, session: now.attempt.childSessionKey } };
  const isRecorded = await recordCompletion(waiting, { ...now, running: now.attempt }, { agent, seen });
  return isRecorded || drive.signal.aborted;
}

/**
 * Times a delivery out, after it was asked about once more, because it may have arrived. Where the owner is the agent of a step it has
 * time as long as its own attempt lasts: the step is done with what it answers.
 */
async function timeOutDelivery(drive: AttemptDrive, overdueDelivery: CurrentAttempt): Promise<void> {
  const { dependencies, runId, stepId, attempt, signal } = drive;
  const seen = await observeAttempt({ ...dependencies, signal }, overdueDelivery);
  if (seen.kind !== "absent" && (await isResultToldToAttempt(dependencies, overdueDelivery.state))) {
    // The plans of others are told meanwhile.
    dependencies.giveBack(runId, stepId);
    return followToEnd(drive);
  }
  if (seen.kind === "ended") {
    if (overdueDelivery.step.phase.status === "dispatched") await acknowledgeStart(drive, seen);
    await submitOutcome(drive, await readOutcome(drive, overdueDelivery, seen));
  } else if (!signal.aborted)
    await submitOrLog(drive, [{ type: "timeOutStep", stepId, attempt, via: "deadline" }]);
}
