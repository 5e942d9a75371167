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

/** Resolves at once while long work has taken little of this turn of the event loop, otherwise in a later turn. */
export async function giveWay(): Promise<void> {
  const nowMs = performance.now();
  if (turnStartedAtMs === undefined) startTurn(nowMs);
  else if (nowMs - turnStartedAtMs >= TURN_MS_MAX)
    await new Promise<void>((resolve) => waiting.push(resolve));
}

function startTurn(nowMs: number): void {
  turnStartedAtMs = nowMs;
  afterThisTurn(endTurn);
}

function endTurn(): void {
  turnStartedAtMs = undefined;
  const goOn = waiting.shift();
  if (!goOn) return;
  startTurn(performance.now());
  goOn();
}

/** Runs work that yields after each small slice, and gives way in between. */
export async function runInSlices<T>(work: Iterator<unknown, T>): Promise<T> {
  for (;;) {
    const slice = work.next();
    if (slice.done === true) return slice.value;
    await giveWay();
  }
}
