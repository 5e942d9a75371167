/** Owns: waiting for an answer from outside the ledger until a deadline or a stop. */
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import { describeError } from "../../std/describe-error.ts";

export interface Stoppable {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Aborted: no answer is waited for. */
  readonly signal: AbortSignal;
}

export interface Waiting extends Stoppable {
  readonly waitMs: number;
}

/** Lets an answer be waited for as long as is left until a deadline that several answers share. */
export function limitWait<T extends Stoppable>(waiting: T, untilMs: EpochMs): T & Waiting {
  return { ...waiting, waitMs: Math.max(0, untilMs - waiting.clock.now()) };
}

/** The answer of the world, or `otherwise` when it throws, takes too long or is not waited for any more. */
export async function askWithin<T>(
  { clock, logger, waitMs, signal }: Waiting,
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
