/**
 * Owns: deriving a recorded log again, a piece at a time, and where it first differs from what is recorded.
 *
 * 1. Decisions are compared fact by fact, projections byte by byte (L5). 2. A decision has one time, so no
 * decision reaches over a change of it. 3. Nothing is executed and nothing is written.
 */
import type { Command } from "../contracts/commands.ts";
import { epochMsOf, type CoordinationId, type EpochMs } from "../contracts/ids.ts";
import { isFact, type FactEvent, type RunEvent } from "../contracts/run-event.ts";
import { recordFacts } from "../dispatch/record.ts";
import { evolve } from "../ledger/evolve.ts";
import { createUnopenedCoordination, type Coordination } from "../ledger/state.ts";
import type { OutputsByHash } from "./criteria-again.ts";
import { decideAgain, type RepeatedDecision } from "./decide-again.ts";
import { restoreDraft } from "./told-fact.ts";

/** Where a log first differs from what is derived. */
export interface Difference {
  readonly sequence: number;
  readonly type: RunEvent["type"];
  readonly stepId?: string;
  /** A decision, what follows from one by the rules of the projection, or a cause. */
  readonly kind: "decision" | "projection";
  readonly why: string;
}

/** One decision of the recorded history, decided again as it is recorded. */
export interface ReplayedDecision {
  readonly before: Coordination;
  readonly after: Coordination;
  /** Absent where nothing was asked of us: somebody told us, or the rules of arbitration ruled. */
  readonly command?: Command;
  readonly facts: readonly [FactEvent, ...FactEvent[]];
}

/** The coordination as far as its log was replayed, and the first difference. */
export interface ReplayProgress {
  readonly state: Coordination;
  readonly decisions: number;
  readonly difference?: Difference;
}

/** The part of a log whose decisions are derived again. */
interface ReplayRange {
  /** Where deriving begins; events before it are taken as they are recorded. */
  readonly from: number;
  /** No decision is looked at that begins here or behind. */
  readonly to?: number;
  readonly outputs: OutputsByHash;
  readonly onDecided?: (decided: ReplayedDecision) => unknown;
}

/** Returns the beginning of a replay of a coordination's log, which has derived none of its events yet. */
export function startReplay(coordinationId: CoordinationId): ReplayProgress {
  return { state: createUnopenedCoordination(coordinationId), decisions: 0 };
}

/**
 * Returns the replay after it derived the next events of the log again, up to the first that is recorded otherwise.
 * `events`: all those of one time or several.
 */
export function continueReplay(
  replaying: ReplayProgress,
  events: readonly RunEvent[],
  piece: ReplayRange,
): ReplayProgress {
  let next = replaying;
  for (let at = 0; at < events.length && !next.difference;) {
    const end = findMomentEnd(events, at);
    next = replayMoment(next, events.slice(at, end), piece);
    at = end;
  }
  return next;
}

/** Returns the index behind the last event with the same time. */
function findMomentEnd(events: readonly RunEvent[], from: number): number {
  let end = from + 1;
  while (end < events.length && events[end]?.timestamp === events[from]?.timestamp) end += 1;
  return end;
}

/**
 * Derives the events of one time again; those before the piece are taken as recorded. A decision may stand on either
 * side of the index: it belongs to where it begins.
 */
function replayMoment(
  replaying: ReplayProgress,
  events: readonly RunEvent[],
  piece: ReplayRange,
): ReplayProgress {
  const [first, last] = [events[0], events.at(-1)];
  if (!first || !last) return replaying;
  if (last.sequence < piece.from)
    return { ...replaying, state: events.reduce<Coordination>(evolve, replaying.state) };
  const moment = { events, facts: events.filter(isFact), now: epochMsOf(first.timestamp) };
  let next: ReplayPosition = { ...replaying, at: 0, factPosition: 0 };
  while (hasEventToDerive(next, events, piece)) next = replayDecision(next, moment, piece);
  const { at: _, factPosition: _position, ...moved } = next;
  return moved;
}

function hasEventToDerive(
  { at, difference }: ReplayPosition,
  events: readonly RunEvent[],
  { to = Infinity }: ReplayRange,
): boolean {
  const event = events[at];
  return event !== undefined && event.sequence < to && !difference;
}

/** Events that were appended together, and when. */
interface RecordedMoment {
  readonly events: readonly RunEvent[];
  readonly facts: readonly FactEvent[];
  readonly now: EpochMs;
}

/** The progress of a replay inside a moment. */
interface ReplayPosition extends ReplayProgress {
  /** The next event. */
  readonly at: number;
  /** The next of the facts. */
  readonly factPosition: number;
}

