import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import { runIdOf } from "../support/ledger-fixtures.ts";
import { describeLedgerStore } from "./ledger-store.suite.ts";
import type { WriterReport } from "./racing-writer.ts";

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

describe("SQLite: two processes on one ledger", () => {
  const writer = fileURLToPath(new URL("racing-writer.ts", import.meta.url));

  const race = async (path: string, name: string): Promise<WriterReport> => {
    const child = spawn(process.execPath, [writer, path, name], { stdio: ["ignore", "pipe", "inherit"] });
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    const [status] = (await once(child, "close")) as [number | null];
    expect(status).toBe(0);
    return JSON.parse(Buffer.concat(chunks).toString()) as WriterReport;
  };

  it("opens a fresh file from all at once and gives each place in a log, and each token, to one of them", async () => {
    using folder = createTempFolder();
    const path = folder.file("new-folder/ledger.sqlite");
    const reports = await Promise.all(["left", "middle", "right"].map((name) => race(path, name)));
    const store = await openTestLedger(path);
    const events = await store.read(runIdOf("shared"), { from: 0, limit: 10_000 });
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
    const calls = events.flatMap((event) =>
      event.type === "step.admitted" ? [event.payload.call.toolCallId] : [],
    );
    expect(calls.toSorted()).toEqual(reports.flatMap(({ won }) => won).toSorted());
    for (const { name, won } of reports) expect(won.every((call) => call.startsWith(name))).toBe(true);
    const claims = await store.claims({ after: 0, limit: 1_000 });
    expect(claims.map(({ token }) => token)).toEqual(claims.map((_, index) => index + 1));
    for (const { name, tokens } of reports) {
      const ownClaims = claims.filter(({ runId }) => runId === runIdOf(name));
      expect(ownClaims.map(({ token }) => token)).toEqual(tokens);
      expect(tokens.length).toBeGreaterThanOrEqual(40);
    }
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });
});
