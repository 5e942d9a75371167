/** Owns: how long to wait before what failed is tried again. */

const FIRST_WAIT_MS = 250;
const WAIT_MS_MAX = 5_000;
/** A wait that the other side asks for counts up to this. */
const ASKED_MS_MAX = 30_000;

/**
 * Returns how many milliseconds to wait before the next try, at least those that the other side asks for, up to a
 * bound. The wait doubles from a quarter of a second up to five.
 */
export function computeRetryWaitMs(tries: number, askedMs = 0): number {
  const backoffMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(tries, 16), WAIT_MS_MAX);
  return Math.max(backoffMs, Math.min(askedMs, ASKED_MS_MAX));
}

/**
 * Returns the `Retry-After` header in milliseconds; `undefined` where it is absent or no number of seconds, such as a
 * date.
 */
export function readRetrySecondsAsMs(headers: Headers): number | undefined {
  const text = headers.get("retry-after")?.trim() ?? "";
  return /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : undefined;
}
