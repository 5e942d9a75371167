import { describe, expect, it } from "vitest";
import { openTestLedger, createManualClock, createTempFolder } from "../support/temp-ledger.ts";
import { openRun } from "../support/ledger-fixtures.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { appendEnd } from "./ledger-store-tested.ts";
import { describeRunStore } from "./run-store.suite.ts";
import { beginRun, COMPLETED } from "./workflow-store-tested.ts";

function writeCoordination(name: string) {
  const { author, request: begin } = openRun(name);
  return { begin, end: appendEnd(author) };
}

function writeWorkflowRun(name: string) {
  const { author, request: begin } = beginRun(name);
  return { begin, end: author.append([COMPLETED], { status: "completed" }) };
}

async function openSqlite() {
  const folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  const dispose = async (): Promise<void> => {
    await store.close();
    folder[Symbol.dispose]();
  };
  return { store, dispose };
}

describe("SQLite: the stores of both kinds on one ledger", () => {
  it("do not know the runs of each other", async () => {
    const { store, dispose } = await openSqlite();
    const [{ request: coordination }, { request: workflowRun }] = [openRun("co"), beginRun("wf")];
    await store.append(coordination);
    await store.workflows.append(workflowRun);
    for (const [one, other] of [
      [store, workflowRun],
      [store.workflows, coordination],
    ] as const) {
      expect(await one.entry(other.runId)).toBeUndefined();
      expect((await one.list({ limit: 9 })).map(({ runId }) => runId)).not.toContain(other.runId);
      expect(await one.read(other.runId, { from: 0, limit: 9 })).toEqual([]);
      const damage = { sequence: 0, problem: "event_missing" };
      expect(await one.damage(other.runId, { before: 1 })).toEqual(damage);
    }
    await dispose();
  });
});

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
