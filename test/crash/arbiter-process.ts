/** Owns: a gateway process that rules on writes and dies, or meets one error, at a given append to the ledger. */
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { startCoordinator, type Host, type SceneFiles, type Store } from "../core/arbiter-scene.ts";

export const FAULTS = ["dies before", "dies after", "fails"] as const;

export interface Fault {
  readonly kind: (typeof FAULTS)[number];
  /** The number of the append since the faults were armed, over all processes. */
  readonly atAppend: number;
}

export interface Appends {
  /** Appends before the faults are armed are not counted. */
  isArmed: boolean;
  count: number;
}

export interface Process {
  readonly coordinator: Coordinator;
  /** Resolves when the process dies. */
  readonly died: Promise<"died">;
  readonly isDead: () => boolean;
}

export interface Machine {
  readonly host: Host;
  readonly files: SceneFiles;
  readonly open: () => Store;
  readonly appends: Appends;
  readonly fault: Fault | undefined;
}

export function startProcess({ host, files, open, appends, fault }: Machine): Process {
  const death = Promise.withResolvers<"died">();
  const wakes = new Set<() => void>();
  let dead = false;
  const isDead = (): boolean => dead;
  const endLife = (): void => {
    dead = true;
    for (const cancel of wakes) cancel();
    death.resolve("died");
  };
  /** A dead process hears no answer: its calls are never settled. */
  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    if (dead) return new Promise<never>(() => undefined);
    const answer = await work();
    return isDead() ? new Promise<never>(() => undefined) : answer;
  };
  const append = (work: () => Promise<void>): Promise<void> =>
    call(async () => {
      if (appends.isArmed) appends.count += 1;
      const faulty = appends.isArmed && fault?.atAppend === appends.count ? fault.kind : undefined;
      if (faulty === "fails") throw new CoordinationError("LEDGER_FULL", "the disk is full for a moment");
      if (faulty === "dies before") endLife();
      else await work();
      if (faulty === "dies after") endLife();
    });
  const clock: Clock = {
    now: () => host.clock.now(),
    wakeAt: (atMs, run) => {
      if (dead) return () => undefined;
      const cancel = host.clock.wakeAt(atMs, run);
      wakes.add(cancel);
      return cancel;
    },
  };
  const store = open();
  const coordinator = startCoordinator({
    host: { ...host, clock: { ...host.clock, ...clock } },
    files,
    store: spoilStore(store, { append, call }),
    conflicts: {
      strategy: "priority_wins",
      overrides: [{ resource: "merge.md", strategy: "merge_if_safe" }],
      highRisk: ["review.md"],
    },
  });
  return { coordinator, died: death.promise, isDead };
}

interface StoreFaults {
  readonly append: (work: () => Promise<void>) => Promise<void>;
  readonly call: <T>(work: () => Promise<T>) => Promise<T>;
}

function spoilStore(store: Store, { append, call }: StoreFaults): Store {
  return {
    ...store,
    append: (request) => append(() => store.append(request)),
    read: (runId, range) => call(() => store.read(runId, range)),
    list: (query) => call(() => store.list(query)),
    find: (name) => call(() => store.find(name)),
    overlapping: (query) => call(() => store.overlapping(query)),
    claims: (query) => call(() => store.claims(query)),
    get: (sha256) => call(() => store.get(sha256)),
    getMany: (sha256s) => call(() => store.getMany(sha256s)),
  };
}
