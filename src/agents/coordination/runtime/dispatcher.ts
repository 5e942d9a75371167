/**
 * Owns: acting on what `planDispatch` says, when it is due. Timers follow from the states; the effects under way are
 * remembered only so that one process does not do the same thing twice at once.
 */
import { addMs, type CoordinationId, type EpochMs } from "../contracts/ids.ts";
import { isCoordinationError } from "../contracts/errors.ts";
import { nextDeadline, planDispatch, planRecovery, type Effect } from "../dispatch/plan-dispatch.ts";
import type { Coordination } from "../ledger/state.ts";
import type { ContentStore } from "../ports/content-store.ts";
import type { LaneRunner } from "../ports/lane-runner.ts";
import type { LedgerStore } from "../ports/ledger-store.ts";
import { performEffect, type EffectParts } from "./perform-effect.ts";

const OPEN_PAGE = 500;
/** Waits at least this long before it looks at a coordination again, whatever is due. */
const PAUSE_MS_MIN = 50;

export interface DispatcherParts extends Omit<EffectParts, "stopping"> {
  readonly store: LedgerStore;
  readonly content: ContentStore;
  readonly lanes: LaneRunner;
  readonly settings: { readonly sweepMs: number; readonly contentMs: number };
}

export interface Dispatcher {
  /** Looks at the coordination again when its state says so. */
  watch(state: Coordination): void;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** What one dispatcher remembers between two looks; nothing of it is a fact. */
interface Memory {
  readonly wakes: Map<CoordinationId, () => void>;
  readonly underway: Set<string>;
  /** Looks and sweeps under way. */
  readonly working: Set<Promise<void>>;
  readonly stopping: AbortController;
  cancelSweep: () => void;
}

type Plan = (state: Coordination, now: EpochMs) => Effect[];

export function createDispatcher(parts: DispatcherParts): Dispatcher {
  const memory: Memory = {
    wakes: new Map(),
    underway: new Set(),
    working: new Set(),
    stopping: new AbortController(),
    cancelSweep: () => undefined,
  };
  return {
    watch: (state) => {
      const due = nextDeadline(state);
      if (due === undefined) return;
      wakeAt(parts, memory, {
        runId: state.coordinationId,
        atMs: laterOf(due, addMs(parts.clock.now(), PAUSE_MS_MIN)),
      });
    },
    start: () => working(memory, sweep(parts, memory)),
    stop: async () => {
      memory.stopping.abort();
      memory.cancelSweep();
      for (const cancel of memory.wakes.values()) cancel();
      memory.wakes.clear();
      await Promise.all(memory.working);
      await parts.lanes.idle();
    },
  };
}

/** Remembers work until it is through, for `stop` to wait for. Neither looks nor sweeps reject. */
async function working(memory: Memory, work: Promise<void>): Promise<void> {
  memory.working.add(work);
  await work;
  memory.working.delete(work);
}

function isStopped({ stopping }: Memory): boolean {
  return stopping.signal.aborted;
}

function wakeAt(
  parts: DispatcherParts,
  memory: Memory,
  { runId, atMs }: { readonly runId: CoordinationId; readonly atMs: EpochMs },
): void {
  memory.wakes.get(runId)?.();
  memory.wakes.delete(runId);
  if (isStopped(memory)) return;
  const wake = (): void => {
    memory.wakes.delete(runId);
    void working(memory, look(parts, memory, { runId, plan: planDispatch }));
  };
  memory.wakes.set(runId, parts.clock.wakeAt(atMs, wake));
}

async function look(
  parts: DispatcherParts,
  memory: Memory,
  { runId, plan }: { readonly runId: CoordinationId; readonly plan: Plan },
): Promise<void> {
  if (isStopped(memory)) return;
  try {
    const state = await parts.runs.state(runId);
    await Promise.all(plan(state, parts.clock.now()).map((effect) => act(parts, memory, { state, effect })));
    const atMs = lookAgainAt(parts, await parts.runs.state(runId));
    if (atMs !== undefined) wakeAt(parts, memory, { runId, atMs });
  } catch (error) {
    const { code, message } = describe(error);
    parts.logger.error({ runId, code }, `could not move the coordination on: ${message}`);
    wakeAt(parts, memory, { runId, atMs: addMs(parts.clock.now(), parts.settings.sweepMs) });
  }
}

async function act(
  parts: DispatcherParts,
  { underway, stopping }: Memory,
  { state, effect }: { readonly state: Coordination; readonly effect: Effect },
): Promise<void> {
  if (underway.has(effect.effectId)) return;
  underway.add(effect.effectId);
  try {
    await parts.lanes.run("control", "normal", () =>
      performEffect({ ...parts, stopping: stopping.signal }, state, effect),
    );
  } finally {
    underway.delete(effect.effectId);
  }
}

async function sweep(parts: DispatcherParts, memory: Memory): Promise<void> {
  try {
    for await (const runId of openRuns(parts.store)) {
      if (isStopped(memory)) return;
      await look(parts, memory, { runId, plan: planRecovery });
    }
    await parts.content.deleteBefore(addMs(parts.clock.now(), -parts.settings.contentMs));
  } catch (error) {
    const { code, message } = describe(error);
    parts.logger.error({ code }, `the sweep failed: ${message}`);
  }
  if (isStopped(memory)) return;
  memory.cancelSweep = parts.clock.wakeAt(addMs(parts.clock.now(), parts.settings.sweepMs), () => {
    void working(memory, sweep(parts, memory));
  });
}

async function* openRuns(store: LedgerStore): AsyncGenerator<CoordinationId> {
  let page = await store.list({ limit: OPEN_PAGE, status: "running" });
  while (page.length > 0) {
    for (const { runId } of page) yield runId;
    const after = page.at(-1);
    if (!after || page.length < OPEN_PAGE) return;
    page = await store.list({ limit: OPEN_PAGE, status: "running", after });
  }
}

/** When to look again: at the state's own deadline; where that has passed, when what it waits for may have changed. */
function lookAgainAt({ turns, clock, settings }: DispatcherParts, state: Coordination): EpochMs | undefined {
  const due = nextDeadline(state);
  if (state.kind !== "open" || due === undefined) return undefined;
  const now = clock.now();
  if (due > now) return due;
  if (state.openSteps.size > 0) return addMs(now, settings.sweepMs);
  const quietSince = turns.quietSince(state.created.ownerSession, now) ?? now;
  return laterOf(addMs(quietSince, state.created.settleMs), addMs(now, PAUSE_MS_MIN));
}

function laterOf(a: EpochMs, b: EpochMs): EpochMs {
  return a > b ? a : b;
}

function describe(error: unknown): { code: string; message: string } {
  const code = isCoordinationError(error) ? error.code : "UNKNOWN";
  return { code, message: error instanceof Error ? error.message : String(error) };
}
