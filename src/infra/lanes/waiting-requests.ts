/**
 * Owns: the requests that wait for one lane, and which of them may start next.
 *
 * Requests that the caps let in or hold back together wait in one heap. Without caps that is a single heap; with caps
 * finding the next one costs a look at the first request of each heap.
 */
import type { RunFunction } from "p-queue";
import { createBinaryHeap, type BinaryHeap } from "../../agents/coordination/lanes/binary-heap.ts";
import { compareRanks, rankRequest, type LaneRank } from "../../agents/coordination/lanes/rank-request.ts";
import type { LaneRequest } from "../../agents/coordination/ports/lane-runner.ts";
import type { HeldPlaces } from "./held-places.ts";

export interface WaitingRequest {
  readonly request: LaneRequest;
  readonly rank: LaneRank;
  readonly run: RunFunction;
}

export interface WaitingRequests {
  /** All that wait, also those that a cap or a provider holds back. */
  count(): number;
  /** Those that fill the queue: all but those that a provider holds back. */
  countFilling(): number;
  add(request: LaneRequest, run: RunFunction): void;
  /** The first one that no cap holds back. */
  next(): WaitingRequest | undefined;
  /** Takes it from those that wait, and its place. */
  takeNext(): WaitingRequest | undefined;
}

/** Requests that wait, the best first. */
type RequestHeap = BinaryHeap<WaitingRequest>;

/**
 * Creates the queue of requests that wait for a place, and of which `takeNext` takes the first by rank that may hold
 * one.
 */
export function createWaitingRequests(places: HeldPlaces, agingMs: number): WaitingRequests {
  const heaps = new Map<string, RequestHeap>();
  let arrivals = 0;
  let count = 0;
  /** The heap with the next request, as long as nothing changed since it was looked for. */
  let nextHeap: { readonly version: number; readonly heap: RequestHeap | undefined } | undefined;
  const findNextHeap = (): RequestHeap | undefined => {
    if (nextHeap?.version !== places.version())
      nextHeap = { version: places.version(), heap: findHeapToStart(heaps.values(), places) };
    return nextHeap.heap;
  };
  return {
    count: () => count,
    countFilling: () => countFillingRequests(heaps.values(), places),
    add: (request, run) => {
      const name = places.nameOf(request);
      const heap = heaps.get(name) ?? createBinaryHeap<WaitingRequest>(compareWaiting);
      heaps.set(name, heap);
      heap.add({ request, rank: rankRequest(request, agingMs, (arrivals += 1)), run });
      count += 1;
      if (nextHeap && isOpenBefore(heap, nextHeap.heap, places)) nextHeap = { ...nextHeap, heap };
    },
    next: () => findNextHeap()?.first(),
    takeNext: () => {
      const heap = findNextHeap();
      const request = heap?.takeFirst();
      if (!heap || !request) return undefined;
      count -= 1;
      if (heap.size() === 0) heaps.delete(places.nameOf(request.request));
      places.take(request.request);
      nextHeap = undefined;
      return request;
    },
  };
}

/** Counts the requests whose provider does not hold them back. Those of one heap have the same provider. */
function countFillingRequests(heaps: Iterable<RequestHeap>, places: HeldPlaces): number {
  let count = 0;
  for (const heap of heaps) {
    const first = heap.first();
    if (first && places.isProviderOpen(first.request)) count += heap.size();
  }
  return count;
}

function compareWaiting(a: WaitingRequest, b: WaitingRequest): number {
  return compareRanks(a.rank, b.rank);
}

/** Returns the heap whose first request may start before those of all others; `undefined` where none may. */
function findHeapToStart(heaps: Iterable<RequestHeap>, places: HeldPlaces): RequestHeap | undefined {
  let best: RequestHeap | undefined;
  for (const heap of heaps) if (isOpenBefore(heap, best, places)) best = heap;
  return best;
}

/** True when the first request of `heap` may start, and comes before that of `other`. */
function isOpenBefore(heap: RequestHeap, other: RequestHeap | undefined, places: HeldPlaces): boolean {
  const first = heap.first();
  const rival = other?.first();
  if (!first || (rival && compareWaiting(first, rival) >= 0)) return false;
  return places.mayHold(first.request);
}
