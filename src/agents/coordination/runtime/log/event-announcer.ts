/**
 * Owns: up to where the listeners have heard of each coordination. They hear of all that others append to one that this process drives,
 * however it was read, and of nothing twice.
 */
import type { CoordinationId, SessionKey } from "../../contracts/ids.ts";
import type { RunEvent } from "../../contracts/run-event.ts";
import type { Coordination } from "../../ledger/state.ts";
import { rememberNewest } from "../../std/remember-newest.ts";
import type { SigningRuns } from "../ownership/sign-append.ts";

/** Whom the announcer tells, and of which coordinations. */
export interface AnnouncerDependencies {
  /** Which coordinations this gateway drives. Absent: no other one reaches the ledger. */
  readonly ownRuns?: Pick<SigningRuns, "tokenOf">;
  /** Hears of events once they are on disk, and whose coordination they are of. */
  readonly onAppended?: (events: readonly RunEvent[], ownerSession: SessionKey) => void;
}

/** The memory of what listeners have heard of each coordination; it announces newer events to them. */
export interface EventAnnouncer {
  /** Returns the sequence from which on nobody has heard; `undefined` for a coordination that is new here. */
  markOf(runId: CoordinationId): number | undefined;
  /** Notes what this process appended: whoever appends tells of it. */
  noteAppended(runId: CoordinationId, events: readonly RunEvent[]): void;
  /** Tells of what was read from the ledger, and led to the state, as far as it is news. */
  announce(state: Coordination, events: readonly RunEvent[]): void;
  /** Tells of the news in a state that was read from the beginning; from then on only what comes behind it is news. */
  announceLoaded(state: Coordination, news: readonly (readonly RunEvent[])[]): void;
}

/** Coordinations of which it is remembered, also while their states are not; those that were quiet for longest are forgotten. */
const MARKS_MAX = 10_000;

/**
 * True where another gateway that shares the ledger drives the coordination and appends to it, so that what is
 * remembered of it may be old.
 */
export function isDrivenElsewhere({ ownRuns }: AnnouncerDependencies, runId: CoordinationId): boolean {
  return ownRuns !== undefined && ownRuns.tokenOf(runId) === undefined;
}

/**
 * Creates the memory of up to which event listeners have heard of each coordination. It hands newer events to
 * `onAppended`, unless another gateway drives the coordination and tells of them there.
 */
export function createEventAnnouncer(dependencies: AnnouncerDependencies): EventAnnouncer {
  const marks = new Map<CoordinationId, number>();
  const mark = (runId: CoordinationId, events: readonly RunEvent[]): void => {
    const last = events.at(-1);
    if (last) rememberNewest(marks, runId, last.sequence + 1, MARKS_MAX);
  };
  const announce = (state: Coordination, events: readonly RunEvent[]): void => {
    const { coordinationId: runId } = state;
    const from = marks.get(runId) ?? 0;
    const news = events.filter(({ sequence }) => sequence >= from);
    mark(runId, news);
    // Whoever drives it tells of it there.
    if (news.length === 0 || state.kind === "unopened" || isDrivenElsewhere(dependencies, runId)) return;
    dependencies.onAppended?.(news, state.created.ownerSession);
  };
  return {
    markOf: (runId) => marks.get(runId),
    noteAppended: mark,
    announce,
    announceLoaded: (state, news) => {
      for (const page of news) announce(state, page);
      const { coordinationId: runId, nextSequence } = state;
      rememberNewest(marks, runId, Math.max(marks.get(runId) ?? 0, nextSequence), MARKS_MAX);
    },
  };
}
