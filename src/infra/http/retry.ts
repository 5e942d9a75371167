/** Owns: how long to wait before what failed is tried again. */

const FIRST_WAIT_MS = 250;
const WAIT_MS_MAX = 5_000;
/** A wait that the other side asks for counts up to this. */
const ASKED_MS_MAX = 30_000;

/** Doubles from a quarter of a second up to five; at least what the other side asks for. */
export function waitBeforeTry(tries: number, askedMs = 0): number {
  const backoffMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(tries, 16), WAIT_MS_MAX);
  return Math.max(backoffMs, Math.min(askedMs, ASKED_MS_MAX));
}

/** `Retry-After` in seconds; its form as a date is not read. */
export function retryAfterMs(headers: Headers): number | undefined {
  const text = headers.get("retry-after")?.trim() ?? "";
  return /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : undefined;
}
