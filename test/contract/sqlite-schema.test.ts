import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { loadMigrations } from "../../src/infra/sqlite/database/migrate.ts";
import { openRun, spawnOf } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { createAcquired, createReleased } from "./ledger-store-claim-play.ts";
import { definitionOf, createMemoryEntry, createWorkflowAuthor } from "./workflow-store-tested.ts";

/**
 * A ledger of two coordinations, one grown, one ended by hand, with references, one claim that is held and one released;
 * and of a workflow run that wrote to memory, with its definition and what lies beside it.
 */
async function createLedgerIn(folder: TempFolder): Promise<string> {
  const path = folder.file("ledger.sqlite");
  const store = await openTestLedger(path);
  const { author: writer, request } = openRun("a");
  await store.append(request);
  const claims = [createAcquired(1, "file:/a"), createAcquired(2, "file:/b"), createReleased(2)];
  await store.append({ ...writer.append(spawnOf("more")), claims });
  const second = openRun("b").request;
  await store.append({ ...second, summary: { ...second.summary, status: "success" } });
  const { workflows } = store;
  await workflows.append(
    createWorkflowAuthor("w").append([], { entries: [createMemoryEntry("m", { tags: ["t"] })] }),
  );
  await workflows.putDefinition(definitionOf("wf", "acme"));
  await store.close();
  return path;
}

const EVENT_COLUMNS = "run_key, sequence, type, timestamp_ms, payload, hash";
const VALUES = "'step.completed', 0, '{}', zeroblob(32)";
const CLAIM = "claim (token, resource, run_key, step_id, priority, acquired_at_ms, expires_at_ms)";
const MEMORY = "memory_entry (event_key, tenant, scope, memory_id, content, tags, created_at, hash)";
const REMEMBERED = "'acme', 'notes', 'm', 'forged', '[]', '', zeroblob(32)";
const CLAIMED = "'file:/c', 1, 'step-1', 'normal', 1, 2";

