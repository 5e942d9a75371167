/** Owns: by which index each query for coordinations and events goes. */
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { CoordinationId, EpochMs, EventId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  createAppendedQuery,
  createRunOrCauseQuery,
  createLabelledEventsQuery,
  createLabelPlacesQuery,
  createTimeQuery,
} from "../../src/infra/ledger/find-events.ts";
import { createRunsQuery } from "../../src/infra/ledger/find-runs.ts";
import { keepPlans } from "../../src/infra/sqlite/database/keep-plans.ts";
import { loadMigrations } from "../../src/infra/sqlite/database/migrate.ts";
import { createSqliteDialect } from "../../src/infra/sqlite/database/sqlite-dialect.ts";
import type { SqlQuery } from "../../src/infra/ledger/query-sql.ts";
import { TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { nameSession } from "./queried-ledger.ts";

const NEWEST = createSqliteDialect(loadMigrations().length);
const timeAfter = (ms: number): EpochMs => (TEST_EPOCH_MS + ms) as EpochMs;

function createSchema(): Database.Database {
  const database = new Database(":memory:");
  keepPlans(database);
  for (const { sql } of loadMigrations()) database.exec(sql);
  return database;
}

function planOf({
  sql,
  values = {},
}: {
  readonly sql: string;
  readonly values?: SqlQuery["values"];
}): string[] {
  const database = createSchema();
  const named = Object.fromEntries([...sql.matchAll(/@(\w+)/gu)].map(([, name]) => [name!, 0]));
  const rows = database
    .prepare<[object], { detail: string }>(`explain query plan ${sql}`)
    .all({ ...named, ...values });
  database.close();
  return rows.map(({ detail }) => detail);
}

const place = { startedAtMs: 1, ordinal: 1, stepId: "", position: 1 };
const session = nameSession(1);
const caused = { coordinationId: "co-1" as CoordinationId, eventId: "co-1:0" as EventId };

/** A query, the index that leads it and the bounds by which it goes into that index. */
const PLANS: readonly (readonly [
  string,
  { readonly sql: string; readonly values?: SqlQuery["values"] },
  RegExp,
])[] = [
  [
    "the coordinations of a label",
    createRunsQuery({ filter: { session }, limit: 9, after: { startedAtMs: 1, ordinal: 1 } }, NEWEST),
    /label USING PRIMARY KEY \(kind=\? AND value=\? AND .*started_at_ms/u,
  ],
  [
    "the coordinations of a time",
    createRunsQuery({ filter: { since: timeAfter(0), until: timeAfter(9) }, limit: 9 }, NEWEST),
    /label USING PRIMARY KEY \(kind=\? AND value=\? AND .*started_at_ms/u,
  ],
  [
    "the coordination of a cause",
    createRunsQuery({ filter: { cause: caused }, limit: 9 }, NEWEST),
    /label USING PRIMARY KEY \(kind=\? AND value=\? AND started_at_ms=\? AND run_key=\?/u,
  ],
  [
    "the coordinations of a session that run",
    createRunsQuery({ filter: { session }, status: "running", limit: 9 }, NEWEST),
    /run USING INDEX run_open/u,
  ],
  [
    "the rest of the events of a moment",
    createTimeQuery({ filter: { since: timeAfter(0) }, limit: 9, after: place }, NEWEST, "same"),
    /event USING INDEX event_by_time \(timestamp_ms=\? AND rowid>\?\)/u,
  ],
  [
    "the events of a session since a time",
    createTimeQuery({ filter: { session, since: timeAfter(0) }, limit: 9 }, NEWEST, "later"),
    /event USING INDEX event_by_time \(timestamp_ms>\? AND timestamp_ms<\?\)/u,
  ],
  [
    "the events that one caused",
    createRunOrCauseQuery({ filter: { cause: caused }, limit: 9 }, NEWEST),
    /event USING INDEX event_by_cause \(run_key=\? AND causation_id=\? AND rowid>\?\)/u,
  ],
  [
    "the events of a coordination",
    createRunOrCauseQuery({ filter: { session }, runId: caused.coordinationId, limit: 9 }, NEWEST),
    /event USING INDEX sqlite_autoindex_event_1 \(run_key=\? AND sequence>\?\)/u,
  ],
  [
    "the places of a label",
    createLabelPlacesQuery(NEWEST),
    /run_label USING PRIMARY KEY \(kind=\? AND value=\? AND \(started_at_ms/u,
  ],
  [
    "the events of a labelled coordination",
    createLabelledEventsQuery({ filter: { session }, limit: 9 }, NEWEST, place),
    /event USING INDEX sqlite_autoindex_event_1 \(run_key=\? AND sequence>\?\)/u,
  ],
  [
    "the events of a labelled step",
    createLabelledEventsQuery({ filter: { session }, limit: 9 }, NEWEST, { ...place, stepId: "s" }),
    /event USING INDEX event_by_step \(run_key=\? AND node_id=\? AND rowid>\?\)/u,
  ],
  [
    "the events that were appended",
    createAppendedQuery({ filter: {}, limit: 9, after: 1 }, NEWEST, 9),
    /event USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/u,
  ],
];

describe("a query plan", () => {
  it.each(PLANS)("for %s goes by an index, and neither scans nor sorts", (_, query, expected) => {
    const plan = planOf(query);
    expect(plan.filter((detail) => expected.test(detail))).toHaveLength(1);
    // The table that leads a page of at most `limit` rows may be gone through again.
    expect(plan.filter((detail) => /^SCAN (?!found)|TEMP B-TREE/u.test(detail))).toEqual([]);
  });
});

it("is not made where its index is missing", () => {
  const database = createSchema();
  const [, query] = PLANS.find(([name]) => name === "the events that one caused")!;
  expect(() => database.prepare(query.sql)).not.toThrow();
  database.exec("drop index event_by_cause");
  expect(() => database.prepare(query.sql)).toThrow(/no such index: event_by_cause/u);
  database.close();
});
