/**
 * Owns: the turns in which the agent of an attempt is told something: answers, how its own plans went, what those that work for it
 * ask, and what became of their results. They are turns of the same session and runs of their own, so they are stopped beside the
 * run of the attempt.
 */
import type { CoordinationId, IdempotencyKey, SessionKey } from "../../contracts/ids.ts";
import type { Cancellation } from "../../contracts/observation.ts";
import type { Coordination } from "../../ledger/state.ts";
import { listTellingsTo } from "../../ledger/tellings.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import { askWithin, type Waiting } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { findTellingRun } from "./attempt-facts.ts";
import {
  findDeliveryTurn,
  listNested,
  type NestedDependencies,
  type SubmittingAttempt,
} from "./nested-plans.ts";

/** Ends the keys of turns in which a session is told something. */
export const TELLING_KEY_END = ":told";

/** Creates the key of the turn in which a session is told something. The same telling has the same key, also after a restart. */
export function createTellingKey(coordinationId: CoordinationId, tellingId: string): IdempotencyKey {
  return `${coordinationId}:${tellingId}${TELLING_KEY_END}` as IdempotencyKey;
}

type TurnDependencies = NestedDependencies & Pick<RuntimeDependencies, "runners">;

/** Stops the turns in which the agent of an attempt is told something. `unreachable` where one of them may go on. */
export async function stopToldTurns(
  waiting: TurnDependencies & Waiting,
  submitting: SubmittingAttempt,
): Promise<Cancellation> {
  const { session } = submitting;
  const around = await waiting.runs.state(submitting.runId);
  const nested = await listNested(waiting, submitting);
  const turns = [
    ...[around, ...nested].flatMap((state) => listTellingTurns(state, session)),
    ...nested.flatMap((state) => findDeliveryTurn(state) ?? []),
  ];
  return combineCancellations(await Promise.all(turns.map((turn) => stopTurn(waiting, turn))));
}

/** Returns what became of several runs that were told to stop together. */
export function combineCancellations(cancellations: readonly Cancellation[]): Cancellation {
  const worstFirst = ["unreachable", "stopped"] as const;
  return worstFirst.find((outcome) => cancellations.includes(outcome)) ?? "already_ended";
}

/** Lists turns that were told already, too: the host counts a session as told when such a turn begins. */
function listTellingTurns(state: Coordination, session: SessionKey): Attempt[] {
  if (state.kind === "unopened") return [];
  const { coordinationId, created } = state;
  return listTellingsTo(state, session).map(({ tellingId, sinceMs }) => ({
    idempotencyKey: createTellingKey(coordinationId, tellingId),
    agentId: created.ownerAgent,
    childSessionKey: session,
    dispatchedAtMs: sinceMs,
  }));
}

async function stopTurn(waiting: TurnDependencies & Waiting, turn: Attempt): Promise<Cancellation> {
  const run = await findTellingRun(waiting, turn);
  if (run === "absent") return "already_ended";
  if (run === "unknown") return "unreachable";
  const stop = (): Promise<Cancellation> => waiting.runners.subagent.cancel(run);
  return askWithin<Cancellation>(waiting, stop, "unreachable");
}
