/**
 * Owns: the three lanes and what they share: the caps per session and per agent, and who listens for room. A lane limits
 * concurrency in this process and holds no truth.
 *
 * No p-queue `timeout` or `signal`: both free the slot while the work still runs. No `clear()`: its promises never settle.
 */
import PQueue from "p-queue";
import { laneSchema, type Lane } from "../../agents/coordination/contracts/envelope.ts";
import type { LanesConfig } from "../../agents/coordination/contracts/config/config.ts";
import { compareRanks } from "../../agents/coordination/lanes/rank-request.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { LaneRunner } from "../../agents/coordination/ports/lane-runner.ts";
import type { StepAdmission } from "../../agents/coordination/ports/provider-use.ts";
import { createHeldPlaces, type HeldPlaces } from "./held-places.ts";
import { createRequestLane, type RequestLane } from "./request-lane.ts";

export type LaneLimits = Pick<
  LanesConfig,
  "control" | "data" | "escalation" | "queueMax" | "perSessionMax" | "perAgentMax" | "agingMs"
>;

/** Acts are short, so few of a kind at once are enough, and a host is not asked about 10,000 steps at the same time. */
const ACTS_AT_ONCE = 8;

/**
 * Creates the three lanes in which requests wait for a place, and two queues for questions and stops, which wait for
 * no lane.
 */
export function createPQueueLanes(limits: LaneLimits, clock: Clock, providers?: StepAdmission): LaneRunner {
  const listeners = new Set<(lane: Lane) => void>();
  const onRoom = (lane: Lane): void => {
    for (const listener of listeners) listener(lane);
  };
  const { perSessionMax, perAgentMax } = limits;
  const places = createHeldPlaces({ perSessionMax, perAgentMax }, providers);
  const lanes = createLanes(limits, { clock, places, onRoom });
  providers?.onChange(() => {
    const all = Object.values(lanes);
    for (const lane of all) lane.recount();
    startAllLanes(all);
    for (const lane of laneSchema.options) onRoom(lane);
  });
  const acts = {
    question: new PQueue({ concurrency: ACTS_AT_ONCE }),
    stop: new PQueue({ concurrency: ACTS_AT_ONCE }),
  };
  const underway = createUnderwayCount();
  return {
    run: (request, work) => underway.during(() => lanes[request.lane].run(request, work)),
    room: (lane) => lanes[lane].room(),
    onRoom: (listener) => {
      // Its own function, so that one listener given twice is heard twice and ended one by one.
      const notify = (lane: Lane): void => listener(lane);
      listeners.add(notify);
      return () => {
        listeners.delete(notify);
      };
    },
    heldBackAgents: () => providers?.heldBackAgents() ?? new Set(),
    stopHoldingBack: () => {
      places.ignoreProviders();
      startAllLanes(Object.values(lanes));
    },
    operate: (kind, work) => underway.during(() => acts[kind].add(work)),
    metrics: () => ({
      control: lanes.control.metrics(),
      data: lanes.data.metrics(),
      escalation: lanes.escalation.metrics(),
    }),
    idle: () => underway.idle(),
  };
}

/** The queue of each lane. */
type LanesByName = Readonly<Record<Lane, RequestLane>>;

interface LanesDependencies {
  readonly clock: Clock;
  readonly places: HeldPlaces;
  readonly onRoom: (lane: Lane) => void;
}

function createLanes(limits: LaneLimits, { clock, places, onRoom }: LanesDependencies): LanesByName {
  const { queueMax, agingMs, perSessionMax, perAgentMax } = limits;
  const hasCaps = perSessionMax !== undefined || perAgentMax !== undefined;
  const make = (lane: Lane): RequestLane =>
    createRequestLane({
      concurrency: limits[lane],
      queueMax,
      agingMs,
      places,
      clock,
      onCapOpened: (from) => startLanesBefore(Object.values(lanes), from),
      onTurnOver: (from) => {
        if (hasCaps) startOtherLanes(Object.values(lanes), from);
      },
      onRoom: () => onRoom(lane),
    });
  const lanes: LanesByName = { control: make("control"), data: make("data"), escalation: make("escalation") };
  return lanes;
}

/**
 * Starts what ranks before the lane `from`, in all lanes. A place that a cap had kept goes to the first in rank; the
 * lane that gave it back takes its turn a moment later, when its p-queue sees the end of the job.
 */
function startLanesBefore(lanes: readonly RequestLane[], from: RequestLane): void {
  for (const lane of sortStartableLanes(lanes)) {
    if (lane === from) return;
    lane.tryAgain();
  }
}

function startOtherLanes(lanes: readonly RequestLane[], from: RequestLane): void {
  for (const lane of sortStartableLanes(lanes)) if (lane !== from) lane.tryAgain();
}

function startAllLanes(lanes: readonly RequestLane[]): void {
  for (const lane of sortStartableLanes(lanes)) lane.tryAgain();
}

/** Returns the lanes in which something may start, by the rank of what starts first. */
function sortStartableLanes(lanes: readonly RequestLane[]): RequestLane[] {
  return lanes
    .flatMap((lane) => {
      const rank = lane.nextRank();
      return rank ? [{ lane, rank }] : [];
    })
    .toSorted((a, b) => compareRanks(a.rank, b.rank))
    .map(({ lane }) => lane);
}

/** Counts the work that is under way, and tells when there is none. */
interface UnderwayCount {
  during<T>(work: () => Promise<T>): Promise<T>;
  idle(): Promise<void>;
}

/**
 * Counts the work that was handed in and has not settled, whether or not it still waits or has given back its place.
 * Whoever waits for the work itself goes on before whoever waits for idleness.
 */
function createUnderwayCount(): UnderwayCount {
  let count = 0;
  let waiters: (() => void)[] = [];
  const settle = (): void => {
    count -= 1;
    if (count > 0) return;
    for (const wake of waiters) wake();
    waiters = [];
  };
  return {
    during: (work) => {
      count += 1;
      const settling = work();
      settling.then(settle, settle);
      return settling;
    },
    idle: () =>
      count === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiters.push(resolve);
          }),
  };
}
