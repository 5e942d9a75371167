/** Owns: saying what went wrong with a hook: in our log without content, and in the plugin's own log with its own error. */
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import type { AskedHook } from "./asked-hooks.ts";
import { HOOK_LIMITS, type HookKind } from "./hook-limits.ts";
import type { HookEntry } from "./hook-registry.ts";

/** A hook that gave no usable answer. */
export interface HookProblem {
  readonly plugin: string;
  readonly hook: HookKind;
  readonly because: "timed_out" | "failed" | "malformed" | "unavailable";
  /** One sentence that names the plugin, free of content. */
  readonly message: string;
  /** The value that the hook threw. */
  readonly error?: unknown;
}

/** The collaborators that reporting a problem needs. */
export interface ProblemDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Is told of every problem. */
  readonly onProblem?: ((problem: HookProblem) => void) | undefined;
}

/** Why a hook has a problem, in words. */
interface ProblemCause {
  readonly because: HookProblem["because"];
  /** The hook's mistake, as the rest of a sentence. */
  readonly what: string;
  readonly error?: unknown;
}

/**
 * Returns the problem with a hook as a record with a message, and reports it to `onProblem`, the log and the plugin's
 * own log; the logs hear of repeated failures to observe only now and then.
 */
export function reportProblem(
  { logger, onProblem }: ProblemDependencies,
  { plugin, kind, entry }: AskedHook,
  { because, what: detail, error }: ProblemCause,
): HookProblem {
  const message = `the hook ${kind} of the plugin ${plugin} ${detail}`;
  const problem = { plugin, hook: kind, because, message, ...(error !== undefined && { error }) };
  onProblem?.(problem);
  if (kind === "observe" && !countFailureToTell(entry)) return problem;
  logger.warn({ plugin, hook: kind, because }, message);
  try {
    entry.report(error === undefined ? message : `${message}: ${describeThrown(error)}`);
  } catch {
    // Its log is its own affair.
  }
  return problem;
}

const failuresOf = new WeakMap<HookEntry, number>();

/** Counts a failure of an observer, and returns whether it is told: the first, second, fourth, eighth ... one. */
function countFailureToTell(entry: HookEntry): boolean {
  const failures = (failuresOf.get(entry) ?? 0) + 1;
  failuresOf.set(entry, failures);
  return Number.isInteger(Math.log2(failures));
}

function describeThrown(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error).slice(0, HOOK_LIMITS.reasonCharsMax);
  } catch {
    return "an error that cannot be read";
  }
}
