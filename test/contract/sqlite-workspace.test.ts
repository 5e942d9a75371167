/** Owns: what is particular to workspace files in a ledger file: by index, whole, and not changed behind its back. */
import { copyFileSync } from "node:fs";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import type { StoredProblem } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import {
  prepareWorkspaceReads,
  prepareWorkspaceWrites,
} from "../../src/infra/sqlite/workflows/workspace-statements.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { openTestLedger, createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { beginRun, NOW } from "./workflow-store-tested.ts";

const OWN = { tenant: "acme", scope: "own" };
const updatedAt = formatTimestamp(NOW);

async function put(store: WorkflowStore, path: string, text: string): Promise<void> {
  const content = { contentType: "text/markdown", text };
  await store.workspace.write({ at: OWN, path, content, updatedAt });
}

/** A ledger with versions that clients and a run wrote, one of them removed. */
async function writeLedger(folder: TempFolder): Promise<string> {
  const path = folder.file("ledger.sqlite");
  const ledger = await openTestLedger(path);
  const { author, request } = beginRun("a");
  await ledger.workflows.append(request);
  await put(ledger.workflows, "a", "1");
  const append = author.propose([{ type: "workspace.updated", payload: { path: "a", version: 2 } }]);
  const content = { contentType: "text/plain", text: "by a run" };
  await ledger.workflows.append({
    ...append,
    workspace: [{ at: OWN, path: "a", version: 2, previous: 1, sequence: 2, content, updatedAt }],
  });
  await put(ledger.workflows, "b", "1");
  await ledger.workflows.workspace.write({ at: OWN, path: "b", content: null, updatedAt });
  expect(await ledger.inspect()).toEqual([]);
  await ledger.close();
  return path;
}

const UNLOCK = "drop trigger workspace_no_update; drop trigger workspace_no_replace;";

async function findProblemsAfter(
  original: string,
  copy: string,
  sql: string,
): Promise<readonly StoredProblem[]> {
  copyFileSync(original, copy);
  const database = new Database(copy);
  database.exec(`${UNLOCK} ${sql}`);
  database.close();
  const ledger = await openTestLedger(copy, { mode: "read" });
  const problems = await ledger.inspect();
  await ledger.close();
  // That it was unlocked is told, too.
  return problems.filter(({ kind }) => kind !== "schema_changed");
}

describe("workspace files in a ledger file", () => {
  it("are not found by reading all of them, whatever is asked", async () => {
    using folder = createTempFolder();
    const database = new Database(await writeLedger(folder));
    const statements = { ...prepareWorkspaceReads(database), ...prepareWorkspaceWrites(database) };
    for (const [name, { source }] of Object.entries(statements)) {
      const plan = database
        .prepare<[], { detail: string }>(`explain query plan ${source.replaceAll(/\?|@\w+/gu, "1")}`)
        .all()
        .map(({ detail }) => detail);
      expect([
        name,
        plan.filter((detail) => /\bSCAN (workspace|event|run)|TEMP B-TREE/u.test(detail)),
      ]).toEqual([...[name, []]]);
    }
    database.close();
  });

  it.each([
    ["a content", "update workspace_version set content = 'forged' where version = 1 and path = 'a'"],
    ["a tenant", "update workspace_version set tenant = 'evil' where path = 'a'"],
    ["a time", "update workspace_version set updated_at = '2020-01-01T00:00:00.000Z' where path = 'b'"],
  ])("show that %s was changed", async (_what, sql) => {
    using folder = createTempFolder();
    const problems = await findProblemsAfter(await writeLedger(folder), folder.file("copy.sqlite"), sql);
    expect(problems.map(({ kind }) => kind)).toContain("content_changed");
  });

  it.each([
    [
      "a version that is another one than its event tells",
      "update workspace_version set event_key = 1 where version = 2",
    ],
    [
      "a version that lies elsewhere",
      "update workspace_version set position = 1 where event_key is not null",
    ],
    ["a version that is missing", "delete from workspace_version where version = 2 and path = 'b'"],
    ["a version that does not end where the next begins", "update workspace_version set until_position = 99"],
    ["a file that is another one by now", "update workspace_file set version = 1"],
    ["a file that is not removed", "update workspace_file set is_removed = 0"],
    ["a file that is missing", "delete from workspace_file"],
  ])("show %s", async (_what, sql) => {
    using folder = createTempFolder();
    const problems = await findProblemsAfter(await writeLedger(folder), folder.file("copy.sqlite"), sql);
    expect(problems.map(({ kind }) => kind)).toContain("index_differs");
  });

  it("are not told as of a time since which more was written than may be looked at", async () => {
    using folder = createTempFolder();
    const path = await writeLedger(folder);
    const ledger = await openTestLedger(path);
    const { workspace } = ledger.workflows;
    const asOf = { runId: beginRun("a").author.runId, sequence: 0 };
    expect(await workspace.list(OWN, { asOf, scanMax: 3 })).toEqual([]);
    expect(await workspace.list(OWN, { asOf, scanMax: 2 })).toBeUndefined();
    await ledger.close();
  });

  it("miss no content that was given up", async () => {
    using folder = createTempFolder();
    const sql = "update workspace_version set content = null where version = 1";
    expect(await findProblemsAfter(await writeLedger(folder), folder.file("copy.sqlite"), sql)).toEqual([]);
  });

  it("are read as they are now, also where a version lies before the one that it replaced", async () => {
    using folder = createTempFolder();
    const path = await writeLedger(folder);
    // As a release left them that took the newest event which was there for the newest one that ever was.
    forge(
      path,
      `update workspace_version set position = 1 where path = 'b' and version = 2;
       update workspace_version set until_position = 1 where path = 'b' and version = 1`,
    );
    const ledger = await openTestLedger(path);
    const { workspace } = ledger.workflows;
    expect(await workspace.get(OWN, "b")).toMatchObject({ kind: "removed", version: 2 });
    await put(ledger.workflows, "b", "again");
    expect(await workspace.get(OWN, "b")).toMatchObject({ version: 3, content: "again" });
    await ledger.close();
  });

  it("cannot be changed, ended twice or replaced", async () => {
    using folder = createTempFolder();
    const database = new Database(await writeLedger(folder));
    for (const sql of [
      "update workspace_version set content = 'forged'",
      "update workspace_version set version = version + 10",
      "update workspace_version set until_position = 5 where version = 1",
      "insert or replace into workspace_version select * from workspace_version",
    ])
      expect(() => database.exec(sql)).toThrow(/cannot be (changed|replaced)|UNIQUE/u);
    database.close();
  });

  it("are none in a ledger of an older schema that is only read", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    await (await openTestLedger(path)).close();
    const database = new Database(path);
    database.exec(
      "drop table workspace_version; drop table workspace_file; delete from migration where number >= 6",
    );
    database.pragma("user_version = 5");
    database.close();
    const ledger = await openTestLedger(path, { mode: "read" });
    expect(await ledger.workflows.workspace.get(OWN, "a")).toBeUndefined();
    expect(await ledger.workflows.workspace.list(OWN)).toBeUndefined();
    await ledger.close();
  });
});
