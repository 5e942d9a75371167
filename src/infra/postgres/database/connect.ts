/**
 * Owns: the connections to a server. Nothing that is sent needs a session: settings last for a transaction, and there are no
 * locks but those of transactions. So poolers that hand out a connection for each transaction work.
 *
 * A connection that leads to the server itself keeps the plans of what it reads, which takes two thirds off the work of a read.
 * Writes are planned anew each time: a plan that was made for an empty table would be kept while the table grows.
 */
import type pg from "pg";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { formatLedgerPlace, isPostgresUrl } from "../../ledger/ledger-place.ts";
import { bindValues, type SqlValues } from "./named-values.ts";
import { toPostgresLedgerError, type LedgerPlace } from "./postgres-errors.ts";
import { decodeStoredText } from "./stored-text.ts";

/** Sends one statement. Within a connection it may be sent before the one before it was answered. */
export type SendQuery = <Row>(sql: string, values?: SqlValues) => Promise<Row[]>;

export interface PostgresDatabase extends LedgerPlace {
  /** One statement that reads, by itself. @throws CoordinationError */
  readonly query: SendQuery;
  /** One statement that writes, by itself: what it wrote is on disk when it is answered. @throws CoordinationError */
  readonly write: SendQuery;
  /** All that is read is of one moment, also of whole tables: answers have no time limit, but locks have. @throws CoordinationError */
  snapshot<T>(read: (query: SendQuery) => Promise<T>): Promise<T>;
  /**
   * A connection for one transaction that changes the log, or with `isUnlimited` reads or changes whole tables: then answers have no
   * time limit. There is one at a time. Throws what the driver throws.
   */
  connectWriter(options?: { readonly isUnlimited: boolean }): Promise<WriterConnection>;
  close(): Promise<void>;
}

export interface WriterConnection {
  readonly query: SendQuery;
  /** Gives the connection back, or ends it where it may be broken. */
  release(isBroken: boolean): void;
}

export interface ConnectOptions {
  readonly url: string;
  /** How long a lock of another process is waited for. */
  readonly busyTimeoutMs: number;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** Longer than any lock is waited for, so that the server answers first where it can. */
const ANSWER_TIMEOUT_MS = 60_000;
/** The longest that a timer can wait, 24 days: in place of no limit. */
const UNLIMITED_MS = 2 ** 31 - 1;
/** Idle connections end after this. */
const IDLE_MS = 30_000;
/** Kept plans are made for the tables as they were, and the server of before may be none now: a connection is replaced after this. */
const LIFETIME_S = 300;
const POOL_MAX = 8;
const POOL_LIMIT = 500;

/** For the transaction that it is sent in. The server may commit before it has written to its disk; a stronger setting is left alone. */
export const COMMIT_TO_DISK = `
  select set_config(
    'synchronous_commit',
    case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end,
    true
  )`;

/**
 * Begins a transaction that writes, whatever isolation the server has as its default. A process that is stopped in the middle holds
 * up others no longer than the idle timeout.
 */
export const BEGIN_WRITING = `
  begin isolation level read committed;
  set local idle_in_transaction_session_timeout = '2s';
  ${COMMIT_TO_DISK}`;

/** For the transaction that it is sent in. The server may have a limit for what gateways ask, which tables outgrow. */
export const WITHOUT_TIME_LIMIT = "set local statement_timeout = 0";

/** For the transaction that it is sent in: without a limit of the server, an answer that has none would wait for a lock for ever. */
const WITH_LOCK_LIMIT = `
  select set_config('lock_timeout', '60s', true)
  from pg_settings
  where name = 'lock_timeout' and setting = '0'`;

const OID = { int8: 20, text: 25 } as const;

/**
 * Creates the pool of connections to the PostgreSQL server of a ledger. Imports the driver only now, because nothing
 * needs it that keeps its ledger in a file.
 */
export async function connectToServer(options: ConnectOptions): Promise<PostgresDatabase> {
  const { url, poolMax } = parseLedgerUrl(options.url);
  const { default: driver } = await import("pg");
  const place = createLedgerPlace(driver, url);
  const settings: pg.PoolConfig = {
    connectionString: url.href,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS + options.busyTimeoutMs,
    idleTimeoutMillis: IDLE_MS,
    maxLifetimeSeconds: LIFETIME_S,
    keepAlive: true,
    // So that statements without a time limit end, too, where the server is gone without a word.
    keepAliveInitialDelayMillis: IDLE_MS,
    // Statements of one transaction are sent without waiting for the answers of those before them.
    pipeline: true,
    fallback_application_name: "openclaw-coordination",
    types: { getTypeParser: createParserLookup(driver.types) },
  };
  const readers = new driver.Pool({ ...settings, max: poolMax });
  const writers = new driver.Pool({ ...settings, max: 1 });
  // An idle connection that ends is replaced when one is needed.
  for (const pool of [readers, writers]) pool.on("error", () => undefined);
  const guard = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw toPostgresLedgerError(error, place);
    }
  };
  return {
    ...place,
    query: (sql, values) =>
      guard(() => useReadConnection(readers, (client) => sendQuery(client, sql, values))),
    write: (sql, values) =>
      guard(() => useReadConnection(readers, (client) => sendWrite(client, sql, values))),
    snapshot: (read) => guard(() => readSnapshot(readers, read)),
    connectWriter: async ({ isUnlimited } = { isUnlimited: false }) => {
      const client = await writers.connect();
      // A statement that was sent fails with the connection; the event only says so again.
      client.on("error", ignoreError);
      return {
        query: isUnlimited ? createUnlimitedQuery(client) : (sql, values) => sendQuery(client, sql, values),
        release: (isBroken) => {
          client.off("error", ignoreError);
          client.release(isBroken);
        },
      };
    },
    close: async () => {
      await Promise.all([readers.end(), writers.end()]);
    },
  };
}

