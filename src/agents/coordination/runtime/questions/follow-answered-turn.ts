/**
 * Owns: the turn in which the agent of a running step goes on with the answer to its question. The step is done with what the agent
 * says then, so the turn belongs to its attempt: the attempt fails as the turn fails, and the turn is stopped where the attempt is
 * over.
 */
import type { CoordinationId, SessionKey } from "../../contracts/ids.ts";
import type { ChildEnding } from "../../contracts/observation.ts";
import type { Coordination, OpenCoordination, Step } from "../../ledger/state.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import { waitFor } from "../../std/wait-for.ts";
import { observeAttempt } from "../attempts/attempt-facts.ts";
import { outcomeOf } from "../attempts/attempt-outcome.ts";
import { cancelNested, findNestedPlan, withNested } from "../attempts/nested-plans.ts";
import { attemptOf } from "../attempts/prepare-attempt.ts";
import { askWithin } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

const LOOK_AGAIN_MS = 1_000;
/** An agent that is not stopped by then is out of reach. */
const CANCEL_MS_MAX = 30_000;

export interface TurnDependencies extends RuntimeDependencies {
  readonly stopping: AbortSignal;
}

/**
 * Resolves when the turn has ended, its attempt is over or the process stops. For a session that works on no step of ours that is at
 * once.
 */
export async function followAnsweredTurn(
  dependencies: TurnDependencies,
  runId: CoordinationId,
  turn: Attempt,
): Promise<void> {
  const { runs, runners, clock, stopping } = dependencies;
  const waiting = { ...dependencies, signal: stopping };
  const isStopping = (): boolean => stopping.aborted;
  if (!findAsker(await runs.state(runId), turn.childSessionKey)) return;
  for (;;) {
    const seen = await observeAttempt(waiting, { runner: runners.subagent, attempt: turn });
    if (isStopping() || seen.kind === "absent") return;
    if (seen.kind === "ended") return recordFailure(dependencies, { runId, turn }, seen);
    await waitFor(clock, LOOK_AGAIN_MS, stopping);
    if (isStopping()) return;
    if (findAsker(await runs.state(runId), turn.childSessionKey)) continue;
    // Its agent must not go on beside the next attempt.
    await askWithin(
      { ...waiting, waitMs: CANCEL_MS_MAX },
      () => runners.subagent.cancel(turn),
      "unreachable",
    );
    return;
  }
}

interface Asker {
  readonly state: OpenCoordination;
  readonly step: Step;
  readonly attempt: Attempt;
}

/** Finds the step that a session works on, and that we follow to its end. */
function findAsker(state: Coordination, session: SessionKey): Asker | undefined {
  if (state.kind !== "open") return undefined;
  const stepId = state.children.get(session);
  const step = stepId === undefined ? undefined : state.steps.get(stepId);
  if (step?.spec.runner !== "subagent" || step.phase.status !== "running") return undefined;
  const attempt = attemptOf(state, step);
  return attempt?.childSessionKey === session ? { state, step, attempt } : undefined;
}

interface FollowedTurn {
  readonly runId: CoordinationId;
  readonly turn: Attempt;
}

/** Records that the attempt failed with the turn. Where the turn completed, whoever drives the attempt reads its words. */
async function recordFailure(
  dependencies: TurnDependencies,
  { runId, turn }: FollowedTurn,
  ended: ChildEnding,
): Promise<void> {
  const asker = findAsker(await dependencies.runs.state(runId), turn.childSessionKey);
  if (!asker || ended.outcome === "completed") return;
  const { state, step } = asker;
  const ending = await addUsage(dependencies, asker, ended);
  const { commands } = await outcomeOf(dependencies, { state, step }, ending);
  await dependencies.runs.submit(runId, commands);
}

/** Returns the ending with the usage of the whole attempt, its plans included, which are over with it. */
async function addUsage(
  dependencies: TurnDependencies,
  { state, step, attempt }: Asker,
  ended: ChildEnding,
): Promise<ChildEnding> {
  const { coordinationId: runId } = state;
  const { stepId } = step.spec;
  const submitting = { runId, stepId, attempt: step.phase.attempt, session: attempt.childSessionKey };
  await cancelNested(dependencies, submitting);
  const nested = await findNestedPlan(dependencies, submitting);
  const waiting = { ...dependencies, signal: dependencies.stopping };
  const whole = await observeAttempt(waiting, { runner: dependencies.runners.subagent, attempt });
  const ending = whole.kind === "ended" && whole.usage ? { ...ended, usage: whole.usage } : ended;
  return nested ? withNested(ending, nested) : ending;
}
