import { openTestLedger, createManualClock, createTempFolder } from "../support/temp-ledger.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { describeBothKinds, describeRunStore } from "./run-store.suite.ts";
import { writeCoordination, writeWorkflowRun } from "./run-store-written.ts";

async function openSqlite() {
  const folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  const dispose = async (): Promise<void> => {
    await store.close();
    folder[Symbol.dispose]();
  };
  return { store, dispose };
}

describeBothKinds("SQLite", openSqlite);

const doNothing = (): Promise<void> => Promise.resolve();

describeRunStore("SQLite, coordinations", async () => {
  const { store, dispose } = await openSqlite();
  return { store, write: writeCoordination, [Symbol.asyncDispose]: dispose };
});

describeRunStore("SQLite, workflow runs", async () => {
  const { store, dispose } = await openSqlite();
  return { store: store.workflows, write: writeWorkflowRun, [Symbol.asyncDispose]: dispose };
});

describeRunStore("memory, coordinations", () =>
  Promise.resolve({
    store: createMemoryLedger().open(createManualClock()),
    write: writeCoordination,
    [Symbol.asyncDispose]: doNothing,
  }),
);

describeRunStore("memory, workflow runs", () =>
  Promise.resolve({
    store: createMemoryWorkflowLedger().open(),
    write: writeWorkflowRun,
    [Symbol.asyncDispose]: doNothing,
  }),
);
