/** Owns: claims and conflicts by the log alone: who holds what, until when, and that each conflict is resolved once (A1 to A3). */
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { EventCheck } from "./check-log.ts";
import { isDisturbed } from "./check-steps.ts";
import { listBroken } from "./list-broken.ts";
import type { FactOf, PayloadOf } from "./journal.ts";
import { mayMergeAll, type World } from "./world.ts";

interface ClaimModel extends PayloadOf<"claim.acquired"> {
  readonly runId: string;
  readonly atMs: number;
  untilMs: number;
  endedAtMs?: number;
}

interface Books {
  readonly world: World;
  readonly claims: Map<number, ClaimModel>;
  readonly newest: Map<string, number>;
  readonly conflicts: Map<string, { readonly detected: FactOf<"conflict.detected">; isResolved: boolean }>;
  readonly ended: Set<string>;
  /** Steps whose attempt is over, by run and step; their claims are to be over too. */
  readonly idle: Set<string>;
  seenTokens: number;
}

/** The tool by which what a worktree has is merged, without a claim. */
const MERGE_TOOL = "worktree merge";

const timeOf = ({ timestamp }: RunEvent): number => Date.parse(timestamp);
const isShared = (resource: string): boolean => resource.endsWith("/merge.md");

export function createClaimCheck(world: World): EventCheck {
  const books: Books = {
    world,
    claims: new Map(),
    newest: new Map(),
    conflicts: new Map(),
    ended: new Set(),
    idle: new Set(),
    seenTokens: 0,
  };
  return { see: (event) => seeEvent(books, event), rest: () => [...checkTokens(books), ...checkIdle(books)] };
}

function seeEvent(books: Books, event: RunEvent): string[] {
  switch (event.type) {
    case "claim.acquired":
      return acquire(books, event);
    case "claim.renewed":
      return renew(books, event);
    case "claim.released":
      return release(books, event);
    case "resource.changed":
      return checkChange(books, event);
    case "conflict.detected":
      return detect(books, event);
    case "conflict.resolved":
      return resolve(books, event);
    case "step.dispatched":
      books.idle.delete(`${event.runId}/${event.payload.stepId}`);
      return [];
    case "step.completed":
    case "step.failed":
    case "step.timed_out":
    case "result.held":
      books.idle.add(`${event.runId}/${event.payload.stepId}`);
      return [];
    case "coordination.terminal":
      books.ended.add(event.runId);
      return [];
    default:
      return [];
  }
}

function acquire(books: Books, event: FactOf<"claim.acquired">): string[] {
  const { token, stepId, expiresAtMs } = event.payload;
  const { runId } = event;
  const newest = books.newest.get(runId) ?? 0;
  books.newest.set(runId, Math.max(newest, token));
  const isTwice = books.claims.has(token);
  books.claims.set(token, { ...event.payload, runId, atMs: timeOf(event), untilMs: expiresAtMs });
  return listBroken({
    [`A2: the token ${token} is there twice`]: isTwice,
    [`A2: the token ${token} comes after ${newest}`]: token <= newest,
    [`A2: ${stepId} claims for no time`]: expiresAtMs <= timeOf(event),
    [`A2: ${stepId} claims after its end`]: books.idle.has(`${runId}/${stepId}`),
  });
}

function findOpen(books: Books, runId: string, payload: { readonly token: number; readonly stepId: string }) {
  const claim = books.claims.get(payload.token);
  const isOwn = claim?.runId === runId && claim.stepId === payload.stepId;
  return isOwn && claim.endedAtMs === undefined ? claim : undefined;
}

function renew(books: Books, event: FactOf<"claim.renewed">): string[] {
  const claim = findOpen(books, event.runId, event.payload);
  if (!claim) return [`A2: ${event.payload.stepId} renews what it does not hold`];
  const isOver = claim.untilMs <= timeOf(event) && !books.world.hasGoneBack;
  claim.untilMs = event.payload.expiresAtMs;
  return isOver ? [`A2: ${event.payload.stepId} renews a claim that has run out`] : [];
}

function release(books: Books, event: FactOf<"claim.released">): string[] {
  const { because, token, stepId } = event.payload;
  const claim = findOpen(books, event.runId, event.payload);
  if (!claim) return [`A2: ${stepId} releases ${token}, which it does not hold`];
  const atMs = timeOf(event);
  claim.endedAtMs = atMs;
  return listBroken({
    [`A2: ${token} has not run out yet`]:
      because === "expired" && claim.untilMs > atMs && !books.world.hasGoneBack,
    [`A2: ${token} is freed before its step ended`]:
      because === "step_ended" && !books.idle.has(`${event.runId}/${stepId}`),
    [`A2: ${token} is no claim of a turn`]: because === "turn_ended" && !stepId.startsWith("@"),
  });
}

/** Calls under a claim that has ended since may still be told of. */
const LATE_MS = 5_000;

/** A2: what is written is written under a token, while that claim is there. */
function checkChange(books: Books, event: FactOf<"resource.changed">): string[] {
  const { token, stepId, resource, tool } = event.payload;
  // The host makes an approved call also where a disturbance has ended its claim since.
  const mayLackClaim = tool === MERGE_TOOL || isDisturbed(books.world, timeOf(event));
  if (token === undefined) return mayLackClaim ? [] : [`A2: ${stepId} changes ${resource} under no token`];
  const claim = books.claims.get(token);
  const isOwn = claim?.runId === event.runId && claim.stepId === stepId;
  if (!isOwn) return [`A2: ${stepId} writes under the token ${token} of somebody else`];
  const isCovered = resource === claim.resource || resource.startsWith(`${claim.resource}/`);
  const overAtMs = Math.min(claim.endedAtMs ?? Infinity, claim.untilMs);
  return listBroken({
    [`A2: ${stepId} writes ${resource} under a claim on ${claim.resource}`]: !isCovered,
    [`A2: ${stepId} writes ${resource} after its claim is over`]:
      timeOf(event) > overAtMs + LATE_MS && !isDisturbed(books.world, timeOf(event)),
  });
}

