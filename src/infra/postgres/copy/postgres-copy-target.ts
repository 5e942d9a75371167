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
  CopyTarget,
  GatewayProcess,
  SharedPlace,
} from "../../ledger/copy/copy-sides.ts";
import {
  COMMIT_TO_DISK,
  connectToServer,
  runTransaction,
  WITHOUT_TIME_LIMIT,
  type ConnectOptions,
  type PostgresDatabase,
  type SendQuery,
} from "../database/connect.ts";
import {
  createCopyMark,
  dropCopyMark,
  hasCopyMark,
  lockCopyMark,
  readCopyMark,
  replaceCopyMark,
} from "../database/copy-mark-table.ts";
import { assertAppliedMigrations, readAppliedMigrations } from "../database/migrate-schema.ts";
import { openDatabase } from "../database/open-server.ts";
import { createRowReader, SQL_TYPES } from "./postgres-row-reader.ts";

export interface PostgresCopyOptions extends ConnectOptions {
  /** Refuses an empty ledger that a gateway has open, by throwing. With the mark of a half copy, no gateway opens one. */
  readonly assertNoGateways: (target: SharedPlace) => Promise<void>;
}

/**
 * Opens or creates a PostgreSQL ledger, calls `copy` with it as the target, closes it afterwards, and returns what
 * `copy` returned. @throws CoordinationError as `openDatabase` and `assertNoGateways`, and `INPUT_INVALID` for a ledger
 * that is not empty and no half copy
 */
export async function withPostgresCopyTarget<T>(
  options: PostgresCopyOptions,
  copy: (target: CopyTarget) => Promise<T>,
): Promise<T> {
  await assertTargetUnused(options);
  const database = await openDatabase({ ...options, mode: "write", isCopyTarget: true });
  try {
    return await copy(createPostgresCopyTarget(database, options));
  } finally {
    await database.close();
  }
}

/**
 * Throws for a target that has rows and is no half copy, or that a gateway has open. It is only read for that: opening
 * a ledger for writing gives it the newest schema, which shuts older gateways out of it.
 */
async function assertTargetUnused(options: PostgresCopyOptions): Promise<void> {
  const database = await connectToServer(options);
  try {
    const { name: place, query } = database;
    const applied = await readAppliedMigrations(query);
    if (!applied) return;
    assertAppliedMigrations(place, applied);
    if (await hasCopyMark(query)) return;
    await assertTablesEmpty(place, query);
    const listGateways = (): Promise<GatewayProcess[]> => query<GatewayProcess>(GATEWAYS);
    if (applied.length >= OWNERS_SINCE_VERSION) await options.assertNoGateways({ place, listGateways });
  } finally {
    await database.close();
  }
}

function createPostgresCopyTarget(database: PostgresDatabase, { busyTimeoutMs }: ConnectOptions): CopyTarget {
  const { name: place, query } = database;
  const change = (work: (send: SendQuery) => Promise<void>): Promise<void> =>
    changeTables(database, busyTimeoutMs, work);
  return {
    place,
    readRows: createRowReader(query),
    readMark: () => readCopyMark(query),
    begin: (mark) =>
      change(async (send) => {
        await assertTablesEmpty(place, send);
        await createCopyMark(send);
        await replaceCopyMark(send, mark);
      }),
    beginAgain: (mark) =>
      change(async (send) => {
        await replaceCopyMark(send, mark);
        await deleteAllButEvents(send);
      }),
    lastKey: (table) => readLastKey(query, table),
    writeRows: (table, rows) =>
      change(async (send) => {
        await lockCopyMark(place, send);
        await writeWithoutTriggers(send, [table.name], () => insertRows(send, table, rows));
      }),
    finish: (counts, movedFrom) =>
      change(async (send) => {
        await lockCopyMark(place, send);
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

/**
 * Runs a transaction that changes whole tables. Answers have no time limit; locks of other processes are waited for as
 * long as `busyTimeoutMs` says.
 */
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

/** Throws where a table of the ledger has rows. An older schema lacks some of the tables. */
async function assertTablesEmpty(place: string, send: SendQuery): Promise<void> {
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

async function deleteAllButEvents(send: SendQuery): Promise<void> {
  const names = BESIDE_TABLES.map(({ name }) => name);
  await writeWithoutTriggers(send, names, async () => {
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

/** Turns the triggers of tables off, writes, and turns them on again, within a transaction. */
async function writeWithoutTriggers(
  send: SendQuery,
  tables: readonly string[],
  write: () => Promise<void>,
): Promise<void> {
  for (const name of tables) await send(`alter table ${name} disable trigger user`);
  await write();
  for (const name of tables) await send(`alter table ${name} enable trigger user`);
}

/** Sets the counts of the source and the next numbers, and takes the mark of a half copy away. */
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
  await dropCopyMark(send);
}
