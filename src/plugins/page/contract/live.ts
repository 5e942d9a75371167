/**
 * Owns: the stream of changes. `GET ./api/live?after=<position>` answers `text/event-stream`, read with fetch because it needs the
 * authorization header; the header `last-event-id`, or `after`, resumes it. Without either it begins now.
 */

/** `event: hello`: the first event; its id is the position from which on changes are told. */
export interface LiveHello {
  readonly position: number;
  /** The server's clock. */
  readonly nowMs: number;
}

/** `event: change`: its id is the position in the ledger that it reaches. */
export interface LiveChange {
  readonly id: string;
  /** The sequence of the newest event that is told. */
  readonly sequence: number;
  /** Types of the events, each once. */
  readonly types: readonly string[];
  /** When the newest of them was recorded. */
  readonly atMs: number;
  /** The coordination whose agent opened it as a plan; only with its opening, and not where a stream is resumed behind it. */
  readonly parentId?: string;
}

/** `event: beat`: every ten seconds. */
export interface LiveBeat {
  readonly nowMs: number;
}

/** `event: lost`: too much happened since the position to tell; read everything anew. Changes go on from its id. */
export interface LiveLost {
  readonly position: number;
}

/** `event: end`: the stream ends because the server stops, or the session ended; connect again, or sign in again. */
export interface LiveEnd {
  readonly because: "stopping" | "session_ended";
}
