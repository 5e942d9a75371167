/** Owns: ledgers as older releases wrote them, made of their migrations and SQL alone. */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import Database from "better-sqlite3";
import type { AppendRequest } from "../../src/agents/coordination/ports/ledger-store.ts";
import { hashChainedRow, GENESIS_HASH, createEventRow } from "../../src/infra/ledger/event-row.ts";
import { loadMigrations as loadServerMigrations } from "../../src/infra/postgres/database/migrate-schema.ts";
import { APPLICATION_ID } from "../../src/infra/sqlite/database/open-database.ts";
import { contentOf, openRun, spawnOf } from "../support/ledger-fixtures.ts";
import type { TestSchema } from "../support/postgres-server.ts";
import { TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { appendEnd } from "./ledger-store-tested.ts";

interface ReleasedMigration {
  readonly name: string;
  /** As it was released. */
  readonly sha256: string;
  /** An object of the migration behind it. */
  readonly next: string;
  readonly nextTable: string;
}

const RELEASED: readonly ReleasedMigration[] = [
  {
    name: "ledger",
    sha256: "b53156f34a40116e2c8a346740cfd10461c75ad3d1ac83b7e5491734df93ed18",
    next: "content_by_age",
    nextTable: "content_use",
  },
  {
    name: "keep_content",
    sha256: "df784daf2f38f1374dd083e55bec67b7c9b44ee3d9535ee2ff22cef8df1fcaad",
    next: "claim_by_run",
    nextTable: "claim",
  },
  {
    name: "claims",
    sha256: "af5ddba3bf5f9e07c36f00cb9ca31cad0138d79f68ca23f5e85f335f41277954",
    next: "memory_by_id",
    nextTable: "memory_entry",
  },
  {
    name: "workflows",
    sha256: "8f5958073d9cc8dce318ef0a675cbc4d115167db6c09d16ef29992510008f9d7",
    next: "memory_by_expiry",
    nextTable: "memory_block",
  },
];
export const SCHEMAS = RELEASED.map((released, index) => ({ ...released, schema: index + 1 }));

export const texts = ["an objective", "", "ünïcode 🜁", "x".repeat(200_000)].map(contentOf);

/** A ledger as an older release wrote it. */
export interface OlderLedger {
  readonly path: string;
  readonly runs: readonly { readonly requests: readonly AppendRequest[] }[];
  /** Still open, as a writer that crashed left it: what it wrote lies in the -wal file. */
  readonly database: Database.Database;
}

export function migrationOf(number: number): string {
  const { name } = RELEASED[number - 1]!;
  const file = `../../src/infra/sqlite/migrations/${String(number).padStart(6, "0")}_${name}.sql`;
  return readFileSync(new URL(file, import.meta.url), "utf8");
}

/** A ledger as an older release wrote it, made of migrations and SQL alone: one coordination grew, one ended. */
export function createOlderLedger(folder: TempFolder, schema: number): OlderLedger {
  const path = folder.file("ledger.sqlite");
  const database = new Database(path);
  database.pragma(`application_id = ${APPLICATION_ID}`);
  database.exec(
    "create table migration (number integer primary key, name text not null, sha256 text not null) strict",
  );
  for (const [index, { name }] of RELEASED.slice(0, schema).entries()) {
    const sql = migrationOf(index + 1);
    database.exec(sql);
    database.prepare("insert into migration values (?, ?, ?)").run(index + 1, name, hash("sha256", sql));
    database.pragma(`user_version = ${index + 1}`);
  }
  database.pragma("journal_mode = wal");
  const [grown, over] = [openRun("grown"), openRun("over")];
  const runs = [
    { requests: [{ ...grown.request, contents: texts }, grown.author.append(spawnOf("more"))] },
    { requests: [over.request, appendEnd(over.author)] },
  ];
  for (const { requests } of runs) writeAsOlder(database, requests);
  return { path, runs, database };
}

function writeAsOlder(database: Database.Database, requests: readonly AppendRequest[]): void {
  const events = requests.flatMap((request) => request.events);
  const { runId, summary } = requests.at(-1)!;
  const rows = events.map(createEventRow);
  const hashes: Buffer[] = [];
  for (const row of rows) hashes.push(hashChainedRow(hashes.at(-1) ?? GENESIS_HASH, runId, row));
  const runKey = database
    .prepare("insert into run (run_id, length, head_hash, ended, summary) values (?, ?, ?, ?, ?)")
    .run(
      runId,
      events.length,
      hashes.at(-1),
      summary.status === "running" ? 0 : 1,
      JSON.stringify(summary),
    ).lastInsertRowid;
  const insert = database.prepare(
    `insert into event (run_key, sequence, type, timestamp_ms, node_id, causation_id, payload, hash)
     values (@runKey, @sequence, @type, @timestamp_ms, @node_id, @causation_id, @payload, @hash)`,
  );
  for (const [index, row] of rows.entries()) insert.run({ ...row, runKey, hash: hashes[index] });
  for (const { references, contents } of requests) {
    for (const { name, stepId } of references)
      database
        .prepare("insert into reference (name, run_key, step_id) values (?, ?, ?)")
        .run(name, runKey, stepId ?? null);
    for (const { ref, text } of contents)
      database
        .prepare("insert into content (sha256, stored_at_ms, text) values (?, ?, ?)")
        .run(ref.sha256, TEST_EPOCH_MS, text);
  }
}

/** The schema version in the header of the main file. */
export function versionOf(path: string): number {
  return readFileSync(path).readUInt32BE(60);
}

/** Makes the ledger of a release that had so many migrations for servers. */
export async function createOlderServerLedger(schema: TestSchema, migrations: number): Promise<void> {
  await schema.query("create table migration (number integer primary key, name text, sha256 text not null)");
  for (const { number, name, sql, sha256 } of loadServerMigrations().slice(0, migrations)) {
    await schema.query(sql);
    await schema.query("insert into migration values ($1, $2, $3)", [number, name, sha256]);
  }
}

/** The columns of all releases, the first ones in the order of writing. */
const SERVER_COLUMNS = {
  run: "run_key, run_id, kind, length, head_hash, ended, summary, origin",
  event: "event_key, run_key, sequence, type, timestamp_ms, node_id, causation_id, payload, hash",
  reference: "reference_key, name, run_key, step_id",
  run_label: "kind, value, started_at_ms, run_key, step_id",
  content: "sha256, stored_at_ms, text, kept",
};

/** Copies coordinations of a ledger of this release into one of an older release on the same server. */
export async function copyIntoOlderServerLedger(from: TestSchema, older: TestSchema): Promise<void> {
  const [source] = await from.query<{ name: string }>("select current_schema()::text as name");
  for (const [table, columns] of Object.entries(SERVER_COLUMNS))
    await older.query(
      `insert into ${table} (${columns}) overriding system value
       select ${columns} from ${source!.name}.${table} order by ${columns}`,
    );
}
