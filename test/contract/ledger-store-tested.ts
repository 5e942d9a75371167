/** Owns: what a suite is given to test: one ledger, and the stores opened on it. */
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { ContentStore } from "../../src/agents/coordination/ports/content-store.ts";
import type { LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { ManualClock } from "../support/temp-ledger.ts";

export type TestedStore = LedgerStore & ContentStore;

/** One ledger, empty at first, that any number of stores can be opened on. */
export interface TestedLedger extends AsyncDisposable {
  open(clock: ManualClock): Promise<TestedStore>;
  /** Writes an event of a type that this release does not know at the end of a run's log. */
  appendUnknownEvent(runId: CoordinationId): Promise<void>;
}

export interface Tested extends AsyncDisposable {
  readonly ledger: TestedLedger;
  readonly store: TestedStore;
  readonly clock: ManualClock;
}

export type Open = () => Promise<Tested>;

export function readAll(store: LedgerStore, runId: CoordinationId): Promise<RunEvent[]> {
  return store.read(runId, { from: 0, limit: 10_000 });
}
