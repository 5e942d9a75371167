/** Owns: how long to wait before a step is tried again. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { RetryRule } from "./step-graph.ts";

/**
 * Returns the least and the most milliseconds that `computeBackoffMs` gives after this attempt; neither falls from one
 * attempt to the next.
 */
export function computeBackoffRange(
  { backoffMs: base }: RetryRule,
  attempt: number,
): { readonly minMs: number; readonly maxMs: number } {
  const doubled = base * 2 ** Math.min(Math.max(attempt - 1, 0), BOUNDS.retryBudgetMax);
  const maxMs = Math.min(doubled, Math.max(base, BOUNDS.backoffMsMax));
  return { minMs: Math.ceil(maxMs / 2), maxMs };
}

/**
 * Returns how many milliseconds to wait after a failed attempt, counted from 1. The wait doubles up to a bound, with a
 * jitter of half of it so that steps that failed together do not come back together. The same seed gives the same
 * wait, so a recorded one can be replayed; give every step a seed of its own.
 */
export function computeBackoffMs(retry: RetryRule, attempt: number, seed: string): number {
  const { minMs, maxMs } = computeBackoffRange(retry, attempt);
  return minMs + Math.floor(hashToFraction(`${seed}:${attempt}`) * (maxMs - minMs + 1));
}

/** Hashes a text to a number, at least 0 and less than 1: FNV-1a with the last mixing steps of MurmurHash3. */
function hashToFraction(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
