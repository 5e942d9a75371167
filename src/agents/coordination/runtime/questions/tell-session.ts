/**
 * Owns: telling a session, once, what it waits for: what became of a result that was kept from it, or the answer of people.
 *
 * D1 that it is to be told follows from the log; that it was told is recorded after it. D2 telling again under the same key is one
 * turn. A telling that is not certain is `unknown`, and is not repeated; where its turn failed before the session had the message, the
 * runner of owners begins another.
 */
import { addMs, type CoordinationId, type EpochMs, type SessionKey } from "../../contracts/ids.ts";
import type { FactPayloads } from "../../contracts/facts.ts";
import type { ChildEnding, Observation } from "../../contracts/observation.ts";
import type { TellSession } from "../../dispatch/effects/gate-effects.ts";
import { isWorkingForNobody } from "../../ledger/given-up.ts";
import type { OpenCoordination, PendingTelling } from "../../ledger/state.ts";
import type { Attempt, AttemptOrder, Start } from "../../ports/agent-runner.ts";
import { waitForDuration } from "../../std/wait-for.ts";
import { explainLostElsewhere, isBeingStopped } from "../attempts/attempt-facts.ts";
import { isOwnerGivenUp } from "../attempts/nested-plans.ts";
import { createTellingKey, isAnswerTooLate, TELLING_KEY_END } from "../attempts/told-turns.ts";
import { askWithin } from "../environment/bounded-answer.ts";
import {
  findAsker,
  followAnsweredTurn,
  type AnsweredTurn,
  type Asker,
  type TurnDependencies,
} from "./follow-answered-turn.ts";
import type { QuestionWaits } from "./question-waits.ts";
import { formatTellingMessage } from "./telling-message.ts";

/** From then on nobody waits to hear it. */
const TELL_MS = 600_000;
const ANSWER_MS_MAX = 30_000;
const AGAIN_MS = 1_000;

export interface TellDependencies extends TurnDependencies {
  readonly waits: QuestionWaits;
}

/**
 * Tells a session what it waits for, in a turn of its own, follows that turn and records whether it was told. Does
 * nothing where the telling is closed, or a tool call of the session waits for the same: that tells it instead.
 */
export async function tellSession(
  dependencies: TellDependencies,
  { coordinationId }: OpenCoordination,
  { tellingId }: TellSession,
): Promise<void> {
  const due = await findOpenTelling(dependencies, coordinationId, tellingId);
  const { waits } = dependencies;
  if (!due || waits.isClaimed(coordinationId, tellingId)) return;
  waits.beginTelling(coordinationId, tellingId);
  const asker = findAskerToTell(due);
  const { delivery, answered } = (await isTellingInVain(dependencies, due))
    ? await describeVainTelling(dependencies, due)
    : await deliverTelling(dependencies, due, asker);
  // Until its turn ends, an agent that no turn told may still ask for the answer.
  if (delivery !== undefined && delivery !== "delivered") waits.endTelling(coordinationId, tellingId);
  if (answered && asker)
    await followAnsweredTurn(dependencies, { runId: coordinationId, tellingId }, answered);
  if (dependencies.stopping.aborted || !delivery) return;
  await dependencies.runs.submit(coordinationId, [{ type: "recordTelling", tellingId, delivery }]);
  // Where this is not recorded, the telling is still under way: it is tried again.
  waits.endTelling(coordinationId, tellingId);
}

/** Words that a session is still to be told, and the coordination that they come from. */
interface OpenTelling {
  readonly state: OpenCoordination;
  readonly telling: PendingTelling;
}

/** Finds the step whose agent asked, where it is told an answer. */
function findAskerToTell({ state, telling: { of: subject, session } }: OpenTelling): Asker | undefined {
  return subject.kind === "answer" ? findAsker(state, session) : undefined;
}

function findOpenTelling(
  { runs }: TellDependencies,
  coordinationId: CoordinationId,
  tellingId: string,
): Promise<OpenTelling | undefined> {
  return runs.findOnDisk(coordinationId, (state) => {
    const telling = state.kind === "open" ? state.tellings.get(tellingId) : undefined;
    return state.kind === "open" && telling ? { state, telling } : undefined;
  });
}