describe("the database itself", () => {
  const forbidden: readonly [string, string][] = [
    ["changing an event", "update event set payload = '{}' where event_key = 3"],
    ["changing an event to what it is", "update event set payload = payload where event_key = 3"],
    ["moving an event", "update event set sequence = 99 where event_key = 3"],
    ["removing an event", "delete from event where event_key = 3"],
    ["removing the newest event", "delete from event where event_key = (select max(event_key) from event)"],
    ["removing all events", "delete from event"],
    [
      "replacing an event by its place",
      `insert or replace into event (${EVENT_COLUMNS}) values (1, 2, ${VALUES})`,
    ],
    [
      "replacing an event by its key",
      `insert or replace into event (event_key, ${EVENT_COLUMNS}) values (3, 1, 10, ${VALUES})`,
    ],
    ["replacing an event in an update", "update or replace event set sequence = 1 where event_key = 3"],
    [
      "inserting over an event with upsert",
      `insert into event (${EVENT_COLUMNS}) values (1, 2, ${VALUES}) on conflict do update set payload = '{}'`,
    ],
    ["inserting behind a gap", `insert into event (${EVENT_COLUMNS}) values (1, 11, ${VALUES})`],
    ["inserting an event before the first", `insert into event (${EVENT_COLUMNS}) values (1, -1, ${VALUES})`],
    ["inserting an event of no run", `insert into event (${EVENT_COLUMNS}) values (77, 0, ${VALUES})`],
    [
      "inserting an event without a hash",
      `insert into event (${EVENT_COLUMNS}) values (1, 10, 'step.completed', 0, '{}', x'00')`,
    ],
    ["removing a run", "delete from run where run_key = 2"],
    [
      "replacing a run",
      "insert or replace into run (run_id, length, head_hash, ended, summary) values ('co-a', 1, zeroblob(32), 0, '{}')",
    ],
    [
      "removing a run where foreign keys are off",
      "pragma foreign_keys = off; delete from run where run_key = 2",
    ],
    [
      "replacing a run where foreign keys are off",
      `pragma foreign_keys = off;
       insert or replace into run (run_id, length, head_hash, ended, summary) values ('co-a', 1, zeroblob(32), 0, '{}')`,
    ],
    [
      "replacing a run by its key where foreign keys are off",
      `pragma foreign_keys = off;
       insert or replace into run (run_key, run_id, length, head_hash, ended, summary)
       values (1, 'co-z', 1, zeroblob(32), 0, '{}')`,
    ],
    ["renaming a run", "update run set run_id = 'co-c', length = length + 1 where run_key = 1"],
    ["shortening a run", "update run set length = length - 1 where run_key = 1"],
    ["changing a run's summary without an event", "update run set summary = '{}' where run_key = 1"],
    ["reviving a run that ended", "update run set ended = 0, length = length + 1 where run_key = 2"],
    ["changing a reference", "update reference set run_key = 2"],
    ["removing a reference", "delete from reference"],
    [
      "replacing a reference",
      "insert or replace into reference (reference_key, name, run_key) values (1, 'stolen', 2)",
    ],
    [
      "keeping a text for no run",
      `insert into content_use (run_key, sha256) values (77, '${"0".repeat(64)}')`,
    ],
    ["keeping a text that has no hash", "insert into content_use (run_key, sha256) values (1, 'text')"],
    [
      "marking a text with what says nothing",
      `insert into content (sha256, stored_at_ms, text, kept) values ('${"0".repeat(64)}', 0, '', 2)`,
    ],
    ["giving a token twice", `insert into ${CLAIM} values (2, ${CLAIMED})`],
    [
      "giving a token twice where errors are ignored",
      `insert or ignore into ${CLAIM} values (2, ${CLAIMED})`,
    ],
    ["leaving a token out", `insert into ${CLAIM} values (4, ${CLAIMED})`],
    ["giving no token", `insert into ${CLAIM} values (null, ${CLAIMED})`],
    ["replacing a claim", `insert or replace into ${CLAIM} values (1, ${CLAIMED})`],
    [
      "inserting over a claim with upsert",
      `insert into ${CLAIM} values (1, ${CLAIMED}) on conflict do update set expires_at_ms = 9`,
    ],
    ["a claim of no run", `insert into ${CLAIM} values (3, 'file:/c', 77, 'step-1', 'normal', 1, 2)`],
    ["giving a claim another token", "update claim set token = 3"],
    ["moving a claim to another resource", "update claim set resource = 'file:/'"],
    ["moving a claim to another run", "update claim set run_key = 2"],
    ["moving a claim to another step", "update claim set step_id = 'step-2'"],
    ["giving a claim another priority", "update claim set priority = 'critical'"],
    ["giving a claim another time", "update claim set acquired_at_ms = 0"],
    ["lowering the newest token", "update claim_token set newest = 1"],
    ["raising the newest token by more than one", "update claim_token set newest = 4"],
    ["removing the newest token", "delete from claim_token"],
    ["replacing the newest token", "insert or replace into claim_token (only_row, newest) values (1, 0)"],
    ["a second newest token", "insert into claim_token (only_row, newest) values (2, 0)"],
    [
      "a run of no known kind",
      "insert into run (run_id, kind, length, head_hash, ended, summary) values ('co-z', 'x', 1, zeroblob(32), 0, '{}')",
    ],
    [
      "making a coordination a workflow",
      "update run set kind = 'workflow', length = length + 1 where run_key = 1",
    ],
    ["changing a memory entry", "update memory_entry set content = 'forged'"],
    [
      "changing a memory entry with what replaces it",
      "update memory_entry set content = 'forged', replaced_by = event_key + 1",
    ],
    [
      "saying that a memory entry is replaced by an older one",
      "update memory_entry set replaced_by = event_key",
    ],
    [
      "a memory entry before the newest",
      `insert into ${MEMORY} select min(event_key), ${REMEMBERED} from event`,
    ],
    [
      "a memory entry that is replaced already",
      `begin;
       insert into event (${EVENT_COLUMNS}) values (3, 1, ${VALUES});
       insert into memory_entry (event_key, tenant, scope, memory_id, content, tags, created_at, hash, replaced_by)
       select max(event_key), ${REMEMBERED}, max(event_key) + 1 from event`,
    ],
    ["a block of memory without entries", "update memory_block set entries = 0, newest = 0"],
    [
      "replacing a memory entry",
      `insert or replace into ${MEMORY} select max(event_key), ${REMEMBERED} from event`,
    ],
    ["a memory entry of no event", `insert into ${MEMORY} values (77, ${REMEMBERED})`],
    [
      "a memory entry without a hash",
      `insert into ${MEMORY} values (1, 'acme', 'notes', 'm', '', '[]', '', x'00')`,
    ],
    [
      "a tag of no memory entry",
      "insert into memory_tag (tenant, scope, tag, event_key) values ('acme', 'notes', 'u', 1)",
    ],
    [
      "a registration of no definition",
      `insert into workflow_registration (tenant, workflow_id, sha256) values ('acme', 'wf', '${"0".repeat(64)}')`,
    ],
    [
      "a status without an answer",
      "insert into keyed_request (tenant, endpoint, key, digest, run_id, began_at_ms, lease_until_ms, status) values ('a', 'e', 'k', 'd', 'r', 1, 2, 200)",
    ],
    ["storing text where a number belongs", "insert into reference (name, run_key) values ('n', 'one')"],
  ];

  it.each(forbidden)("refuses %s, to every connection", async (_, sql) => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const database = new Database(path);
    // A careless tool may have set this.
    database.pragma("recursive_triggers = off");
    expect(() => database.exec(sql)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^SQLITE_CONSTRAINT/) as string }),
    );
    database.close();
    const store = await openTestLedger(path, { mode: "read" });
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });

  it("takes the next claim, another expiry and a release", async () => {
    using folder = createTempFolder();
    const database = new Database(await createLedgerIn(folder));
    database.exec(
      `insert into ${CLAIM} values (3, ${CLAIMED}), (4, ${CLAIMED});
       update claim set expires_at_ms = 9;
       delete from claim`,
    );
    expect(database.prepare("select newest from claim_token").pluck().get()).toBe(4);
    database.close();
  });

  it("takes the next event of a run", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const database = new Database(path);
    database.exec(`insert into event (${EVENT_COLUMNS}) values (1, 10, ${VALUES})`);
    database.close();
  });
});

