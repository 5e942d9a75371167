/** Owns: the port that finds coordinations and events by what they are about, and reads what was appended last. */
import type { AgentId, CoordinationId, EpochMs, EventId, SessionKey } from "../contracts/ids.ts";
import type { RunEvent } from "../contracts/run-event.ts";
import type { Summary } from "../contracts/coordination-summary.ts";
import type { StoredRun } from "./run-store.ts";

/** Selects coordinations and events. All that is there must match. */
export interface LedgerFilter {
  /** The trace that the coordination was opened on. */
  readonly traceId?: string;
  /** The owner of the coordination, or the session that asked for a step. */
  readonly session?: SessionKey;
  /** The agent that owns the coordination, or that a step runs. */
  readonly agent?: AgentId;
  /** The session in which a step runs. */
  readonly childSession?: SessionKey;
  readonly cause?: LedgerCause;
  /** From this time on: of events when they were recorded, of coordinations when they were opened. */
  readonly since?: EpochMs;
  /** Before this time. */
  readonly until?: EpochMs;
}

/**
 * An event that caused others in its log, or a coordination that others followed from: on the same trace, as a plan of
 * one of its steps, or as a fork.
 */
export interface LedgerCause {
  readonly coordinationId: CoordinationId;
  readonly eventId?: EventId;
}

/** A part of what a query finds. */
export interface QueryPage<T, Place> {
  readonly items: readonly T[];
  /** After which the next page begins; absent: there is nothing more. */
  readonly next?: Place;
}

/** The place of a coordination among those that a query finds. */
export interface RunPlace {
  readonly startedAtMs: number;
  readonly ordinal: number;
}

/** The place of an event among those that a query finds. */
export interface EventPlace extends RunPlace {
  /** Names the step that the query is at; empty for a whole coordination. */
  readonly stepId: string;
  readonly position: number;
}

/** Which coordinations are looked for, and how many at once. */
export interface RunsQuery {
  readonly filter: LedgerFilter;
  readonly limit: number;
  readonly status?: "running" | "ended";
  readonly after?: RunPlace;
}

/** Which events are looked for, and how many at once. */
export interface EventsQuery {
  readonly filter: LedgerFilter;
  /** Only of this coordination. */
  readonly runId?: CoordinationId;
  readonly limit: number;
  readonly after?: EventPlace;
}

/** Which of the events are read that were appended after a position. */
export interface AppendedQuery {
  readonly filter: LedgerFilter;
  readonly runId?: CoordinationId;
  readonly limit: number;
  /** A position. */
  readonly after: number;
}

/** An event of a coordination or a workflow run, without what it says. */
export interface EventArrival {
  readonly runId: CoordinationId;
  readonly sequence: number;
  readonly type: string;
  /** When it was recorded. */
  readonly atMs: EpochMs;
}

/** Finding coordinations and events by what they are about. Each query goes by an index. */
export interface LedgerQueries {
  /** Coordinations, the one that was opened last first. A step that matches counts for its coordination. */
  findRuns(query: RunsQuery): Promise<QueryPage<StoredRun<Summary>, RunPlace>>;
  /**
   * Events: coordination by coordination, the one that was opened first first, each in the order of its log; in the order
   * of time where nothing but the time is asked for, or the time from which on is.
   *
   * @throws `EVENT_UNREADABLE`
   */
  findEvents(query: EventsQuery): Promise<QueryPage<RunEvent, EventPlace>>;
  /** Events in the order in which they were appended to the ledger, after a position; and the position that was reached. */
  readAppended(
    query: AppendedQuery,
  ): Promise<{ readonly items: readonly RunEvent[]; readonly reached: number }>;
  /**
   * Reads what was appended after a position, to runs of either kind, in that order; and the position that was reached. For who
   * waits for changes: no event is decoded.
   */
  readArrivals(query: {
    readonly after: number;
    readonly limit: number;
  }): Promise<{ readonly items: readonly EventArrival[]; readonly reached: number }>;
  /** The position of the newest event of the ledger; 0 where there is none. */
  newestPosition(): Promise<number>;
  /** The position before the first event that was recorded at a time or later. */
  positionBefore(since: EpochMs): Promise<number>;
}