/** The outcome of a telling: whether the session had it, and the turn that told it. */
interface TellingOutcome {
  /** Absent where the process stops before it is known. */
  readonly delivery?: FactPayloads["session.told"]["delivery"];
  /** The turn in which the session reads it, or why there will be none. */
  readonly answered?: AnsweredTurn;
}

function createNotDelivered(session: SessionKey, why: string): TellingOutcome {
  return { delivery: "not_delivered", answered: { kind: "none", session, why } };
}

async function deliverTelling(
  dependencies: TellDependencies,
  due: OpenTelling,
  asker: Asker | undefined,
): Promise<TellingOutcome> {
  // The host is asked whether a turn began only where some process may have asked for it.
  if (asker && isAnswerTooLate(due.telling, asker.step))
    return createNotDelivered(due.telling.session, "its attempt was at its deadline");
  return await tellUntilKnown(dependencies, due, asker);
}

/**
 * Asks the host for the turn, and again where it surely has no record of it, until it is known how that ended, the
 * wait for it is over or the process stops.
 */
async function tellUntilKnown(
  dependencies: TellDependencies,
  due: OpenTelling,
  asker: Asker | undefined,
): Promise<TellingOutcome> {
  const { clock, stopping } = dependencies;
  const isStopping = (): boolean => stopping.aborted;
  const order = await createTellingOrder(dependencies, due.state, due.telling);
  // A process that was down for long has not tried yet; the key makes all tries one turn (D2).
  const untilMs = addMs(clock.now(), TELL_MS);
  let started = isAboutToStop(dependencies, asker) ? UNASKED : await startTellingTurn(dependencies, order);
  for (;;) {
    if (isStopping()) return {};
    if (started.kind === "refused") return createNotDelivered(order.childSessionKey, started.message);
    const seen = await observeTellingTurn(dependencies, order);
    if (seen.kind === "ended" || (await isWaitOver(dependencies, due, { asker, seen, untilMs })))
      return judgeDelivery(order, seen);
    await waitForDuration(clock, AGAIN_MS, stopping);
    // D2: what the host surely has no record of is started again under its key.
    if (seen.kind === "absent" && (await mayStartTurnAgain(dependencies, due, asker)))
      started = await startTellingTurn(dependencies, order);
  }
}

async function mayStartTurnAgain(
  dependencies: TellDependencies,
  due: OpenTelling,
  asker: Asker | undefined,
): Promise<boolean> {
  const { runs, stopping } = dependencies;
  const current = asker && findAsker(await runs.state(due.state.coordinationId), due.telling.session);
  if (stopping.aborted || (asker && !current) || isAboutToStop(dependencies, current)) return false;
  return !(await isTellingInVain(dependencies, due));
}

/**
 * True when the coordination has ended, or whoever is to hear it is stopped, given up or in a gateway that is gone. It
 * would wake an agent beside the next attempt, or a session that has only the key in common.
 */
async function isTellingInVain(
  dependencies: TellDependencies,
  { state: { coordinationId }, telling: { of: subject, session } }: OpenTelling,
): Promise<boolean> {
  const state = await dependencies.runs.state(coordinationId);
  if (state.kind !== "open" || isWorkingForNobody(state, session)) return true;
  if (session === state.created.ownerSession)
    return state.cancelledBy === "parent" || isOwnerGivenUp(dependencies, state);
  const stepId = state.children.get(session);
  const step = stepId === undefined ? undefined : state.steps.get(stepId);
  if (!step) return false;
  // The attempt of an agent that asked is not done before it is known what became of an earlier try.
  const canStop = subject.kind !== "answer" && step.phase.status === "running";
  const isToStop = canStop && isBeingStopped({ state, step }, dependencies.clock.now());
  return isToStop || explainLostElsewhere(dependencies, state, step) !== undefined;
}

/**
 * Returns how a telling in vain ended: not delivered, unless an earlier process had begun its turn. Then the turn is
 * one to be stopped with the attempt.
 */
async function describeVainTelling(
  dependencies: TellDependencies,
  { state, telling }: OpenTelling,
): Promise<TellingOutcome> {
  const order = await createTellingOrder(dependencies, state, telling);
  const seen = await observeTellingTurn(dependencies, order);
  if (seen.kind !== "running" && seen.kind !== "ended") return { delivery: "not_delivered" };
  const { delivery = "unknown" } = judgeDelivery(order, seen);
  return { delivery };
}

