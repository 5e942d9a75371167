/** Owns: which process drives which run (`RunOwners`), of the runs of one kind. Changes of owners go through the write queue. */
import type { Database, Statement } from "better-sqlite3";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type {
  OwnedRun,
  OwnerToken,
  RunOwners,
  TakeRuns,
} from "../../../agents/coordination/ports/run-owners.ts";
import { createOnceLoader } from "../../../agents/coordination/std/load-once.ts";
import { createNotOwnerError, mapOwnersByRun, NOBODY, type OwnerRow } from "../../ledger/owner-fence.ts";
import type { RunKind } from "../../ledger/stored-run.ts";
import { loadMigrations } from "./migrate.ts";
import { createSchemaStatements } from "./schema-statements.ts";
import type { OpenLedger } from "./write-queue.ts";

/** The schema that has owners of runs. */
const OWNERS_SINCE_VERSION = 8;

/**
 * Creates the access to the processes that own runs of a kind in a ledger file: their beats (signs of life), which
 * runs each owns, and taking runs over.
 */
export function createRunOwners({ database, guarded, queued }: OpenLedger, kind: RunKind): RunOwners {
  const reads = createSchemaStatements(database, loadMigrations().length, (version) =>
    version < OWNERS_SINCE_VERSION ? undefined : prepareOwnerReads(database, kind),
  );
  const writes = createOnceLoader(() => prepareOwnerWrites(database, kind));
  const read = <T>(run: (prepared: OwnerReads | undefined) => T): Promise<T> => guarded(() => run(reads()));
  const write = <T>(work: (prepared: OwnerWrites) => T): Promise<T> =>
    queued((queue) => queue.run(() => work(writes())));
  return {
    beat: async ({ id, process = null }) => {
      await write(({ beat }) => beat.run(id, process));
    },
    beats: () =>
      read((prepared) =>
        (prepared?.owners.all() ?? []).map(({ id, process, beats }) => ({
          id,
          count: beats,
          ...(process !== null && { process }),
        })),
      ),
    remove: async (id) => {
      await write(({ remove, forgetMissed }) => {
        remove.run(id);
        forgetMissed.run({ owner: NOBODY.owner_id, gone: JSON.stringify([id]) });
      });
    },
    holders: () => read((prepared) => prepared?.holders.all() ?? []),
    take: async (request) => {
      const values = createTakeValues(request);
      const reach = request.isOnlyFrom ? "fromAlone" : "fromAll";
      // Mostly there are none: then nobody waits for the lock of the ledger.
      const isAny = await read(
        (prepared) => prepared?.free[reach].get({ ...values, limit: 1 }) ?? prepared?.missed.get(values),
      );
      if (isAny === undefined) return [];
      const rows = await write(({ take, forgetMissed }) => {
        forgetMissed.run(values);
        return take[reach].all(values);
      });
      return rows.map(createOwnedRun).toSorted(compareOrdinals);
    },
    give: async (runId, owner, to) => {
      const { changes } = await write(({ give }) => give.run({ runId, ...owner, to }));
      if (changes === 0) throw createNotOwnerError(runId, owner);
    },
    list: (id, { after, limit }) =>
      read((prepared) => (prepared?.owned.all(id, after?.ordinal ?? 0, limit) ?? []).map(createOwnedRun)),
    ownersOf: (runIds) =>
      read((prepared) => mapOwnersByRun(prepared?.ownersOf.all(JSON.stringify(runIds)) ?? [])),
    collectArrivals: async (id, limit) => {
      const isAny = await read((prepared) => prepared?.arrivals.get(id, 1) !== undefined);
      if (!isAny) return [];
      const rows = await write(({ arrivals, forgetArrival }) => {
        const arrivalRows = arrivals.all(id, limit);
        for (const { run_key } of arrivalRows) forgetArrival.run(run_key);
        return arrivalRows;
      });
      return rows.map(({ run_id, length }) => ({ runId: run_id as CoordinationId, length }));
    },
  };
}

