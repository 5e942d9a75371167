/** Owns: ledgers of older releases: a history that one recorded, and a file with its schema. */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import BetterSqlite3 from "better-sqlite3";
import { decodeEvent, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { evolve } from "../../src/agents/coordination/ledger/evolve.ts";
import { createUnopenedCoordination, type Coordination } from "../../src/agents/coordination/ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../../src/agents/coordination/ledger/summary.ts";
import { loadMigrations } from "../../src/infra/sqlite/database/migrate.ts";
import { APPLICATION_ID } from "../../src/infra/sqlite/database/open-database.ts";
import { openTestLedger } from "../support/temp-ledger.ts";

/** A history of `test/replay` in a ledger. */
export async function recordHistory(path: string, name: string): Promise<void> {
  const lines = readFileSync(new URL(`../replay/${name}.jsonl`, import.meta.url), "utf8")
    .trimEnd()
    .split("\n");
  const events: readonly RunEvent[] = lines.map((line) => decodeEvent(JSON.parse(line)));
  const [first] = events;
  if (!first) throw new Error(`${name} is empty`);
  let state: Coordination = createUnopenedCoordination(first.runId);
  for (const event of events) state = evolve(state, event);
  if (state.kind === "unopened") throw new Error(`${name} does not open its coordination`);
  const store = await openTestLedger(path);
  const references = events.flatMap(listEventReferences);
  await store.append({
    runId: first.runId,
    events,
    summary: summarizeCoordination(state),
    references,
    contents: [],
  });
  await store.close();
}

/** An empty ledger of schema 2, which knows no claims. */
export function recordOldSchema(path: string): void {
  const database = new BetterSqlite3(path);
  database.pragma(`application_id = ${APPLICATION_ID}`);
  database.exec(
    "create table migration (number integer primary key, name text not null, sha256 text not null) strict",
  );
  for (const { number, name, sql } of loadMigrations().slice(0, 2)) {
    database.exec(sql);
    database.prepare("insert into migration values (?, ?, ?)").run(number, name, hash("sha256", sql));
    database.pragma(`user_version = ${number}`);
  }
  database.close();
}
