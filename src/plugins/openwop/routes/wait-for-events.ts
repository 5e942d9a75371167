/** Owns: waiting for a run's next events, for a bounded time and no longer than the client does. */
import { addMs } from "../../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type {
  HostAnswer,
  Caller,
  EventPage,
  WorkflowHost,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";

/** A request to wait for events of a run. */
export interface EventWait {
  readonly caller: Caller;
  readonly runId: string;
  readonly from: number;
  readonly limit: number;
  readonly waitMs: number;
  readonly signal: () => AbortSignal;
}

/**
 * Waits until a run has events from a sequence on, none will follow, the time is over or the client leaves, and
 * returns the page that there is then, which may be empty; a refusal at once.
 */
export async function waitForEvents(
  host: WorkflowHost,
  clock: Clock,
  wait: EventWait,
): Promise<HostAnswer<EventPage>> {
  const { caller, runId, from, limit } = wait;
  const read = (): Promise<HostAnswer<EventPage>> => host.events(caller, runId, { from, limit });
  const firstPage = await read();
  if (wait.waitMs === 0 || !isPageEmpty(firstPage)) return firstPage;
  const deadlineMs = addMs(clock.now(), wait.waitMs);
  const bell = createEventBell(host, runId);
  const signal = wait.signal();
  const cancel = clock.wakeAt(deadlineMs, bell.over);
  signal.addEventListener("abort", bell.over);
  try {
    // Nobody told of events between the first reading and the watching.
    for (let page = await read(); ; page = await read()) {
      if (!isPageEmpty(page) || signal.aborted || bell.isOver()) return page;
      await bell.next();
    }
  } finally {
    bell.stop();
    cancel();
    signal.removeEventListener("abort", bell.over);
  }
}

function isPageEmpty(page: HostAnswer<EventPage>): boolean {
  return page.kind === "done" && page.value.events.length === 0 && !page.value.isComplete;
}

/** Rings when a run has new events. */
interface EventBell {
  /** Resolves at the next ring, at once if it rang since the last. */
  readonly next: () => Promise<void>;
  /** Rings for the last time. */
  readonly over: () => void;
  readonly isOver: () => boolean;
  readonly stop: () => void;
}

/** Creates a bell that rings whenever the run has news, until it is stopped. */
function createEventBell(host: WorkflowHost, runId: string): EventBell {
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
