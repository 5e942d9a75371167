/** Owns: what the effects on spawned children do, and the end of a coordination. Every one may be cut off at any line and done again. */
import { createStepError } from "../../contracts/fact-fields.ts";
import {
  addMs,
  type CoordinationId,
  type EpochMs,
  type SessionKey,
  type StepId,
} from "../../contracts/ids.ts";
import type { Cancellation, Observation } from "../../contracts/observation.ts";
import { buildEnvelope } from "../../dispatch/build-envelope.ts";
import { type AskHost, type StopObserved, mustStopSpawn } from "../../dispatch/effects/next-effects.ts";
import { isContinuedByUs } from "../../dispatch/effects/followed-steps.ts";
import { ruleOnObservation } from "../../dispatch/effects/rule-on-observation.ts";
import {
  findChildOfPhase,
  listOpenSteps,
  type Coordination,
  type OpenCoordination,
  type Step,
} from "../../ledger/state.ts";
import { nameChildReference } from "../../ledger/summary.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import type { SpawnQuery } from "../../ports/spawn-observer.ts";
import { askWithin } from "../environment/bounded-answer.ts";
import type { SubmitResult } from "../log/run-log.ts";
import { observeAttempt } from "../attempts/attempt-facts.ts";
import type { SubmittingAttempt } from "../attempts/attempt-use.ts";
import { cancelNestedPlans } from "../attempts/nested-plans.ts";
import { findNewestAttempt } from "../attempts/prepare-attempt.ts";
import { recordCompletion } from "../attempts/record-completion.ts";
import { prepareSpawnEnd } from "../attempts/spawn-end.ts";
import { giveBudgetBack } from "../plans/give-budget-back.ts";
import type { EffectDependencies } from "./performer-dependencies.ts";

/** A host that has not answered by then has not answered. */
const HOST_ANSWER_MS_MAX = 10_000;
/** The host is asked again at once when the child that it names works on another step. */
const ASK_TRIES_MAX = 16;

/**
 * Settles a coordination, and gives back what its plan did not use of a loan; does nothing while the owner of spawns
 * outside of a plan is not quiet. A plan ends with its work; what else its owner does is no part of it.
 */
export async function endCoordination(
  dependencies: EffectDependencies,
  state: OpenCoordination,
): Promise<void> {
  if (!state.plan && !isOwnerQuiet(dependencies, state)) return;
  const settled = await dependencies.runs.submit(state.coordinationId, [{ type: "settleCoordination" }]);
  if (settled.kind !== "refused" && settled.state.kind !== "unopened")
    await giveBudgetBack(dependencies, settled.state);
}

/** True where the owner has had no turn for `settleMs`, or is in another gateway: nothing is known of its turns. */
function isOwnerQuiet({ turns, clock, homes }: EffectDependencies, state: OpenCoordination): boolean {
  if (homes?.nameAway(state) !== undefined) return true;
  const now = clock.now();
  const quietSince = turns.quietSince(state.created.ownerSession, now);
  return quietSince !== undefined && now >= addMs(quietSince, state.created.settleMs);
}

/**
 * Stops the child of a spawn that a model made and records the attempt as cancelled, or as it had ended before;
 * nothing where it is not to be stopped any more, or while its end is yet to be learned.
 */
export async function stopObserved(
  dependencies: EffectDependencies,
  planned: OpenCoordination,
  { stepId, attempt }: StopObserved,
): Promise<void> {
  const { coordinationId } = planned;
  const state = await dependencies.runs.findOnDisk(coordinationId, (current) =>
    current.kind === "open" && isAttemptToStop(current, { stepId, attempt }, dependencies.clock.now())
      ? current
      : undefined,
  );
  if (!state) return;
  // The children of the child are stopped at the same time, and may have ended since.
  const query = createSpawnQuery(dependencies, planned, { stepId, elsewhere: new Set() });
  if (!query?.childSessionKey) return;
  const child = { runId: coordinationId, stepId, attempt, session: query.childSessionKey };
  const toStop: SpawnToStop = { state, child, query, continued: findContinuedAttempt(state, stepId) };
  const { stopping } = dependencies;
  const isStopping = (): boolean => stopping.aborted;
  const cancelled = await stopChild(dependencies, toStop);
  if (isStopping()) return;
  // A turn of the child may have ended meanwhile.
  const quietSinceMs = findQuietTime(dependencies, planned, stepId);
  const spawn: SpawnToStop = { ...toStop, query: { ...query, quietSinceMs } };
  const hasEndedBefore = cancelled !== "stopped" && (await recordEarlierEnd(dependencies, spawn, cancelled));
  if (hasEndedBefore || isStopping()) return;
  const error = createStepError("child_cancelled", describeStop(dependencies, cancelled, child.session));
  await dependencies.runs.submit(coordinationId, [
    { type: "failStep", stepId, attempt, error, cancelled: true, via: "runner" },
  ]);
}

