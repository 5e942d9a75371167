/**
 * Owns: what a database notes of several processes on one ledger, whoever writes, and which rules of their ownership that shows to
 * be broken. It knows nothing of the code that keeps them: only what was written, by whom, and when.
 */
import type { TestSchema } from "../support/postgres-server.ts";

/** One change of a row of `run` or of `run_owner`, in the order in which they were made. */
export type Change = RunChange | OwnerChange;

export interface RunChange {
  readonly table: "run";
  /** By the clock of the database, in ms. */
  readonly atMs: number;
  /** The name of the connection: another one for each process. */
  readonly writer: string;
  readonly runId: string;
  /** Absent: the run is new. */
  readonly before?: RunRow;
  readonly after: RunRow;
}

export interface RunRow {
  readonly length: number;
  readonly ownerId: string;
  readonly token: number;
  readonly isArrived: boolean;
  readonly hasEnded: boolean;
}

export interface OwnerChange {
  readonly table: "run_owner";
  readonly atMs: number;
  readonly writer: string;
  readonly ownerId: string;
  readonly isRemoved: boolean;
}

/** An answer to a client: this key made this run. */
export interface Acknowledgement {
  readonly key: string;
  readonly runId: string;
}

export interface FleetHistory {
  readonly changes: readonly Change[];
  readonly acknowledgements: readonly Acknowledgement[];
  /** When processes were killed, by their names. */
  readonly killedAtMs: ReadonlyMap<string, number>;
  readonly leaseMs: number;
}

/** Returns a sentence for each breach. */
export function findBreaches(history: FleetHistory): string[] {
  const owners = new SeenOwners(history);
  const runs = new Map<string, RunRow>();
  const breaches: string[] = [];
  for (const change of history.changes) {
    if (change.table === "run_owner") {
      owners.note(change);
      continue;
    }
    breaches.push(
      ...findRegisterBreaches(change, runs.get(change.runId)),
      ...findFenceBreaches(change, owners),
      ...findTakeoverBreaches(change, owners),
    );
    runs.set(change.runId, change.after);
  }
  return [...breaches, ...findAnswerBreaches(history, runs)];
}

/** The log of a run is a register: each append goes on from the length that the one before has left, until its end. */
function findRegisterBreaches(
  { runId, writer, before, after }: RunChange,
  last: RunRow | undefined,
): string[] {
  const [stored, from, to] = [last, before, after].map((row) => row?.length ?? 0) as [number, number, number];
  const rules: readonly [boolean, string][] = [
    [from !== stored, `goes on from ${from}, and the log has ${stored}`],
    [to < from, "shortened the log"],
    [before?.hasEnded === true && to > from, "wrote behind its end"],
  ];
  return rules.flatMap(([isBroken, words]) => (isBroken ? [`${runId}: ${writer} ${words}`] : []));
}

/** Only the owner appends; whatever somebody else appends is marked for the owner. */
function findFenceBreaches({ runId, writer, before, after }: RunChange, owners: SeenOwners): string[] {
  const hasGrown = after.length > (before?.length ?? 0);
  const owner = owners.nameWriter(before?.ownerId ?? after.ownerId);
  if (!hasGrown || after.isArrived || owner === writer) return [];
  return [`${runId}: ${writer} appended to a run of ${owner ?? "nobody"}`];
}

/** A token grows by one with each takeover, and an owner that lives keeps its runs. */
function findTakeoverBreaches(
  { runId, writer, atMs, before, after }: RunChange,
  owners: SeenOwners,
): string[] {
  if (!before) return [];
  if (before.ownerId === after.ownerId)
    return before.token === after.token ? [] : [`${runId}: ${writer} changed the token of its owner`];
  const breaches: string[] = [];
  if (after.token !== before.token + 1)
    breaches.push(`${runId}: ${writer} took over with token ${after.token} behind ${before.token}`);
  if (!owners.isGone(before.ownerId, atMs))
    breaches.push(`${runId}: ${writer} took over from ${before.ownerId}, which lived`);
  return breaches;
}

function findAnswerBreaches({ acknowledgements }: FleetHistory, runs: ReadonlyMap<string, RunRow>): string[] {
  const runOfKey = new Map<string, string>();
  return acknowledgements.flatMap(({ key, runId }) => {
    const first = runOfKey.get(key) ?? runId;
    runOfKey.set(key, first);
    return [
      ...(runs.get(runId)?.hasEnded ? [] : [`${runId} was acknowledged and has not ended`]),
      ...(first === runId ? [] : [`the key ${key} made ${first} and ${runId}`]),
    ];
  });
}

/** Beats that come a little early for the lease: a process looks some times in a lease. */
const LEASE_SHARE = 0.9;
/** A beat that comes between a look and the takeover that follows from it. */
const LATE_BEAT_MS = 2_000;

