/** Owns: how many requests a tenant may make. A bucket fills at the rate and holds the burst. */
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import { refuse, type HttpRefusal } from "./error-map.ts";

export interface RateLimit {
  readonly requestsPerSecond: number;
  readonly burst: number;
}

export interface RateLimiter {
  /** Takes one request out of the tenant's bucket. */
  take(tenant: string): HttpRefusal | undefined;
  /** Fills all buckets. */
  reset(): void;
}

interface Bucket {
  left: number;
  atMs: number;
}

export function rateLimiter(limit: RateLimit | undefined, clock: Clock): RateLimiter {
  if (!limit) return { take: () => undefined, reset: () => undefined };
  if (!(limit.requestsPerSecond > 0 && limit.burst >= 1))
    throw new RangeError("a rate limit lets more than none through");
  const buckets = new Map<string, Bucket>();
  return {
    take: (tenant) => take(bucketOf(buckets, tenant, { limit, nowMs: clock.now() }), limit),
    reset: () => {
      buckets.clear();
    },
  };
}

/** The tenants are those of the configured tokens, so there are not many. */
function bucketOf(
  buckets: Map<string, Bucket>,
  tenant: string,
  { limit, nowMs }: { readonly limit: RateLimit; readonly nowMs: number },
): Bucket {
  const bucket = buckets.get(tenant) ?? { left: limit.burst, atMs: nowMs };
  const filled = (Math.max(0, nowMs - bucket.atMs) / 1_000) * limit.requestsPerSecond;
  bucket.left = Math.min(limit.burst, bucket.left + filled);
  bucket.atMs = nowMs;
  buckets.set(tenant, bucket);
  return bucket;
}

function take(bucket: Bucket, { requestsPerSecond, burst }: RateLimit): HttpRefusal | undefined {
  if (bucket.left >= 1) {
    bucket.left -= 1;
    return undefined;
  }
  const retryAfterMs = Math.ceil(((1 - bucket.left) / requestsPerSecond) * 1_000);
  return refuse("rate_limited", "This tenant makes more requests than it may. Wait and try again.", {
    retryAfterMs,
    retryAfter: Math.ceil(retryAfterMs / 1_000),
    scope: "tenant",
    limit: burst,
  });
}
