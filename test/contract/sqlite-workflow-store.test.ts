import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Database } from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import { forge, rehashRun } from "../support/ledger-fixtures-damage.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import { FORK_PORTIONS, RACER_KEYS, type RacerReport } from "./workflow-store-racer-report.ts";
import { describeWorkflowStore } from "./workflow-store.suite.ts";
import { branchOf, readAll, nameWorkflowRun, type Spoiling } from "./workflow-store-tested.ts";

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

function damageRun(database: Database, runId: CoordinationId, how: Spoiling): void {
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

describe("SQLite: several processes on one ledger", () => {
  const racer = fileURLToPath(new URL("workflow-store-racer.ts", import.meta.url));

  const race = async (path: string, name: string): Promise<RacerReport> => {
    const child = spawn(process.execPath, [racer, path, name], { stdio: ["ignore", "pipe", "inherit"] });
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    const [status] = (await once(child, "close")) as [number | null];
    expect(status).toBe(0);
    return JSON.parse(Buffer.concat(chunks).toString()) as RacerReport;
  };

  /** As if one process had written it: S1, with the origin of the first portion. */
  const expectForkWhole = async (workflows: WorkflowStore, reports: readonly RacerReport[]) => {
    const fork = nameWorkflowRun("fork");
    const takenCount = 2 * FORK_PORTIONS - 7;
    const portions = reports.flatMap((report) => report.portions).toSorted((a, b) => a - b);
    expect(portions).toEqual(Array.from({ length: FORK_PORTIONS }, (_, index) => index));
    const events = await readAll(workflows, fork);
    expect(events.map(({ eventId }) => eventId)).toEqual(
      Array.from({ length: 2 * FORK_PORTIONS }, (_, at) => `${at < takenCount ? "run-source" : fork}:${at}`),
    );
    expect((await workflows.entry(fork))?.origin).toEqual(
      branchOf(nameWorkflowRun("source"), "fork", takenCount),
    );
    expect(await workflows.damage(fork, { before: events.length })).toBeUndefined();
  };

  it("gives each keyed request, and each place in a log, to one of them", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const reports = await Promise.all(["left", "middle", "right"].map((name) => race(path, name)));
    expect(reports.flatMap(({ began }) => began).toSorted()).toEqual(RACER_KEYS.toSorted());
    const store = await openTestLedger(path);
    const events = await readAll(store.workflows, nameWorkflowRun("shared"));
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
    const nodes = events.flatMap((event) => (event.type === "node.started" ? [event.payload.nodeId] : []));
    expect(nodes.toSorted()).toEqual(reports.flatMap(({ won }) => won).toSorted());
    await expectForkWhole(store.workflows, reports);
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });
});
