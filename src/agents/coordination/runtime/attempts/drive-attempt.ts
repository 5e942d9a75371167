/**
 * Owns: bringing one attempt of a planned step from its dispatch to its end. The work may be cut off at any line and taken
 * up again from the ledger.
 *
 * D1 the dispatch is on disk before the agent is started, and its outcome after it. D2 an attempt whose start is unknown is
 * started again under the same key, and only when the host surely has no record of it.
 */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { Command } from "../../contracts/commands.ts";
import { stepError, type StepError } from "../../contracts/fact-fields.ts";
import { addMs, type CoordinationId, type StepId } from "../../contracts/ids.ts";
import type { ChildEnding, Observation } from "../../contracts/observation.ts";
import { isPlanned } from "../../dispatch/plan-rules.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import type { Coordination, Step } from "../../ledger/state.ts";
import type { AgentRunner, Attempt, Start } from "../../ports/agent-runner.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import { createFailure, readNewestOutcome, type Outcome } from "./attempt-outcome.ts";
import { countAgentUse, createUsage } from "./attempt-use.ts";
import { explainElsewhere, findStarter, hasAsked, isToldToAttempt, observeAttempt } from "./attempt-facts.ts";
import { askWithin, limitWait } from "../environment/bounded-answer.ts";
import { lendToOpenPlan } from "./lend-to-open-plan.ts";
import { CANCEL_MS_MAX, cancelIfGivenUp, endNested, readEndAfterPlan, type Ended } from "./nested-plans.ts";
import {
  attemptOf,
  createMessage,
  draftDispatch,
  orderFor,
  readSentMessage,
  type AttemptStarts,
} from "./prepare-attempt.ts";
import type { SubmitOptions, Submitted } from "../log/run-log.ts";
import type { OpenStep } from "../log/step-of-child.ts";
import { chooseRunner, type RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { createUnplacedFailure, findPlace, type Place } from "./open-worktree.ts";
import { createSharedWait, mustStopFollowing, observeOrWait } from "./shared-wait.ts";
import { recordCompletion } from "./record-completion.ts";
import { stopAgent } from "./stop-agent.ts";
import { describeError } from "../../std/describe-error.ts";
import { waitFor, waitWithin } from "../../std/wait-for.ts";

/** A start that has not answered by then, beyond what the host is given to acknowledge, may have happened. */
const START_GRACE_MS = 15_000;
/** Between two questions about an attempt that the host does not know of yet. */
const ASK_AGAIN_MS = 1_000;
/** How long each answer may take at the deadline that says whether the agent has completed, before it is told to stop. */
const LAST_LOOK_MS = 1_000;
/** A worktree that is made too late is removed like any other (W1). */
const LATE: Place = { kind: "late" };
/** The host may be writing the record of a run that it has only just accepted. */
const ABSENCES_MIN = 2;

export interface DrivenAttempt {
  readonly runId: CoordinationId;
  readonly stepId: StepId;
  readonly attempt: number;
  readonly starts: AttemptStarts;
}

interface Drive extends DrivenAttempt {
  readonly dependencies: RuntimeDependencies;
  /** Aborted when the attempt is over for other reasons, or the coordinator stops. */
  readonly signal: AbortSignal;
  /** Resolves when this process does no more for the attempt. */
  readonly over: Promise<unknown>;
}

interface Current extends OpenStep {
  readonly attempt: Attempt;
  readonly runner: AgentRunner;
}

/** @throws CoordinationError when the ledger cannot be read or written. */
export async function driveAttempt(
  dependencies: RuntimeDependencies,
  driven: DrivenAttempt,
  signal: AbortSignal,
): Promise<void> {
  const over = Promise.withResolvers<undefined>();
  const begun = await begin({ ...driven, dependencies, signal, over: over.promise });
  if (!begun || !("deadlineAtMs" in begun.step.phase)) return;
  const { deadlineAtMs } = begun.step.phase;
  const deadline = new AbortController();
  const cancel = dependencies.clock.wakeAt(deadlineAtMs, () => deadline.abort());
  const ended = new AbortController();
  const drive: Drive = {
    ...driven,
    dependencies,
    over: over.promise,
    signal: AbortSignal.any([signal, deadline.signal, ended.signal]),
  };
  try {
    if (begun.message !== undefined) await start(drive, begun.message);
    await follow(drive);
    const isOverdue = deadline.signal.aborted || dependencies.clock.now() >= deadlineAtMs;
    if (isOverdue && !signal.aborted)
      await timeOut({ ...drive, signal: AbortSignal.any([signal, ended.signal]) });
  } finally {
    cancel();
    ended.abort();
    over.resolve(undefined);
  }
}

/** Reads the attempt as the ledger has it now; `undefined` once it is over. */
async function readCurrentAttempt(drive: Drive): Promise<Current | undefined> {
  const { dependencies, runId, stepId, starts } = drive;
  const state = await dependencies.runs.state(runId);
  if (state.kind !== "open" || isOver(drive, state)) return undefined;
  const step = state.steps.get(stepId);
  const attempt = step && attemptOf(state, step);
  if (!attempt) return undefined;
  const runner = chooseRunner(dependencies, step.spec);
  if (!isDelivery(step)) starts.atWork = { runner, attempt };
  return { state, step, attempt, runner };
}

function isOver({ stepId, attempt }: Drive, state: Coordination): boolean {
  const phase = state.kind === "open" ? state.steps.get(stepId)?.phase : undefined;
  const isAtWork = phase?.status === "dispatched" || phase?.status === "running";
  return !isAtWork || phase.attempt !== attempt;
}

async function submit(
  { dependencies, runId }: Drive,
  commands: readonly Command[],
  contents: readonly ContentInput[] = [],
  options: SubmitOptions = {},
): Promise<Submitted> {
  const submitted = await dependencies.runs.submit(runId, commands, contents, options);
  if (submitted.kind === "refused")
    dependencies.logger.info(
      { runId, refusal: submitted.code, command: commands[0]?.type },
      `refused: ${submitted.reason}`,
    );
  return submitted;
}

interface Begun {
  readonly step: Step;
  /** The message to start the agent with; absent where an earlier process may have started it. */
  readonly message?: string;
}

/** D1: records the dispatch, or finds it recorded. A message that was made of what came to nothing is not sent. */
async function begin(drive: Drive): Promise<Begun | undefined> {
  const current = await readCurrentAttempt(drive);
  if (current) {
    await lendToOpenPlan(drive.dependencies, current);
    return { step: current.step };
  }
  const { state, basis } = await drive.dependencies.runs.stateOnBasis(drive.runId);
  const step = state.kind === "open" ? state.steps.get(drive.stepId) : undefined;
  if (!step || state.kind !== "open" || step.phase.attempt + 1 !== drive.attempt) return undefined;
  const message = await createMessage(drive.dependencies, state, step);
  const { commands, contents } = draftDispatch(drive.dependencies, { state, step, message });
  const submitted = await submit(drive, commands, contents, { madeOn: basis });
  if (submitted.kind === "refused" || message.kind === "unfillable") return undefined;
  const dispatched = await readCurrentAttempt(drive);
  return dispatched && { step: dispatched.step, message: message.text };
}

async function start(drive: Drive, message: string): Promise<void> {
  const now = await readCurrentAttempt(drive);
  const order = now && (await orderFor(drive.dependencies, now.state, { step: now.step, message }));
  const { dependencies, signal } = drive;
  if (!now || !order || signal.aborted) return;
  const leftMs = Math.max(0, order.deadlineAtMs - dependencies.clock.now());
  const place = await waitWithin(dependencies.clock, leftMs, findPlace(dependencies, now), LATE);
  if (place.kind === "refused") await conclude(drive, createUnplacedFailure(drive, place.message));
  if (place.kind !== "ready" || drive.signal.aborted) return;
  const waitMs = now.state.created.acknowledgeMs + START_GRACE_MS;
  const starting = Promise.resolve({ ...order, ...place.order }).then((placed) => now.runner.start(placed));
  drive.starts.starting = starting;
  const unknown: Start = { kind: "unknown", message: "the runner did not answer in time" };
  const started = await askWithin({ ...dependencies, waitMs, signal }, () => starting, unknown);
  void starting.then(
    (answer) => {
      if (answer.kind === "refused" && drive.starts.starting === starting) drive.starts.refusal = answer;
      return stopIfOver(drive, now);
    },
    () => undefined,
  );
  await record(drive, now, started);
}

/** An agent that came to life after its attempt was given up must not go on. */
async function stopIfOver(drive: Drive, { runner, attempt, step }: Current): Promise<void> {
  if (!drive.signal.aborted || isDelivery(step)) return;
  await drive.over;
  try {
    const isGivenUp = await drive.dependencies.runs.findOnDisk(drive.runId, (state) =>
      isOver(drive, state) ? true : undefined,
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
async function record(drive: Drive, now: Current, started: Start): Promise<void> {
  const about = { stepId: drive.stepId, attempt: drive.attempt };
  if (started.kind === "unknown") return;
  if (started.kind === "refused") {
    await conclude(drive, createFailure(about, stepError("spawn_refused", started.message)));
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
  const ended: Ended | undefined = started.ending && { kind: "ended", ...started.child, ...started.ending };
  const outcome = ended && (await readEndedOutcome(drive, now, ended));
  const { commands = [], contents } = outcome ?? {};
  const submitted = await submit(drive, [acknowledged, ...commands], contents);
  // D3: what came too late is recorded, too.
  if (submitted.kind === "refused" && outcome) await conclude(drive, outcome);
}

/** Reads what to record of an agent that ended, with what it and its plans used; `undefined` while one of its plans goes on. */
async function readEndedOutcome(drive: Drive, now: Current, seen: Ended): Promise<Outcome | undefined> {
  const submitting = { ...drive, session: now.attempt.childSessionKey };
  const waiting = { ...drive.dependencies, signal: drive.signal };
  const ending = await readEndAfterPlan(waiting, { ...now, submitting }, seen);
  return ending && readOutcome(drive, now, ending);
}

function readOutcome(drive: Drive, current: Current, ending: ChildEnding): Promise<Outcome> {
  const readAttempt = (): Promise<Current | undefined> => readCurrentAttempt(drive);
  return readNewestOutcome(drive.dependencies, { current, readAttempt }, ending);
}

function conclude(drive: Drive, { commands, contents }: Outcome): Promise<Submitted> {
  return submit(drive, commands, contents);
}

/** Follows the attempt to its end, and now and then asks whether the host still knows of it. */
async function follow(drive: Drive): Promise<void> {
  const { dependencies, signal } = drive;
  const waitForEnd = createSharedWait(drive);
  let absences = 0;
  for (let now = await readCurrentAttempt(drive); now; now = await readCurrentAttempt(drive)) {
    const askedAtMs = dependencies.clock.now();
    const elsewhere = explainElsewhere(dependencies, now.state, now.step);
    if (elsewhere) return giveUp(drive, now, elsewhere);
    await cancelIfGivenUp(dependencies, now);
    const seen = await observeOrWait(drive, now, waitForEnd);
    if (mustStopFollowing(drive, now, seen)) return;
    absences = seen.kind === "absent" ? absences + 1 : 0;
    if (seen.kind === "ended") await recordEnd(drive, now, seen);
    else if (absences >= ABSENCES_MIN) {
      await recordLostChild(drive, now);
      absences = 0;
      // A host that neither takes the start nor knows of it is not asked for it again and again.
      await waitFor(dependencies.clock, ASK_AGAIN_MS, signal);
    } else if (seen.kind === "running" && now.step.phase.status === "dispatched")
      await acknowledge(drive, seen);
    else if (dependencies.clock.now() < addMs(askedAtMs, ASK_AGAIN_MS))
      await waitFor(dependencies.clock, ASK_AGAIN_MS, signal);
  }
}

async function acknowledge(drive: Drive, seen: Observation & { kind: "running" | "ended" }): Promise<void> {
  const { stepId, attempt } = drive;
  const { childSessionKey, childRunId } = seen;
  await submit(drive, [
    { type: "acknowledgeStep", stepId, attempt, childSessionKey, childRunId, via: "reconciled" },
  ]);
}

async function recordEnd(drive: Drive, now: Current, seen: Ended): Promise<void> {
  if (now.step.phase.status === "dispatched") return acknowledge(drive, seen);
  if (await isWaitingForPeople(drive)) return;
  const outcome = await readEndedOutcome(drive, now, seen);
  if (outcome) {
    await conclude(drive, outcome);
    return;
  }
  drive.dependencies.giveBack(drive.runId, drive.stepId);
  await waitFor(drive.dependencies.clock, ASK_AGAIN_MS, drive.signal);
}

/**
 * True when the agent of the attempt asked people and has not been told yet: it goes on with the answer, in its
 * session.
 */
async function isWaitingForPeople(drive: Drive): Promise<boolean> {
  // It may have asked while its end was waited for.
  const now = await readCurrentAttempt(drive);
  if (!now || !hasAsked(now.state, now.attempt)) return false;
  drive.dependencies.giveBack(drive.runId, drive.stepId);
  await waitFor(drive.dependencies.clock, ASK_AGAIN_MS, drive.signal);
  return true;
}

/** Records that nobody hears the child any more, with what it and its plans used as far as the ledger says. */
async function giveUp(drive: Drive, { attempt }: Current, error: StepError): Promise<void> {
  const submitting = { ...drive, session: attempt.childSessionKey };
  const waiting = { ...drive.dependencies, signal: drive.signal, waitMs: CANCEL_MS_MAX };
  const nested = await endNested(waiting, submitting);
  // The time-out counts what its plans used, or whoever takes the attempt up then.
  if (drive.signal.aborted) return;
  const agent = await countAgentUse(drive.dependencies, submitting, { kind: "absent" });
  await conclude(drive, createFailure(drive, error, createUsage(nested, agent)));
}

/** D2: what the host surely does not know is started again under the same key, or given up where it may be sent only once. */
async function recordLostChild(drive: Drive, now: Current): Promise<void> {
  const { step, state } = now;
  if (step.phase.status === "running") {
    await giveUp(drive, now, stepError("child_lost", "the host no longer knows the agent's run"));
    return;
  }
  if (drive.starts.refusal) return record(drive, now, drive.starts.refusal);
  if (step.spec.deliveryMode === "best_effort") {
    const unconfirmed = stepError(
      "spawn_not_confirmed",
      "the host has no record of the start, and it is sent only once",
    );
    await conclude(drive, createFailure(drive, unconfirmed));
    return;
  }
  const message = await readSentMessage(drive.dependencies, state, step);
  if (message.kind === "message") await start(drive, message.text);
  else await conclude(drive, createFailure(drive, stepError("input_unavailable", message.why)));
}

/** Times the attempt out, unless its agent had completed before: then it has done its work, and what it left at work goes on. */
async function timeOut(drive: Drive): Promise<void> {
  const now = await readCurrentAttempt(drive);
  if (!now) return;
  if (isDelivery(now.step)) return timeOutDelivery(drive, now);
  const waiting = { ...drive.dependencies, signal: drive.signal, waitMs: LAST_LOOK_MS };
  const stopByMs = addMs(waiting.clock.now(), BOUNDS.stopAgentMsMax);
  const seen = await observeAttempt(waiting, now);
  // How long it takes to record the work of an agent is no part of the time for stopping it.
  const { waitMs } = limitWait(waiting, stopByMs);
  if (!(await recordWork(drive, now, seen))) await stopAndTimeOut(drive, now, waitMs);
}

/**
 * Times the attempt out, once its agent is stopped: what it used decides what follows. Where `signal` is aborted meanwhile, whoever
 * takes the attempt up again does so.
 */
async function stopAndTimeOut(drive: Drive, now: Current, waitMs: number): Promise<void> {
  const { stepId, attempt, signal } = drive;
  const waiting = { ...drive.dependencies, signal };
  const { childSessionKey } = now.attempt;
  const submitting = { ...drive, session: childSessionKey };
  const agent = { ...now, starter: findStarter(waiting, now.state, now.step), waitMs };
  const { cancelled, isLost, seen, nested } = await stopAgent(waiting, agent, submitting);
  // The host may say only now that it had completed.
  if (signal.aborted || (cancelled === "already_ended" && (await recordWork(drive, now, seen)))) return;
  // An agent that is out of reach is left as a stray: it is told to stop once more, and what it used counts then.
  const isStray = isPlanned(now.state) && cancelled === "unreachable" && !isLost;
  const used = createUsage(nested, ...(isStray ? [] : [await countAgentUse(waiting, submitting, seen)]));
  const commands: Command[] = [{ type: "timeOutStep", stepId, attempt, via: "deadline", ...used }];
  if (isPlanned(now.state) && !isStray)
    commands.push({ type: "stopChild", childSessionKey, outcome: cancelled });
  await submit(drive, commands);
}

/** Records what the agent had completed. Returns true where it had, and where `signal` is aborted. */
async function recordWork(drive: Drive, now: Current, seen: Observation): Promise<boolean> {
  if (seen.kind !== "ended" || seen.outcome !== "completed") return drive.signal.aborted;
  if (now.step.phase.status === "dispatched") await acknowledge(drive, seen);
  const waiting = { ...drive.dependencies, signal: drive.signal, waitMs: LAST_LOOK_MS };
  const agent = { ...now, submitting: { ...drive, session: now.attempt.childSessionKey } };
  const isRecorded = await recordCompletion(waiting, { ...now, running: now.attempt }, { agent, seen });
  return isRecorded || drive.signal.aborted;
}

/**
 * Times a delivery out, after it was asked about once more, because it may have arrived. Where the owner is the agent of a step it has
 * time as long as its own attempt lasts: the step is done with what it answers.
 */
async function timeOutDelivery(drive: Drive, now: Current): Promise<void> {
  const { dependencies, runId, stepId, attempt, signal } = drive;
  const seen = await observeAttempt({ ...dependencies, signal }, now);
  if (seen.kind !== "absent" && (await isToldToAttempt(dependencies, now.state))) {
    // The plans of others are told meanwhile.
    dependencies.giveBack(runId, stepId);
    return follow(drive);
  }
  if (seen.kind === "ended") {
    if (now.step.phase.status === "dispatched") await acknowledge(drive, seen);
    await conclude(drive, await readOutcome(drive, now, seen));
  } else if (!signal.aborted)
    await submit(drive, [{ type: "timeOutStep", stepId, attempt, via: "deadline" }]);
}
