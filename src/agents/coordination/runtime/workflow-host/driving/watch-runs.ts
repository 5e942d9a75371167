/**
 * Owns: telling who looks at a run that it may have new events. This process's own appends tell at once; those of others are
 * found by looking, and only while somebody watches.
 */
import { readErrorCode } from "../../../contracts/errors.ts";
import { addMs, type CoordinationId } from "../../../contracts/ids.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

export interface RunWatch {
  watch(runId: string, wake: () => void): () => void;
  /** A run has new events. */
  changed(runId: string): void;
  stop(): void;
}

/** How often the logs of other processes' runs are looked at. */
const LOOK_MS = 250;
/** Runs looked at in one go; the others follow with the next. */
const LOOKS_MAX = 200;

/** A run that is watched: who is woken by its growth, and its length at the last look. */
interface WatchedRun {
  readonly wakes: Set<() => void>;
  length?: number;
}

type WatchDependencies = Pick<WorkflowHostDependencies, "store" | "otherRuns" | "clock" | "logger">;

/**
 * Creates the watch that calls whoever watches a run when the run's log has grown, whichever process appended. The
 * first look at a run counts as news. Where the ledger fails it looks again, and says so once until a look succeeds.
 */
export function createRunWatch({ store, otherRuns, clock, logger }: WatchDependencies): RunWatch {
  const watched = new Map<string, WatchedRun>();
  let cancelLook: (() => void) | undefined;
  let isFailing = false;

  const notifyWatchers = (runId: string): void => {
    for (const wake of watched.get(runId)?.wakes ?? []) wake();
  };

  const look = async (): Promise<void> => {
    cancelLook = undefined;
    // Also what this process drives: another one may have been asked to cancel it.
    for (const [runId, entry] of [...watched].slice(0, LOOKS_MAX)) {
      const length = (await store.entry(runId as CoordinationId))?.length ?? (await otherRuns?.length(runId));
      if (watched.get(runId) !== entry) continue;
      // Looked at last: the others are before it in the next go.
      watched.delete(runId);
      watched.set(runId, entry);
      if (length === undefined) continue;
      // The first look cannot tell what came since the watcher read: it counts as news.
      const isNews = length !== entry.length;
      entry.length = length;
      if (isNews) notifyWatchers(runId);
    }
    isFailing = false;
    lookLater();
  };

  const noteFailure = (error: unknown): void => {
    // Nobody waits for them any more.
    if (watched.size === 0) return;
    if (!isFailing)
      logger.warn(
        { code: readErrorCode(error) },
        "runs that clients follow could not be read; they are tried again",
      );
    isFailing = true;
    lookLater();
  };

  const lookLater = (): void => {
    if (watched.size === 0 || cancelLook) return;
    cancelLook = clock.wakeAt(addMs(clock.now(), LOOK_MS), () => {
      look().catch(noteFailure);
    });
  };

  return {
    watch: (runId, wake) => {
      const entry = watched.get(runId) ?? { wakes: new Set() };
      entry.wakes.add(wake);
      watched.set(runId, entry);
      lookLater();
      return () => {
        entry.wakes.delete(wake);
        if (entry.wakes.size === 0 && watched.get(runId) === entry) watched.delete(runId);
      };
    },
    changed: notifyWatchers,
    stop: () => {
      watched.clear();
      cancelLook?.();
    },
  };
}
