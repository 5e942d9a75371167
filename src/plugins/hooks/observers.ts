/**
 * Owns: telling observers of events, each plugin by itself and in order, never in the caller's turn.
 *
 * O1 Of one plugin one event at a time is under way, and at most `observedMax` wait; of more the newest are dropped and counted.
 * O2 An observer that is late is not waited for: the next event comes.
 * O3 One whose plugin is being loaded again is told afterwards. The events that wait when it is gone count as dropped.
 */
import { findHook, listHooks } from "./asked-hooks.ts";
import { HOOK_LIMITS } from "./hook-limits.ts";
import type { ProblemDependencies } from "./hook-problem.ts";
import type { CoordinationEvent, ObserverContext } from "./hook-types.ts";
import { copyIsolated } from "./isolated-copy.ts";
import { runHook } from "./run-hook.ts";

interface ObservedEvent {
  readonly event: CoordinationEvent;
  /** How many were missed right before it. */
  dropped: number;
}

interface ObserverQueue {
  readonly waiting: ObservedEvent[];
  /** How many were missed since the newest of them. */
  dropped: number;
  telling: Promise<void> | undefined;
}

/** The events that wait for observers, by the ids of their plugins. */
export type ObserverQueues = Map<string, ObserverQueue>;

const KEY = Symbol.for("openclaw-coordination.observer-queues");
/** The global object, where all instances of the plugin find the queues of observers. */
type QueuesHolder = { [KEY]?: ObserverQueues };

/**
 * Returns the queues of events that wait for `observe` hooks in this process, by plugin; they are created at the first
 * call and outlive a reload of the coordination plugin.
 */
export function accessObserverQueues(): ObserverQueues {
  return ((globalThis as QueuesHolder)[KEY] ??= new Map());
}

/** All observers of a process. */
export interface Observers {
  readonly observe: (events: readonly CoordinationEvent[]) => void;
  /** Resolves when everybody has been told everything. */
  readonly observed: () => Promise<void>;
}

/** Told in one turn of the event loop, where the observer answers at once. */
const PER_TURN = 32;

/**
 * Creates the delivery of events to the `observe` hooks of plugins, each plugin by a queue of its own; `observed`
 * resolves when all queues are empty.
 */
export function createObservers(dependencies: ProblemDependencies, queues: ObserverQueues): Observers {
  return {
    observe: (events) => {
      for (const { plugin } of listHooks("observe", dependencies.clock.now())) {
        const pluginQueue = queues.get(plugin) ?? { waiting: [], dropped: 0, telling: undefined };
        queues.set(plugin, pluginQueue);
        for (const event of events) enqueueEvent(dependencies, plugin, pluginQueue, event);
        pluginQueue.telling ??= drainQueue(dependencies, plugin, pluginQueue);
      }
    },
    observed: async () => {
      for (;;) {
        const open = [...queues.values()].flatMap(({ telling }) => telling ?? []);
        if (open.length === 0) return;
        await Promise.all(open);
      }
    },
  };
}

/** Adds an event to those that wait for an observer; drops and counts it where too many wait. */
function enqueueEvent(
  { logger }: ProblemDependencies,
  plugin: string,
  pluginQueue: ObserverQueue,
  event: CoordinationEvent,
): void {
  if (pluginQueue.waiting.length < HOOK_LIMITS.observedMax) {
    pluginQueue.waiting.push({ event, dropped: pluginQueue.dropped });
    pluginQueue.dropped = 0;
    return;
  }
  if (pluginQueue.dropped === 0)
    logger.warn({ plugin }, `the plugin ${plugin} observes too slowly: events are dropped`);
  pluginQueue.dropped += 1;
}

/** Counts an event that the observer was not told, and those that it missed before it. */
function countMissed(pluginQueue: ObserverQueue, { dropped }: ObservedEvent): void {
  const beforeNext = pluginQueue.waiting[0] ?? pluginQueue;
  beforeNext.dropped += dropped + 1;
}

/** Tells an observer of the events that wait, one by one, until none is left. */
async function drainQueue(
  dependencies: ProblemDependencies,
  plugin: string,
  pluginQueue: ObserverQueue,
): Promise<void> {
  try {
    for (let toldCount = 0; ; toldCount += 1) {
      if (toldCount % PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
      const next = pluginQueue.waiting.shift();
      if (!next) return;
      if (!(await tellEvent(dependencies, plugin, next))) countMissed(pluginQueue, next);
    }
  } finally {
    pluginQueue.telling = undefined;
  }
}

/** Tells an observer of one event. Returns false where the observer is not there. */
async function tellEvent(
  dependencies: ProblemDependencies,
  plugin: string,
  { event, dropped }: ObservedEvent,
): Promise<boolean> {
  const hook = findHook(plugin, "observe", dependencies.clock.now());
  const outcome =
    hook &&
    (await runHook(dependencies, hook, {
      createArguments: (context) => [copyIsolated(event), { ...context, dropped } satisfies ObserverContext],
      read: () => ({ kind: "read", value: undefined }),
    }));
  return outcome !== undefined && (outcome.kind === "answer" || outcome.problem.because !== "unavailable");
}