/**
 * Says how a child was stopped. The host stops none of which it has recorded the end, though it wakes it again. A child that only waits
 * for its own, which are stopped too, has no turn under way.
 */
function describeStop(
  { turns, clock }: Pick<EffectDependencies, "turns" | "clock">,
  cancelled: Cancellation,
  session: SessionKey,
): string {
  const isAtWork = cancelled === "already_ended" && turns.quietSince(session, clock.now()) === undefined;
  return isAtWork || cancelled === "unreachable" ? "cancelled; the host could not stop it" : "cancelled";
}

/** An attempt that this plugin started to continue a child, and its step. */
interface ContinuedAttempt {
  readonly step: Step;
  readonly running: Attempt;
}

interface SpawnToStop {
  readonly state: OpenCoordination;
  readonly child: SubmittingAttempt;
  readonly query: SpawnQuery;
  /** The attempt that we started; absent where the host did. */
  readonly continued: ContinuedAttempt | undefined;
}

/** A child that we continued is ours to stop; any other is the host's. The plan that it submitted ends with it. */
async function stopChild(
  dependencies: EffectDependencies,
  { child, query, continued }: SpawnToStop,
): Promise<Cancellation> {
  if (continued) await dependencies.halt(continued.running.idempotencyKey);
  await cancelNestedPlans(dependencies, child);
  const stop = (): Promise<Cancellation> =>
    continued ? dependencies.runners.subagent.cancel(continued.running) : dependencies.runner.stop(query);
  const cancelled = await awaitHostAnswer(dependencies, stop, "unreachable");
  // Until then the child could submit another.
  await cancelNestedPlans(dependencies, child);
  return cancelled;
}

function findContinuedAttempt(state: OpenCoordination, stepId: StepId): ContinuedAttempt | undefined {
  const step = state.steps.get(stepId);
  const running = step && isContinuedByUs(step) ? findNewestAttempt(state, step) : undefined;
  return step && running && { step, running };
}

/**
 * Records how a child ended that had ended before it could be stopped. Returns true where it did, and where that is still to be
 * learned: then the child is looked at again. One that waits for its own children, or reads what they said, has not ended.
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
  const seen = await observeSpawn(dependencies, query, state);
  if (seen.kind === "ended") {
    await submitObservation(dependencies, { coordinationId, stepId, attempt, away: undefined }, seen);
    return true;
  }
  // The host has not delivered the words of the child yet, or does not say.
  const isUndelivered = seen.kind === "running" && query.quietSinceMs !== undefined;
  return cancelled === "already_ended" && (isUndelivered || seen.kind === "unknown");
}

function isAttemptToStop(
  state: OpenCoordination,
  { stepId, attempt }: Pick<StopObserved, "stepId" | "attempt">,
  now: EpochMs,
): boolean {
  const step = state.steps.get(stepId);
  return step?.phase.attempt === attempt && mustStopSpawn(state, step, now);
}

/**
 * Asks the host how a spawn stands, and records the answer. It asks again, up to `ASK_TRIES_MAX` times, where the
 * child that was found is taken by another step; a child that is found running gets its envelope again.
 */
export async function askHost(
  dependencies: EffectDependencies,
  state: OpenCoordination,
  { stepId, attempt }: AskHost,
): Promise<void> {
  const { coordinationId } = state;
  const asking: QueriedAttempt = {
    coordinationId,
    stepId,
    attempt,
    away: dependencies.homes?.nameAway(state),
  };
  const elsewhere = new Set<SessionKey>();
  for (let tries = 1; tries <= ASK_TRIES_MAX; tries += 1) {
    const latest = await dependencies.runs.state(coordinationId);
    const query = createSpawnQuery(dependencies, latest, { stepId, elsewhere });
    if (!query) return;
    const seen = await observeSpawn(dependencies, query, state);
    const recorded = await recordObservation(dependencies, asking, seen);
    if (recorded === undefined) return;
    if (recorded.kind === "held elsewhere") elsewhere.add(recorded.childSessionKey);
    else if (recorded.kind === "refused" && recorded.code === "CHILD_TAKEN") continue;
    else {
      if (seen.kind === "running") await bindEnvelopeAgain(dependencies, recorded, stepId);
      return;
    }
  }
}

/** Names the attempt that the host is asked about, and the gateway of its child where that is another one. */
interface QueriedAttempt {
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
  readonly attempt: number;
  readonly away: string | undefined;
}

interface HeldElsewhere {
  readonly kind: "held elsewhere";
  readonly childSessionKey: SessionKey;
}

/**
 * Records what the host said of a child, unless another step holds the child. H3: nobody else records whose a child is
 * between the look at who holds it and the record.
 */
