/**
 * Owns: writing a ledger on a server as the target of a copy. The triggers of a table are off while its rows are written, within one
 * transaction that holds the lock of the table: others never see it without them. The owner of a table may do so.
 */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { BESIDE_TABLES, COPIED_TABLES, type CopiedTable } from "../../ledger/copy/copied-tables.ts";
import type {
  CopiedCounts,
  CopiedRow,
  CopiedValue,
  CopyMark,
  CopyTarget,
  GatewayProcess,
  SharedPlace,
} from "../../ledger/copy/copy-sides.ts";
import { COPY_MARK } from "../../ledger/half-copy.ts";
import {
  COMMIT_TO_DISK,
  connect,
  runTransaction,
  WITHOUT_TIME_LIMIT,
  type ConnectOptions,
  type PostgresDatabase,
  type SendQuery,
} from "../database/connect.ts";
import { checkSchema, readApplied } from "../database/migrate-schema.ts";
import { openDatabase } from "../database/open-server.ts";
import { createRowReader, SQL_TYPES } from "./postgres-row-reader.ts";

export interface PostgresCopyOptions extends ConnectOptions {
  /** Refuses an empty ledger that a gateway has open, by throwing. With the mark of a half copy, no gateway opens one. */
  readonly refuseGateways: (target: SharedPlace) => Promise<void>;
}

/**
 * @throws CoordinationError as `openDatabase` and `refuseGateways`, and `INPUT_INVALID` for a ledger that is not empty and no half
 * copy
 */
export async function writeToPostgres<T>(
  options: PostgresCopyOptions,
  copy: (target: CopyTarget) => Promise<T>,
): Promise<T> {
  await refuseUsed(options);
  const database = await openDatabase({ ...options, mode: "write", isCopyTarget: true });
  try {
    return await copy(createTarget(database, options));
  } finally {
    await database.close();
  }
}

/**
 * Opening a ledger for writing gives it the newest schema, which shuts older gateways out of it: one that will be refused has to be
 * only read before.
 */
async function refuseUsed(options: PostgresCopyOptions): Promise<void> {
  const database = await connect(options);
  try {
    const { name: place, query } = database;
    const applied = await readApplied(query);
    if (!applied) return;
    checkSchema(place, applied);
    if (await hasMark(query)) return;
    await refuseRows(place, query);
    const listGateways = (): Promise<GatewayProcess[]> => query<GatewayProcess>(GATEWAYS);
    if (applied.length >= OWNERS_SINCE_VERSION) await options.refuseGateways({ place, listGateways });
  } finally {
    await database.close();
  }
}

function createTarget(database: PostgresDatabase, { busyTimeoutMs }: ConnectOptions): CopyTarget {
  const { name: place, query } = database;
  const change = (work: (send: SendQuery) => Promise<void>): Promise<void> =>
    changeTables(database, busyTimeoutMs, work);
  return {
    place,
    readRows: createRowReader(query),
    readMark: () => readMark(query),
    begin: (mark) =>
      change(async (send) => {
        await refuseRows(place, send);
        await createMark(send);
        await replaceMark(send, mark);
      }),
    beginAgain: (mark) =>
      change(async (send) => {
        await replaceMark(send, mark);
        await deleteRows(send);
      }),
    lastKey: (table) => readLastKey(query, table),
    writeRows: (table, rows) =>
      change(async (send) => {
        await lockMark(place, send);
        await withoutTriggers(send, [table.name], () => insertRows(send, table, rows));
      }),
    finish: (counts, movedFrom) =>
      change(async (send) => {
        await lockMark(place, send);
        await finishCopy(send, counts, movedFrom);
      }),
  };
}

/** The schema in which gateways tell of themselves. */
const OWNERS_SINCE_VERSION = 3;

/** Their ids are those of `createGatewayOwnerId`: `gateway:NAME/START`. */
const GATEWAYS = `
  select id, substring(id from '^gateway:([^/]+)/') as gateway, process, beats
  from run_owner
  where id like 'gateway:%'
  order by id`;

/** Answers have no time limit; locks of other processes are waited for as long as `busyTimeoutMs` says. */
function changeTables(
  database: PostgresDatabase,
  busyTimeoutMs: number,
  work: (send: SendQuery) => Promise<void>,
): Promise<void> {
  const begin = `begin isolation level read committed; ${WITHOUT_TIME_LIMIT}; set local lock_timeout = ${busyTimeoutMs}`;
  const change = async (send: SendQuery): Promise<void> => {
    await send(begin);
    await work(send);
  };
  return runTransaction(database, change, { isUnlimited: true });
}

interface MarkRow {
  readonly source: string;
  readonly first_hash: Buffer | null;
  readonly events: number;
}

