/** Owns: waiting for a run's next events, for a bounded time and no longer than the client does. */
import { addMs } from "../../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type {
  Answered,
  Caller,
  EventPage,
  WorkflowHost,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";

export interface Wait {
  readonly caller: Caller;
  readonly runId: string;
  readonly from: number;
  readonly limit: number;
  readonly waitMs: number;
  readonly signal: () => AbortSignal;
}

/** The events from a sequence on, as soon as there are any, or none will follow, or the time is over. */
export async function waitForEvents(
  host: WorkflowHost,
  clock: Clock,
  wait: Wait,
): Promise<Answered<EventPage>> {
  const { caller, runId, from, limit } = wait;
  const read = (): Promise<Answered<EventPage>> => host.events(caller, runId, { from, limit });
  const found = await read();
  if (wait.waitMs === 0 || !isEmpty(found)) return found;
  const deadlineMs = addMs(clock.now(), wait.waitMs);
  const bell = createBell(host, runId);
  const signal = wait.signal();
  const cancel = clock.wakeAt(deadlineMs, bell.over);
  signal.addEventListener("abort", bell.over);
  try {
    // Nobody told of events between the first reading and the watching.
    for (let page = await read(); ; page = await read()) {
      if (!isEmpty(page) || signal.aborted || bell.isOver()) return page;
      await bell.next();
    }
  } finally {
    bell.stop();
    cancel();
    signal.removeEventListener("abort", bell.over);
  }
}

function isEmpty(page: Answered<EventPage>): boolean {
  return page.kind === "done" && page.value.events.length === 0 && !page.value.isComplete;
}

interface Bell {
  /** Resolves at the next ring, at once if it rang since the last. */
  readonly next: () => Promise<void>;
  /** Rings for the last time. */
  readonly over: () => void;
  readonly isOver: () => boolean;
  readonly stop: () => void;
}

function createBell(host: WorkflowHost, runId: string): Bell {
  let rang = false;
  let over = false;
  let waiting: (() => void) | undefined;
  const ring = (): void => {
    rang = true;
    waiting?.();
  };
  const stop = host.watch(runId, ring);
  return {
    next: async () => {
      if (!rang) await new Promise<void>((resolve) => (waiting = resolve));
      waiting = undefined;
      rang = false;
    },
    over: () => {
      over = true;
      ring();
    },
    isOver: () => over,
    stop,
  };
}
