/** Owns: what a suite is given to test: one ledger, and the stores opened on it; and what every part of it does. */
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { ContentStore } from "../../src/agents/coordination/ports/content-store.ts";
import type { AppendRequest, LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import { nameChildSession, type Author } from "../support/ledger-fixtures.ts";
import type { ManualClock } from "../support/temp-ledger.ts";

export type TestedStore = LedgerStore & ContentStore;

/** One ledger, empty at first, that any number of stores can be opened on. */
export interface TestedLedger extends AsyncDisposable {
  open(clock: ManualClock): Promise<TestedStore>;
  /** Writes an event of a type that this release does not know at the end of a run's log. */
  appendUnknownEvent(runId: CoordinationId): Promise<void>;
}

/** A new ledger with one store opened on it, and the clock of that store. */
export interface StoreFixture extends AsyncDisposable {
  readonly ledger: TestedLedger;
  readonly store: TestedStore;
  readonly clock: ManualClock;
}

export type Open = () => Promise<StoreFixture>;

export function readAll(store: LedgerStore, runId: CoordinationId): Promise<RunEvent[]> {
  return store.read(runId, { from: 0, limit: 10_000 });
}

/** The append that ends a coordination whose one step is open. */
export function appendEnd(writer: Author): AppendRequest {
  const stepId = "step-1" as StepId;
  return writer.append(
    {
      type: "acknowledgeStep",
      stepId,
      attempt: 1,
      childSessionKey: nameChildSession(writer.runId),
      childRunId: "r",
      via: "hook",
    },
    { type: "completeStep", stepId, attempt: 1, via: "hook" },
    { type: "settleCoordination" },
  );
}