async function recordObservation(
  dependencies: EffectDependencies,
  asking: QueriedAttempt,
  seen: Observation,
): Promise<SubmitResult | HeldElsewhere | undefined> {
  if (!("childSessionKey" in seen)) return submitObservation(dependencies, asking, seen);
  const { childSessionKey } = seen;
  return dependencies.childTurns.run(childSessionKey, async () =>
    (await isHeldElsewhere(dependencies, asking, seen))
      ? { kind: "held elsewhere", childSessionKey }
      : submitObservation(dependencies, asking, seen),
  );
}

/** Submits what the host said of a child; `undefined` where that is no news. */
async function submitObservation(
  dependencies: EffectDependencies,
  { coordinationId, stepId, attempt, away }: QueriedAttempt,
  seen: Observation,
): Promise<SubmitResult | undefined> {
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
  return step && findChildOfPhase(step.phase)?.childSessionKey;
}

/**
 * True when another step already holds the child. Two spawns that the host cannot tell apart must not be given the
 * same one.
 */
async function isHeldElsewhere(
  { store }: EffectDependencies,
  { coordinationId, stepId }: QueriedAttempt,
  { childSessionKey }: Pick<HeldElsewhere, "childSessionKey">,
): Promise<boolean> {
  const holder = await store.find(nameChildReference(childSessionKey));
  return holder !== undefined && (holder.runId !== coordinationId || holder.stepId !== stepId);
}

/**
 * Asks the host how a spawn stands; one that fails or is late says `unknown`, and no slot stays taken. A child that a
 * model of another gateway spawned is not in this one.
 */
async function observeSpawn(
  dependencies: EffectDependencies,
  query: SpawnQuery,
  state: OpenCoordination,
): Promise<Observation> {
  if (!state.plan && dependencies.homes?.nameAway(state) !== undefined) return { kind: "absent" };
  return awaitHostAnswer(dependencies, () => dependencies.runner.observe(query), { kind: "unknown" });
}

async function bindEnvelopeAgain(
  dependencies: EffectDependencies,
  { kind, state }: SubmitResult,
  stepId: StepId,
): Promise<void> {
  const envelope = kind === "accepted" ? buildEnvelope(state, stepId) : undefined;
  if (envelope) await awaitHostAnswer(dependencies, () => dependencies.runner.bind(envelope), undefined);
}

function awaitHostAnswer<T>(
  dependencies: EffectDependencies,
  ask: () => Promise<T>,
  otherwise: T,
): Promise<T> {
  return askWithin(
    { ...dependencies, waitMs: HOST_ANSWER_MS_MAX, signal: dependencies.stopping },
    ask,
    otherwise,
  );
}

interface SpawnToFind {
  readonly stepId: StepId;
  /** Children that other coordinations hold. */
  readonly elsewhere: ReadonlySet<SessionKey>;
}

function createSpawnQuery(
  dependencies: Pick<EffectDependencies, "turns" | "clock">,
  state: Coordination,
  { stepId, elsewhere }: SpawnToFind,
): SpawnQuery | undefined {
  if (state.kind !== "open") return undefined;
  const step = state.steps.get(stepId);
  if (!step || !("dispatchedAtMs" in step.phase)) return undefined;
  const ownSession = findChildOfPhase(step.phase)?.childSessionKey;
  const otherSessions = new Set<SessionKey>(elsewhere);
  for (const other of state.steps.values()) {
    const child = findChildOfPhase(other.phase);
    if (child && child.childSessionKey !== ownSession) otherSessions.add(child.childSessionKey);
  }
  const { sourceSession, input } = step.spec;
  return {
    sourceSession,
    input,
    dispatchedAtMs: step.phase.dispatchedAtMs,
    taken: otherSessions,
    ...(ownSession && { childSessionKey: ownSession }),
    quietSinceMs: findQuietTime(dependencies, state, stepId),
  };
}

/**
 * Returns since when the child of a step, and all that it has spawned as far as is recorded, are quiet; 0 where nothing
 * is known of them, `undefined` while one is at work.
 */
function findQuietTime(
  { turns, clock }: Pick<EffectDependencies, "turns" | "clock">,
  state: OpenCoordination,
  stepId: StepId,
): EpochMs | undefined {
  if (listOpenSteps(state).some(({ spec }) => spec.parentStepId === stepId)) return undefined;
  const session = findChildSession(state, stepId);
  const turnEndMs = session ? turns.quietSince(session, clock.now()) : (0 as EpochMs);
  if (turnEndMs === undefined) return undefined;
  return state.steps
    .valueSeq()
    .filter(({ spec }) => spec.parentStepId === stepId)
    .map(({ phase }) => ("endedAtMs" in phase ? phase.endedAtMs : turnEndMs))
    .reduce((latest, endMs) => (endMs > latest ? endMs : latest), turnEndMs);
}