/** Decides the next decision of a moment again, and compares the events that follow with the recorded ones. */
function replayDecision(
  moved: ReplayPosition,
  { events, facts, now }: RecordedMoment,
  piece: ReplayRange,
): ReplayPosition {
  const { state, at, factPosition } = moved;
  const lead = facts[factPosition];
  if (!lead || events[at] !== lead) return { ...moved, difference: createSurplusDifference(events[at]) };
  const again = decideWithLookahead(facts, factPosition, (ahead) =>
    decideAgain(state, ahead, { now, outputs: piece.outputs }),
  );
  const isWanted = lead.sequence >= piece.from;
  if (again.kind === "differs") {
    const differing = facts[factPosition + again.at] ?? lead;
    return isWanted
      ? { ...moved, difference: createDifference(differing, "decision", again.why) }
      : takeRecordedFact(moved, events);
  }
  const decidedFacts = facts.slice(factPosition, factPosition + again.count);
  const derived = recordFacts(state, decidedFacts.map(restoreDraft), now);
  const difference = findFirstDifference(events, at, derived.events);
  if (difference) return { ...moved, difference };
  if (isWanted)
    piece.onDecided?.(createDecided({ before: state, after: derived.state, again }, lead, decidedFacts));
  return {
    state: derived.state,
    decisions: moved.decisions + Number(again.kind === "same" && isWanted),
    at: at + derived.events.length,
    factPosition: factPosition + again.count,
  };
}

/** Moves on behind a fact and its recorded events without deriving them. */
function takeRecordedFact(
  { state, at, factPosition, decisions }: ReplayPosition,
  events: readonly RunEvent[],
): ReplayPosition {
  const next = events.findIndex((event, index) => index > at && isFact(event));
  const end = next === -1 ? events.length : next;
  return {
    state: events.slice(at, end).reduce<Coordination>(evolve, state),
    decisions,
    at: end,
    factPosition: factPosition + 1,
  };
}

/** Few decisions have many facts; a log of one time may have any number. */
const AHEAD = 1_000;

/** Decides with a bounded number of the facts ahead, and with all of them only where those do not suffice. */
function decideWithLookahead(
  facts: readonly FactEvent[],
  from: number,
  decide: (ahead: readonly FactEvent[]) => RepeatedDecision,
): RepeatedDecision {
  const again = decide(facts.slice(from, from + AHEAD));
  return again.kind === "differs" && facts.length > from + AHEAD ? decide(facts.slice(from)) : again;
}

function createDecided(
  { again, ...states }: Pick<ReplayedDecision, "before" | "after"> & { readonly again: RepeatedDecision },
  lead: FactEvent,
  decidedFacts: readonly FactEvent[],
): ReplayedDecision {
  const { command } = "command" in again ? again : {};
  return { ...states, facts: [lead, ...decidedFacts.slice(1)], ...(command && { command }) };
}

/** Returns the difference at the first event that is not recorded as it is derived; `undefined` where there is none. */
function findFirstDifference(
  recorded: readonly RunEvent[],
  from: number,
  derived: readonly RunEvent[],
): Difference | undefined {
  for (const [index, expected] of derived.entries()) {
    const actual = recorded[from + index];
    if (!actual)
      return createDifference(expected, "projection", `${expected.type} is derived and not recorded`);
    const why = explainEventDifference(actual, expected);
    if (why !== undefined) return createDifference(actual, "projection", why);
  }
  return undefined;
}

function explainEventDifference(actual: RunEvent, expected: RunEvent): string | undefined {
  if (actual.type !== expected.type) return `${expected.type} is derived, ${actual.type} is recorded`;
  for (const name of ["eventId", "sequence", "nodeId", "causationId"] as const)
    if (actual[name] !== expected[name])
      return `${name}: ${String(expected[name] ?? "nothing")} is derived, ${String(actual[name] ?? "nothing")} is recorded`;
  if (actual.payload === expected.payload) return undefined;
  return JSON.stringify(actual.payload) === JSON.stringify(expected.payload)
    ? undefined
    : "the payload that is derived is not the one that is recorded";
}

function createSurplusDifference(event: RunEvent | undefined): Difference {
  if (!event) throw new Error("a piece of a log has events");
  return createDifference(event, "projection", `${event.type} follows from no fact before it`);
}

function createDifference(
  { sequence, type, nodeId }: RunEvent,
  kind: Difference["kind"],
  why: string,
): Difference {
  return { sequence, type, kind, why, ...(nodeId !== undefined && { stepId: nodeId }) };
}
