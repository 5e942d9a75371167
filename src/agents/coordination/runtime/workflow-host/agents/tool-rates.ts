/** Owns: how often one principal may call one tool (RFC 0064 §D). It is of this process, and forgets with it. */
import type { Clock } from "../../../ports/clock.ts";
import { createTokenBuckets } from "../../../std/token-buckets.ts";
import type { ToolRate } from "../records/agent-dependencies.ts";

export interface ToolRates {
  /** Whether a call may be made now; it counts then. */
  take(principal: string, tool: string): boolean;
}

const BUCKETS_MAX = 10_000;

/** Creates the token buckets that limit how often each principal may call each tool. */
export function createToolRates(clock: Clock, { perMinute, burst }: ToolRate): ToolRates {
  const buckets = createTokenBuckets(clock, { amount: perMinute, perMs: 60_000, burst, max: BUCKETS_MAX });
  return { take: (principal, tool) => buckets.take(JSON.stringify([principal, tool])) === 0 };
}
