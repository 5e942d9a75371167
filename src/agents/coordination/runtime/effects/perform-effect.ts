/** Owns: what each effect of `planDispatch` does. Every one may be cut off at any line and done again. */
import { stepError } from "../../contracts/fact-fields.ts";
import {
  addMs,
  type CoordinationId,
  type EpochMs,
  type IdempotencyKey,
  type SessionKey,
  type StepId,
} from "../../contracts/ids.ts";
import type { Cancellation, Observation } from "../../contracts/observation.ts";
import { envelopeOf } from "../../dispatch/envelope-of.ts";
import {
  type AskHost,
  type CloseReview,
  type Effect,
  type StopObserved,
  mustStopObserved,
} from "../../dispatch/effects/plan-dispatch.ts";
import type { EndCoordination } from "../../dispatch/effects/capacity.ts";
import { isContinuedByUs } from "../../dispatch/effects/followed-steps.ts";
import { ruleOnObservation } from "../../dispatch/effects/rule-on-observation.ts";
import {
  childOf,
  openStepsOf,
  type Coordination,
  type OpenCoordination,
  type Step,
} from "../../ledger/state.ts";
import { nameOfChild } from "../../ledger/summary.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import type { LaneRunner } from "../../ports/lane-runner.ts";
import type { SpawnObserver, SpawnQuery } from "../../ports/spawn-observer.ts";
import type { TurnsByName } from "../../std/turns-by-name.ts";
import { askWithin } from "../environment/bounded-answer.ts";
import type { Submitted } from "../log/run-log.ts";
import type { QuestionWaits } from "../questions/question-waits.ts";
import type { OwnerTurns } from "./owner-turns.ts";
import { observeAttempt } from "../attempts/attempt-facts.ts";
import { cancelNested, type SubmittingAttempt } from "../attempts/nested-plans.ts";
import { attemptOf } from "../attempts/prepare-attempt.ts";
import { recordCompletion } from "../attempts/record-completion.ts";
import { prepareSpawnEnd } from "../attempts/spawn-end.ts";
import { giveBudgetBack } from "../plans/give-budget-back.ts";
import type { MergeDependencies } from "../worktrees/merge-worktree.ts";

/** A host that has not answered by then has not answered. */
const HOST_ANSWER_MS_MAX = 10_000;
/** The host is asked again at once when the child that it names works on another step. */
const ASK_TRIES_MAX = 16;

export interface EffectDependencies extends MergeDependencies {
  readonly turns: OwnerTurns;
  readonly lanes: LaneRunner;
  readonly runner: SpawnObserver;
  /** Whose child a session is, is looked up and recorded by one at a time. */
  readonly childTurns: TurnsByName;
  /** Aborted when the coordinator stops: then no answer is waited for. */
  readonly stopping: AbortSignal;
  readonly waits: QuestionWaits;
  /** Looks at a coordination again when something is recorded in another one. */
  readonly lookAfter: (runId: CoordinationId, otherId: CoordinationId) => void;
  /** Ends what this process does for an attempt. Resolves when no start of it is under way, as far as the host answers. */
  readonly halt: (attemptKey: IdempotencyKey) => Promise<void>;
}

/** Effects of any coordination, planned or not. */
type CommonEffect = AskHost | StopObserved | CloseReview | EndCoordination;

const COMMON_EFFECTS: ReadonlySet<Effect["kind"]> = new Set([
  "askHost",
  "stopObserved",
  "closeReview",
  "endCoordination",
] satisfies CommonEffect["kind"][]);

export function isCommonEffect(effect: Effect): effect is CommonEffect {
  return COMMON_EFFECTS.has(effect.kind);
}

export async function performEffect(
  dependencies: EffectDependencies,
  state: Coordination,
  effect: CommonEffect,
): Promise<void> {
  if (state.kind !== "open") return;
  const { lanes } = dependencies;
  if (effect.kind === "askHost") return lanes.operate("question", () => askHost(dependencies, state, effect));
  if (effect.kind === "stopObserved")
    return lanes.operate("stop", () => stopObserved(dependencies, state, effect));
  if (effect.kind === "closeReview") {
    const { conflictId } = effect;
    await dependencies.runs.submit(state.coordinationId, [
      { type: "settleReview", conflictId, answer: "unanswered" },
    ]);
    return;
  }
  // A plan ends with its work; what else its owner does is no part of it.
  if (!state.plan && !isOwnerQuiet(dependencies, state)) return;
  const settled = await dependencies.runs.submit(state.coordinationId, [{ type: "settleCoordination" }]);
  if (settled.kind !== "refused" && settled.state.kind !== "unopened")
    await giveBudgetBack(dependencies, settled.state);
}

/** Nothing is known of the turns of an owner in another gateway. */
function isOwnerQuiet({ turns, clock, homes }: EffectDependencies, state: OpenCoordination): boolean {
  if (homes?.nameAway(state) !== undefined) return true;
  const now = clock.now();
  const quietSince = turns.quietSince(state.created.ownerSession, now);
  return quietSince !== undefined && now >= addMs(quietSince, state.created.settleMs);
}

