/**
 * Owns: async contexts in which the host's model can be asked. After a reload only those of requests that came since know the
 * plugins that are loaded now; before the first reload that of the first load does, which needs no request.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { runOutsideCalls } from "../host/outside-calls.ts";

/** Runs a call in some async context. */
export type ContextEntry = <T>(work: () => T) => T;

export interface RequestContexts {
  /** A request is here. */
  readonly came: () => void;
  /** In the order in which they are worth trying; the last one may take a while to come. */
  readonly all: (signal: AbortSignal) => AsyncGenerator<ContextEntry, void>;
}

/** Clients whose streams a reload has cut are back by then. */
const WAIT_MS = 30_000;

/**
 * Creates the record of the async context of the newest request; `all` yields the contexts in which to try a model
 * call, and waits for a first request where none has come.
 */
export function createRequestContexts(waitMs: number = WAIT_MS): RequestContexts {
  let newest: ContextEntry | undefined;
  const waiting = new Set<() => void>();
  return {
    came: () => {
      newest = AsyncLocalStorage.snapshot();
      for (const wake of waiting) wake();
    },
    all: async function* (signal) {
      const newestBefore = newest;
      if (newestBefore) yield newestBefore;
      yield runOutsideCalls;
      if (!newestBefore && !newest)
        await waitForRequest(waiting, AbortSignal.any([signal, AbortSignal.timeout(waitMs)]));
      if (newest && newest !== newestBefore) yield newest;
    },
  };
}

/** Resolves when the next request comes or `signal` aborts. */
function waitForRequest(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      waiting.delete(wake);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    if (signal.aborted) wake();
    else {
      waiting.add(wake);
      signal.addEventListener("abort", wake);
    }
  });
}
