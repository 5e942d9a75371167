/** Owns: that a ledger which cannot be used for a moment while it is verified is neither damaged nor proven. */
import { copyFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { verifyWorkflowRuns } from "../../src/agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { runIdOf } from "../support/ledger-fixtures.ts";
import { buildLedger, forge } from "../support/ledger-fixtures-damage.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { nameWorkflowRun } from "./workflow-store-tested.ts";

const folder = createTempFolder();
const intact = folder.file("intact.sqlite");
const copy = folder.file("copy.sqlite");

beforeAll(() => buildLedger(intact));

afterAll(() => folder[Symbol.dispose]());

const BUSY = { code: "LEDGER_BUSY" };

async function useCopy<T>(sql: string, use: (store: OpenedLedger) => Promise<T>): Promise<T> {
  copyFileSync(intact, copy);
  forge(copy, sql);
  const store = await openTestLedger(copy, { mode: "read" });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** A call that fails once, when it is made for the run the given number of times. */
function failAt<A extends readonly unknown[], T>(
  call: (...args: A) => Promise<T>,
  { subject, time = 1 }: { readonly subject?: unknown; readonly time?: number },
): (...args: A) => Promise<T> {
  let times = 0;
  return (...args) => {
    if (args[0] === subject) times += 1;
    const isOutage = args[0] === subject && times === time;
    return isOutage ? Promise.reject(new CoordinationError("LEDGER_BUSY", "locked")) : call(...args);
  };
}

it("the count of pruned runs that cannot be read for a moment leaves no check out", async () => {
  await useCopy("select 1", async (store) => {
    const pruned = { ...store.pruned, counts: failAt(() => store.pruned.counts(), {}) };
    await expect(verifyLedger({ ...store, pruned })).rejects.toMatchObject(BUSY);
  });
});

it("the source of a workflow's fork that cannot be read for a moment leaves no check out", async () => {
  await useCopy("select 1", async ({ workflows }) => {
    // The reading after those of the source's own proof.
    const read = failAt((...range: Parameters<typeof workflows.read>) => workflows.read(...range), {
      subject: nameWorkflowRun("0"),
      time: 3,
    });
    await expect(verifyWorkflowRuns({ ...workflows, read })).rejects.toMatchObject(BUSY);
  });
});

it("problems of coordinations that were found before the ledger could not be used are kept, as at least so many", async () => {
  await useCopy("update event set timestamp_ms = 1 where event_key = 2", async (store) => {
    const read = failAt((...range: Parameters<typeof store.read>) => store.read(...range), {
      subject: runIdOf(2),
    });
    const verification = await verifyLedger({ ...store, read });
    expect(verification).toMatchObject({ ok: false, isCut: true });
    expect(verification.problems).toContainEqual(expect.objectContaining({ kind: "event_changed" }));
  });
});

it("problems of workflow runs that were found before the ledger could not be used are kept, too", async () => {
  const sql = `update run set summary = json_set(summary, '$.status', 'failed') where run_id = '${nameWorkflowRun("0")}'`;
  await useCopy(sql, async ({ workflows }) => {
    const read = failAt((...range: Parameters<typeof workflows.read>) => workflows.read(...range), {
      subject: nameWorkflowRun("9"),
    });
    const verification = await verifyWorkflowRuns({ ...workflows, read });
    expect(verification).toMatchObject({ isCut: true, problems: [{ kind: "index_differs" }] });
  });
});
