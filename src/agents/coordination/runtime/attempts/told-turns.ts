/**
 * Owns: the turns in which the agent of an attempt is told something: answers, how its own plans went, what those that work for it
 * ask, and what became of their results. They are turns of the same session and runs of their own, so they are stopped beside the
 * run of the attempt.
 */
import type { CoordinationId, EpochMs, IdempotencyKey, SessionKey } from "../../contracts/ids.ts";
import type { Cancellation } from "../../contracts/observation.ts";
import type { Coordination, Step, PendingTelling } from "../../ledger/state.ts";
import { listTellingsToSession } from "../../ledger/tellings.ts";
import type { Attempt } from "../../ports/agent-runner.ts";
import { waitForDuration } from "../../std/wait-for.ts";
import { askWithin, limitWait, type StoppableWait } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { findTellingRun } from "./attempt-facts.ts";
import type { SubmittingAttempt } from "./attempt-use.ts";
import { findDeliveryTurn, listNestedPlans, type NestedDependencies } from "./nested-plans.ts";

/** Ends the keys of turns in which a session is told something. */
export const TELLING_KEY_END = ":told";

/**
 * Returns the idempotency key of the turn in which a session is told something. The same telling has the same key,
 * also after a restart.
 */
export function createTellingKey(coordinationId: CoordinationId, tellingId: string): IdempotencyKey {
  return `${coordinationId}:${tellingId}${TELLING_KEY_END}` as IdempotencyKey;
}

type TurnDependencies = NestedDependencies & StoppableWait & Pick<RuntimeDependencies, "runners">;

/** Between two questions whether a turn has begun. */
const LOOK_AGAIN_MS = 1_000;

interface ToldTurn {
  readonly turn: Attempt;
  /** The telling that it is for, where the log soon says whether the host was asked for the turn. */
  readonly telling?: { readonly runId: CoordinationId; readonly tellingId: string };
}

/**
 * Stops the turns in which the agent of an attempt is told something, until `untilMs`, and returns the worst outcome:
 * `unreachable` where one of them may go on.
 */
export async function stopToldTurns(
  dependencies: TurnDependencies,
  submitting: SubmittingAttempt,
  untilMs: EpochMs,
): Promise<Cancellation> {
  const turns = await listToldTurns(dependencies, submitting);
  return combineCancellations(
    await Promise.all(turns.map((each) => stopToldTurn(dependencies, each, untilMs))),
  );
}

/**
 * Returns the worst outcome of several runs that were told to stop: `unreachable`, else `stopped`, else
 * `already_ended`, also for none.
 */
export function combineCancellations(cancellations: readonly Cancellation[]): Cancellation {
  const worstFirst = ["unreachable", "stopped"] as const;
  return worstFirst.find((outcome) => cancellations.includes(outcome)) ?? "already_ended";
}

/**
 * Lists the turns in which the agent of an attempt is told something: tellings to its session, and how its plans went.
 */
async function listToldTurns(
  dependencies: TurnDependencies,
  submitting: SubmittingAttempt,
): Promise<ToldTurn[]> {
  const around = await dependencies.runs.state(submitting.runId);
  const nested = await listNestedPlans(dependencies, submitting);
  return [
    ...[around, ...nested].flatMap((state) => listTurnsOfTellings(state, submitting.session)),
    ...nested.flatMap((state) => {
      const turn = findDeliveryTurn(state);
      return turn ? [{ turn }] : [];
    }),
  ];
}

/**
 * Lists the turns of the newest tellings to a session in one coordination, also of those told already: the host counts
 * a session as told when such a turn begins. Answers that came too late are left out.
 */
function listTurnsOfTellings(state: Coordination, session: SessionKey): ToldTurn[] {
  if (state.kind === "unopened") return [];
  const { coordinationId: runId, created } = state;
  const stepId = state.children.get(session);
  const step = stepId === undefined ? undefined : state.steps.get(stepId);
  const begun = listTellingsToSession(state, session).filter(
    (telling) => !step || !isAnswerTooLate(telling, step),
  );
  return begun.map(({ tellingId, sinceMs, of: subject }) => {
    const turn: Attempt = {
      idempotencyKey: createTellingKey(runId, tellingId),
      agentId: created.ownerAgent,
      childSessionKey: session,
      dispatchedAtMs: sinceMs,
      isRepeated: true,
    };
    return subject.kind === "answer" ? { turn } : { turn, telling: { runId, tellingId } };
  });
}

/**
 * True when a telling is of an answer that came only at the deadline of the running attempt whose agent asked: no
 * process asks the host for a turn with it.
 */
export function isAnswerTooLate({ of: subject, sinceMs }: PendingTelling, { spec, phase }: Step): boolean {
  if (subject.kind !== "answer" || spec.runner !== "subagent") return false;
  return phase.status === "running" && sinceMs >= phase.deadlineAtMs;
}

async function stopToldTurn(
  dependencies: TurnDependencies,
  turn: ToldTurn,
  untilMs: EpochMs,
): Promise<Cancellation> {
  const run = await findRunOfTurn(dependencies, turn, untilMs);
  if (run === "absent") return "already_ended";
  if (run === "unknown") return "unreachable";
  const stop = (): Promise<Cancellation> => dependencies.runners.subagent.cancel(run);
  return askWithin<Cancellation>(limitWait(dependencies, untilMs), stop, "unreachable");
}

/**
 * Finds the run of a turn. The host may have begun a young one without a record of it yet, so it is asked again as long as the log
 * does not say how the telling ended.
 */
async function findRunOfTurn(
  dependencies: TurnDependencies,
  { turn, telling }: ToldTurn,
  untilMs: EpochMs,
): Promise<Attempt | "absent" | "unknown"> {
  const { runs, clock, signal } = dependencies;
  for (;;) {
    const run = await findTellingRun(limitWait(dependencies, untilMs), turn);
    if (run !== "unknown" || !telling) return run;
    const state = await runs.state(telling.runId);
    if (state.kind !== "unopened" && state.untold.has(telling.tellingId)) return "absent";
    const isOpen = state.kind === "open" && state.tellings.has(telling.tellingId);
    if (!isOpen || clock.now() >= untilMs || signal.aborted) return run;
    await waitForDuration(clock, LOOK_AGAIN_MS, signal);
  }
}
