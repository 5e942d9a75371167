/** Owns: a ledger with some of everything in it, made by the real coordinator, and the ways to damage copies of it. */
import { readFileSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type {
  CoordinationId,
  EpochMs,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import type { LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { SpawnClaim } from "../../src/agents/coordination/runtime/spawns/spawn-claim.ts";
import { verifyWorkflowRuns } from "../../src/agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import { verifyLedger, type Verification } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { hashChainedRow, computeGenesisHash, type EventRow } from "../../src/infra/ledger/event-row.ts";
import {
  branchOf,
  COMPLETED,
  definitionOf,
  createMemoryEntry,
  createNodeStarted,
  NOW,
  SCOPE,
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
} from "../contract/workflow-store-tested.ts";
import {
  createAuthor,
  nameChildSession,
  OWNER,
  runIdOf,
  spawnRequest,
  testCoordinator,
} from "./ledger-fixtures.ts";
import { createManualClock, openTestLedger, TEST_EPOCH_MS } from "./temp-ledger.ts";

const MORE_SPAWNS = 30;

/** Runs `co-1` to `co-4`; `co-1` and `co-4` are of one trace, one after the other. */
export async function buildLedger(path: string): Promise<void> {
  const clock = createManualClock();
  const store = await openTestLedger(path, { clock });
  let number = 0;
  const createCoordinationId = (): CoordinationId => runIdOf(++number);
  const begin = (): Coordinator => testCoordinator({ store, clock, newCoordinationId: createCoordinationId });
  const first = begin();
  const spawn = (
    coordinator: Coordinator,
    trace: string,
    call: string,
    source = OWNER,
  ): Promise<SessionKey> => spawnChild(coordinator, trace, { call, source });
  await first.endChild(await spawn(first, "one", "a"), { outcome: "completed" });
  const [failing, cancelled] = [await spawn(first, "one", "b"), await spawn(first, "one", "c")];
  await first.endChild(failing, { outcome: "failed", message: "it broke" });
  await first.endChild(cancelled, { outcome: "cancelled" });
  await spawn(first, "two", "nested", await spawn(first, "two", "d"));
  await first.refuseSpawn(await claimOf(first, "two", { call: "refused", source: OWNER }), "not allowed");
  await first.endChild(await spawn(first, "three", "e"), { outcome: "timed_out" });
  for (let index = 0; index < MORE_SPAWNS; index += 1)
    await first.endChild(await spawn(first, "three", `more-${index}`), { outcome: "completed" });
  await claimFiles(store, runIdOf(2));
  clock.set(TEST_EPOCH_MS + 5_000);
  clock.fire();
  await first.stop();
  const second = begin();
  await spawn(second, "one", "again");
  await second.stop();
  await runWorkflows(store.workflows);
  await store.close();
}

const WORKFLOW_RUNS = 56;

/** Runs of workflows, each with what it kept in memory. */
async function runWorkflows(store: WorkflowStore): Promise<void> {
  await store.putDefinition(definitionOf("wf", "acme"));
  for (let index = 0; index < WORKFLOW_RUNS; index += 1) {
    const author = createWorkflowAuthor(String(index));
    await store.append(
      author.append([createRunStarted(`wf-${index}`), createNodeStarted("first")], {
        entries: [createMemoryEntry(`kept-${index}`, { content: `what run ${index} found out`.repeat(10) })],
      }),
    );
    await store.append(author.append([COMPLETED], { status: "completed" }));
  }
  const fork = createWorkflowAuthor("fork", branchOf(nameWorkflowRun("0"), "fork", 2));
  const { summary, ...request } = fork.append([
    createRunStarted("wf-0"),
    createNodeStarted("first"),
    createNodeStarted("own"),
  ]);
  await store.append({ ...request, summary: { ...summary, workflowId: "wf-0" } });
}

/** Two claims that are held, one of them renewed, and one that was released between them. */
async function claimFiles(store: LedgerStore, runId: CoordinationId): Promise<void> {
  const from = fold(runId, await store.read(runId, { from: 0, limit: 1_000 }));
  const writer = createAuthor(2, { from });
  const stepId = "step-1" as StepId;
  const claim = (token: number, resource: string, heldToken?: number): Command => {
    const expiresAtMs = (TEST_EPOCH_MS + 60_000 + (heldToken ?? 0)) as EpochMs;
    return {
      type: "requestResources",
      stepId,
      requests: [{ resource, token, expiresAtMs, ...(heldToken !== undefined && { held: heldToken }) }],
    };
  };
  await store.append(writer.append(claim(1, "file:/project/a.ts"), claim(2, "file:/project/b.ts")));
  await store.append(
    writer.append(
      { type: "releaseClaims", because: "turn_ended", tokens: [2] },
      claim(3, "queue:deploys"),
      claim(1, "file:/project/a.ts", 1),
    ),
  );
}

async function claimOf(
  coordinator: Coordinator,
  trace: string,
  { call, source }: { readonly call: string; readonly source: SessionKey },
): Promise<SpawnClaim> {
  const admission = await coordinator.admitSpawn(spawnRequest({ call, trace, source }));
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId } = admission.envelope;
  return { coordinationId, stepId, sourceSession: source, toolCallId: call };
}

async function spawnChild(
  coordinator: Coordinator,
  trace: string,
  { call, source }: { readonly call: string; readonly source: SessionKey },
): Promise<SessionKey> {
  const claim = await claimOf(coordinator, trace, { call, source });
  const childSessionKey = nameChildSession(`${trace}-${call}`);
  await coordinator.confirmSpawn(claim, { childSessionKey, childRunId: `host-${call}` });
  return childSessionKey;
}

/** Damages a copy of the ledger as someone who knows SQLite: the triggers are dropped and put back word for word. */
export function forge(path: string, sql: string | ((database: Database.Database) => void)): void {
  const database = new Database(path);
  const triggers = database
    .prepare<[], { name: string; sql: string }>("select name, sql from sqlite_schema where type = 'trigger'")
    .all();
  database.pragma("foreign_keys = off");
  for (const { name } of triggers) database.exec(`drop trigger ${name}`);
  if (typeof sql === "string") database.exec(sql);
  else sql(database);
  for (const trigger of triggers) database.exec(trigger.sql);
  database.pragma("wal_checkpoint(truncate)");
  database.close();
}

type StoredRow = EventRow & { readonly event_key: number; readonly hash: Buffer };

/** Forges as one does who knows the hash: gives every event of a run the one it needs, and the run its head. */
export function rehashRun(database: Database.Database, runId: CoordinationId): void {
  const rows = database
    .prepare<[string], StoredRow>(
      "select event.* from event join run using (run_key) where run_id = ? order by sequence",
    )
    .all(runId);
  const origin = database
    .prepare<[string], string | null>("select origin from run where run_id = ?")
    .pluck()
    .get(runId);
  let previous = computeGenesisHash(origin ?? null);
  for (const row of rows) {
    previous = hashChainedRow(previous, runId, row);
    database.prepare("update event set hash = ? where event_key = ?").run(previous, row.event_key);
  }
  database
    .prepare("update run set head_hash = ?, length = ? where run_id = ?")
    .run(previous, rows.length, runId);
}

export async function verify(path: string): Promise<Verification> {
  const store = await openTestLedger(path, { mode: "read" });
  try {
    const verification = await verifyLedger(store);
    const runs = await verifyWorkflowRuns(store.workflows);
    const problems = [...verification.problems, ...runs.problems];
    return {
      ...verification,
      events: verification.events + runs.events,
      problems,
      ok: problems.length === 0,
    };
  } finally {
    await store.close();
  }
}

/** Everything that `read`, `list`, `find`, `references`, the claims and the texts say; or the code of the error that stops it. */
export async function answersOf(path: string, knownLedger: LedgerInventory): Promise<string> {
  const store = await openTestLedger(path, { mode: "read" });
  try {
    const answers: unknown[] = [];
    for (const query of [{}, { status: "running" }, { status: "ended" }, { idPrefix: "co-" }] as const)
      answers.push(await store.list({ limit: 100, ...query }));
    for (const runId of knownLedger.runIds)
      answers.push(await store.read(runId, { from: 0, limit: 1_000 }), await store.references(runId));
    for (const name of knownLedger.names)
      answers.push((await store.find(name)) ?? null, await store.holders(name, 100));
    answers.push(await store.claims({ after: 0, limit: 100 }));
    for (const runId of knownLedger.runIds) answers.push(await store.claims({ after: 0, limit: 100, runId }));
    for (const resource of ["file:/project", "queue:deploys"])
      answers.push(await store.overlapping({ resource, atMs: TEST_EPOCH_MS as EpochMs, limit: 100 }));
    answers.push(...(await listWorkflowAnswers(store.workflows, knownLedger)));
    for (const sha256 of knownLedger.texts) answers.push((await store.get(sha256)) ?? null);
    return JSON.stringify(answers);
  } finally {
    await store.close();
  }
}

async function listWorkflowAnswers(store: WorkflowStore, { runIds }: LedgerInventory): Promise<unknown[]> {
  const logs = await Promise.all(runIds.map((runId) => store.read(runId, { from: 0, limit: 100 })));
  const runs = await store.list({ order: "oldest", limit: 100 });
  return [
    ...logs,
    // Who drove a run last is no answer of the ledger.
    runs.map(({ summary, ...run }) => ({ ...run, summary: { ...summary, driver: "" } })),
    await store.memory.list(SCOPE, { now: NOW, limit: 100 }),
    (await store.registered("acme", "wf")) ?? null,
  ];
}

/** The runs, the names and the texts of a whole ledger. */
export interface LedgerInventory {
  readonly runIds: readonly CoordinationId[];
  readonly names: readonly string[];
  readonly texts: readonly string[];
}

export function readKnown(path: string): LedgerInventory {
  const database = new Database(path, { readonly: true });
  const selectAll = (sql: string): string[] => database.prepare<[], string>(sql).pluck().all();
  const knownRuns = {
    runIds: selectAll("select run_id from run order by run_key") as CoordinationId[],
    names: [...selectAll("select distinct name from reference order by name"), "nobody"],
    texts: [...selectAll("select sha256 from content order by sha256"), "0".repeat(64)],
  };
  database.close();
  return knownRuns;
}

/** Where an event's values lie in the file: its columns follow each other in a record. */
export interface EventBytes {
  readonly runId: CoordinationId;
  readonly sequence: number;
  readonly from: number;
  readonly length: number;
}

export function placesOf(path: string): EventBytes[] {
  const file = readFileSync(path);
  const database = new Database(path, { readonly: true });
  const rows = database
    .prepare<[], StoredRow & { run_id: CoordinationId }>(
      "select event.*, run_id from event join run using (run_key) order by event_key",
    )
    .all();
  database.close();
  return rows.map(({ run_id: runId, ...row }) => {
    const bytes = recordOf(row);
    let from = file.indexOf(bytes);
    while (from >= 0 && !isLive(file, from)) from = file.indexOf(bytes, from + 1);
    if (from < 0) throw new Error(`where is ${runId}:${row.sequence}?`);
    return { runId, sequence: row.sequence, from, length: bytes.length };
  });
}

const PAGE_BYTES = 4_096;
const TABLE_LEAF = 0x0d;
/** Lengths, row id, column types, run key and sequence lie before the values in a record. */
const RECORD_START_BYTES = 20;

/** Whether the page counts what lies there as a row: pages also hold stale copies of rows that were moved. */
function isLive(file: Buffer, at: number): boolean {
  const page = at - (at % PAGE_BYTES);
  if (file.readUInt8(page) !== TABLE_LEAF) return false;
  const cells = file.readUInt16BE(page + 3);
  return Array.from({ length: cells }, (_, index) => page + file.readUInt16BE(page + 8 + index * 2)).some(
    (cell) => cell < at && cell >= at - RECORD_START_BYTES,
  );
}

function recordOf(row: StoredRow): Buffer {
  const timestamp = Buffer.alloc(6);
  timestamp.writeUIntBE(row.timestamp_ms, 0, 6);
  const texts = `${row.node_id ?? ""}${row.causation_id ?? ""}${row.payload}`;
  return Buffer.concat([Buffer.from(row.type), timestamp, Buffer.from(texts), row.hash]);
}

export function flipBitAt(path: string, whole: Buffer, { at, bit }: { at: number; bit: number }): void {
  const copy = Buffer.from(whole);
  copy.writeUInt8(copy.readUInt8(at) ^ (1 << bit), at);
  writeFileSync(path, copy);
}
