/** Owns: waiting in a command line that Ctrl-C ends politely. A second Ctrl-C ends the process as usual. */

export interface Waiting {
  isInterrupted(): boolean;
  /** Ends early at an interruption. */
  pause(ms: number): Promise<void>;
  [Symbol.dispose](): void;
}

export function createWaiting(): Waiting {
  const interruption = new AbortController();
  const interrupt = (): void => {
    interruption.abort();
  };
  process.once("SIGINT", interrupt);
  return {
    isInterrupted: () => interruption.signal.aborted,
    pause: (ms) => pauseUntil(interruption.signal, ms),
    [Symbol.dispose]: () => {
      process.removeListener("SIGINT", interrupt);
    },
  };
}

function pauseUntil(signal: AbortSignal, ms: number): Promise<void> {
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
