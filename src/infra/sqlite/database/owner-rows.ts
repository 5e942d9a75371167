/** Owns: which process drives which run (`RunOwners`), of the runs of one kind. Changes of owners go through the write queue. */
import type { Database, Statement } from "better-sqlite3";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type {
  OwnedRun,
  OwnerToken,
  RunOwners,
  TakeRuns,
} from "../../../agents/coordination/ports/run-owners.ts";
import { createOnce } from "../../../agents/coordination/std/load-once.ts";
import { createNotOwner, listOwners, NOBODY, type OwnerRow } from "../../ledger/owner-fence.ts";
import type { RunKind } from "../../ledger/stored-run.ts";
import { loadMigrations } from "./migrate.ts";
import { createSchemaStatements } from "./schema-statements.ts";
import type { OpenLedger } from "./write-queue.ts";

/** The schema that has owners of runs. */
const OWNERS_SINCE_VERSION = 8;

export function createRunOwners({ database, guarded, queued }: OpenLedger, kind: RunKind): RunOwners {
  const reads = createSchemaStatements(database, loadMigrations().length, (version) =>
    version < OWNERS_SINCE_VERSION ? undefined : prepareOwnerReads(database, kind),
  );
  const writes = createOnce(() => prepareOwnerWrites(database, kind));
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
      const values = valuesOf(request);
      const by = request.isOnlyFrom ? "fromAlone" : "fromAll";
      // Mostly there are none: then nobody waits for the lock of the ledger.
      const isAny = await read(
        (prepared) => prepared?.free[by].get({ ...values, limit: 1 }) ?? prepared?.missed.get(values),
      );
      if (isAny === undefined) return [];
      const rows = await write(({ take, forgetMissed }) => {
        forgetMissed.run(values);
        return take[by].all(values);
      });
      return rows.map(ownedRunOf).toSorted(compareOrdinals);
    },
    give: async (runId, owner, to) => {
      const { changes } = await write(({ give }) => give.run({ runId, ...owner, to }));
      if (changes === 0) throw createNotOwner(runId, owner);
    },
    list: (id, { after, limit }) =>
      read((prepared) => (prepared?.owned.all(id, after?.ordinal ?? 0, limit) ?? []).map(ownedRunOf)),
    ownersOf: (runIds) =>
      read((prepared) => listOwners(prepared?.ownersOf.all(JSON.stringify(runIds)) ?? [])),
    collectArrivals: async (id, limit) => {
      const isAny = await read((prepared) => prepared?.arrivals.get(id, 1) !== undefined);
      if (!isAny) return [];
      const rows = await write(({ arrivals, forgetArrival }) => {
        const found = arrivals.all(id, limit);
        for (const { run_key } of found) forgetArrival.run(run_key);
        return found;
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

type Arrivals = Statement<[ownerId: string, limit: number], ArrivalRow>;

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
  readonly arrivals: Arrivals;
}

interface OwnerWrites {
  readonly beat: Statement<[id: string, process: string | null]>;
  readonly remove: Statement<[id: string]>;
  readonly take: ByReach<Statement<[TakeValues], OwnedRow>>;
  readonly give: Statement<[GiveValues]>;
  readonly arrivals: Arrivals;
  readonly forgetArrival: Statement<[runKey: number]>;
  readonly forgetMissed: Statement<[MissedValues]>;
}

function valuesOf({ owner, from, limit }: TakeRuns): TakeValues {
  return { owner, gone: JSON.stringify(from), limit };
}

function ownedRunOf({ run_key, run_id, owner_token: token }: OwnedRow): OwnedRun {
  return { runId: run_id as CoordinationId, ordinal: run_key, token };
}

function compareOrdinals(one: OwnedRun, other: OwnedRun): number {
  return one.ordinal - other.ordinal;
}

/**
 * From one owner to the next by the index, so that it costs as much as there are owners, and not as much as they have. SQLite
 * itself would take the index of all open runs.
 */
function formatHolder(isOpen: string): string {
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

function selectHolders(isOpen: string): string {
  return `
    with recursive ${formatHolder(isOpen)}
    select id
    from holder
    where id is not null
    order by id`;
}

/** Selects the keys of open runs that no living owner has. */
function selectFree(isOpen: string): string {
  return `
    with recursive ${formatHolder(isOpen)},
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

/** Selects the keys of open runs of those who are named. */
function selectFreeFrom(isOpen: string): string {
  return `
    select run_key
    from run indexed by run_by_owner
    where ${isOpen} and owner_id in (select value from json_each(@gone) where value <> @owner)
    order by run_key
    limit @limit`;
}

/** Ended runs are not taken over: where their owner is gone, nobody would collect that others appended to them. */
function selectMissed(kind: RunKind): string {
  return `
    select run_key
    from run indexed by run_arrived
    where kind = '${kind}' and arrived = 1 and ended = 1 and owner_id <> @owner
      and owner_id not in (
        select id from run_owner where id not in (select value from json_each(@gone))
      )`;
}

function formatTake(free: string): string {
  return `
    update run
    set owner_id = @owner, owner_token = owner_token + 1
    where run_key in (${free})
    returning run_key, run_id, owner_token`;
}

function prepareArrivals(database: Database, kind: RunKind): Arrivals {
  return database.prepare<[string, number], ArrivalRow>(
    `select run_key, run_id, length
     from run
     where kind = '${kind}' and arrived = 1 and owner_id = ?
     order by run_key
     limit ?`,
  );
}

export function prepareOwnerReads(database: Database, kind: RunKind): OwnerReads {
  const isOpen = `kind = '${kind}' and ended = 0`;
  return {
    owners: database.prepare<[], { id: string; process: string | null; beats: number }>(
      "select id, process, beats from run_owner order by id",
    ),
    holders: database.prepare<[], string>(selectHolders(isOpen)).pluck(),
    free: {
      fromAlone: database.prepare<[TakeValues], number>(selectFreeFrom(isOpen)).pluck(),
      fromAll: database.prepare<[TakeValues], number>(selectFree(isOpen)).pluck(),
    },
    missed: database.prepare<[MissedValues], number>(selectMissed(kind)).pluck(),
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

export function prepareOwnerWrites(database: Database, kind: RunKind): OwnerWrites {
  const isOpen = `kind = '${kind}' and ended = 0`;
  return {
    beat: database.prepare<[string, string | null]>(
      `insert into run_owner (id, process, beats) values (?, ?, 1)
       on conflict do update set process = excluded.process, beats = beats + 1`,
    ),
    remove: database.prepare<[string]>("delete from run_owner where id = ?"),
    take: {
      fromAlone: database.prepare<[TakeValues], OwnedRow>(formatTake(selectFreeFrom(isOpen))),
      fromAll: database.prepare<[TakeValues], OwnedRow>(formatTake(selectFree(isOpen))),
    },
    give: database.prepare<[GiveValues]>(
      `update run
       set owner_id = @to, owner_token = owner_token + 1, arrived = 1
       where run_id = @runId and ${isOpen} and owner_id = @id and owner_token = @token`,
    ),
    arrivals: prepareArrivals(database, kind),
    forgetArrival: database.prepare<[number]>("update run set arrived = 0 where run_key = ?"),
    forgetMissed: database.prepare<[MissedValues]>(
      `update run set arrived = 0 where run_key in (${selectMissed(kind)})`,
    ),
  };
}
