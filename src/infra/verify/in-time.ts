/** Owns: that a check has an answer when its time is over, whether it ends by itself or not. */
import { createNoVerdict } from "../../agents/coordination/contracts/verification.ts";
import type { CheckAnswer, CheckRequest } from "../../agents/coordination/ports/verifier.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import { waitUnlessAborted, waitWithin } from "../../agents/coordination/std/wait-for.ts";
import { VERIFY_LIMITS } from "./verify-limits.ts";

export interface InTime {
  readonly clock: Clock;
  /** How long what looks is waited for when its time is over. It has no verdict then in any case. */
  readonly graceMs: number;
}

/**
 * Returns the answer of `look`, or that there is no verdict once the deadline has passed or the check is stopped, when
 * it also aborts the signal that `look` got. Rejects where `look` rejects in time.
 */
export async function runCheckInTime(
  { deadlineAtMs, signal }: CheckRequest,
  { clock, graceMs }: InTime,
  look: (signal: AbortSignal) => Promise<CheckAnswer>,
): Promise<CheckAnswer> {
  const over = new AbortController();
  const end = (): void => over.abort();
  const cancel = clock.wakeAt(deadlineAtMs, end);
  signal.addEventListener("abort", end, { once: true });
  try {
    if (signal.aborted || clock.now() >= deadlineAtMs) return createLateAnswer(clock, deadlineAtMs);
    const looking = look(over.signal);
    const answer = await waitUnlessAborted(looking, over.signal, undefined);
    // Work that blocks the event loop also delays the timer.
    if (answer && !over.signal.aborted && clock.now() <= deadlineAtMs) return answer;
    await waitWithin(
      clock,
      graceMs,
      looking.catch(() => undefined),
      undefined,
    );
    return createLateAnswer(clock, deadlineAtMs);
  } finally {
    cancel();
    signal.removeEventListener("abort", end);
  }
}

/** Returns the answer of a check that ran out of time, or that was stopped before. */
function createLateAnswer(clock: Clock, deadlineAtMs: number): CheckAnswer {
  return clock.now() + VERIFY_LIMITS.earlyMs >= deadlineAtMs
    ? createNoVerdict("timed_out", "the check took too long")
    : createNoVerdict("unavailable", "the check was stopped before its time was over");
}
