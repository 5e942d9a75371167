/** Owns: what becomes of the appends to a ledger file that wait together with one that breaks their group. */
import { expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { decodeEvent, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Summary } from "../../src/agents/coordination/contracts/coordination-summary.ts";
import type { AppendRequest } from "../../src/agents/coordination/ports/ledger-store.ts";
import { growRun } from "../../src/infra/sqlite/database/append-run.ts";
import { openDatabase } from "../../src/infra/sqlite/database/open-database.ts";
import { createWriteQueue } from "../../src/infra/sqlite/database/write-queue.ts";
import { prepareLedgerWrites } from "../../src/infra/sqlite/database/write-statements.ts";
import { createSqliteRunStore } from "../../src/infra/sqlite/sqlite-run-store.ts";
import { openRun, spawnOf } from "../support/ledger-fixtures.ts";
import { createManualClock, createTempFolder } from "../support/temp-ledger.ts";

it("nothing is written of a group that an append breaks, least of all what was decided on that one (S1)", async () => {
  using folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  const options = { path, mode: "write", busyTimeoutMs: 2_000 } as const;
  const [database, elsewhere] = [await openDatabase(options), await openDatabase(options)];
  const { author, request } = openRun("a");
  const { runId, events, summary } = request;
  // Another process begins the run once the first append has failed by itself: then the place of the second one fits.
  const statements = prepareLedgerWrites(elsewhere);
  const begun = {
    runId,
    kind: "coordination",
    events,
    hasEnded: false,
    summary: JSON.stringify(summary),
  } as const;
  let failures = 0;
  const prepared = prepareLedgerWrites(database);
  const queue = createWriteQueue({
    database,
    path,
    clock: createManualClock(),
    writes: () => {
      if (failures > 1 && !database.inTransaction && !statements.head.get(runId, runId))
        elsewhere.transaction(() => growRun(begun, statements, undefined))();
      return prepared;
    },
  });
  const store = createSqliteRunStore<RunEvent, Summary, AppendRequest>(
    { database, guarded: (run) => Promise.resolve(run()), queued: (write) => write(queue) },
    {
      kind: "coordination",
      decode: decodeEvent,
      hasEnded: () => false,
      findConflict: ({ events: [first] }) => {
        if (first?.sequence !== 0) return undefined;
        failures += 1;
        throw new CoordinationError("LEDGER_CORRUPT", "a row cannot be read");
      },
      writeBeside: () => undefined,
    },
  );
  const basis = { isVoid: false };
  const appends = [request, author.append(spawnOf("x"))].map((append) => store.append({ ...append, basis }));
  const broken = { status: "rejected", reason: { code: "LEDGER_CORRUPT" } };
  expect(await Promise.allSettled(appends)).toMatchObject([broken, broken]);
  elsewhere.close();
  database.close();
});
