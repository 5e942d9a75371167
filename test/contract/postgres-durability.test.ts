/** Owns: that all that is written is on disk before a call resolves, whatever the server commits by default. */
import { describe, expect, it } from "vitest";
import type { WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { copyLedgerBetween } from "../../src/plugins/copy-ledger-between.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, withSetting, type TestSchema } from "../support/postgres-server.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { addCoordination, LATER_MS, prune } from "./prunable-ledger.ts";
import {
  beginRun,
  createMemoryEntry,
  createRunStarted,
  createWorkflowAuthor,
  definitionOf,
  nameWorkflowRun,
  NOW,
  SOON,
} from "./workflow-store-tested.ts";

/** Creates an empty ledger in which every change of a table records how its transaction will be committed. */
async function createRecordingLedger(): Promise<TestSchema> {
  const schema = await createTestSchema();
  const store = await openTestPostgres(schema.url);
  await store.close();
  await schema.query(
    `create table seen (setting text);
     create function record_setting() returns trigger language plpgsql as
     $$ begin insert into seen values (current_setting('synchronous_commit')); return null; end $$;
     do $$
     declare name text;
     begin
       for name in select tablename from pg_tables where schemaname = current_schema() and tablename <> 'seen' loop
         execute format(
           'create trigger is_seen after insert or update or delete on %I execute function record_setting()', name
         );
       end loop;
     end $$`,
  );
  return schema;
}

async function listSettings(schema: TestSchema): Promise<string[]> {
  const rows = await schema.query<{ setting: string }>("select distinct setting from seen order by setting");
  return rows.map(({ setting }) => setting);
}

/** Returns how what is written to a server with such a setting was committed. */
async function listCommits(
  setting: string,
  write: (store: OpenedLedger) => Promise<unknown>,
): Promise<string[]> {
  await using schema = await createRecordingLedger();
  const store = await openTestPostgres(withSetting(schema.url, `synchronous_commit=${setting}`));
  await write(store);
  await store.close();
  return await listSettings(schema);
}

const WRITES: readonly [string, (store: OpenedLedger) => Promise<unknown>][] = [
  ["runs and texts, and what is pruned of them", changeRuns],
  ["definitions", ({ workflows }) => workflows.putDefinition(definitionOf("wf", "acme"))],
  ["memory that expires", ({ workflows }) => expireMemory(workflows)],
  ["requests with a key", ({ workflows }) => changeRequests(workflows)],
  ["owners of runs", changeOwners],
  ["exports", changeExports],
];

async function changeRuns(store: OpenedLedger): Promise<void> {
  await addCoordination(store, "a");
  await store.deleteBefore(LATER_MS);
  await prune(store);
}

async function expireMemory(workflows: WorkflowStore): Promise<void> {
  const entry = createMemoryEntry("m", { expiresAt: new Date(NOW).toISOString() });
  await workflows.append(createWorkflowAuthor("a").append([createRunStarted()], { entries: [entry] }));
  await workflows.memory.deleteExpired(SOON, 10);
}

async function changeRequests({ requests }: WorkflowStore): Promise<void> {
  const key = { tenant: "acme", endpoint: "POST /v1/runs", key: "k" };
  const request = { ...key, digest: "d", subject: nameWorkflowRun("a"), now: NOW, leaseUntilMs: SOON };
  await requests.begin(request);
  await requests.lapse({ ...key, leaseUntilMs: SOON });
  await requests.begin({ ...request, now: SOON, leaseUntilMs: LATER_MS });
  await requests.release(key);
  await requests.begin(request);
  await requests.finish(key, { status: 201, body: "{}" });
  await requests.deleteBefore(LATER_MS, 10);
}

async function changeOwners({ workflows }: OpenedLedger): Promise<void> {
  const { owners } = workflows;
  await owners.beat({ id: "one" });
  await workflows.append(beginRun("a").request);
  const [run] = await owners.take({ owner: "one", from: [], limit: 10 });
  await owners.give(nameWorkflowRun("a"), { id: "one", token: run?.token ?? 0 }, "two");
  await owners.collectArrivals("two", 10);
  await owners.remove("one");
}

async function changeExports({ exports }: OpenedLedger): Promise<void> {
  await exports.take({ name: "otlp", holder: "one", from: 0 });
  await exports.advance({ name: "otlp", holder: "one", position: 1 });
  await exports.release({ name: "otlp", holder: "one" });
}

describe.each(WRITES)("%s", (_, write) => {
  it("are on disk when the call resolves, though the server commits later by default", async () => {
    expect(await listCommits("off", write)).toEqual(["on"]);
  });

  it("are committed as the server is set where that is stronger", async () => {
    expect(await listCommits("remote_apply", write)).toEqual(["remote_apply"]);
  });
});

it("a copy is complete with the commit that the server is set to, where that is stronger", async () => {
  using folder = createTempFolder();
  const from = folder.file("ledger.sqlite");
  const source = await openTestLedger(from);
  await addCoordination(source, "a");
  await source.close();
  await using schema = await createRecordingLedger();
  await copyLedgerBetween(
    { from, to: withSetting(schema.url, "synchronous_commit=remote_apply"), gateway: "home" },
    () => undefined,
  );
  expect(await listSettings(schema)).toEqual(["remote_apply"]);
});
