import type { Database } from "better-sqlite3";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { forge, rehashRun } from "../support/ledger-fixtures-damage.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import { describeWorkflowProcesses } from "./ledger-processes.suite.ts";
import { describeWorkflowStore } from "./workflow-store.suite.ts";
import type { LedgerDamage } from "./workflow-store-tested.ts";

describeWorkflowStore("SQLite", () => {
  const folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  return Promise.resolve({
    open: async () => {
      const ledger = await openTestLedger(path);
      return { workflows: ledger.workflows, close: () => ledger.close() };
    },
    spoil: (runId, how) => {
      forge(path, (database) => {
        damageRun(database, runId, how);
      });
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: () => {
      folder[Symbol.dispose]();
      return Promise.resolve();
    },
  });
});

function damageRun(database: Database, runId: CoordinationId, how: LedgerDamage): void {
  const run = database
    .prepare<[string], number>("select run_key from run where run_id = ?")
    .pluck()
    .get(runId);
  if (how.kind === "origin") {
    const text = how.origin === null ? null : JSON.stringify(how.origin);
    database.prepare("update run set origin = ? where run_key = ?").run(text, run);
    return;
  }
  const sql = {
    change: "update event set timestamp_ms = timestamp_ms + 1",
    remove: "delete from event",
    garble: "update event set payload = '{'",
  }[how.kind];
  database.prepare(`${sql} where run_key = ? and sequence = ?`).run(run, how.sequence);
  if (how.kind === "garble") rehashRun(database, runId);
}

describeWorkflowProcesses("SQLite", () => {
  const folder = createTempFolder();
  const place = folder.file("ledger.sqlite");
  return Promise.resolve({
    place,
    open: () => openTestLedger(place),
    [Symbol.asyncDispose]: () => {
      folder[Symbol.dispose]();
      return Promise.resolve();
    },
  });
});
