/** Owns: waiting no longer than a given time for what an agent program is to do, such as to exit. */
import { addMs } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";

/** Returns what `promise` resolves with, or `undefined` when that takes longer than `ms`. */
export function waitWithin<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.wakeAt(addMs(clock.now(), ms), () => resolve(undefined));
    promise.finally(cancel).then(resolve, reject);
  });
}
