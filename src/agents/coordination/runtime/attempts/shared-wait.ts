/** Owns: asking about an attempt, or waiting for its end, with one wait for however many questions, and until when. */
import type { CoordinationId, StepId } from "../../contracts/ids.ts";
import type { Observation } from "../../contracts/observation.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import type { Step } from "../../ledger/state.ts";
import type { AgentRunner, Attempt } from "../../ports/agent-runner.ts";
import { describeError } from "../../std/describe-error.ts";
import { askWithin } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { filterObservation, observeAttempt } from "./attempt-facts.ts";

/** Between two looks at a plan whose owner is being told: the step that the owner works on may end meanwhile. */
const TELLING_BEAT_MS = 1_000;

/** A step whose attempt is followed to its end, and what following it takes. */
interface FollowedStep {
  readonly dependencies: RuntimeDependencies;
  readonly runId: CoordinationId;
  readonly stepId: StepId;
  readonly signal: AbortSignal;
}

/** An attempt that is followed, as the ledger has it, and its runner. */
interface FollowedAttempt {
  readonly step: Step;
  readonly attempt: Attempt;
  readonly runner: AgentRunner;
}

type WaitForEnd = (now: Pick<FollowedAttempt, "attempt" | "runner">) => Promise<Observation>;

/**
 * Returns a function that waits for the end of an attempt, and gives `unknown`, with a warning, where the runner fails
 * at that. The runner is asked to wait once, however many heartbeats pass meanwhile.
 */
export function createSharedWait({ dependencies, signal, runId, stepId }: FollowedStep): WaitForEnd {
  let waiting: Promise<Observation> | undefined;
  const wait: WaitForEnd = async ({ runner, attempt }) => {
    try {
      return await runner.follow(attempt, signal);
    } catch (error) {
      const message = describeError(error);
      dependencies.logger.warn({ runId, stepId }, `the runner cannot wait for the agent: ${message}`);
      return { kind: "unknown" };
    } finally {
      waiting = undefined;
    }
  };
  return (now) => (waiting ??= wait(now));
}

/**
 * Returns how an attempt stands: a dispatched one is asked about at once; a running one is waited for up to a
 * heartbeat, and then asked about unless it has ended or is a delivery.
 */
export async function observeOrWait(
  { dependencies, signal }: FollowedStep,
  followedAttempt: FollowedAttempt,
  waitForEnd: WaitForEnd,
): Promise<Observation> {
  const unknown: Observation = { kind: "unknown" };
  if (followedAttempt.step.phase.status === "running") {
    const waitMs = isDelivery(followedAttempt.step) ? TELLING_BEAT_MS : dependencies.settings.sweepMs;
    const beat = { ...dependencies, waitMs, signal };
    const seen = filterObservation(
      followedAttempt.attempt,
      await askWithin(beat, () => waitForEnd(followedAttempt), unknown),
    );
    // That an owner was told is known long before it has answered; the deadline ends the waiting.
    if (seen.kind === "ended" || signal.aborted || isDelivery(followedAttempt.step)) return seen;
  }
  return observeAttempt({ ...dependencies, signal }, followedAttempt);
}

/**
 * True when an attempt is followed no further: the signal aborted, or its agent was stopped at its deadline, which is
 * recorded next.
 */
export function mustStopFollowing(
  { dependencies, signal }: FollowedStep,
  { step }: FollowedAttempt,
  seen: Observation,
): boolean {
  return signal.aborted || isStoppedAtDeadline(dependencies, step, seen);
}

/**
 * True where the agent was stopped at its deadline, also by a process that died before it could record that. The owner
 * of a delivery is never stopped so.
 */
function isStoppedAtDeadline(
  { clock }: Pick<RuntimeDependencies, "clock">,
  step: Step,
  seen: Observation,
): boolean {
  const isStopped = seen.kind === "ended" && seen.outcome === "cancelled" && !isDelivery(step);
  return isStopped && "deadlineAtMs" in step.phase && clock.now() >= step.phase.deadlineAtMs;
}
