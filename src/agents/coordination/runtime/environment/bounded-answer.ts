/** Owns: waiting for an answer from outside the ledger until a deadline or a stop. */
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import { describeError } from "../../std/describe-error.ts";

/** The collaborators of a wait that a signal can end. */
export interface StoppableWait {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Aborted: no answer is waited for. */
  readonly signal: AbortSignal;
}

/** The collaborators of a wait that lasts at most `waitMs`. */
export interface LimitedWait extends StoppableWait {
  readonly waitMs: number;
}

/**
 * Returns the dependencies of a wait with `waitMs` until a deadline, which several answers may share; 0 where it has
 * passed.
 */
export function limitWait<T extends StoppableWait>(waiting: T, untilMs: EpochMs): T & LimitedWait {
  return { ...waiting, waitMs: Math.max(0, untilMs - waiting.clock.now()) };
}

/**
 * Returns what `ask` resolves to; `otherwise` where that takes longer than `waitMs`, `signal` aborts, or `ask` throws,
 * which is warned of.
 */
export async function askWithin<T>(
  { clock, logger, waitMs, signal }: LimitedWait,
  ask: () => Promise<T>,
  otherwise: T,
): Promise<T> {
  const giveUp = Promise.withResolvers<T>();
  const onStop = (): void => giveUp.resolve(otherwise);
  const cancel = clock.wakeAt(addMs(clock.now(), waitMs), onStop);
  signal.addEventListener("abort", onStop, { once: true });
  if (signal.aborted) onStop();
  try {
    return await Promise.race([ask(), giveUp.promise]);
  } catch (error) {
    logger.warn({}, `no usable answer: ${describeError(error)}`);
    return otherwise;
  } finally {
    cancel();
    signal.removeEventListener("abort", onStop);
  }
}
