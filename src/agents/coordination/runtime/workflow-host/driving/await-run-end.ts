/** Owns: waiting until a run has ended, whoever drives it. */
import type { CoordinationId } from "../../../contracts/ids.ts";
import { isEndedPhase } from "../../../workflow/state/workflow-state.ts";
import type { NewestRuns } from "./drive-runs.ts";
import type { LoadedRun } from "../records/run-book.ts";
import type { RunWatch } from "./watch-runs.ts";

interface AwaitDependencies {
  readonly driver: NewestRuns;
  readonly watching: RunWatch;
}

/**
 * Creates a function that waits until a run has ended and resolves with the run; `undefined` when `signal` aborts
 * first.
 */
export function createEndAwaiter({ driver, watching }: AwaitDependencies) {
  return async (runId: CoordinationId, signal: AbortSignal): Promise<LoadedRun | undefined> => {
    let wake: () => void = () => undefined;
    const forget = watching.watch(runId, () => wake());
    const stop = (): void => wake();
    signal.addEventListener("abort", stop, { once: true });
    try {
      for (;;) {
        const news = new Promise<void>((resolve) => (wake = resolve));
        const endedRun = await findEndedRun(driver, runId);
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

/**
 * Returns the newest state of the run if it has ended. Apart, so that whoever waits holds nothing of a run that has
 * not ended.
 */
async function findEndedRun(driver: NewestRuns, runId: CoordinationId): Promise<LoadedRun | undefined> {
  const newestRun = await driver.newest(runId);
  return newestRun && isEndedPhase(newestRun.run.phase) ? newestRun : undefined;
}
