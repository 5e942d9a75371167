/**
 * Owns: as whom a session takes part in arbitration. H3 that follows from the ledger: the step whose current attempt the session
 * works on, or the owner of a coordination that is open. Those that it owns and whose logs are damaged are passed over.
 */
import { isOpenedIn, type OwnerPlace } from "../../contracts/coordination-summary.ts";
import type { Priority } from "../../contracts/envelope.ts";
import {
  epochMsOf,
  OWNER_STEP_ID,
  type CoordinationId,
  type EpochMs,
  type SessionKey,
  type StepId,
} from "../../contracts/ids.ts";
import type { RunEvent } from "../../contracts/run-event.ts";
import { isWorkingForNobody } from "../../ledger/given-up.ts";
import {
  findSessionOfPhase,
  type Coordination,
  type OpenCoordination,
  type Step,
} from "../../ledger/state.ts";
import { nameChildReference } from "../../ledger/summary.ts";
import type { LedgerStore } from "../../ports/ledger-store.ts";
import type { RuntimeSettings } from "../environment/runtime-dependencies.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import { listRuns } from "../log/read-pages.ts";
import type { RunLog } from "../log/run-log.ts";
import type { UnanswerableSessions } from "./unanswerable-sessions.ts";

export interface Participant {
  readonly runId: CoordinationId;
  readonly stepId: StepId;
  readonly session: SessionKey;
  readonly state: OpenCoordination;
  readonly priority: Priority;
  /**
   * When its attempt began, or the oldest open coordination of an owner: others' changes since then to a file that it has not seen
   * are unknown to it. Absent where nobody asks whom it opposes.
   */
  readonly beganAtMs?: EpochMs;
}

/** The part that a session has in coordinations: participant, ended, given up or none. */
export type SessionStanding =
  | { readonly kind: "none" }
  | { readonly kind: "participant"; readonly participant: Participant }
  /** The session worked on a step that has ended, and its coordination has not. */
  | { readonly kind: "ended" }
  /** The attempt that the session works on was given up, or one above it: its writes are refused (A2, D3). */
  | { readonly kind: "given_up"; readonly stepId: StepId };

export interface Participants {
  standingOf(session: SessionKey): Promise<SessionStanding>;
  /** The open coordinations that a session of this gateway owns. */
  ownedBy(session: SessionKey): readonly CoordinationId[];
  /** Hears of every append of this process. */
  appended(events: readonly RunEvent[]): void;
  /** A coordination that is open, whoever opened it. */
  opened(state: OpenCoordination): void;
}

/**
 * Returns the lookup of what a session is to coordinations (a participant, given up, ended or nothing). It reads the
 * open coordinations at its first use, and learns of others as it is told of them.
 */
export function createParticipants(dependencies: {
  readonly store: LedgerStore;
  readonly runs: RunLog;
  readonly settings: RuntimeSettings;
}): Participants {
  const owned = new Map<SessionKey, Map<CoordinationId, EpochMs>>();
  const add = (opening: OwnerPlace, runId: CoordinationId, atMs: EpochMs): void => {
    if (!isOpenedIn(opening, dependencies.settings)) return;
    const { ownerSession: owner } = opening;
    owned.set(owner, (owned.get(owner) ?? new Map<CoordinationId, EpochMs>()).set(runId, atMs));
  };
  const remove = (runId: CoordinationId): void => {
    for (const [owner, runIds] of owned) if (runIds.delete(runId) && runIds.size === 0) owned.delete(owner);
  };
  const findOwnStanding = async (session: SessionKey): Promise<SessionStanding> => {
    const runs = [...(owned.get(session) ?? [])].toSorted(([, a], [, b]) => a - b);
    const beganAtMs = Math.min(...runs.map(([, atMs]) => atMs)) as EpochMs;
    let damage: Error | undefined;
    for (const [runId] of runs.toReversed()) {
      const state = await dependencies.runs.state(runId).catch((error: unknown) => {
        ignoreDamage(error);
        damage ??= error as Error;
        return undefined;
      });
      if (state?.kind === "open") return createStandingOfOwner(state, session, beganAtMs);
      // Another gateway ended it.
      if (state) remove(runId);
    }
    if (damage) throw damage;
    return { kind: "none" };
  };
  const owners = createOnceRunner(async () => {
    for await (const { runId, summary } of listRuns(dependencies.store, { status: "running" }))
      add(summary, runId, summary.createdAtMs);
  });
  return {
    opened: ({ coordinationId, created, createdAtMs }) => add(created, coordinationId, createdAtMs),
    ownedBy: (session) => [...(owned.get(session)?.keys() ?? [])],
    appended: (events) => {
      for (const { type, runId, payload, timestamp } of events) {
        if (type === "coordination.created") add(payload, runId, epochMsOf(timestamp));
        if (type === "coordination.terminal") remove(runId);
      }
    },
    standingOf: async (session) => {
      await owners();
      const childReference = await dependencies.store.find(nameChildReference(session));
      const asChild =
        childReference?.stepId &&
        findStandingOfChild(
          await dependencies.runs.state(childReference.runId),
          childReference.stepId,
          session,
        );
      return asChild ?? (await findOwnStanding(session));
    },
  };
}

/**
 * Returns a function that does the work once, however often it is called. Work that failed is done again. The
 * participants learn by it what was open before this process began, before anybody is ruled on.
 */
function createOnceRunner(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return async () => {
    running ??= work();
    try {
      await running;
    } catch (error) {
      running = undefined;
      throw error;
    }
  };
}

function createStandingOfOwner(
  state: OpenCoordination,
  session: SessionKey,
  beganAtMs: EpochMs,
): SessionStanding {
  const { coordinationId: runId } = state;
  return {
    kind: "participant",
    participant: { runId, stepId: OWNER_STEP_ID, session, state, priority: "normal", beganAtMs },
  };
}

/**
 * True when people can be asked about calls of the participant: it is an owner that they talk to, never a child, and
 * its session was not found unanswerable just now.
 */
export function canAskPeopleAbout(
  { stepId, session }: Participant,
  unanswerable: UnanswerableSessions,
): boolean {
  return stepId === OWNER_STEP_ID && !unanswerable.has(session);
}

/** Finds the standing of a session by the step that it works on; `undefined` where its coordination has ended. */
function findStandingOfChild(
  state: Coordination,
  stepId: StepId,
  session: SessionKey,
): SessionStanding | undefined {
  const step = state.kind === "open" ? state.steps.get(stepId) : undefined;
  if (state.kind !== "open" || !step) return undefined;
  if (isAttemptGivenUp(step, session) || isWorkingForNobody(state, step.spec.sourceSession))
    return { kind: "given_up", stepId };
  if (step.phase.status !== "dispatched" && step.phase.status !== "running") return { kind: "ended" };
  return {
    kind: "participant",
    participant: {
      runId: state.coordinationId,
      stepId,
      session,
      state,
      priority: step.spec.priority,
      beganAtMs: step.phase.dispatchedAtMs,
    },
  };
}

/** True when the attempt that the session works on ended without it, or another attempt took its place. */
function isAttemptGivenUp({ phase }: Step, session: SessionKey): boolean {
  if (findSessionOfPhase(phase) !== session) return true;
  const { status } = phase;
  return status === "timed_out" || status === "cancelled" || status === "backoff" || status === "blocked";
}
