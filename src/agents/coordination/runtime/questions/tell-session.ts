/**
 * Owns: telling a session, once, what it waits for: what became of a result that was kept from it, or the answer of people.
 *
 * D1 that it is to be told follows from the log; that it was told is recorded after it. D2 telling again under the same key is one
 * turn. A telling that is not certain is `unknown`, and is not repeated.
 */
import { addMs, type CoordinationId, type IdempotencyKey } from "../../contracts/ids.ts";
import type { FactPayloads } from "../../contracts/facts.ts";
import type { Observation, ObservedChild } from "../../contracts/observation.ts";
import type { TellSession } from "../../dispatch/effects/gate-effects.ts";
import { isGivenUp } from "../../ledger/given-up.ts";
import type { OpenCoordination, Telling } from "../../ledger/state.ts";
import type { Attempt, Order, Start } from "../../ports/agent-runner.ts";
import { waitFor } from "../../std/wait-for.ts";
import { askWithin } from "../environment/bounded-answer.ts";
import { followAnsweredTurn, type TurnDependencies } from "./follow-answered-turn.ts";
import { formatTelling } from "./telling-message.ts";

/** From then on nobody waits to hear it. */
const TELL_MS = 600_000;
const ANSWER_MS_MAX = 30_000;
const AGAIN_MS = 1_000;

export interface TellDependencies extends TurnDependencies {
  /** Whether something in this process is about to tell it in another way. */
  readonly isTold: (runId: CoordinationId, tellingId: string) => boolean;
}

export async function tellSession(
  dependencies: TellDependencies,
  { coordinationId }: OpenCoordination,
  { tellingId }: TellSession,
): Promise<void> {
  const due = await dependencies.runs.findOnDisk(coordinationId, (state) => {
    const telling = state.kind === "open" ? state.tellings.get(tellingId) : undefined;
    return state.kind === "open" && telling ? { state, telling } : undefined;
  });
  if (!due || dependencies.isTold(coordinationId, tellingId)) return;
  const { of: subject, session } = due.telling;
  // The attempt is over and its agent was stopped: an answer would wake it beside the next attempt.
  const isInVain = subject.kind === "answer" && isGivenUp(due.state, session);
  const { delivery, turn } = isInVain
    ? NOT_DELIVERED
    : await deliverTelling(dependencies, due.state, due.telling);
  if (turn && subject.kind === "answer") await followAnsweredTurn(dependencies, coordinationId, turn);
  if (dependencies.stopping.aborted || !delivery) return;
  const submitted = await dependencies.runs.submit(coordinationId, [
    { type: "recordTelling", tellingId, delivery },
  ]);
  dependencies.watch(submitted.state);
}

interface Delivered {
  /** Absent where the process stops before it is known. */
  readonly delivery?: FactPayloads["session.told"]["delivery"];
  /** The turn in which the session reads it. */
  readonly turn?: Attempt;
}

const NOT_DELIVERED: Delivered = { delivery: "not_delivered" };
const UNKNOWN: Delivered = { delivery: "unknown" };

async function deliverTelling(
  dependencies: TellDependencies,
  state: OpenCoordination,
  telling: Telling,
): Promise<Delivered> {
  const order = await orderFor(dependencies, state, telling);
  // A process that was down for long has not tried yet; the key makes all tries one turn (D2).
  const untilMs = addMs(dependencies.clock.now(), TELL_MS);
  for (let started = await start(dependencies, order); started.kind !== "refused";) {
    const seen = await answer<Observation>(dependencies, () => dependencies.runners.owner.observe(order), {
      kind: "unknown",
    });
    if (seen.kind === "ended") return seen.outcome === "completed" ? createDelivered(order, seen) : UNKNOWN;
    if (dependencies.clock.now() >= untilMs) return seen.kind === "absent" ? NOT_DELIVERED : UNKNOWN;
    await waitFor(dependencies.clock, AGAIN_MS, dependencies.stopping);
    if (dependencies.stopping.aborted) return {};
    // D2: what the host surely has no record of is started again under its key.
    if (seen.kind === "absent") started = await start(dependencies, order);
  }
  return dependencies.stopping.aborted ? {} : NOT_DELIVERED;
}

function createDelivered(
  { idempotencyKey, agentId, childSessionKey, dispatchedAtMs }: Order,
  { childRunId }: ObservedChild,
): Delivered {
  const turn = { idempotencyKey, agentId, childSessionKey, dispatchedAtMs, childRunId };
  return { delivery: "delivered", turn };
}

function start(dependencies: TellDependencies, order: Order): Promise<Start> {
  return answer(dependencies, () => dependencies.runners.owner.start(order), {
    kind: "unknown",
    message: "the host did not answer in time",
  });
}

function answer<T>(dependencies: TellDependencies, ask: () => Promise<T>, otherwise: T): Promise<T> {
  return askWithin({ ...dependencies, waitMs: ANSWER_MS_MAX, signal: dependencies.stopping }, ask, otherwise);
}

/** The same telling has the same key, also after a restart. */
export function createTellingKey(coordinationId: CoordinationId, tellingId: string): IdempotencyKey {
  return `${coordinationId}:${tellingId}${TOLD}` as IdempotencyKey;
}

const TOLD = ":told";

/** True when a run of the host is one of ours that told a session something. */
export function isTellingKey(runId: string): boolean {
  return runId.endsWith(TOLD);
}

async function orderFor(
  dependencies: TellDependencies,
  state: OpenCoordination,
  telling: Telling,
): Promise<Order> {
  const { coordinationId, created } = state;
  const key = createTellingKey(coordinationId, telling.tellingId);
  const hash = dependencies.refOf(key).sha256;
  return {
    idempotencyKey: key,
    agentId: created.ownerAgent,
    childSessionKey: telling.session,
    dispatchedAtMs: telling.sinceMs,
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
    message: await formatTelling(dependencies, state, telling),
    deadlineAtMs: addMs(telling.sinceMs, TELL_MS),
    traceparent: `00-${hash.slice(0, 32)}-${hash.slice(32, 48)}-01`,
  };
}