/** When each owner told of itself, and which process it was. */
class SeenOwners {
  readonly #beatsMs = new Map<string, number[]>();
  readonly #removed = new Set<string>();
  readonly #writers = new Map<string, string>();
  readonly #history: FleetHistory;

  constructor(history: FleetHistory) {
    this.#history = history;
  }

  note({ ownerId, writer, atMs, isRemoved }: OwnerChange): void {
    if (isRemoved) {
      this.#removed.add(ownerId);
      return;
    }
    this.#removed.delete(ownerId);
    this.#writers.set(ownerId, writer);
    const beats = this.#beatsMs.get(ownerId) ?? [];
    beats.push(atMs);
    this.#beatsMs.set(ownerId, beats);
  }

  nameWriter(ownerId: string): string | undefined {
    return this.#writers.get(ownerId);
  }

  isGone(ownerId: string, atMs: number): boolean {
    const writer = this.#writers.get(ownerId);
    if (writer === undefined || this.#removed.has(ownerId)) return true;
    const killedAtMs = this.#history.killedAtMs.get(writer);
    if (killedAtMs !== undefined && killedAtMs <= atMs) return true;
    return this.#wasSilent(ownerId, atMs);
  }

  #wasSilent(ownerId: string, atMs: number): boolean {
    const leastMs = this.#history.leaseMs * LEASE_SHARE;
    const times = [...(this.#beatsMs.get(ownerId) ?? []), atMs];
    return times.some((timeMs, index) => {
      const gapMs = timeMs - (times[index - 1] ?? -Infinity);
      return index > 0 && gapMs >= leastMs && atMs - timeMs <= LATE_BEAT_MS;
    });
  }
}

/** Lets the database note every change in a schema of its own. The tables of the ledger have to be there. */
export async function noteChanges(ledger: TestSchema): Promise<void> {
  const query: TestSchema["query"] = (sql, values) => ledger.query(sql, values);
  const [row] = await query<{ schema: string }>("select current_schema()::text as schema");
  const schema = `${row?.schema}_notes`;
  await query(`create schema ${schema}`);
  await query(
    `create table ${schema}.change (
       position bigint generated always as identity primary key,
       at_ms float8 not null default extract(epoch from clock_timestamp()) * 1000,
       writer text not null default current_setting('application_name'),
       table_name text not null,
       old_row jsonb,
       new_row jsonb
     )`,
  );
  await query(
    `create function ${schema}.note() returns trigger language plpgsql as $$
     begin
       insert into ${schema}.change (table_name, old_row, new_row)
       values (tg_table_name, to_jsonb(old) - 'summary' - 'origin', to_jsonb(new) - 'summary' - 'origin');
       return null;
     end $$`,
  );
  for (const table of ["run", "run_owner"])
    await query(
      `create trigger note_change after insert or update or delete on ${table}
       for each row execute function ${schema}.note()`,
    );
}

interface NotedChange {
  readonly at_ms: number;
  readonly writer: string;
  readonly table_name: "run" | "run_owner";
  readonly old_row: StoredRow | null;
  readonly new_row: StoredRow | null;
}

interface StoredRow {
  readonly id: string;
  readonly run_id: string;
  readonly kind: string;
  readonly length: number;
  readonly owner_id: string;
  readonly owner_token: number;
  readonly arrived: 0 | 1;
  readonly ended: 0 | 1;
}

/** Returns what was noted, and takes the notes off the ledger again. */
export async function takeChanges(ledger: TestSchema): Promise<Change[]> {
  const query: TestSchema["query"] = (sql, values) => ledger.query(sql, values);
  const [row] = await query<{ schema: string }>("select current_schema()::text as schema");
  const schema = `${row?.schema}_notes`;
  for (const table of ["run", "run_owner"]) await query(`drop trigger note_change on ${table}`);
  const noted = await query<NotedChange>(
    `select at_ms, writer, table_name, old_row, new_row from ${schema}.change order by position`,
  );
  await query(`drop schema ${schema} cascade`);
  return noted.map(readChange);
}

function readChange({ at_ms: atMs, writer, table_name: table, old_row, new_row }: NotedChange): Change {
  const stored = new_row ?? old_row;
  if (!stored) throw new Error("a change has no row");
  if (table === "run_owner") return { table, atMs, writer, ownerId: stored.id, isRemoved: new_row === null };
  return {
    table,
    atMs,
    writer,
    runId: stored.run_id,
    after: readRow(stored),
    ...(old_row && { before: readRow(old_row) }),
  };
}

function readRow({ length, owner_id, owner_token, arrived, ended }: StoredRow): RunRow {
  return {
    length,
    ownerId: owner_id,
    token: owner_token,
    isArrived: arrived === 1,
    hasEnded: ended === 1,
  };
}
