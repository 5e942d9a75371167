/**
 * Owns: letting the event loop do other work in the middle of long work. Does not own: how the work is cut into slices.
 *
 * All long work of the process shares one allowance for each turn of the loop, and of those that wait, one goes on in each turn:
 * so many long works at once do not add up to one long turn.
 */
import { setImmediate as afterThisTurn } from "node:timers";

const TURN_MS_MAX = 8;

let turnStartedAtMs: number | undefined;
/** Who goes on in a later turn, the first one first. */
const waiting: (() => void)[] = [];

/**
 * Lets other work of the event loop run where this turn has already been busy for long; else resolves at once. To be
 * awaited within long work.
 */
export async function giveWay(): Promise<void> {
  const nowMs = performance.now();
  if (turnStartedAtMs === undefined) startTurn(nowMs);
  else if (nowMs - turnStartedAtMs >= TURN_MS_MAX)
    await new Promise<void>((resolve) => waiting.push(resolve));
}

/** Starts the allowance of a turn; it ends with this turn of the event loop. */
function startTurn(nowMs: number): void {
  turnStartedAtMs = nowMs;
  afterThisTurn(endTurn);
}

/** Ends the allowance, and lets the first that waits go on in a new one. */
function endTurn(): void {
  turnStartedAtMs = undefined;
  const goOn = waiting.shift();
  if (!goOn) return;
  startTurn(performance.now());
  goOn();
}

/**
 * Runs an iterator to its end, which works in small slices, lets other work of the event loop run in between, and
 * returns its result.
 */
export async function runInSlices<T>(work: Iterator<unknown, T>): Promise<T> {
  for (;;) {
    const slice = work.next();
    if (slice.done === true) return slice.value;
    await giveWay();
  }
}