function detect(books: Books, event: FactOf<"conflict.detected">): string[] {
  const { conflictId, claims } = event.payload;
  const key = `${event.runId}/${conflictId}`;
  const isTwice = books.conflicts.has(key);
  books.conflicts.set(key, { detected: event, isResolved: false });
  const names = claims.map(({ stepId, coordinationId }) => `${coordinationId ?? event.runId}/${stepId}`);
  return listBroken({
    [`A3: ${conflictId} is detected twice`]: isTwice,
    [`A1: ${conflictId} has somebody twice`]: new Set(names).size < names.length,
  });
}

function resolve(books: Books, event: FactOf<"conflict.resolved">): string[] {
  const conflict = books.conflicts.get(`${event.runId}/${event.payload.conflictId}`);
  if (!conflict) return [`A3: ${event.payload.conflictId} was never detected`];
  if (conflict.isResolved) return [`A3: ${event.payload.conflictId} is resolved twice`];
  conflict.isResolved = true;
  return checkRuling(conflict.detected.payload, event.payload);
}

const PRIORITIES = ["low", "normal", "high", "critical"];

/** A1: the strategy is the one that was chosen, and a merge is clean. */
function checkRuling(
  { claims, contest, conflictId }: PayloadOf<"conflict.detected">,
  ruling: PayloadOf<"conflict.resolved">,
): string[] {
  const { rule, strategy, because } = ruling;
  const isMerged = because === "merged";
  const isRanked = rule === "ownership" || rule === "lease" || because === "highest-priority";
  return [
    ...listBroken({
      [`A1: ${conflictId} is merged and cannot be`]: isMerged && contest?.merge?.kind !== "clean",
      [`A1: ${conflictId} is ruled by another strategy`]: strategy !== (contest?.strategy ?? strategy),
    }),
    ...(isRanked ? checkRank(claims, ruling) : []),
  ];
}

/** A1, by the words of the rules: who declared, who changed, who came first, by name; by priority before that. */
function checkRank(claims: Contestants, ruling: PayloadOf<"conflict.resolved">): string[] {
  const { winner, winnerCoordinationId, strategy, conflictId } = ruling;
  const [first] = rankClaims(claims, strategy === "priority_wins");
  const isRight = first?.stepId === winner && first?.coordinationId === winnerCoordinationId;
  return isRight ? [] : [`A1: ${conflictId} goes to ${winner} and not to ${first?.stepId}`];
}

type Contestants = PayloadOf<"conflict.detected">["claims"];

function rankClaims(claims: Contestants, isByPriority: boolean): Contestants {
  const rankPriority = ({ priority }: Contestants[number]): number =>
    isByPriority ? PRIORITIES.indexOf(priority) : 0;
  const rankArrival = ({ claimedSequence }: Contestants[number]): number =>
    claimedSequence === 0 ? Number.MAX_SAFE_INTEGER : claimedSequence;
  return claims.toSorted(
    (a, b) =>
      rankPriority(b) - rankPriority(a) ||
      Number(b.declared === true) - Number(a.declared === true) ||
      Number(b.changedAtMs !== undefined) - Number(a.changedAtMs !== undefined) ||
      rankArrival(a) - rankArrival(b) ||
      compareNames(a.coordinationId ?? "", b.coordinationId ?? "") ||
      compareNames(a.stepId, b.stepId),
  );
}

const compareNames = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

/** A2: tokens are counted from 1 without a gap, over all coordinations. */
function checkTokens(books: Books): string[] {
  const problems: string[] = [];
  while (books.seenTokens < books.claims.size) {
    books.seenTokens += 1;
    const claim = books.claims.get(books.seenTokens);
    if (claim) problems.push(...checkBeside(books, claim));
    else problems.push(`A2: the token ${books.seenTokens} is left out`);
  }
  return problems;
}

const isOver = (one: string, other: string): boolean => one === other || other.startsWith(`${one}/`);

/** At no time two steps hold what cannot be shared. */
function checkBeside({ claims, world }: Books, claim: ClaimModel): string[] {
  if (isShared(claim.resource) || world.hasGoneBack) return [];
  if (mayMergeAll(world)) return [];
  const beside = [...claims.values()].filter(
    (other) =>
      other.token < claim.token &&
      (isOver(other.resource, claim.resource) || isOver(claim.resource, other.resource)) &&
      !isShared(other.resource) &&
      `${other.runId}/${other.stepId}` !== `${claim.runId}/${claim.stepId}` &&
      other.untilMs > claim.atMs &&
      (other.endedAtMs ?? Infinity) > claim.atMs,
  );
  return beside.map(
    (other) =>
      `A2: ${claim.runId}/${claim.stepId} claims ${claim.resource} beside ${other.runId}/${other.stepId}`,
  );
}

/** A claim ends with the attempt of its step, and with the coordination. */
function checkIdle({ claims, idle, ended, conflicts }: Books): string[] {
  const left = [...claims.values()].filter(
    ({ runId, stepId, endedAtMs }) =>
      endedAtMs === undefined && (ended.has(runId) || idle.has(`${runId}/${stepId}`)),
  );
  const unresolved = [...conflicts].filter(
    ([, { detected, isResolved }]) => !isResolved && ended.has(detected.runId),
  );
  return [
    ...left.map(({ runId, stepId, token }) => `A2: ${runId}/${stepId} has ended and holds ${token}`),
    ...unresolved.map(([key]) => `A3: ${key} was never resolved`),
  ];
}
