/** Owns: waiting until a run has ended, whoever drives it. */
import type { CoordinationId } from "../../../contracts/ids.ts";
import { isEndedPhase } from "../../../workflow/state/workflow-state.ts";
import type { NewestRuns } from "./drive-runs.ts";
import type { LoadedRun } from "../records/run-book.ts";
import type { RunWatch } from "./watch-runs.ts";

interface AwaitDependencies {
  readonly runs: NewestRuns;
  readonly watching: RunWatch;
}

/** Resolves with the run as it ended, or with `undefined` when `signal` aborts. */
export function awaitEndWith({ runs, watching }: AwaitDependencies) {
  return async (runId: CoordinationId, signal: AbortSignal): Promise<LoadedRun | undefined> => {
    let wake: () => void = () => undefined;
    const forget = watching.watch(runId, () => wake());
    const stop = (): void => wake();
    signal.addEventListener("abort", stop, { once: true });
    try {
      for (;;) {
        const news = new Promise<void>((resolve) => (wake = resolve));
        const endedRun = await readEnded(runs, runId);
        if (endedRun) return endedRun;
        if (signal.aborted) return undefined;
        await news;
      }
    } finally {
      signal.removeEventListener("abort", stop);
      forget();
    }
  };
}

/** Apart, so that whoever waits holds nothing of a run that has not ended. */
async function readEnded(
  runs: AwaitDependencies["runs"],
  runId: CoordinationId,
): Promise<LoadedRun | undefined> {
  const newestRun = await runs.newest(runId);
  return newestRun && isEndedPhase(newestRun.run.phase) ? newestRun : undefined;
}