/**
 * A spawn of a model: the host is told to stop it. One that ended before it could be stopped ends as it did; where we continued it,
 * only its completion counts.
 */
async function stopObserved(
  dependencies: EffectDependencies,
  planned: OpenCoordination,
  { stepId, attempt }: StopObserved,
): Promise<void> {
  const { coordinationId } = planned;
  const state = await dependencies.runs.findOnDisk(coordinationId, (current) =>
    current.kind === "open" && isToStop(current, { stepId, attempt }, dependencies.clock.now())
      ? current
      : undefined,
  );
  if (!state) return;
  // The children of the child are stopped at the same time, and may have ended since.
  const query = queryFor(planned, stepId, new Set());
  if (!query?.childSessionKey) return;
  const child = { runId: coordinationId, stepId, attempt, session: query.childSessionKey };
  const spawn: SpawnToStop = { state, child, query, continued: findContinued(state, stepId) };
  const { stopping } = dependencies;
  const isStopping = (): boolean => stopping.aborted;
  const cancelled = await stopChild(dependencies, spawn);
  if (isStopping()) return;
  const hasEndedBefore = cancelled !== "stopped" && (await recordEarlierEnd(dependencies, spawn, cancelled));
  if (hasEndedBefore || isStopping()) return;
  const sentence = cancelled === "unreachable" ? "cancelled; the host could not stop it" : "cancelled";
  const error = stepError("child_cancelled", sentence);
  await dependencies.runs.submit(coordinationId, [
    { type: "failStep", stepId, attempt, error, cancelled: true, via: "runner" },
  ]);
}

interface Continued {
  readonly step: Step;
  readonly running: Attempt;
}

interface SpawnToStop {
  readonly state: OpenCoordination;
  readonly child: SubmittingAttempt;
  readonly query: SpawnQuery;
  /** The attempt that we started; absent where the host did. */
  readonly continued: Continued | undefined;
}

/** A child that we continued is ours to stop; any other is the host's. The plan that it submitted ends with it. */
async function stopChild(
  dependencies: EffectDependencies,
  { child, query, continued }: SpawnToStop,
): Promise<Cancellation> {
  if (continued) await dependencies.halt(continued.running.idempotencyKey);
  await cancelNested(dependencies, child);
  const stop = (): Promise<Cancellation> =>
    continued ? dependencies.runners.subagent.cancel(continued.running) : dependencies.runner.stop(query);
  const cancelled = await answerOf(dependencies, stop, "unreachable");
  // Until then the child could submit another.
  await cancelNested(dependencies, child);
  return cancelled;
}

function findContinued(state: OpenCoordination, stepId: StepId): Continued | undefined {
  const step = state.steps.get(stepId);
  const running = step && isContinuedByUs(step) ? attemptOf(state, step) : undefined;
  return step && running && { step, running };
}

/**
 * Records how a child ended that had ended before it could be stopped. Returns true where it did, and where that is still to be
 * learned: then the child is looked at again. One that only waited for its own children has not ended.
 */
async function recordEarlierEnd(
  dependencies: EffectDependencies,
  { state, child, query, continued }: SpawnToStop,
  cancelled: Cancellation,
): Promise<boolean> {
  const { runId: coordinationId, stepId, attempt } = child;
  if (continued) {
    const waiting = { ...dependencies, signal: dependencies.stopping };
    const agent = { runner: dependencies.runners.subagent, attempt: continued.running, submitting: child };
    const seen = await observeAttempt(waiting, agent);
    return recordCompletion(waiting, { state, ...continued }, { agent, seen });
  }
  const seen = await observe(dependencies, query, state);
  if (seen.kind === "ended") {
    await submitSeen(dependencies, { coordinationId, stepId, attempt, away: undefined }, seen);
    return true;
  }
  // The host has not delivered the words of the child yet, or does not say.
  const isUndelivered = seen.kind === "running" && !query.hasOpenChildren;
  return cancelled === "already_ended" && (isUndelivered || seen.kind === "unknown");
}

function isToStop(
  state: OpenCoordination,
  { stepId, attempt }: Pick<StopObserved, "stepId" | "attempt">,
  now: EpochMs,
): boolean {
  const step = state.steps.get(stepId);
  return step?.phase.attempt === attempt && mustStopObserved(state, step, now);
}

/** The host's answer becomes facts; a child that is found again gets its envelope again. */
async function askHost(
  dependencies: EffectDependencies,
  state: OpenCoordination,
  { stepId, attempt }: AskHost,
): Promise<void> {
  const { coordinationId } = state;
  const asking: Asking = { coordinationId, stepId, attempt, away: dependencies.homes?.nameAway(state) };
  const elsewhere = new Set<SessionKey>();
  for (let tries = 1; tries <= ASK_TRIES_MAX; tries += 1) {
    const query = queryFor(await dependencies.runs.state(coordinationId), stepId, elsewhere);
    if (!query) return;
    const seen = await observe(dependencies, query, state);
    const recorded = await recordSeen(dependencies, asking, seen);
    if (recorded === undefined) return;
    if (recorded.kind === "held elsewhere") elsewhere.add(recorded.childSessionKey);
    else if (recorded.kind === "refused" && recorded.code === "CHILD_TAKEN") continue;
    else {
      if (seen.kind === "running") await bind(dependencies, recorded, stepId);
      return;
    }
  }
}

