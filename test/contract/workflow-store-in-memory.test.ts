import { hashAgain } from "../support/hash-chain.ts";
import type { MemoryRun } from "../support/memory-run.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { describeWorkflowStore } from "./workflow-store.suite.ts";
import type { LedgerDamage } from "./workflow-store-tested.ts";

describeWorkflowStore("memory", () => {
  const ledger = createMemoryWorkflowLedger();
  return Promise.resolve({
    open: () => {
      const workflows = ledger.open();
      return Promise.resolve({ workflows, close: () => workflows.close() });
    },
    spoil: (runId, how) => {
      const run = ledger.runs.get(runId);
      if (!run) throw new Error(`${runId} is not there`);
      damageRun(run, how);
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
});

/** A log whose places may be empty. */
interface SpoilableRun extends Omit<MemoryRun, "events"> {
  readonly events: (string | undefined)[];
}

function damageRun(run: MemoryRun, how: LedgerDamage): void {
  const { events }: SpoilableRun = run;
  switch (how.kind) {
    case "remove":
      events[how.sequence] = undefined;
      return;
    case "change":
      events[how.sequence] = events[how.sequence]?.replace('"timestamp":"20', '"timestamp":"21');
      return;
    case "garble":
      events[how.sequence] = "{";
      hashAgain(run);
      return;
    case "origin":
      if (how.origin === null) delete run.origin;
      else run.origin = JSON.stringify(how.origin);
  }
}