interface TakeValues {
  readonly owner: string;
  /** JSON. */
  readonly gone: string;
  readonly limit: number;
}

type MissedValues = Pick<TakeValues, "owner" | "gone">;

interface OwnedRow {
  readonly run_key: number;
  readonly run_id: string;
  readonly owner_token: number;
}

interface ArrivalRow {
  readonly run_key: number;
  readonly run_id: string;
  readonly length: number;
}

/** The statement that lists the runs that arrived at an owner. */
type ArrivalStatement = Statement<[ownerId: string, limit: number], ArrivalRow>;

/** One for taking from the named owners alone, one for taking also from owners that are not known. */
type ByReach<T> = Readonly<Record<"fromAlone" | "fromAll", T>>;

interface GiveValues extends OwnerToken {
  readonly runId: string;
  readonly to: string;
}

interface OwnerReads {
  readonly owners: Statement<[], { id: string; process: string | null; beats: number }>;
  readonly holders: Statement<[], string>;
  readonly free: ByReach<Statement<[TakeValues], number>>;
  readonly missed: Statement<[MissedValues], number>;
  readonly owned: Statement<[ownerId: string, after: number, limit: number], OwnedRow>;
  readonly ownersOf: Statement<[runIds: string], OwnerRow & { readonly run_id: string }>;
  readonly arrivals: ArrivalStatement;
}

interface OwnerWrites {
  readonly beat: Statement<[id: string, process: string | null]>;
  readonly remove: Statement<[id: string]>;
  readonly take: ByReach<Statement<[TakeValues], OwnedRow>>;
  readonly give: Statement<[GiveValues]>;
  readonly arrivals: ArrivalStatement;
  readonly forgetArrival: Statement<[runKey: number]>;
  readonly forgetMissed: Statement<[MissedValues]>;
}

function createTakeValues({ owner, from, limit }: TakeRuns): TakeValues {
  return { owner, gone: JSON.stringify(from), limit };
}

function createOwnedRun({ run_key, run_id, owner_token: token }: OwnedRow): OwnedRun {
  return { runId: run_id as CoordinationId, ordinal: run_key, token };
}

function compareOrdinals(one: OwnedRun, other: OwnedRun): number {
  return one.ordinal - other.ordinal;
}

/**
 * Returns the SQL of a table of all who own open runs, the empty id of nobody among them. It goes from owner to owner
 * by their index, so it costs as much as there are owners, not runs; SQLite would take another index.
 */
function formatHolderTable(isOpen: string): string {
  return `
      holder (id) as (
        select min(owner_id) from run indexed by run_by_owner where ${isOpen}
        union all
        select (
          select min(owner_id) from run indexed by run_by_owner where ${isOpen} and owner_id > holder.id
        )
        from holder
        where holder.id is not null
      )`;
}

function formatHoldersQuery(isOpen: string): string {
  return `
    with recursive ${formatHolderTable(isOpen)}
    select id
    from holder
    where id is not null
    order by id`;
}

/** Returns the SQL that selects the keys of open runs that no living owner has. */
function formatOrphanQuery(isOpen: string): string {
  return `
    with recursive ${formatHolderTable(isOpen)},
      living (id) as (
        select @owner
        union all
        select id from run_owner where id not in (select value from json_each(@gone))
      )
    select run_key
    from run indexed by run_by_owner
    where ${isOpen} and owner_id in (
      select id from holder where id is not null and id not in (select id from living)
    )
    order by run_key
    limit @limit`;
}

/** Returns the SQL that selects the keys of open runs of the owners that are named as gone. */
function formatRunsOfGoneQuery(isOpen: string): string {
  return `
    select run_key
    from run indexed by run_by_owner
    where ${isOpen} and owner_id in (select value from json_each(@gone) where value <> @owner)
    order by run_key
    limit @limit`;
}

