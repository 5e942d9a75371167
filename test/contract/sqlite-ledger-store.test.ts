import Database from "better-sqlite3";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import { describeLedgerStore } from "./ledger-store.suite.ts";
import { describeWriterProcesses } from "./ledger-processes.suite.ts";

describeLedgerStore("SQLite", () => {
  const folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  return Promise.resolve({
    open: (clock) => openTestLedger(path, { clock }),
    appendUnknownEvent: (runId) => {
      const database = new Database(path);
      database
        .prepare(
          `insert into event (run_key, sequence, type, timestamp_ms, payload, hash)
           select run_key, length, 'step.teleported', 0, '{}', zeroblob(32) from run where run_id = ?`,
        )
        .run(runId);
      database.close();
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: () => {
      folder[Symbol.dispose]();
      return Promise.resolve();
    },
  });
});

describeWriterProcesses("SQLite", () => {
  const folder = createTempFolder();
  const place = folder.file("new-folder/ledger.sqlite");
  return Promise.resolve({
    place,
    open: () => openTestLedger(place),
    [Symbol.asyncDispose]: () => {
      folder[Symbol.dispose]();
      return Promise.resolve();
    },
  });
});
