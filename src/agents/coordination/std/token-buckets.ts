/** Owns: buckets of tokens, one for each key. A bucket fills at the rate and holds the burst. */
import { rememberNewest } from "./remember-newest.ts";

export interface TokenRate {
  /** Tokens that come into a bucket in `perMs`. */
  readonly amount: number;
  readonly perMs: number;
  /** Tokens that a bucket holds, and that a new one has. */
  readonly burst: number;
  /** Buckets that are kept. The one that was used longest ago goes first: it is the fullest. */
  readonly max: number;
}

export interface TokenBuckets {
  /** Takes one token out of the bucket of this key. Returns 0 then, and otherwise the share of a token that is missing. */
  take(key: string): number;
  /** Fills all buckets. */
  readonly clear: () => void;
}

/**
 * Creates token buckets by key, each full at first and refilled with time. `take` takes a token and returns 0, or what
 * the bucket lacks of one, and then takes none.
 */
export function createTokenBuckets(
  clock: { now(): number },
  { amount, perMs, burst, max }: TokenRate,
): TokenBuckets {
  const buckets = new Map<string, { readonly tokens: number; readonly atMs: number }>();
  return {
    take: (key) => {
      const nowMs = clock.now();
      const before = buckets.get(key) ?? { tokens: burst, atMs: nowMs };
      const filled = (Math.max(0, nowMs - before.atMs) / perMs) * amount;
      const tokens = Math.min(burst, before.tokens + filled);
      const missing = Math.max(0, 1 - tokens);
      rememberNewest(buckets, key, { tokens: missing > 0 ? tokens : tokens - 1, atMs: nowMs }, max);
      return missing;
    },
    clear: () => {
      buckets.clear();
    },
  };
}
