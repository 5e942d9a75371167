/**
 * Owns: the turn in which the agent of a running step goes on with the answer to its question. The step is done with what the agent
 * says then, so the turn belongs to its attempt: where the turn fails, or there will be none, the attempt fails once the agent has
 * ended its own turn, and where the attempt is over the turn is stopped.
 */
import { addMs, type CoordinationId, type SessionKey } from "../../contracts/ids.ts";
import type { Cancellation, ChildEnding, Observation } from "../../contracts/observation.ts";
import type { Coordination } from "../../ledger/state.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import { waitForDuration } from "../../std/wait-for.ts";
import { isBeingStopped, observeAttempt } from "../attempts/attempt-facts.ts";
import { draftAttemptOutcome } from "../attempts/attempt-outcome.ts";
import { CANCEL_MS_MAX } from "../attempts/nested-plans.ts";
import { findNewestAttempt } from "../attempts/prepare-attempt.ts";
import { countAgentUse, createUsageField } from "../attempts/attempt-use.ts";
import { stopAgent } from "../attempts/stop-agent.ts";
import { askWithin } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import type { OpenStep } from "../log/step-of-child.ts";

const LOOK_AGAIN_MS = 1_000;
/** So long a turn is told to stop that is out of reach. The host may not know of it for the first minute. */
const STOP_MS_MAX = 90_000;

export interface TurnDependencies extends RuntimeDependencies {
  readonly stopping: AbortSignal;
}

/** The turn with the answer to an agent, or why there will be none. */
export type AnsweredTurn =
  | { readonly kind: "turn"; readonly turn: Attempt }
  | { readonly kind: "none"; readonly session: SessionKey; readonly why: string };

interface FollowedTelling {
  readonly runId: CoordinationId;
  readonly tellingId: string;
}

/**
 * Follows the turn in which an agent reads an answer, fails the attempt where that turn fails, and stops the turn
 * where its attempt is over. Resolves when the turn has ended or is not there, its attempt is over or the process
 * stops.
 */
export async function followAnsweredTurn(
  dependencies: TurnDependencies,
  telling: FollowedTelling,
  answered: AnsweredTurn,
): Promise<void> {
  const { runs, clock, stopping } = dependencies;
  const session = answered.kind === "turn" ? answered.turn.childSessionKey : answered.session;
  for (;;) {
    const seen = await observeTurn(dependencies, answered);
    const asker = findAsker(await runs.state(telling.runId), session);
    if (stopping.aborted || seen.kind === "absent") return;
    // Its agent must not go on beside the next attempt.
    if (!asker) return answered.kind === "turn" ? stopAnsweredTurn(dependencies, answered.turn) : undefined;
    if (seen.kind === "ended" && (await settleEndedTurn(dependencies, { ...telling, asker }, seen))) return;
    await waitForDuration(clock, LOOK_AGAIN_MS, stopping);
  }
}

/** Settles what follows from the end of the turn. Returns false while that is open. */
async function settleEndedTurn(
  dependencies: TurnDependencies,
  { tellingId, asker }: FollowedTelling & { readonly asker: Asker },
  seen: ChildEnding,
): Promise<boolean> {
  // Its agent may have asked for the answer meanwhile.
  if (seen.outcome === "completed" || !asker.state.tellings.has(tellingId)) return true;
  // Whoever stops the attempt records how it ended.
  return !isBeingStopped(asker, dependencies.clock.now()) && failAttemptWithTurn(dependencies, asker, seen);
}

/** Asks how the turn stands. One that will never be is taken for one that failed. */
async function observeTurn(dependencies: TurnDependencies, answered: AnsweredTurn): Promise<TurnObservation> {
  if (answered.kind === "none") {
    const message = `the agent could not be told the answer to its question: ${answered.why}`;
    return { kind: "ended", outcome: "failed", message };
  }
  const waiting = { ...dependencies, signal: dependencies.stopping };
  return observeAttempt(waiting, { runner: dependencies.runners.subagent, attempt: answered.turn });
}

/** An observation of the turn with an answer; one that will not come counts as failed. */
type TurnObservation = Exclude<Observation, { kind: "ended" }> | ({ readonly kind: "ended" } & ChildEnding);

/** Stops the turn. One that is out of reach is told to stop again. */
async function stopAnsweredTurn(dependencies: TurnDependencies, turn: Attempt): Promise<void> {
  const { runners, clock, stopping, logger } = dependencies;
  const stop = (): Promise<Cancellation> => runners.subagent.cancel(turn);
  const untilMs = addMs(clock.now(), STOP_MS_MAX);
  while (clock.now() < untilMs && !stopping.aborted) {
    const waiting = { ...dependencies, waitMs: CANCEL_MS_MAX, signal: stopping };
    if ((await askWithin<Cancellation>(waiting, stop, "unreachable")) !== "unreachable") return;
    await waitForDuration(clock, LOOK_AGAIN_MS, stopping);
  }
  logger.warn({ session: turn.childSessionKey }, "could not stop the turn with the answer to an agent");
}

export interface Asker extends OpenStep {
  readonly attempt: Attempt;
}

/**
 * Returns the running step, of a subagent that we follow to its end, whose newest attempt a session works on;
 * `undefined` for any other session.
 */
export function findAsker(state: Coordination, session: SessionKey): Asker | undefined {
  if (state.kind !== "open") return undefined;
  const stepId = state.children.get(session);
  const step = stepId === undefined ? undefined : state.steps.get(stepId);
  if (step?.spec.runner !== "subagent" || step.phase.status !== "running") return undefined;
  const attempt = findNewestAttempt(state, step);
  return attempt?.childSessionKey === session ? { state, step, attempt } : undefined;
}

/**
 * Stops what the agent left at work and records that its attempt failed with the turn. False while its own turn goes
 * on or its use is not known yet; true, with nothing recorded, where the process stops.
 */
async function failAttemptWithTurn(
  dependencies: TurnDependencies,
  { state, step, attempt }: Asker,
  ended: ChildEnding,
): Promise<boolean> {
  const { runs, runners, stopping } = dependencies;
  const { coordinationId: runId } = state;
  const waiting = { ...dependencies, signal: stopping };
  const agent = { runner: runners.subagent, attempt };
  if ((await observeAttempt(waiting, agent)).kind !== "ended") return false;
  const { stepId } = step.spec;
  const submitting = { runId, stepId, attempt: step.phase.attempt, session: attempt.childSessionKey };
  const { seen, nested } = await stopAgent(waiting, agent, submitting);
  if (stopping.aborted) return true;
  // The host does not say yet what the agent used.
  if (seen.kind !== "ended") return false;
  const ending = {
    ...ended,
    ...createUsageField(await countAgentUse(dependencies, submitting, seen), nested),
  };
  const { commands } = await draftAttemptOutcome(dependencies, { state, step }, ending);
  await runs.submit(runId, commands);
  return true;
}
