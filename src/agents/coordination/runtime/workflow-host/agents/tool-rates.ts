/** Owns: how often one principal may call one tool (RFC 0064 §D). It is of this process, and forgets with it. */
import type { Clock } from "../../../ports/clock.ts";
import type { ToolRate } from "../records/agent-dependencies.ts";

export interface ToolRates {
  /** Whether a call may be made now; it counts then. */
  take(principal: string, tool: string): boolean;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

const BUCKETS_MAX = 10_000;
const MINUTE_MS = 60_000;

export function createToolRates(clock: Clock, { perMinute, burst }: ToolRate): ToolRates {
  const buckets = new Map<string, Bucket>();
  return {
    take: (principal, tool) => {
      const now = clock.now();
      const key = JSON.stringify([principal, tool]);
      const had = buckets.get(key) ?? { tokens: burst, atMs: now };
      const gained = (Math.max(0, now - had.atMs) / MINUTE_MS) * perMinute;
      const tokens = Math.min(burst, had.tokens + gained);
      const isFree = tokens >= 1;
      // The one used last is the last to go; one that is forgotten is full again.
      buckets.delete(key);
      buckets.set(key, { tokens: isFree ? tokens - 1 : tokens, atMs: now });
      const [oldest] = buckets.keys();
      if (buckets.size > BUCKETS_MAX && oldest !== undefined) buckets.delete(oldest);
      return isFree;
    },
  };
}