/**
 * Lends the connection for writing to `work`, which begins a transaction, commits it when `work` has ended, and
 * returns its result; where `work` or the commit fails, the connection is dropped and the transaction with it. @throws
 * CoordinationError
 */
export async function runTransaction<T>(
  database: PostgresDatabase,
  work: (query: SendQuery) => Promise<T>,
  options?: { readonly isUnlimited: boolean },
): Promise<T> {
  let writer: WriterConnection | undefined;
  let isBroken = true;
  try {
    writer = await database.connectWriter(options);
    const result = await work(writer.query);
    await writer.query("commit");
    isBroken = false;
    return result;
  } catch (error) {
    throw toPostgresLedgerError(error, database);
  } finally {
    // A connection that ends in the middle takes its transaction with it.
    writer?.release(isBroken);
  }
}

function ignoreError(): void {
  // The one who sent something is told.
}

/** True for connections whose session is one of the server. */
const directness = new WeakMap<object, boolean>();

/**
 * Returns whether a connection leads to the server itself. A pooler tells its clients a number of its own as that of
 * their process, because no process of the server is theirs alone. The driver's types do not have that number.
 */
async function isDirectConnection(client: pg.ClientBase & { readonly processID?: number }): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid === client.processID;
}

/** The driver's types do not have the time limit of a single statement. */
type LimitedQuery = pg.QueryConfig & { readonly query_timeout?: number };

/** Sends one statement and returns its rows. A connection to the server itself keeps the plan of one with values. */
async function sendQuery<Row>(
  client: pg.ClientBase,
  sql: string,
  values: SqlValues = {},
  limits: Pick<LimitedQuery, "query_timeout"> = {},
): Promise<Row[]> {
  const { name, ...statement } = bindValues(sql, values);
  const isKept = name !== undefined && directness.get(client) === true;
  const query: LimitedQuery = { ...statement, ...(isKept && { name }), ...limits };
  const { rows } = await client.query<Record<string, unknown>>(query);
  return rows as Row[];
}