async function readMark(query: SendQuery): Promise<CopyMark | undefined> {
  if (!(await hasMark(query))) return undefined;
  const [row] = await query<MarkRow>(`select source, first_hash, events from ${COPY_MARK} order by only_row`);
  return row && { source: row.source, firstHash: row.first_hash, events: row.events };
}

async function hasMark(query: SendQuery): Promise<boolean> {
  const [found] = await query<{ isThere: boolean }>(`select to_regclass(@mark) is not null as "isThere"`, {
    mark: COPY_MARK,
  });
  return found?.isThere === true;
}

/** Another process may have completed the copy, or write to it as well. */
async function lockMark(place: string, send: SendQuery): Promise<void> {
  if (!(await hasMark(send)))
    throw new CoordinationError(
      "LEDGER_CONFLICT",
      `${place} was completed by another process that copied to it`,
    );
  await send(`select only_row from ${COPY_MARK} order by only_row for update`);
}

/** An older schema lacks some of the tables. */
async function refuseRows(place: string, send: SendQuery): Promise<void> {
  const tables = await send<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = current_schema()",
  );
  const filled = COPIED_TABLES.filter((copied) => tables.some(({ name }) => name === copied.name))
    .map(({ name }) => `exists (select 1 from ${name})`)
    .join(" or ");
  const [found] = await send<{ isFilled: boolean }>(`select ${filled} as "isFilled"`);
  if (found?.isFilled === false) return;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${place} is a ledger that is not empty, and a copy overwrites nothing; name an empty place`,
  );
}

/** A process that had the empty ledger open before is kept from appending to it. */
async function createMark(send: SendQuery): Promise<void> {
  await send(
    `create table ${COPY_MARK} (
       only_row integer primary key check (only_row = 1),
       source text not null,
       first_hash bytea,
       events bigint not null
     )`,
  );
  await send(
    `create trigger copy_not_appended before insert or update on run
     for each statement execute function refuse_change('the ledger is a copy that has not been completed')`,
  );
}

async function replaceMark(send: SendQuery, { source, firstHash, events }: CopyMark): Promise<void> {
  await send(
    `insert into ${COPY_MARK} (only_row, source, first_hash, events)
     values (1, @source, @firstHash, @events)
     on conflict (only_row) do update
     set source = excluded.source, first_hash = excluded.first_hash, events = excluded.events`,
    { source, firstHash, events },
  );
}

async function deleteRows(send: SendQuery): Promise<void> {
  const names = BESIDE_TABLES.map(({ name }) => name);
  await withoutTriggers(send, names, async () => {
    await send(`truncate ${names.join(", ")}`);
  });
}

async function readLastKey(query: SendQuery, { name, key }: CopiedTable): Promise<CopiedRow | undefined> {
  const order = key.map((column) => `${column} desc`).join(", ");
  const [row] = await query<Record<string, CopiedValue>>(
    `select ${key.join(", ")} from ${name} order by ${order} limit 1`,
  );
  return row && key.map((column) => row[column] ?? null);
}

async function insertRows(
  send: SendQuery,
  { name, columns, isNumbered }: CopiedTable,
  rows: readonly CopiedRow[],
): Promise<void> {
  const names = Object.keys(columns);
  const values = names.map((column) => `@${column}::${SQL_TYPES[columns[column] ?? "text"]}[]`);
  await send(
    `insert into ${name} (${names.join(", ")}) ${isNumbered ? "overriding system value" : ""}
     select * from unnest(${values.join(", ")})`,
    Object.fromEntries(names.map((column, at) => [column, rows.map((row) => row[at] ?? null)])),
  );
}

/** Runs within a transaction. */
async function withoutTriggers(
  send: SendQuery,
  tables: readonly string[],
  write: () => Promise<void>,
): Promise<void> {
  for (const name of tables) await send(`alter table ${name} disable trigger user`);
  await write();
  for (const name of tables) await send(`alter table ${name} enable trigger user`);
}

async function finishCopy(
  send: SendQuery,
  { events, runs, claimToken }: CopiedCounts,
  movedFrom: string | undefined,
): Promise<void> {
  await send(COMMIT_TO_DISK);
  await send(
    `update ledger_count
     set events = @events, runs = @runs, claim_token = @claimToken, moved_from = @movedFrom`,
    { events, runs, claimToken, movedFrom: movedFrom ?? null },
  );
  for (const { name, key, isNumbered } of COPIED_TABLES) {
    // The next number is behind the highest one.
    if (isNumbered)
      await send(
        `select setval(pg_get_serial_sequence('${name}', '${key[0]}'), coalesce(max(${key[0]}), 1), count(*) > 0)
         from ${name}`,
      );
    await send(`analyze ${name}`);
  }
  await send("drop trigger copy_not_appended on run");
  await send(`drop table ${COPY_MARK}`);
}
