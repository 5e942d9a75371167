/** Owns: waiting in a command line that Ctrl-C ends politely. A second Ctrl-C ends the process as usual. */

export interface InterruptibleWait {
  isInterrupted(): boolean;
  /** Ends early at an interruption. */
  pause(ms: number): Promise<void>;
  [Symbol.dispose](): void;
}

/**
 * Creates the means to pause, and to ask whether Ctrl-C came: the first Ctrl-C ends a pause at once and does not end
 * the process, until the wait is disposed of.
 */
export function createInterruptibleWait(): InterruptibleWait {
  const interruption = new AbortController();
  const interrupt = (): void => {
    interruption.abort();
  };
  process.once("SIGINT", interrupt);
  return {
    isInterrupted: () => interruption.signal.aborted,
    pause: (ms) => pauseUnlessAborted(interruption.signal, ms),
    [Symbol.dispose]: () => {
      process.removeListener("SIGINT", interrupt);
    },
  };
}

/** Waits for `ms`, and no longer once the signal aborts. */
function pauseUnlessAborted(signal: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener("abort", finish);
    if (signal.aborted) finish();
  });
}
