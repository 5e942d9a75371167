/**
 * Owns: how dense the calls of one provider may be, and until when none may begin. State in, state out; time and chance are
 * arguments.
 *
 * V1 nothing is held back before the provider refuses a call, and after a minute without a refusal. V2 the first refusal leaves
 * as many calls a second as the provider took in the second before it; each later crowd of refusals leaves a share of that,
 * and each answered call takes it a part of the way back and a little beyond. V3 a `retry-after` is obeyed up to a maximum;
 * without one the wait doubles from one refusal to the next, with a jitter.
 */
import { addMs, type EpochMs } from "../contracts/ids.ts";

export interface ProviderRules {
  /** A longer `retry-after` is cut to this. */
  readonly retryAfterMsMax: number;
}

export interface ProviderLane {
  /** When the newest calls began that the provider did not refuse, oldest first. */
  readonly begun: readonly EpochMs[];
  /** Absent: calls may be as dense as they come. */
  readonly pace?: Pace;
  /** No call and no step begins before this. */
  readonly closedUntilMs: EpochMs;
  /** Refusals without an answered call between them. */
  readonly refusedInRow: number;
  /** The least time that a call lately took from being let go on to its beginning. */
  readonly leadMs: number;
}

/** In the time that `together` calls take at `perSecond`, no more than `together` begin. */
interface Pace {
  readonly together: number;
  readonly perSecond: number;
  readonly sinceMs: EpochMs;
  /** When the refused call had begun; absent since a later crowd was refused. */
  readonly metAtMs?: EpochMs;
}

/** A call that the provider refused because of its rate or its load. */
export interface RefusedCall {
  readonly begunAtMs: EpochMs;
  /** When it could no longer be held back. */
  readonly letGoAtMs: EpochMs;
  /** Absent: the provider did not say. */
  readonly retryAfterMs?: number | undefined;
  /** At least 0 and less than 1, for the jitter. */
  readonly fraction: number;
}

const SECOND_MS = 1_000;
/** The share of a pace that was too fast. */
const PACE_KEPT = 0.9;
/** The growth of a pace with each answered call: a part of the way back to what the provider took, and a little. */
const WAY_BACK_SHARE = 0.02;
const PER_SECOND_ADDED = 0.004;
const PER_SECOND_MIN = 1 / 60;
const FORGET_MS = 60_000;
/** Calls reach the provider somewhat closer together than they begin. */
const SPAN_SPARE = 1.04;
/** The wait after the first refusal without `retry-after`. */
const WAIT_MS = 250;
const WAIT_MS_MAX = 60_000;
const BEGUN_MAX = 256;
/** How much of a longer time than the least one counts. */
const LEAD_SHARE = 0.1;
const LEAD_MS_MAX = 500;

/** Returns the lane of a model provider of which no call is known yet: open, and without a pace. */
export function createProviderLane(): ProviderLane {
  return { begun: [], closedUntilMs: 0 as EpochMs, refusedInRow: 0, leadMs: 0 };
}

/** Returns a provider's lane after a model call began. A call that was held back was let go on at `releasedAtMs`. */
export function recordCallBeginning(lane: ProviderLane, now: EpochMs, releasedAtMs?: EpochMs): ProviderLane {
  const longerMs = releasedAtMs === undefined ? 0 : clamp(now - releasedAtMs, 0, LEAD_MS_MAX) - lane.leadMs;
  return {
    ...lane,
    begun: [...lane.begun, now].slice(-BEGUN_MAX),
    leadMs: lane.leadMs + longerMs * (longerMs > 0 ? LEAD_SHARE : 1),
  };
}

/**
 * Returns a provider's lane after a model call was answered, which quickens its pace (V2); unchanged where it has
 * none, or the call was let go on before the pace changed and says nothing about the new one.
 */
export function recordCallAnswer(lane: ProviderLane, letGoAtMs: EpochMs): ProviderLane {
  const { pace } = lane;
  if (!pace || letGoAtMs <= pace.sinceMs) return lane;
  const { together, perSecond } = pace;
  const wayBack = Math.max(0, together - perSecond) * WAY_BACK_SHARE;
  return { ...lane, refusedInRow: 0, pace: { ...pace, perSecond: perSecond + wayBack + PER_SECOND_ADDED } };
}

/**
 * Returns a provider's lane after it refused a call for its rate or load: slower, and closed for a while (V2, V3). One
 * more refusal of the same crowd only corrects the pace, and closes it only by its `retry-after`.
 */
