import { describe, expect, it } from "vitest";
import { openTestLedger, manualClock, tempFolder } from "../support/temp-ledger.ts";
import { opened } from "../support/ledger-fixtures.ts";
import { memoryLedger } from "../support/memory-store.ts";
import { memoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { ended } from "./ledger-store-tested.ts";
import { describeRunStore } from "./run-store.suite.ts";
import { begun, COMPLETED } from "./workflow-store-tested.ts";

function writeCoordination(name: string) {
  const { author, request: begin } = opened(name);
  return { begin, end: ended(author) };
}

function writeWorkflowRun(name: string) {
  const { author, request: begin } = begun(name);
  return { begin, end: author.append([COMPLETED], { status: "completed" }) };
}

async function openSqlite() {
  const folder = tempFolder();
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
    const [{ request: coordination }, { request: workflowRun }] = [opened("co"), begun("wf")];
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

const nothing = (): Promise<void> => Promise.resolve();

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
    store: memoryLedger().open(manualClock()),
    write: writeCoordination,
    [Symbol.asyncDispose]: nothing,
  }),
);

describeRunStore("memory, workflow runs", () =>
  Promise.resolve({
    store: memoryWorkflowLedger().open(),
    write: writeWorkflowRun,
    [Symbol.asyncDispose]: nothing,
  }),
);
