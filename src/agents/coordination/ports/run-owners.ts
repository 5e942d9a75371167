/** Owns: the port that keeps which process drives which run, takes runs over and hands them on. */
import type { CoordinationId } from "../contracts/ids.ts";

/**
 * Which process drives which run of one kind (docs/adr/0025). An owner is a process that drives runs; each of its runs has a
 * token that grows whenever another process takes the run over.
 *
 * O1 A run has one owner and one token at a time. The first append of a run makes its owner the owner, with token 1.
 * O2 An append that names an owner is refused with `NOT_OWNER` unless the run has that owner and that token: in the
 * transaction of the append, so that an owner which was paused or cut off writes nothing after another took over.
 * O3 Of two that take the same run at once, one gets it. O4 No clock of any process is compared with that of another.
 */
export interface RunOwners {
  /** Tells that the owner is alive: its count grows by one. */
  beat(owner: RunOwner): Promise<void>;
  /** All owners that have told of themselves and were not removed, by their ids. */
  beats(): Promise<readonly OwnerBeat[]>;
  /** Removes an owner: its runs are free for others to take. Arrivals that nobody will collect are forgotten, as by `take`. */
  remove(id: string): Promise<void>;
  /** The ids of those who own open runs, sorted, whether they have told of themselves or not; "" for runs that nobody owns. */
  holders(): Promise<readonly string[]>;
  /**
   * Makes `owner` the owner of open runs that no living owner has: those of `from` and, unless `isOnlyFrom`, those of owners that
   * have not told of themselves or were removed, and of nobody. At most `limit`, the oldest first, without waiting for those
   * that somebody writes to. Ended runs that no living owner has are not taken, and are no arrivals any more: else they could
   * never be pruned.
   */
  take(request: TakeRuns): Promise<readonly OwnedRun[]>;
  /**
   * Makes another one the owner of an open run, who finds it as an arrival.
   *
   * @throws CoordinationError `NOT_OWNER` when the run does not have that owner and token, or has ended
   */
  give(runId: CoordinationId, owner: OwnerToken, to: string): Promise<void>;
  /** The open runs of an owner, the oldest first. */
  list(
    id: string,
    page: { readonly after?: { readonly ordinal: number }; readonly limit: number },
  ): Promise<readonly OwnedRun[]>;
  /** The owners of runs, by the ids of the runs. Runs that are not there and runs that nobody owns are left out. */
  ownersOf(runIds: readonly CoordinationId[]): Promise<ReadonlyMap<CoordinationId, OwnerToken>>;
  /**
   * Returns runs of the owner to which others appended or which others gave to it, the ended ones too, and forgets that they did.
   * At most `limit`, the oldest first.
   */
  collectArrivals(id: string, limit: number): Promise<readonly RunArrival[]>;
}

/** A process that drives runs. */
export interface RunOwner {
  /** Unique, also over restarts. */
  readonly id: string;
  /** The process, as others of the same machine can find out whether it is there. Absent where that is not known. */
  readonly process?: string;
}

/** An owner as it last told of itself. */
export interface OwnerBeat extends RunOwner {
  /** Counts how often it did. */
  readonly count: number;
}

/** Proves that a process may write to a run. */
export interface OwnerToken {
  readonly id: string;
  /** From 1. */
  readonly token: number;
}

/** An open run of an owner. */
export interface OwnedRun {
  readonly runId: CoordinationId;
  /** The position of the run's first event among all runs. */
  readonly ordinal: number;
  readonly token: number;
}

/** A run to which others appended, or which they gave to its owner. */
export interface RunArrival {
  readonly runId: CoordinationId;
  /** How many events its log has. */
  readonly length: number;
}

/** Which runs are taken over. */
export interface TakeRuns {
  readonly owner: string;
  /** The ids of owners that are gone. "" means nobody. */
  readonly from: readonly string[];
  /**
   * True: only runs of `from`, whoever of them has told of itself. Absent: also those of owners that have not told of themselves
   * or were removed, and of nobody.
   */
  readonly isOnlyFrom?: boolean;
  readonly limit: number;
}