/** An earlier process may have asked the host for the turn. */
const UNASKED: Start = { kind: "unknown", message: "the host was not asked" };

/** True when the attempt of an agent that asked is about to end: an answer would wake the agent beside the next attempt. */
function isAboutToStop({ clock }: TellDependencies, asker: Asker | undefined): boolean {
  return asker !== undefined && isBeingStopped(asker, clock.now());
}

/** The wait for the turn of a telling: who asked, how the turn stands and until when. */
interface TellingWait {
  readonly asker: Asker | undefined;
  readonly seen: Observation;
  readonly untilMs: EpochMs;
}

/** True when a telling is waited for no longer. An agent that asked is not done without the answer, so its attempt says how long. */
async function isWaitOver(
  dependencies: TellDependencies,
  due: OpenTelling,
  { asker, seen, untilMs }: TellingWait,
): Promise<boolean> {
  const { runs, clock } = dependencies;
  const isLate = clock.now() >= untilMs;
  if (!asker) return isLate || (seen.kind === "absent" && (await isTellingInVain(dependencies, due)));
  const current = findAsker(await runs.state(due.state.coordinationId), due.telling.session);
  if (!current) return true;
  return seen.kind === "absent" && (isLate || isAboutToStop(dependencies, current));
}

/** Returns whether the session had the message, as far as its turn shows, and the turn that told it. */
function judgeDelivery(order: AttemptOrder, seen: Observation): TellingOutcome {
  const { idempotencyKey, agentId, childSessionKey, dispatchedAtMs } = order;
  if (seen.kind === "absent")
    return createNotDelivered(childSessionKey, "the host began no turn with it in time");
  const childRunId = seen.kind === "unknown" ? {} : { childRunId: seen.childRunId };
  const turn: Attempt = { idempotencyKey, agentId, childSessionKey, dispatchedAtMs, ...childRunId };
  const delivery = (seen.kind === "ended" ? DELIVERIES[seen.outcome] : undefined) ?? "unknown";
  return { delivery, answered: { kind: "turn", turn } };
}

/** To the runner of owners a turn has failed only where the session never had its message. After other ends it may have had it. */
const DELIVERIES: Partial<Record<ChildEnding["outcome"], TellingOutcome["delivery"]>> = {
  completed: "delivered",
  failed: "not_delivered",
};

function startTellingTurn(dependencies: TellDependencies, order: AttemptOrder): Promise<Start> {
  return awaitHostWithin(dependencies, () => dependencies.runners.owner.start(order), {
    kind: "unknown",
    message: "the host did not answer in time",
  });
}

function observeTellingTurn(dependencies: TellDependencies, order: AttemptOrder): Promise<Observation> {
  return awaitHostWithin(dependencies, () => dependencies.runners.owner.observe(order), { kind: "unknown" });
}

function awaitHostWithin<T>(dependencies: TellDependencies, ask: () => Promise<T>, otherwise: T): Promise<T> {
  return askWithin({ ...dependencies, waitMs: ANSWER_MS_MAX, signal: dependencies.stopping }, ask, otherwise);
}

/** True when the id of a host's run is one under which this product told a session something. */
export function isTellingKey(runId: string): boolean {
  return runId.endsWith(TELLING_KEY_END);
}

async function createTellingOrder(
  dependencies: TellDependencies,
  state: OpenCoordination,
  telling: PendingTelling,
): Promise<AttemptOrder> {
  const { coordinationId, created } = state;
  const key = createTellingKey(coordinationId, telling.tellingId);
  const hash = dependencies.refOf(key).sha256;
  return {
    idempotencyKey: key,
    agentId: created.ownerAgent,
    childSessionKey: telling.session,
    dispatchedAtMs: telling.sinceMs,
    isRepeated: true,
    envelope: {
      coordinationId,
      stepId: telling.of.kind === "result" ? telling.of.stepId : (telling.tellingId as never),
      sourceSession: created.ownerSession,
      targetSession: telling.session,
      intent: "report",
      priority: "high",
      deliveryMode: "at_least_once",
      createdAtMs: telling.sinceMs,
      trace: {},
    },
    lane: "control",
    message: await formatTellingMessage(dependencies, state, telling),
    deadlineAtMs: addMs(telling.sinceMs, TELL_MS),
    traceparent: `00-${hash.slice(0, 32)}-${hash.slice(32, 48)}-01`,
  };
}
