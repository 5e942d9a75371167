/**
 * Owns: telling observers of events, each plugin by itself and in order, never in the caller's turn.
 *
 * O1 Of one plugin one event at a time is under way, and at most `observedMax` wait; of more the newest are dropped and counted.
 * O2 An observer that is late is not waited for: the next event comes.
 */
import { findHook, listHooks } from "./asked-hooks.ts";
import { HOOK_LIMITS } from "./hook-limits.ts";
import type { ProblemDependencies } from "./hook-problem.ts";
import type { CoordinationEvent, ObserverContext } from "./hook-types.ts";
import { copyIsolated } from "./isolated-copy.ts";
import { runHook } from "./run-hook.ts";

interface ObservedEvent {
  readonly event: CoordinationEvent;
  /** How many were dropped right before it. */
  readonly dropped: number;
}

interface Watching {
  readonly waiting: ObservedEvent[];
  dropped: number;
  telling: Promise<void> | undefined;
}

/** All observers of a process. */
export interface Observers {
  readonly observe: (events: readonly CoordinationEvent[]) => void;
  /** Resolves when everybody has been told everything. */
  readonly observed: () => Promise<void>;
}

/** Told in one turn of the event loop, where the observer answers at once. */
const PER_TURN = 32;

/** Creates the delivery of events to observers, each at its own speed. */
export function createObservers(dependencies: ProblemDependencies): Observers {
  const watching = new Map<string, Watching>();
  return {
    observe: (events) => {
      for (const { plugin } of listHooks("observe", dependencies.clock.now())) {
        const pluginQueue = watching.get(plugin) ?? { waiting: [], dropped: 0, telling: undefined };
        watching.set(plugin, pluginQueue);
        for (const event of events) enqueue(dependencies, plugin, pluginQueue, event);
        pluginQueue.telling ??= tell(dependencies, plugin, pluginQueue);
      }
    },
    observed: async () => {
      for (;;) {
        const open = [...watching.values()].flatMap(({ telling }) => telling ?? []);
        if (open.length === 0) return;
        await Promise.all(open);
      }
    },
  };
}

function enqueue(
  { logger }: ProblemDependencies,
  plugin: string,
  pluginQueue: Watching,
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

async function tell(dependencies: ProblemDependencies, plugin: string, pluginQueue: Watching): Promise<void> {
  try {
    for (let toldCount = 0; ; toldCount += 1) {
      if (toldCount % PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
      const next = pluginQueue.waiting.shift();
      if (!next) return;
      const hook = findHook(plugin, "observe", dependencies.clock.now());
      // Taken back: who is not there any more misses nothing.
      if (!hook) pluginQueue.waiting.length = 0;
      else
        await runHook(dependencies, hook, {
          createArguments: (context) => [
            copyIsolated(next.event),
            { ...context, dropped: next.dropped } satisfies ObserverContext,
          ],
          read: () => ({ kind: "read", value: undefined }),
        });
    }
  } finally {
    pluginQueue.telling = undefined;
  }
}
