/** Owns: the rate limit of a scripted provider. */

/** At most so many requests in any second are answered; the others get 429, with `retry-after` where one is given. */
export interface RateLimit {
  readonly callsPerSecond: number;
  readonly retryAfter?: string;
}

export interface RateLimiter {
  /** Limits requests from now on; without a limit all are answered. */
  set(limit?: RateLimit): void;
  /** Returns the limit that a request of now is over; `undefined` where it may be answered. */
  findBroken(now: number): RateLimit | undefined;
}

/** Counts what was answered in the last second, so that no second of any choice has more than the limit. */
export function createRateLimiter(): RateLimiter {
  let limit: RateLimit | undefined;
  let answeredAt: number[] = [];
  return {
    set: (next) => {
      limit = next;
      answeredAt = [];
    },
    findBroken: (now) => {
      if (!limit) return undefined;
      answeredAt = answeredAt.filter((at) => at > now - 1_000);
      if (answeredAt.length >= limit.callsPerSecond) return limit;
      answeredAt.push(now);
      return undefined;
    },
  };
}

/** Returns the turn of a model that refuses a call. */
export function createRefusedTurn({ retryAfter }: RateLimit): {
  readonly httpError: number;
  readonly retryAfter?: string;
} {
  return { httpError: 429, ...(retryAfter && { retryAfter }) };
}
