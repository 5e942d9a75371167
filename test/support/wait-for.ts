import { setTimeout as delay } from "node:timers/promises";

export type WaitForOptions = {
  /** Said in the failure message: "waited 5000 ms for <what>". */
  readonly what: string;
  readonly timeoutMs?: number;
  readonly everyMs?: number;
};

type Falsy = false | null | undefined | 0 | "";

/**
 * Polls until the predicate answers something truthy and returns it.
 * A throwing predicate counts as "not yet"; its last error becomes the `cause` of the failure.
 */
export async function waitFor<T>(
  predicate: () => T | Promise<T>,
  { what: subject, timeoutMs = 30_000, everyMs = 50 }: WaitForOptions,
): Promise<Exclude<T, Falsy>> {
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  for (;;) {
    try {
      const answer = await predicate();
      if (answer) return answer as Exclude<T, Falsy>;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (performance.now() >= deadline) throw new Error(`waited ${timeoutMs} ms for ${subject}`, { cause });
    await delay(everyMs);
  }
}
