/** Owns: what asking one plugin comes to. Every failure is said with the id of the plugin. */
import { askHook, type HookAnswer, type HookCall } from "./ask-hook.ts";
import { awaitHookBack, type AskedHook } from "./asked-hooks.ts";
import { reportProblem, type HookProblem, type ProblemDependencies } from "./hook-problem.ts";
import type { ReadResult } from "./read-answers.ts";

/** The answer of a hook, or the problem with it. */
export type HookOutcome<T> =
  | { readonly kind: "answer"; readonly value: T }
  | { readonly kind: "problem"; readonly problem: HookProblem };

/** How one hook is run, with the reading of its answer. */
export interface HookRun<T> extends Pick<HookCall, "createArguments" | "signal"> {
  /** Also before the hook's own budget is over. */
  readonly deadlineAtMs?: number | undefined;
  readonly read: (answer: unknown) => ReadResult<T>;
}

/**
 * Asks one hook within its budget and returns its checked answer or the problem with it, which is also reported; waits
 * while its plugin is loaded again. `undefined` where the plugin has taken the hook back meanwhile.
 */
export async function runHook<T>(
  dependencies: ProblemDependencies,
  hook: AskedHook,
  run: HookRun<T>,
): Promise<HookOutcome<T> | undefined> {
  const { clock } = dependencies;
  const presentHook = await awaitHookBack(hook, {
    clock,
    deadlineAtMs: run.deadlineAtMs,
    signal: run.signal,
  });
  if (!presentHook) return undefined;
  const createFailure = (
    because: HookProblem["because"],
    detail: string,
    error?: unknown,
  ): HookOutcome<T> => ({
    kind: "problem",
    problem: reportProblem(dependencies, presentHook, { because, what: detail, error }),
  });
  if (presentHook.backByMs !== undefined)
    return createFailure("unavailable", "is not there while its plugin is loaded again");
  if (!presentHook.hook)
    return createFailure(
      "unavailable",
      `is of the form ${String(presentHook.entry.version)}, which is not known`,
    );
  const calledAtMs = clock.now();
  const deadlineAtMs = Math.min(
    calledAtMs + presentHook.budgetMs,
    run.deadlineAtMs ?? Number.MAX_SAFE_INTEGER,
  );
  const { createArguments, signal } = run;
  const answered = await askHook(presentHook.hook, { createArguments, signal, clock, deadlineAtMs });
  if (answered.kind === "failed") {
    const because = REASONS[answered.because];
    return createFailure(because.because, because.what(deadlineAtMs - calledAtMs), answered.error);
  }
  const read = run.read(answered.value);
  if (read.kind === "read") return { kind: "answer", value: read.value };
  return createFailure("malformed", `gave an answer that does not count: ${read.why}`);
}

/** Why a hook failed, in words that may tell how long it took. */
type FailureReason = {
  readonly because: HookProblem["because"];
  readonly what: (waitedMs: number) => string;
};

const REASONS: Readonly<Record<Extract<HookAnswer, { kind: "failed" }>["because"], FailureReason>> = {
  timed_out: {
    because: "timed_out",
    what: (waitedMs) => `did not answer within ${Math.max(0, waitedMs)} ms`,
  },
  failed: { because: "failed", what: () => "threw an error" },
  stopped: { because: "unavailable", what: () => "was not waited for any more" },
};
