/** Owns: giving up what is waited for with a signal. */

/**
 * Settles as the promise does, or rejects with "aborted" once the signal aborts. The promise itself goes on: a name
 * that is being resolved cannot be given up.
 */
export function raceWithAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new Error("aborted"));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.finally(() => signal.removeEventListener("abort", stop)).then(resolve, reject);
  });
}
