/** Owns: a gateway process that dies, or meets one error, at a given call to one of its ports. */
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { SpawnObserver } from "../../src/agents/coordination/ports/spawn-observer.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";

/** The fault at the call: the process dies before or after it did its work, or the call fails and life goes on. */
export const FAULTS = ["dies before", "dies after", "fails"] as const;

export interface Fault {
  readonly kind: (typeof FAULTS)[number];
  /** The number of the port call, over all processes of a schedule. */
  readonly atCall: number;
}

export interface Process {
  readonly coordinator: Coordinator;
  /** Resolves when the process dies. */
  readonly died: Promise<"died">;
  readonly isDead: () => boolean;
}

export interface Calls {
  count: number;
}

type Outside = Omit<NonNullable<Parameters<World["start"]>[1]>, "clock" | "runner">;

/** `outside` replaces what the coordinator is otherwise given of the world. */
export function startProcess(
  world: World,
  calls: Calls,
  fault: Fault | undefined,
  outside: Outside = {},
): Process {
  const death = Promise.withResolvers<"died">();
  const wakes = new Set<() => void>();
  let dead = false;
  const endLife = (): void => {
    dead = true;
    for (const cancel of wakes) cancel();
    death.resolve("died");
  };
  /** A dead process hears no answer: its calls are never settled. */
  const waitForever = (): Promise<never> => new Promise(() => undefined);
  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    if (dead) return waitForever();
    calls.count += 1;
    const faulty = fault?.atCall === calls.count ? fault.kind : undefined;
    if (faulty === "dies before") endLife();
    if (faulty === "fails") throw new CoordinationError("LEDGER_FULL", "the disk is full for a moment");
    if (isDead()) return waitForever();
    const answer = await work();
    if (faulty === "dies after") endLife();
    return isDead() ? waitForever() : answer;
  };
  const isDead = (): boolean => dead;
  const clock: Clock = {
    now: () => world.clock.now(),
    wakeAt: (atMs, run) => {
      if (dead) return () => undefined;
      const cancel = world.clock.wakeAt(atMs, run);
      wakes.add(cancel);
      return cancel;
    },
  };
  const runner: SpawnObserver = {
    observe: (query) => call(() => world.host.observe(query)),
    bind: (envelope) => call(() => world.host.bind(envelope)),
    stop: (query) => call(() => world.host.stop(query)),
  };
  const coordinator = world.start((store) => spoilStore(store, call), { clock, runner, ...outside });
  return { coordinator, died: death.promise, isDead };
}

function spoilStore(store: MemoryStore, call: <T>(work: () => Promise<T>) => Promise<T>): MemoryStore {
  return {
    ...store,
    append: (request) => call(() => store.append(request)),
    read: (runId, range) => call(() => store.read(runId, range)),
    list: (query) => call(() => store.list(query)),
    find: (name) => call(() => store.find(name)),
    get: (sha256) => call(() => store.get(sha256)),
    getMany: (sha256s) => call(() => store.getMany(sha256s)),
    deleteBefore: (time) => call(() => store.deleteBefore(time)),
  };
}
