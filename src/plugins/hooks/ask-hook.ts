/**
 * Owns: calling code of a plugin author, which may throw, never answer, answer too late or answer with a trap.
 *
 * C1 It is waited for until its deadline and not longer; what it answers then does not count.
 * C2 An answer that is a promise is waited for once: what it resolves to is the answer, whatever it is.
 */
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { StoredHook } from "./hook-registry.ts";
import type { HookContext } from "./hook-types.ts";

/** The result of asking a hook. */
export type HookAnswer =
  | { readonly kind: "answer"; readonly value: unknown }
  | {
      readonly kind: "failed";
      readonly because: "timed_out" | "failed" | "stopped";
      readonly error?: unknown;
    };

/** How a hook is asked. */
export interface HookCall {
  readonly clock: Clock;
  readonly deadlineAtMs: number;
  /** Aborted: the answer is not waited for any more. */
  readonly signal?: AbortSignal | undefined;
  /** Returns the arguments of the hook for its context. */
  readonly createArguments: (context: HookContext) => readonly unknown[];
}

const TIMED_OUT: HookAnswer = { kind: "failed", because: "timed_out" };
const STOPPED: HookAnswer = { kind: "failed", because: "stopped" };

/**
 * Runs one hook within its deadline and returns its answer, or that it failed, was late, or was stopped by `signal`;
 * in these cases the signal that the hook was given aborts. Never rejects.
 */
export async function askHook(hook: StoredHook, asking: HookCall): Promise<HookAnswer> {
  const { clock, deadlineAtMs, signal } = asking;
  if (signal?.aborted) return STOPPED;
  if (clock.now() >= deadlineAtMs) return TIMED_OUT;
  const giveUp = Promise.withResolvers<HookAnswer>();
  const stop = (): void => giveUp.resolve(STOPPED);
  const cancel = clock.wakeAt(deadlineAtMs as EpochMs, () => giveUp.resolve(TIMED_OUT));
  signal?.addEventListener("abort", stop, { once: true });
  const controller = new AbortController();
  try {
    const outcome = await Promise.race([runAuthorCode(hook, asking, controller.signal), giveUp.promise]);
    // A hook that kept the thread has kept the timer from firing.
    const counted = outcome.kind === "answer" && clock.now() > deadlineAtMs ? TIMED_OUT : outcome;
    if (counted.kind === "failed") controller.abort();
    return counted;
  } finally {
    cancel();
    signal?.removeEventListener("abort", stop);
  }
}

/** Calls the author's code, and returns what it throws as a failure. */
async function runAuthorCode(
  hook: StoredHook,
  { createArguments, deadlineAtMs }: HookCall,
  signal: AbortSignal,
): Promise<HookAnswer> {
  try {
    return await settleValue(hook.run(...createArguments({ signal, deadlineAtMs })));
  } catch (error) {
    return { kind: "failed", because: "failed", error };
  }
}

/**
 * Waits for a returned promise once and resolves with its answer or failure as an object; a promise that it resolves
 * to is not waited for, because an endless chain would keep the thread (C2).
 */
function settleValue(value: unknown): Promise<HookAnswer> {
  return new Promise((resolve) => {
    const then = isObject(value) ? (value as { then?: unknown }).then : undefined;
    if (typeof then !== "function") resolve({ kind: "answer", value });
    else
      Reflect.apply(then, value, [
        (settledTo: unknown) => resolve({ kind: "answer", value: settledTo }),
        (error: unknown) => resolve({ kind: "failed", because: "failed", error }),
      ]);
  });
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}
