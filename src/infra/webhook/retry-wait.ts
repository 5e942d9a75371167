/** Owns: which answers of a webhook are worth another try, and how long to wait before it. */

const FIRST_WAIT_MS = 5_000;
const WAIT_MS_MAX = 600_000;
/** A receiver that asks for more is tried again nevertheless: the question has a deadline. */
const RETRY_AFTER_MS_MAX = 3_600_000;

/**
 * Returns whether a webhook's status means that the same request may succeed later: 408, 425, 429, and any fault of
 * the receiver's (5xx).
 */
export function isWorthAnotherTry(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

export interface FailedTry {
  /** Counted from 1. */
  readonly tries: number;
  /** The header, where the receiver sent one. */
  readonly retryAfter?: string | undefined;
  readonly nowMs: number;
  /** At least 0 and less than 1. */
  readonly fraction: number;
}

/**
 * Returns how many milliseconds to wait before posting to a webhook again: doubled with each try up to a bound, with a
 * jitter of half of it, and longer where the receiver asks for it.
 */
export function computeWebhookWaitMs({ tries, retryAfter, nowMs, fraction }: FailedTry): number {
  const maxMs = Math.min(FIRST_WAIT_MS * 2 ** (tries - 1), WAIT_MS_MAX);
  const waitMs = Math.ceil(maxMs / 2) + Math.floor(fraction * (maxMs / 2));
  return Math.max(waitMs, Math.min(readRetryAfterMs(retryAfter, nowMs), RETRY_AFTER_MS_MAX));
}

/** Returns the wait in ms that a number of seconds, or a date, asks for; 0 for anything else. */
function readRetryAfterMs(retryAfter: string | undefined, nowMs: number): number {
  if (retryAfter === undefined) return 0;
  if (/^\d{1,10}$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  // Only dates as HTTP writes them: `Date.parse` reads far more.
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(retryAfter)) return 0;
  const atMs = Date.parse(retryAfter);
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - nowMs);
}
