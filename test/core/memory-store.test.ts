import { createMemoryLedger } from "../support/memory-store.ts";
import { describeLedgerStore, type TestedLedger } from "../contract/ledger-store.suite.ts";

/** The store that the core's tests run on keeps to the port as the real ones do. */
describeLedgerStore("memory", () => {
  const ledger = createMemoryLedger();
  const tested: TestedLedger = {
    open: (clock) => Promise.resolve(ledger.open(clock)),
    appendUnknownEvent: (runId) => {
      const run = ledger.runs.get(runId);
      const last: unknown = JSON.parse(run?.events.at(-1) ?? "{}");
      const sequence = run?.events.length ?? 0;
      const unknown = {
        ...(last as object),
        eventId: `${runId}:${sequence}`,
        sequence,
        type: "step.teleported",
      };
      run?.events.push(JSON.stringify(unknown));
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return Promise.resolve(tested);
});
