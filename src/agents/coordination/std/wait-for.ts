/** Owns: waiting for some time to pass on a clock, and for work to be done within it or unless a signal aborts. */

/** The part of a clock (ports/clock.ts) that waiting needs. */
interface Timer<Moment extends number> {
  now(): Moment;
  wakeAt(at: Moment, run: () => void): () => void;
}

/** Resolves after `durationMs`, or when `signal` is aborted; at once where it is aborted already. */
export function waitForDuration<Moment extends number>(
  clock: Timer<Moment>,
  durationMs: number,
  signal?: AbortSignal,
): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = (): void => {
      cancel();
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const cancel = clock.wakeAt((clock.now() + durationMs) as Moment, finish);
    signal?.addEventListener("abort", finish, { once: true });
  });
}

/** Returns what `work` resolves to, or `late` when that takes longer than `durationMs`. Rejects where `work` does so in time. */
export function waitWithin<Moment extends number, Result, Late = Result>(
  clock: Timer<Moment>,
  durationMs: number,
  work: Promise<Result>,
  late: Late,
): Promise<Result | Late> {
  const over = new AbortController();
  const passed = waitForDuration(clock, durationMs, over.signal).then(() => late);
  return Promise.race([work, passed]).finally(() => over.abort());
}

/**
 * Returns what `work` resolves to, or `otherwise` once `signal` is aborted; the work itself goes on. Rejects where `work`
 * does so before.
 */
export function waitUnlessAborted<Result, Otherwise = Result>(
  work: Promise<Result>,
  signal: AbortSignal,
  otherwise: Otherwise,
): Promise<Result | Otherwise> {
  const over = new AbortController();
  const aborted = new Promise<Otherwise>((resolve) => {
    const giveUp = (): void => resolve(otherwise);
    if (signal.aborted) giveUp();
    else signal.addEventListener("abort", giveUp, { once: true, signal: over.signal });
  });
  return Promise.race([aborted, work]).finally(() => over.abort());
}
