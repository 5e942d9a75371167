/**
 * Owns: telling those who follow what was appended to the ledger, by this process or another one.
 *
 * One look at the ledger serves all who follow: each is told one change for a coordination or workflow run, with all that happened
 * since the look before, hence at most 20 a second. Without anybody who follows, nothing is looked at.
 */
import { addMs, type CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { isCoordinationError, isLedgerOutage } from "../../../agents/coordination/contracts/errors.ts";
import type { EventArrival } from "../../../agents/coordination/ports/ledger-queries.ts";
import { createTurnsByName } from "../../../agents/coordination/std/turns-by-name.ts";
import { giveWay } from "../../../platform/give-way.ts";
import type { ReportedLedger } from "../../reports/reported-ledger.ts";
import type { LiveChange } from "../contract/live.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageDependencies } from "./page-dependencies.ts";

/** All that happened since the look before, up to a position. */
export interface ChangeBatch {
  readonly position: number;
  readonly changes: readonly LiveChange[];
}

export interface LiveChanges {
  /** Calls `listener` with all that is appended from now on. Returns the end of it, and the position from which on it is told. */
  follow(
    listener: (changes: ChangeBatch) => void,
  ): Promise<{ readonly position: number; readonly stop: () => void }>;
  /**
   * Reads what was appended after a position and up to another one; `undefined` where that is too much to tell. It does not say whose
   * agent opened a plan: who comes back reads everything anew.
   */
  since(after: number, until: number): Promise<readonly LiveChange[] | undefined>;
  close(): void;
}

/** Whatever moves the position does so alone. */
const POSITION = "position";

type ChangesDependencies = Pick<PageDependencies, "reader" | "clock" | "logger">;

/**
 * Creates the watcher that looks for new events of the ledger while somebody listens, and tells all listeners which
 * runs changed.
 */
export function createLiveChanges({ reader, clock, logger }: ChangesDependencies): LiveChanges {
  const listeners = new Set<(changes: ChangeBatch) => void>();
  let position = 0;
  let cancel: (() => void) | undefined;
  let isClosed = false;
  const turns = createTurnsByName();
  const look = async (): Promise<void> => {
    const ledger = await reader();
    // The head alone is read while nothing happens.
    if ((await ledger.newestPosition()) === position) return;
    const { items, reached } = await ledger.readArrivals({
      limit: PAGE_BOUNDS.pollEventsMax,
      after: position,
    });
    const changes: LiveChange[] = [];
    for (const change of summarizeArrivals(items)) changes.push(await addParentId(ledger, change));
    position = reached;
    for (const listener of listeners) listener({ position, changes });
  };
  const lookAgain = async (): Promise<void> => {
    try {
      await turns.run(POSITION, look);
    } catch (error) {
      // The ledger is busy, or the gateway reloads: the next look tells.
      if (!isCoordinationError(error)) logger.error({}, "the page could not look for changes");
    }
    cancel = undefined;
    arm();
  };
  const arm = (): void => {
    if (isClosed || listeners.size === 0) return;
    cancel ??= clock.wakeAt(addMs(clock.now(), PAGE_BOUNDS.pollMs), () => void lookAgain());
  };
  return {
    follow: (listener) =>
      turns.run(POSITION, async () => {
        if (listeners.size === 0) position = await (await reader()).newestPosition();
        listeners.add(listener);
        arm();
        return { position, stop: () => void listeners.delete(listener) };
      }),
    since: async (after, until) => {
      if (until - after > PAGE_BOUNDS.behindMax) return undefined;
      const ledger = await reader();
      const arrivals: EventArrival[] = [];
      for (let from = after; from < until;) {
        const page = await ledger.readArrivals({ limit: PAGE_BOUNDS.pollEventsMax, after: from });
        arrivals.push(...page.items);
        if (page.items.length < PAGE_BOUNDS.pollEventsMax) break;
        from = page.reached;
      }
      return summarizeArrivals(arrivals);
    },
    close: () => {
      isClosed = true;
      cancel?.();
      listeners.clear();
    },
  };
}

/** Summarizes arrivals, one change for each run, in the order of their newest events. */
function summarizeArrivals(arrivals: readonly EventArrival[]): LiveChange[] {
  const byRun = new Map<CoordinationId, { newest: EventArrival; types: Set<string> }>();
  for (const arrival of arrivals) {
    const { runId, type } = arrival;
    const earlier = byRun.get(runId);
    byRun.delete(runId);
    byRun.set(runId, { newest: arrival, types: (earlier?.types ?? new Set()).add(type) });
  }
  return [...byRun].map(([id, { newest, types }]) => ({
    id,
    sequence: newest.sequence,
    types: [...types],
    atMs: newest.atMs,
  }));
}

/**
 * Adds, to a change with the opening of a coordination, the coordination whose agent opened it as a plan, where there
 * is one and the opening can be read.
 */
async function addParentId(ledger: ReportedLedger, change: LiveChange): Promise<LiveChange> {
  if (!change.types.includes("coordination.created")) return change;
  await giveWay();
  const parentId = await readParentId(ledger, change.id as CoordinationId);
  return parentId === undefined ? change : { ...change, parentId };
}

async function readParentId(ledger: ReportedLedger, id: CoordinationId): Promise<CoordinationId | undefined> {
  try {
    const [opening] = await ledger.read(id, { from: 0, limit: 1 });
    return opening?.type === "coordination.created" ? opening.payload.parent?.coordinationId : undefined;
  } catch (error) {
    // Damage stays as it is: the next look would find it again, and nobody would hear of anything else.
    if (isCoordinationError(error) && !isLedgerOutage(error)) return undefined;
    throw error;
  }
}