function createUnlimitedQuery(client: pg.ClientBase): SendQuery {
  return (sql, values) => sendQuery(client, sql, values, { query_timeout: UNLIMITED_MS });
}

/**
 * Sends a statement in a transaction of its own, which is on disk when it returns. Where the statement fails, the
 * server answers the commit with a rollback.
 */
async function sendWrite<Row>(client: pg.ClientBase, sql: string, values?: SqlValues): Promise<Row[]> {
  const [, rows] = await Promise.all([
    client.query(BEGIN_WRITING),
    sendQuery<Row>(client, sql, values),
    client.query("commit"),
  ]);
  return rows;
}

/** Lends a connection to `read`. One on which something failed is not used again. */
async function useReadConnection<T>(pool: pg.Pool, read: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  client.on("error", ignoreError);
  let isBroken = true;
  try {
    if (!directness.has(client)) directness.set(client, await isDirectConnection(client));
    const result = await read(client);
    isBroken = false;
    return result;
  } finally {
    client.off("error", ignoreError);
    client.release(isBroken);
  }
}

/** Lends `read` a transaction that shows the ledger at one moment, with no time limit on answers. */
function readSnapshot<T>(pool: pg.Pool, read: (query: SendQuery) => Promise<T>): Promise<T> {
  return useReadConnection(pool, async (client) => {
    await client.query(
      `begin isolation level repeatable read read only; ${WITHOUT_TIME_LIMIT}; ${WITH_LOCK_LIMIT}`,
    );
    const result = await read(createUnlimitedQuery(client));
    await client.query("commit");
    return result;
  });
}

/** Returns the driver's lookup of parsers, with our own for big integers and for texts. */
function createParserLookup(types: typeof pg.types): typeof pg.types.getTypeParser {
  const parsers = new Map<number, (text: string) => unknown>([
    // Keys and times stay far below 2^53.
    [OID.int8, Number],
    [OID.text, decodeStoredText],
  ]);
  const findParser = (oid: Parameters<typeof types.getTypeParser>[0], format?: "text"): unknown =>
    parsers.get(oid) ?? types.getTypeParser(oid, format);
  return findParser as typeof pg.types.getTypeParser;
}

/**
 * Returns the URL without our setting `pool_max`, and the value of that setting or its default. Throws where either is
 * not valid, without showing the password.
 */
function parseLedgerUrl(text: string): { readonly url: URL; readonly poolMax: number } {
  // The error of `new URL` would show the password.
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !isPostgresUrl(text))
    throw new CoordinationError(
      "INPUT_INVALID",
      "the ledger's URL is not valid; write postgres://USER@HOST:PORT/DATABASE, and the password in PGPASSWORD",
    );
  const poolMax = Number(url.searchParams.get("pool_max") ?? POOL_MAX);
  url.searchParams.delete("pool_max");
  if (!Number.isInteger(poolMax) || poolMax < 1 || poolMax > POOL_LIMIT)
    throw new CoordinationError(
      "INPUT_INVALID",
      `pool_max of the ledger's URL is no number from 1 to ${POOL_LIMIT}`,
    );
  return { url, poolMax };
}

/**
 * Returns the password that the driver sends for a URL; `undefined` where it reads none and so sends none. Its rules for
 * a `%` that begins no code are its own: beside one, it decodes only codes of two digits.
 */
function readSentPassword({ Client }: typeof pg, { href }: URL): string | undefined {
  try {
    return new Client({ connectionString: href }).password;
  } catch {
    return undefined;
  }
}

/** Returns how the place of a ledger is shown, and what hides its passwords in a text. */
function createLedgerPlace(driver: typeof pg, url: URL): LedgerPlace {
  const secrets = [url.password, readSentPassword(driver, url) ?? ""]
    .filter((secret) => secret !== "")
    .toSorted((one, other) => other.length - one.length);
  return {
    name: formatLedgerPlace(url.href),
    conceal: (text) => secrets.reduce((concealed, secret) => concealed.replaceAll(secret, "***"), text),
  };
}
