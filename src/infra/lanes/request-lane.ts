/**
 * Owns: one lane: its p-queue, its bound, its counts, and giving places back.
 *
 * The job that p-queue sees ends when the place is given back, which may be before the work ends; the promise of `run` is
 * our own and settles with the work.
 */
import PQueue from "p-queue";
import { isLaneFull, computeLaneRoom, type Backlog } from "../../agents/coordination/lanes/lane-room.ts";
import type { LaneRank } from "../../agents/coordination/lanes/rank-request.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type {
  LaneMetrics,
  LaneRequest,
  LaneResult,
  LaneSlot,
} from "../../agents/coordination/ports/lane-runner.ts";
import type { HeldPlaces } from "./held-places.ts";
import { createRequestQueueClass, type RequestOptions, type RequestQueue } from "./request-queue.ts";
import { createWaitingRequests } from "./waiting-requests.ts";

export type LaneWork<T> = (slot: LaneSlot) => Promise<T>;

export interface RequestLane {
  run<T>(request: LaneRequest, work: LaneWork<T>): Promise<LaneResult<T>>;
  room(): number;
  metrics(): LaneMetrics;
  /** The rank of the request that starts next, unless caps hold back all that wait. */
  nextRank(): LaneRank | undefined;
  /** Starts what a cap or a provider held back until now. */
  tryAgain(): void;
  /** Looks again whether the queue is full: a provider may hold back other requests than before. */
  recount(): void;
}

export interface RequestLaneDependencies {
  readonly concurrency: number;
  readonly queueMax: number;
  readonly agingMs: number;
  readonly places: HeldPlaces;
  readonly clock: Clock;
  /** A cap has room again, before this lane has started what it lets in. */
  readonly onCapOpened: (lane: RequestLane) => void;
  /** This lane has started all that it can after a place was given back. */
  readonly onTurnOver: (lane: RequestLane) => void;
  readonly onRoom: () => void;
}

/** Counts of the requests of a lane. */
interface LaneCounts {
  running: number;
  admitted: number;
  refused: number;
  waitedMsTotal: number;
  waitedMsMax: number;
}

/**
 * Creates a lane, which runs so many requests at once and lets others wait by rank for a place. Work for a lane whose
 * queue is full is refused.
 */
export function createRequestLane(dependencies: RequestLaneDependencies): RequestLane {
  const { concurrency, queueMax, places } = dependencies;
  const waiting = createWaitingRequests(places, dependencies.agingMs);
  const queue = new PQueue<RequestQueue, RequestOptions>({
    concurrency,
    queueClass: createRequestQueueClass(waiting),
  });
  const counts: LaneCounts = { running: 0, admitted: 0, refused: 0, waitedMsTotal: 0, waitedMsMax: 0 };
  const bound = createBound(() => waiting.countFilling(), dependencies);
  const giveBack = (request: LaneRequest): void => {
    counts.running -= 1;
    if (places.giveBack(request)) dependencies.onCapOpened(lane);
  };
  const lane: RequestLane = {
    run: <T>(request: LaneRequest, work: LaneWork<T>) => {
      if (waiting.countFilling() >= queueMax) {
        counts.refused += 1;
        return Promise.resolve({ kind: "full" });
      }
      const ended = Promise.withResolvers<LaneResult<T>>();
      const askedAtMs = dependencies.clock.now();
      const startJob = (): Promise<void> => {
        countAdmitted(counts, dependencies.clock.now() - askedAtMs);
        bound.left();
        return holdPlace(work, ended, () => giveBack(request));
      };
      queue.add(startJob, { request }).catch(ended.reject);
      bound.recount();
      return ended.promise;
    },
    room: () => computeLaneRoom(bound.backlog()),
    metrics: () => createLaneMetrics(counts, { concurrency, queueMax, waiting: waiting.count() }),
    nextRank: () => waiting.next()?.rank,
    tryAgain: () => {
      // Setting it is how p-queue is told to look at what waits.
      queue.concurrency = concurrency;
    },
    recount: () => {
      bound.recount();
    },
  };
  queue.addEventListener("next", () => dependencies.onTurnOver(lane));
  return lane;
}

/** Watches the length of a lane's queue, and tells when it has room again. */
interface QueueBound {
  backlog(): Backlog;
  recount(): void;
  left(): void;
}

/** Creates the bound of the lane, which says whether it is full and when it no longer is. */
function createBound(waiting: () => number, { queueMax, onRoom }: RequestLaneDependencies): QueueBound {
  let wasFull = false;
  const readBacklog = (): Backlog => ({ waiting: waiting(), queueMax, wasFull });
  return {
    backlog: readBacklog,
    recount: () => {
      wasFull = isLaneFull(readBacklog());
    },
    left: () => {
      if (!wasFull || isLaneFull(readBacklog())) return;
      wasFull = false;
      // Not at once: the listener may hand in more work, and p-queue is in the middle of starting this.
      queueMicrotask(() => {
        if (!wasFull) onRoom();
      });
    },
  };
}

function countAdmitted(counts: LaneCounts, waitedMs: number): void {
  // A clock that was put back has not taken waiting away.
  const waited = Math.max(0, waitedMs);
  counts.running += 1;
  counts.admitted += 1;
  counts.waitedMsTotal += waited;
  counts.waitedMsMax = Math.max(counts.waitedMsMax, waited);
}

/** Begins the work and resolves when its place is given back. Never rejects: how the work ends is for `ended`. */
function holdPlace<T>(
  work: LaneWork<T>,
  ended: PromiseWithResolvers<LaneResult<T>>,
  giveBack: () => void,
): Promise<void> {
  return new Promise((resolve) => {
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      giveBack();
      resolve();
    };
    void performWork(work, ended, release);
  });
}

/** Does the work and settles `ended` with its outcome; its place is released before, if the work did not do so. */
async function performWork<T>(
  work: LaneWork<T>,
  ended: PromiseWithResolvers<LaneResult<T>>,
  release: () => void,
): Promise<void> {
  try {
    const value = await work({ release });
    release();
    ended.resolve({ kind: "ran", value });
  } catch (error) {
    release();
    ended.reject(error);
  }
}

function createLaneMetrics(
  { running, admitted, refused, waitedMsTotal, waitedMsMax }: LaneCounts,
  { concurrency, queueMax, waiting }: Pick<LaneMetrics, "concurrency" | "queueMax" | "waiting">,
): LaneMetrics {
  const waitedMs = { total: waitedMsTotal, max: waitedMsMax };
  return { concurrency, running, waiting, queueMax, admitted, refused, waitedMs };
}