/**
 * Returns the SQL that selects ended runs that others appended to and whose owner is gone. They are not taken over,
 * and nobody would collect what arrived.
 */
function formatMissedArrivalsQuery(kind: RunKind): string {
  return `
    select run_key
    from run indexed by run_arrived
    where kind = '${kind}' and arrived = 1 and ended = 1 and owner_id <> @owner
      and owner_id not in (
        select id from run_owner where id not in (select value from json_each(@gone))
      )`;
}

/** Returns the SQL that makes `@owner` the owner of the runs that `free` selects. */
function formatTakeStatement(free: string): string {
  return `
    update run
    set owner_id = @owner, owner_token = owner_token + 1
    where run_key in (${free})
    returning run_key, run_id, owner_token`;
}

/** Prepares the query for runs of an owner that others appended to. */
function prepareArrivals(database: Database, kind: RunKind): ArrivalStatement {
  return database.prepare<[string, number], ArrivalRow>(
    `select run_key, run_id, length
     from run
     where kind = '${kind}' and arrived = 1 and owner_id = ?
     order by run_key
     limit ?`,
  );
}

/** Prepares the SQLite statements that read owners, the runs that they own, and those whose owner is gone. */
export function prepareOwnerReads(database: Database, kind: RunKind): OwnerReads {
  const isOpen = `kind = '${kind}' and ended = 0`;
  return {
    owners: database.prepare<[], { id: string; process: string | null; beats: number }>(
      "select id, process, beats from run_owner order by id",
    ),
    holders: database.prepare<[], string>(formatHoldersQuery(isOpen)).pluck(),
    free: {
      fromAlone: database.prepare<[TakeValues], number>(formatRunsOfGoneQuery(isOpen)).pluck(),
      fromAll: database.prepare<[TakeValues], number>(formatOrphanQuery(isOpen)).pluck(),
    },
    missed: database.prepare<[MissedValues], number>(formatMissedArrivalsQuery(kind)).pluck(),
    owned: database.prepare<[string, number, number], OwnedRow>(
      `select run_key, run_id, owner_token
       from run
       where ${isOpen} and owner_id = ? and run_key > ?
       order by run_key
       limit ?`,
    ),
    ownersOf: database.prepare<[string], OwnerRow & { readonly run_id: string }>(
      `select run_id, owner_id, owner_token
       from run
       where run_id in (select value from json_each(?)) and kind = '${kind}'
       order by run_id`,
    ),
    arrivals: prepareArrivals(database, kind),
  };
}

/**
 * Prepares the SQLite statements that record an owner's beats, take runs over or hand them on, and collect what others
 * appended.
 */
export function prepareOwnerWrites(database: Database, kind: RunKind): OwnerWrites {
  const isOpen = `kind = '${kind}' and ended = 0`;
  return {
    beat: database.prepare<[string, string | null]>(
      `insert into run_owner (id, process, beats) values (?, ?, 1)
       on conflict do update set process = excluded.process, beats = beats + 1`,
    ),
    remove: database.prepare<[string]>("delete from run_owner where id = ?"),
    take: {
      fromAlone: database.prepare<[TakeValues], OwnedRow>(formatTakeStatement(formatRunsOfGoneQuery(isOpen))),
      fromAll: database.prepare<[TakeValues], OwnedRow>(formatTakeStatement(formatOrphanQuery(isOpen))),
    },
    give: database.prepare<[GiveValues]>(
      `update run
       set owner_id = @to, owner_token = owner_token + 1, arrived = 1
       where run_id = @runId and ${isOpen} and owner_id = @id and owner_token = @token`,
    ),
    arrivals: prepareArrivals(database, kind),
    forgetArrival: database.prepare<[number]>("update run set arrived = 0 where run_key = ?"),
    forgetMissed: database.prepare<[MissedValues]>(
      `update run set arrived = 0 where run_key in (${formatMissedArrivalsQuery(kind)})`,
    ),
  };
}