describe("migrations", () => {
  const folderUrl = new URL("../../src/infra/sqlite/migrations/", import.meta.url);

  it("are numbered from 1 without a gap, and are what lies in the folder", () => {
    const files = readdirSync(folderUrl).toSorted();
    const migrations = loadMigrations();
    expect(migrations.map(({ number }) => number)).toEqual(files.map((_, index) => index + 1));
    const names = migrations.map(({ number, name }) => `${String(number).padStart(6, "0")}_${name}.sql`);
    expect(names).toEqual(files);
  });

  it("are recorded in the ledger with their hashes, and its version is the number of the last", async () => {
    using folder = createTempFolder();
    const database = new Database(await createLedgerIn(folder));
    const rows = database.prepare("select number, name, sha256 from migration order by number").all();
    const expected = readdirSync(folderUrl)
      .toSorted()
      .map((file, index) => {
        const sha256 = hash("sha256", readFileSync(new URL(file, folderUrl), "utf8"));
        return { number: index + 1, name: file.slice(7, -4), sha256 };
      });
    expect(rows).toEqual(expected);
    expect(database.pragma("user_version", { simple: true })).toBe(expected.length);
    database.close();
  });

  it.each([
    ["the first was edited after it ran", 1, "update migration set sha256 = '0' where number = 1"],
    ["the first is missing from the record", 1, "delete from migration where number = 1"],
    ["the second was edited after it ran", 2, "update migration set sha256 = '0' where number = 2"],
    ["the second is missing from the record", 2, "delete from migration where number = 2"],
    ["the third was edited after it ran", 3, "update migration set sha256 = '0' where number = 3"],
    ["the fourth was edited after it ran", 4, "update migration set sha256 = '0' where number = 4"],
  ])("stop a release when %s", async (_, number, sql) => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const database = new Database(path);
    database.exec(sql);
    database.close();
    await expect(openTestLedger(path)).rejects.toMatchObject({
      code: "LEDGER_CORRUPT",
      message: expect.stringContaining(`migration ${number}`) as string,
    });
    const reader = await openTestLedger(path, { mode: "read" });
    expect(await reader.inspect()).toMatchObject([{ kind: "schema_changed" }]);
    await reader.close();
  });
});

describe("a changed schema", () => {
  it.each([
    ["a dropped trigger", "drop trigger event_no_update", "event_no_update was changed or dropped"],
    [
      "a weakened trigger",
      "drop trigger event_no_delete; create trigger event_no_delete before delete on event begin select 1; end",
      "event_no_delete was changed",
    ],
    ["an added trigger", "create trigger extra after insert on event begin select 1; end", "extra was added"],
    ["an added table", "create table extra (a)", "extra was added"],
    [
      "a dropped trigger of the claims",
      "drop trigger claim_in_order",
      "claim_in_order was changed or dropped",
    ],
    ["a dropped count of memory", "drop trigger memory_counted", "memory_counted was changed or dropped"],
    [
      "a dropped trigger of memory",
      "drop trigger memory_no_update",
      "memory_no_update was changed or dropped",
    ],
    ["a dropped index", "drop index reference_by_name", "reference_by_name was changed or dropped"],
  ])("is reported: %s", async (_, sql, message) => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const database = new Database(path);
    database.exec(sql);
    database.close();
    const store = await openTestLedger(path, { mode: "read" });
    const problems = await store.inspect();
    await store.close();
    expect(problems).toEqual([
      { kind: "schema_changed", message: expect.stringContaining(message) as string },
    ]);
  });
});