/** Names the attempt that the host is asked about, and the gateway of its child where that is another one. */
interface Asking {
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
  readonly attempt: number;
  readonly away: string | undefined;
}

interface HeldElsewhere {
  readonly kind: "held elsewhere";
  readonly childSessionKey: SessionKey;
}

/** H3: nobody else records whose a child is between the look at who holds it and the record. */
async function recordSeen(
  dependencies: EffectDependencies,
  asking: Asking,
  seen: Observation,
): Promise<Submitted | HeldElsewhere | undefined> {
  if (!("childSessionKey" in seen)) return submitSeen(dependencies, asking, seen);
  const { childSessionKey } = seen;
  return dependencies.childTurns.run(childSessionKey, async () =>
    (await isHeldElsewhere(dependencies, asking, seen))
      ? { kind: "held elsewhere", childSessionKey }
      : submitSeen(dependencies, asking, seen),
  );
}

/** Returns nothing where the answer is no news. */
async function submitSeen(
  dependencies: EffectDependencies,
  { coordinationId, stepId, attempt, away }: Asking,
  seen: Observation,
): Promise<Submitted | undefined> {
  // The child's last words decide what becomes of it, also where its end could not be recorded when the host told it.
  const isKept = seen.kind !== "ended" || (await dependencies.withheld.keepAgain(seen.childSessionKey));
  const latest = await dependencies.runs.state(coordinationId);
  const commands = ruleOnObservation(latest, { stepId, attempt, now: dependencies.clock.now(), away }, seen);
  if (commands.length === 0) return undefined;
  const session = "childSessionKey" in seen ? seen.childSessionKey : findChildSession(latest, stepId);
  const child = session && { runId: coordinationId, stepId, attempt, session };
  const prepared = child ? await prepareSpawnEnd(dependencies, child, { commands, isKept }) : commands;
  const submitted = await dependencies.runs.submit(coordinationId, prepared);
  dependencies.logger.info(
    { runId: coordinationId, stepId, seen: seen.kind, result: submitted.kind },
    "reconciled with the host",
  );
  return submitted;
}

function findChildSession(state: Coordination, stepId: StepId): SessionKey | undefined {
  const step = state.kind === "open" ? state.steps.get(stepId) : undefined;
  return step && childOf(step.phase)?.childSessionKey;
}

/**
 * True when another step already holds the child. Two spawns that the host cannot tell apart must not be given the
 * same one.
 */
async function isHeldElsewhere(
  { store }: EffectDependencies,
  { coordinationId, stepId }: Asking,
  { childSessionKey }: Pick<HeldElsewhere, "childSessionKey">,
): Promise<boolean> {
  const holder = await store.find(nameOfChild(childSessionKey));
  return holder !== undefined && (holder.runId !== coordinationId || holder.stepId !== stepId);
}

/**
 * A host that fails or does not answer in time says nothing; nothing may be concluded, and no slot stays taken. A child that a model
 * of another gateway spawned is not in this one.
 */
async function observe(
  dependencies: EffectDependencies,
  query: SpawnQuery,
  state: OpenCoordination,
): Promise<Observation> {
  if (!state.plan && dependencies.homes?.nameAway(state) !== undefined) return { kind: "absent" };
  return answerOf(dependencies, () => dependencies.runner.observe(query), { kind: "unknown" });
}

async function bind(
  dependencies: EffectDependencies,
  { kind, state }: Submitted,
  stepId: StepId,
): Promise<void> {
  const envelope = kind === "accepted" ? envelopeOf(state, stepId) : undefined;
  if (envelope) await answerOf(dependencies, () => dependencies.runner.bind(envelope), undefined);
}

function answerOf<T>(dependencies: EffectDependencies, ask: () => Promise<T>, otherwise: T): Promise<T> {
  return askWithin(
    { ...dependencies, waitMs: HOST_ANSWER_MS_MAX, signal: dependencies.stopping },
    ask,
    otherwise,
  );
}

function queryFor(
  state: Coordination,
  stepId: StepId,
  elsewhere: ReadonlySet<SessionKey>,
): SpawnQuery | undefined {
  if (state.kind !== "open") return undefined;
  const step = state.steps.get(stepId);
  if (!step || !("dispatchedAtMs" in step.phase)) return undefined;
  const ownSession = childOf(step.phase)?.childSessionKey;
  const otherSessions = new Set<SessionKey>(elsewhere);
  for (const other of state.steps.values()) {
    const child = childOf(other.phase);
    if (child && child.childSessionKey !== ownSession) otherSessions.add(child.childSessionKey);
  }
  const { sourceSession, input } = step.spec;
  return {
    sourceSession,
    input,
    dispatchedAtMs: step.phase.dispatchedAtMs,
    taken: otherSessions,
    ...(ownSession && { childSessionKey: ownSession }),
    hasOpenChildren: openStepsOf(state).some(({ spec }) => spec.parentStepId === stepId),
  };
}
