/**
 * Owns: how many requests a tenant may make, and how many an address may make that is not known. A bucket fills at the rate and
 * holds the burst.
 */
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import { createTokenBuckets } from "../../../agents/coordination/std/token-buckets.ts";
import { refuse, type HttpRefusal } from "./error-map.ts";

export interface RateLimit {
  readonly requestsPerSecond: number;
  readonly burst: number;
}

export interface RateLimiter {
  /** Takes one request out of the bucket of this tenant, or of whoever else is counted. */
  take(name: string): HttpRefusal | undefined;
  /** Fills all buckets. */
  reset(): void;
}

/** Whom a refusal names, in the words of the protocol: an address, which may be anybody's, is `global`. */
export type RateScope = "tenant" | "global";

const MESSAGES: Readonly<Record<RateScope, string>> = {
  tenant: "This tenant makes more requests than it may. Wait and try again.",
  global: "Too many requests of this address came without a token that is known. Wait and try again.",
};

/** More than there are tenants; of addresses, those that asked last. */
const BUCKETS_MAX = 10_000;

/**
 * Creates the limiter whose `take` returns a refusal for a request beyond the rate of its name, else `undefined`;
 * without a limit it refuses none. Throws a RangeError for a limit that lets nothing through.
 */
export function createRateLimiter(
  limit: RateLimit | undefined,
  clock: Clock,
  scope: RateScope = "tenant",
): RateLimiter {
  if (!limit) return { take: () => undefined, reset: () => undefined };
  if (!(limit.requestsPerSecond > 0 && limit.burst >= 1))
    throw new RangeError("a rate limit lets more than none through");
  const { requestsPerSecond, burst } = limit;
  const buckets = createTokenBuckets(clock, {
    amount: requestsPerSecond,
    perMs: 1_000,
    burst,
    max: BUCKETS_MAX,
  });
  return {
    take: (name) => {
      const missing = buckets.take(name);
      return missing > 0 ? createRateRefusal(missing, limit, scope) : undefined;
    },
    reset: buckets.clear,
  };
}

function createRateRefusal(
  missing: number,
  { requestsPerSecond, burst }: RateLimit,
  scope: RateScope,
): HttpRefusal {
  const retryAfterMs = Math.ceil((missing / requestsPerSecond) * 1_000);
  return refuse("rate_limited", MESSAGES[scope], {
    retryAfterMs,
    retryAfter: Math.ceil(retryAfterMs / 1_000),
    scope,
    limit: burst,
  });
}
