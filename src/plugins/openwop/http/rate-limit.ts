/**
 * Owns: how many requests a tenant may make, and how many an address may make that is not known. A bucket fills at the rate and
 * holds the burst.
 */
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
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

interface Bucket {
  left: number;
  atMs: number;
}

export function createRateLimiter(
  limit: RateLimit | undefined,
  clock: Clock,
  scope: RateScope = "tenant",
): RateLimiter {
  if (!limit) return { take: () => undefined, reset: () => undefined };
  if (!(limit.requestsPerSecond > 0 && limit.burst >= 1))
    throw new RangeError("a rate limit lets more than none through");
  const buckets = new Map<string, Bucket>();
  return {
    take: (name) => take(bucketOf(buckets, name, { limit, nowMs: clock.now() }), limit, scope),
    reset: () => {
      buckets.clear();
    },
  };
}

/** The bucket that was used longest ago is forgotten where there are too many: it is the fullest. */
function bucketOf(
  buckets: Map<string, Bucket>,
  name: string,
  { limit, nowMs }: { readonly limit: RateLimit; readonly nowMs: number },
): Bucket {
  const bucket = buckets.get(name) ?? { left: limit.burst, atMs: nowMs };
  const filled = (Math.max(0, nowMs - bucket.atMs) / 1_000) * limit.requestsPerSecond;
  bucket.left = Math.min(limit.burst, bucket.left + filled);
  bucket.atMs = nowMs;
  buckets.delete(name);
  buckets.set(name, bucket);
  const [oldest] = buckets.keys();
  if (buckets.size > BUCKETS_MAX && oldest !== undefined) buckets.delete(oldest);
  return bucket;
}

function take(
  bucket: Bucket,
  { requestsPerSecond, burst }: RateLimit,
  scope: RateScope,
): HttpRefusal | undefined {
  if (bucket.left >= 1) {
    bucket.left -= 1;
    return undefined;
  }
  const retryAfterMs = Math.ceil(((1 - bucket.left) / requestsPerSecond) * 1_000);
  return refuse("rate_limited", MESSAGES[scope], {
    retryAfterMs,
    retryAfter: Math.ceil(retryAfterMs / 1_000),
    scope,
    limit: burst,
  });
}
