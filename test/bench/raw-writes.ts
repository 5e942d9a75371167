/**
 * Owns: what a ledger wrote, written again without the product: the same rows in the same transactions by prepared
 * statements, all values, hashes included, computed beforehand; the tables, checks and indexes of the ledger, no triggers.
 */
import Database from "better-sqlite3";
import type { AppendRequest } from "../../src/agents/coordination/ports/ledger-store.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { timeWork } from "./bench-row.ts";

type Value = number | string | Buffer | null;

interface Write {
  readonly sql: string;
  readonly values: readonly Value[];
}

/** The writes of a ledger by transaction, and the schema that they need. */
export interface WriteRecording {
  /** The ledger's tables and indexes. */
  readonly schema: string;
  readonly transactions: readonly (readonly Write[])[];
  readonly events: number;
}

/**
 * Reads from a closed ledger what the appends wrote, in the groups that were committed together.
 *
 * @throws where the ledger has rows of an append that are not among them: the figure would be too good for the product
 */
export function readRecording(path: string, groups: readonly (readonly AppendRequest[])[]): WriteRecording {
  const database = new Database(path, { readonly: true });
  try {
    const write = prepareWrites(database);
    const transactions = groups.map((requests) => requests.flatMap(write));
    checkRows(database, transactions);
    const schema = database
      .prepare<[], string>(
        "select sql || ';' from sqlite_schema where type in ('table', 'index') and name not like 'sqlite%'",
      )
      .pluck()
      .all()
      .join("\n");
    return { schema, transactions, events: countRows(database, "event") };
  } finally {
    database.close();
  }
}

function checkRows(database: Database.Database, transactions: WriteRecording["transactions"]): void {
  for (const [table, name] of Object.entries(TABLES)) {
    const written = transactions
      .flat()
      .filter(({ sql }) => sql === INSERT[table as keyof typeof INSERT]).length;
    const stored = countRows(database, name);
    if (written !== stored)
      throw new Error(`${stored} rows of ${name} were stored, and ${written} are written again`);
  }
}

function countRows(database: Database.Database, table: string): number {
  return Number(database.prepare(`select count(*) from ${table}`).pluck().get());
}

const EVENT = "run_key, sequence, type, timestamp_ms, node_id, causation_id, payload, hash";
const RUN = "run_id, length, head_hash, ended, summary";
const LABEL = "kind, value, started_at_ms, run_key, step_id";
/** The kinds of labels that an event of a step brings. */
const STEP_LABELS = new Map([
  ["step.admitted", ["session", "agent"]],
  ["step.acknowledged", ["child"]],
]);
const INSERT = {
  event: `insert into event (${EVENT}) values (?, ?, ?, ?, ?, ?, ?, ?)`,
  run: `insert into run (${RUN}) values (?, ?, ?, ?, ?)`,
  reference: "insert into reference (name, run_key, step_id) values (?, ?, ?)",
  content: "insert into content (sha256, stored_at_ms, text) values (?, ?, ?)",
  label: `insert into run_label (${LABEL}) values (?, ?, ?, ?, ?)`,
} as const;
const UPDATE = {
  running: "update run set length = ?, head_hash = ?, summary = ? where run_key = ?",
  ended: "update run set length = ?, head_hash = ?, ended = 1, summary = ? where run_key = ?",
} as const;

const TABLES = {
  event: "event",
  run: "run",
  reference: "reference",
  content: "content",
  label: "run_label",
} as const;

/** The bytes that an append wrote, taken from the ledger that it was written to. */
function prepareWrites(database: Database.Database): (request: AppendRequest) => Write[] {
  const keyOf = database.prepare<[string], number>("select run_key from run where run_id = ?").pluck();
  const eventsOf = database
    .prepare<[number, number, number], Value[]>(
      `select ${EVENT} from event where run_key = ? and sequence between ? and ? order by sequence`,
    )
    .raw();
  const labelsOf = database
    .prepare<[number, string], Value[]>(`select ${LABEL} from run_label where run_key = ? and step_id = ?`)
    .raw();
  const stored = new Set<string>();
  return ({ runId, events, summary, references, contents }) => {
    const runKey = keyOf.get(runId) ?? 0;
    const from = events[0]?.sequence ?? 0;
    const length = from + events.length;
    const rows = eventsOf.all(runKey, from, length - 1);
    const head = rows.at(-1)?.at(-1) ?? null;
    const running = summary.status === "running";
    const text = JSON.stringify(summary);
    const run: Write =
      from === 0
        ? { sql: INSERT.run, values: [runId, length, head, running ? 0 : 1, text] }
        : { sql: running ? UPDATE.running : UPDATE.ended, values: [length, head, text, runKey] };
    const labels = events.flatMap(({ type, nodeId = "" }) =>
      type === "coordination.created"
        ? labelsOf.all(runKey, "")
        : labelsOf
            .all(runKey, nodeId)
            .filter(([kind]) => nodeId !== "" && STEP_LABELS.get(type)?.includes(String(kind))),
    );
    const fresh = contents.filter(({ ref }) => !stored.has(ref.sha256));
    for (const { ref } of fresh) stored.add(ref.sha256);
    return [
      run,
      ...rows.map((values) => ({ sql: INSERT.event, values })),
      ...references.map(({ name, stepId }) => ({
        sql: INSERT.reference,
        values: [name, runKey, stepId ?? null],
      })),
      ...labels.map((values) => ({ sql: INSERT.label, values })),
      ...fresh.map(({ ref, text: content }) => ({
        sql: INSERT.content,
        values: [ref.sha256, systemClock.now(), content],
      })),
    ];
  };
}

export function keepEventsOnly(recording: WriteRecording): WriteRecording {
  const transactions = recording.transactions.map((writes) =>
    writes.filter(({ sql }) => sql === INSERT.event),
  );
  return { ...recording, transactions };
}

/** Returns the milliseconds of the transactions on a new file, without the first `before`, which are written before. */
export async function runRaw(
  path: string,
  { schema, transactions }: WriteRecording,
  before = 0,
): Promise<number> {
  const database = new Database(path);
  database.pragma("journal_mode = wal");
  database.pragma("synchronous = full");
  // There are no runs where only events are written.
  database.pragma("foreign_keys = off");
  database.exec(schema);
  const statements = new Map(
    [...Object.values(INSERT), ...Object.values(UPDATE)].map((sql) => [sql as string, database.prepare(sql)]),
  );
  const prepared = transactions.map((writes) =>
    writes.map(({ sql, values }) => ({ statement: statements.get(sql), values })),
  );
  const commit = database.transaction((writes: (typeof prepared)[number]) => {
    for (const { statement, values } of writes) statement?.run(...values);
  });
  for (const writes of prepared.slice(0, before)) commit.immediate(writes);
  const ms = await timeWork(() => {
    for (const writes of prepared.slice(before)) commit.immediate(writes);
  });
  database.close();
  return ms;
}
