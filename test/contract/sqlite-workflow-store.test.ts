import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { openTestLedger, tempFolder } from "../support/temp-ledger.ts";
import { RACER_KEYS, type RacerReport } from "./workflow-store-racer-report.ts";
import { describeWorkflowStore } from "./workflow-store.suite.ts";
import { readAll, workflowRunId } from "./workflow-store-tested.ts";

describeWorkflowStore("SQLite", () => {
  const folder = tempFolder();
  const path = folder.file("ledger.sqlite");
  return Promise.resolve({
    open: async () => {
      const ledger = await openTestLedger(path);
      return { workflows: ledger.workflows, close: () => ledger.close() };
    },
    [Symbol.asyncDispose]: () => {
      folder[Symbol.dispose]();
      return Promise.resolve();
    },
  });
});

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

  it("gives each keyed request, and each place in a log, to one of them", async () => {
    using folder = tempFolder();
    const path = folder.file("ledger.sqlite");
    const reports = await Promise.all(["left", "middle", "right"].map((name) => race(path, name)));
    expect(reports.flatMap(({ began }) => began).toSorted()).toEqual(RACER_KEYS.toSorted());
    const store = await openTestLedger(path);
    const events = await readAll(store.workflows, workflowRunId("shared"));
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
    const nodes = events.flatMap((event) => (event.type === "node.started" ? [event.payload.nodeId] : []));
    expect(nodes.toSorted()).toEqual(reports.flatMap(({ won }) => won).toSorted());
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });
});
