import { describe } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { hashChainedRow, computeGenesisHash, type EventRow } from "../../src/infra/ledger/event-row.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { describeBothKinds, describeRunStore } from "./run-store.suite.ts";
import { writeCoordination, writeWorkflowRun } from "./run-store-written.ts";
import { describeWorkflowStore } from "./workflow-store.suite.ts";
import { openTested, type SpoilableLedger, type LedgerDamage } from "./workflow-store-tested.ts";
import { describeWorkspace } from "./workspace-store.suite.ts";

async function createLedger(): Promise<SpoilableLedger> {
  const schema = await createTestSchema();
  return {
    open: async () => {
      const ledger = await openTestPostgres(schema.url);
      return { workflows: ledger.workflows, close: () => ledger.close() };
    },
    spoil: (runId, how) => damageRun(schema, runId, how),
    [Symbol.asyncDispose]: () => schema[Symbol.asyncDispose](),
  };
}

/** As somebody does who takes the triggers away first. */
async function damageRun(schema: TestSchema, runId: CoordinationId, how: LedgerDamage): Promise<void> {
  await schema.query("alter table event disable trigger all; alter table run disable trigger all");
  const isOfRun = "run_key = (select run_key from run where run_id = $1)";
  if (how.kind === "origin") {
    const origin = how.origin === null ? null : JSON.stringify(how.origin);
    await schema.query("update run set origin = $2 where run_id = $1", [runId, origin]);
    return;
  }
  const sql = {
    change: "update event set timestamp_ms = timestamp_ms + 1",
    remove: "delete from event",
    garble: "update event set payload = '{'",
  }[how.kind];
  await schema.query(`${sql} where ${isOfRun} and sequence = $2`, [runId, how.sequence]);
  if (how.kind === "garble") await rehashRun(schema, runId);
}

/** As somebody does who knows the hashes. */
async function rehashRun(schema: TestSchema, runId: CoordinationId): Promise<void> {
  const rows = await schema.query<Omit<EventRow, "sequence" | "timestamp_ms"> & Record<string, string>>(
    "select event.*, origin from event join run using (run_key) where run_id = $1 order by sequence",
    [runId],
  );
  let previous = computeGenesisHash(rows[0]?.["origin"] ?? null);
  for (const row of rows) {
    const sequence = Number(row["sequence"]);
    previous = hashChainedRow(previous, runId, {
      ...row,
      sequence,
      timestamp_ms: Number(row["timestamp_ms"]),
    });
    await schema.query("update event set hash = $1 where event_key = $2", [previous, row["event_key"]]);
  }
  await schema.query("update run set head_hash = $1 where run_id = $2", [previous, runId]);
}

describeWorkflowStore("PostgreSQL", createLedger);

describe("workspace files in PostgreSQL", () => {
  describeWorkspace(openTested(createLedger));
});

async function openLedger() {
  const schema = await createTestSchema();
  const store = await openTestPostgres(schema.url);
  const dispose = async (): Promise<void> => {
    await store.close();
    await schema[Symbol.asyncDispose]();
  };
  return { store, dispose };
}

describeBothKinds("PostgreSQL", openLedger);

describeRunStore("PostgreSQL, coordinations", async () => {
  const { store, dispose } = await openLedger();
  return { store, write: writeCoordination, [Symbol.asyncDispose]: dispose };
});

describeRunStore("PostgreSQL, workflow runs", async () => {
  const { store, dispose } = await openLedger();
  return { store: store.workflows, write: writeWorkflowRun, [Symbol.asyncDispose]: dispose };
});
