/** Owns: the time of a call that is more than one exchange, and why it ended from here. */
import { addMs } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import { OutboundError } from "./outbound-error.ts";

export interface CallBounds {
  /** Aborts at the end of the time, with the caller's signal, and by `fail`. Its reason is an `OutboundError`. */
  readonly signal: AbortSignal;
  readonly fail: (error: OutboundError) => void;
  readonly error: () => OutboundError | undefined;
  readonly release: () => void;
}

/**
 * Starts the timer of an outbound call, and returns the signal that aborts with the time, with the caller's signal or
 * by `fail`; `release` stops the timer.
 */
export function startCallBounds(
  clock: Clock,
  timeoutMs: number,
  callerSignal: AbortSignal | null | undefined,
): CallBounds {
  const controller = new AbortController();
  const fail = (error: OutboundError): void => controller.abort(error);
  const cancel = clock.wakeAt(addMs(clock.now(), timeoutMs), () =>
    fail(new OutboundError("timed_out", `There was no whole answer within ${timeoutMs} ms.`)),
  );
  const stop = (): void => fail(new OutboundError("aborted", "The call was given up."));
  if (callerSignal?.aborted) stop();
  callerSignal?.addEventListener("abort", stop, { once: true });
  return {
    signal: controller.signal,
    fail,
    error: () => (controller.signal.aborted ? (controller.signal.reason as OutboundError) : undefined),
    release: () => {
      cancel();
      callerSignal?.removeEventListener("abort", stop);
    },
  };
}
