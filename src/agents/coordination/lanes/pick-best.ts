/**
 * Owns: which of many ready requests are handed to a lane that has room for some.
 *
 * N4 no more of one session or agent are handed in than may hold a place: the others could only fill the queue, and
 *    requests of other sessions would find it full.
 */
import type { AgentId, SessionKey } from "../contracts/ids.ts";
import { createBinaryHeap, type BinaryHeap } from "./binary-heap.ts";
import { compareRanks, rankRequest, type LaneRank, type RequestUrgency } from "./rank-request.ts";

export interface ReadyRequest extends RequestUrgency {
  readonly session: SessionKey;
  readonly agentId: AgentId;
}

/** How many more may be handed in: the cap without those that were handed in and have not given their place back. */
export interface Allowance {
  /** Absent: no cap. */
  readonly ofSession?: (session: SessionKey) => number;
  readonly ofAgent?: (agentId: AgentId) => number;
}

export interface PickRules {
  readonly count: number;
  readonly agingMs: number;
  readonly allowance?: Allowance;
}

/** A request that is ready, with its rank. */
interface RankedRequest<T> {
  readonly request: T;
  readonly rank: LaneRank;
}

/**
 * Returns up to `count` requests in the order of their ranks, among equals in the order given, leaving out those whose
 * allowance is used up. O(n log count).
 */
export function pickBestRequests<T extends ReadyRequest>(requests: Iterable<T>, rules: PickRules): T[] {
  const { count, agingMs, allowance = {} } = rules;
  const spend = createSpending(allowance);
  const groups = new Map<string, BinaryHeap<RankedRequest<T>>>();
  let arrival = 0;
  for (const request of requests) {
    const rank = rankRequest(request, agingMs, (arrival += 1));
    const name = formatGroupName(request, allowance);
    const group = groups.get(name) ?? createBinaryHeap<RankedRequest<T>>(compareLastFirst);
    groups.set(name, group);
    keepIfBetter(group, { request, rank }, Math.min(count, spend.left(request)));
  }
  const picked: T[] = [];
  for (const { request } of sortCandidates(groups.values())) {
    if (picked.length >= count) break;
    if (spend.take(request)) picked.push(request);
  }
  return picked;
}

/** Names the group of requests with the same session and agent, as far as these have allowances. */
function formatGroupName({ session, agentId }: ReadyRequest, { ofSession, ofAgent }: Allowance): string {
  return ofSession || ofAgent ? JSON.stringify([ofSession && session, ofAgent && agentId]) : "";
}

/** Keeps a candidate while there is room, or in place of the last of those kept, which is on top. */
function keepIfBetter<T>(kept: BinaryHeap<RankedRequest<T>>, candidate: RankedRequest<T>, max: number): void {
  const last = kept.first();
  if (kept.size() < max) kept.add(candidate);
  else if (last && compareLastFirst(candidate, last) > 0) {
    kept.takeFirst();
    kept.add(candidate);
  }
}

function compareLastFirst<T>(a: RankedRequest<T>, b: RankedRequest<T>): number {
  return compareRanks(b.rank, a.rank);
}

function sortCandidates<T>(groups: Iterable<BinaryHeap<RankedRequest<T>>>): RankedRequest<T>[] {
  const all: RankedRequest<T>[] = [];
  for (const group of groups)
    for (let next = group.takeFirst(); next; next = group.takeFirst()) all.push(next);
  return all.sort((a, b) => compareRanks(a.rank, b.rank));
}

/** The allowance that is left as requests are picked. */
interface AllowanceSpending {
  left(request: ReadyRequest): number;
  /** False when nothing is left for it. */
  take(request: ReadyRequest): boolean;
}

/** Creates the account of what is handed in against the allowances of sessions and agents. */
function createSpending({ ofSession, ofAgent }: Allowance): AllowanceSpending {
  const bySession = new Map<SessionKey, number>();
  const byAgent = new Map<AgentId, number>();
  const countLeft = ({ session, agentId }: ReadyRequest): number =>
    Math.min(
      ofSession ? ofSession(session) - (bySession.get(session) ?? 0) : Infinity,
      ofAgent ? ofAgent(agentId) - (byAgent.get(agentId) ?? 0) : Infinity,
    );
  return {
    left: countLeft,
    take: (request) => {
      if (countLeft(request) < 1) return false;
      const { session, agentId } = request;
      bySession.set(session, (bySession.get(session) ?? 0) + 1);
      byAgent.set(agentId, (byAgent.get(agentId) ?? 0) + 1);
      return true;
    },
  };
}
