/** Owns: how long the event loop of this process was held while something else was waited for. */

export interface Turns {
  /** The longest time in which nothing else had its turn. */
  readonly longestMs: number;
  readonly totalMs: number;
}

export async function measureTurns(work: () => Promise<unknown>): Promise<Turns> {
  const startedAtMs = performance.now();
  let lastTurnAtMs = startedAtMs;
  let longestMs = 0;
  let isOver = false;
  const look = (): void => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastTurnAtMs);
    lastTurnAtMs = nowMs;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await work();
  look();
  isOver = true;
  return { longestMs, totalMs: performance.now() - startedAtMs };
}

/** The best of several tries: what other processes of the machine took is not counted. */
export async function shortestOf(tries: number, work: () => Promise<unknown>): Promise<number> {
  let shortestMs = Infinity;
  for (let made = 0; made < tries; made += 1)
    shortestMs = Math.min(shortestMs, (await measureTurns(work)).longestMs);
  return shortestMs;
}