export function recordCallRefusal(
  lane: ProviderLane,
  call: RefusedCall,
  { now, rules }: { readonly now: EpochMs; readonly rules: ProviderRules },
): ProviderLane {
  const begun = removeFirst(lane.begun, call.begunAtMs);
  const pace = findCurrentPace(lane, now);
  const isSameCrowd = pace !== undefined && call.letGoAtMs <= pace.sinceMs;
  const refusedInRow = isSameCrowd ? lane.refusedInRow : lane.refusedInRow + 1;
  const unsaidMs = isSameCrowd ? 0 : computeRefusedWaitMs(refusedInRow, call.fraction);
  const waitMs = clamp(call.retryAfterMs ?? unsaidMs, 0, rules.retryAfterMsMax);
  return {
    ...lane,
    begun,
    refusedInRow,
    pace: isSameCrowd ? correctPace(pace, begun) : slowPace(pace, { begun, metAtMs: call.begunAtMs, now }),
    closedUntilMs: pickLater(lane.closedUntilMs, addMs(now, waitMs)),
  };
}

/**
 * Returns how long to hold a provider's calls back after so many refusals in a row, where it named no time. It doubles
 * up to a bound, and `fraction` of half of it is jitter.
 */
export function computeRefusedWaitMs(refusedInRow: number, fraction: number): number {
  const mostMs = Math.min(WAIT_MS * 2 ** clamp(refusedInRow - 1, 0, 16), WAIT_MS_MAX);
  return Math.ceil(mostMs / 2) + Math.floor((fraction * mostMs) / 2);
}

function slowPace(
  pace: Pace | undefined,
  {
    begun,
    metAtMs,
    now,
  }: { readonly begun: readonly EpochMs[]; readonly metAtMs: EpochMs; readonly now: EpochMs },
): Pace {
  if (pace)
    return {
      together: pace.together,
      perSecond: Math.max(PER_SECOND_MIN, pace.perSecond * PACE_KEPT),
      sinceMs: now,
    };
  const answeredCalls = Math.max(1, countCallsInSecond(begun, metAtMs));
  return { together: answeredCalls, perSecond: answeredCalls, sinceMs: now, metAtMs };
}

/** Corrects the pace after more refusals of the first crowd: the provider took fewer calls than it had seemed. */
function correctPace(pace: Pace, begun: readonly EpochMs[]): Pace {
  if (pace.metAtMs === undefined) return pace;
  const together = clamp(countCallsInSecond(begun, pace.metAtMs), 1, pace.together);
  return { ...pace, together, perSecond: Math.min(pace.perSecond, together) };
}

function countCallsInSecond(begun: readonly EpochMs[], endMs: EpochMs): number {
  return begun.filter((atMs) => atMs <= endMs && atMs > endMs - SECOND_MS).length;
}

/** Returns how many model calls a second a provider's lane lets begin; `Infinity` while it has no pace. */
export function computeCallsPerSecond(lane: ProviderLane, now: EpochMs): number {
  return findCurrentPace(lane, now)?.perSecond ?? Infinity;
}

/** Returns the lane's pace; `undefined` before a refusal, and after a minute without one (V1). */
function findCurrentPace({ pace }: ProviderLane, now: EpochMs): Pace | undefined {
  return pace && now - pace.sinceMs < FORGET_MS ? pace : undefined;
}

/** True while a provider's lane is closed or has a pace, so that model calls and steps may have to wait. */
export function canHoldBack(lane: ProviderLane, now: EpochMs): boolean {
  return now < lane.closedUntilMs || findCurrentPace(lane, now) !== undefined;
}

/**
 * Returns the earliest time, `now` or later, at which a provider's next model call may be let go on. `released`: how
 * many were let go on and have not begun, and may begin at any moment.
 */
export function findNextCallTime(
  lane: ProviderLane,
  { released, now }: { readonly released: number; readonly now: EpochMs },
): EpochMs {
  const openAtMs = pickLater(now, lane.closedUntilMs);
  const pace = findCurrentPace(lane, now);
  if (!pace) return openAtMs;
  const { together, perSecond } = pace;
  const spanMs = Math.ceil((together / perSecond) * SECOND_MS * SPAN_SPARE - lane.leadMs);
  // Fewer have begun than may where there is no such call.
  const oldestCountedMs = released >= together ? now : lane.begun.at(released - together);
  if (oldestCountedMs === undefined) return openAtMs;
  const placeAtMs = addMs(oldestCountedMs, spanMs);
  const forgottenAtMs = addMs(pace.sinceMs, FORGET_MS);
  return pickLater(openAtMs, placeAtMs < forgottenAtMs ? placeAtMs : forgottenAtMs);
}

/**
 * True when a provider's lane is open and few enough model calls wait for one more step to begin. `waitingCalls`:
 * calls that wait for their turn.
 */
export function canBeginStep(
  lane: ProviderLane,
  { waitingCalls, now }: { readonly waitingCalls: number; readonly now: EpochMs },
): boolean {
  // Calls that queue for a second already are enough for the provider.
  return now >= lane.closedUntilMs && waitingCalls <= computeCallsPerSecond(lane, now);
}

function removeFirst(times: readonly EpochMs[], time: EpochMs): readonly EpochMs[] {
  const at = times.indexOf(time);
  return at < 0 ? times : times.toSpliced(at, 1);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

function pickLater(a: EpochMs, b: EpochMs): EpochMs {
  return a > b ? a : b;
}
