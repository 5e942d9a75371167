/** Owns: which process drives which run (`RunOwners`), of the runs of one kind. What changes owners goes through the write queue. */
import type { Database, Statement } from "better-sqlite3";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { OwnedRun, RunOwners, TakeRuns } from "../../../agents/coordination/ports/run-owners.ts";
import { createOnce } from "../../../agents/coordination/std/load-once.ts";
import type { OwnerRow } from "../../ledger/owner-fence.ts";
import type { RunKind } from "../../ledger/stored-run.ts";
import { loadMigrations } from "../database/migrate.ts";
import { createSchemaStatements } from "../database/schema-statements.ts";
import type { OpenLedger } from "../database/write-queue.ts";

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
      await write(({ remove }) => remove.run(id));
    },
    take: async (request) => {
      const values = valuesOf(request);
      // Mostly there are none: then nobody waits for the lock of the ledger.
      const isAny = await read((prepared) => (prepared?.free.get({ ...values, limit: 1 }) ?? 0) > 0);
      if (!isAny) return [];
      return (await write(({ take }) => take.all(values))).map(ownedRunOf).toSorted(compareOrdinals);
    },
    list: (id, { after, limit }) =>
      read((prepared) => (prepared?.owned.all(id, after?.ordinal ?? 0, limit) ?? []).map(ownedRunOf)),
    ownerOf: (runId) =>
      read((prepared) => {
        const row = prepared?.ownerOf.get(runId);
        return row && row.owner_id !== "" ? { id: row.owner_id, token: row.owner_token } : undefined;
      }),
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

interface OwnerReads {
  readonly owners: Statement<[], { id: string; process: string | null; beats: number }>;
  readonly free: Statement<[TakeValues], number>;
  readonly owned: Statement<[ownerId: string, after: number, limit: number], OwnedRow>;
  readonly ownerOf: Statement<[runId: string], OwnerRow>;
  readonly arrivals: Arrivals;
}

interface OwnerWrites {
  readonly beat: Statement<[id: string, process: string | null]>;
  readonly remove: Statement<[id: string]>;
  readonly take: Statement<[TakeValues], OwnedRow>;
  readonly arrivals: Arrivals;
  readonly forgetArrival: Statement<[runKey: number]>;
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
 * Selects the keys of open runs that no living owner has. From one owner to the next by the index, so that it costs as much as
 * there are owners, and not as much as they have. SQLite itself would take the index of all open runs.
 */
function selectFree(isOpen: string): string {
  return `
    with recursive
      holder (id) as (
        select min(owner_id) from run indexed by run_by_owner where ${isOpen}
        union all
        select (
          select min(owner_id) from run indexed by run_by_owner where ${isOpen} and owner_id > holder.id
        )
        from holder
        where holder.id is not null
      ),
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

function prepareArrivals(database: Database, kind: RunKind): Arrivals {
  return database.prepare<[string, number], ArrivalRow>(
    `select run_key, run_id, length
     from run
     where kind = '${kind}' and arrived = 1 and owner_id = ?
     order by run_key
     limit ?`,
  );
}

function prepareOwnerReads(database: Database, kind: RunKind): OwnerReads {
  const isOpen = `kind = '${kind}' and ended = 0`;
  return {
    owners: database.prepare<[], { id: string; process: string | null; beats: number }>(
      "select id, process, beats from run_owner order by id",
    ),
    free: database.prepare<[TakeValues], number>(selectFree(isOpen)).pluck(),
    owned: database.prepare<[string, number, number], OwnedRow>(
      `select run_key, run_id, owner_token
       from run
       where ${isOpen} and owner_id = ? and run_key > ?
       order by run_key
       limit ?`,
    ),
    ownerOf: database.prepare<[string], OwnerRow>(
      `select owner_id, owner_token from run where run_id = ? and kind = '${kind}'`,
    ),
    arrivals: prepareArrivals(database, kind),
  };
}

function prepareOwnerWrites(database: Database, kind: RunKind): OwnerWrites {
  return {
    beat: database.prepare<[string, string | null]>(
      `insert into run_owner (id, process, beats) values (?, ?, 1)
       on conflict do update set process = excluded.process, beats = beats + 1`,
    ),
    remove: database.prepare<[string]>("delete from run_owner where id = ?"),
    take: database.prepare<[TakeValues], OwnedRow>(
      `update run
       set owner_id = @owner, owner_token = owner_token + 1
       where run_key in (${selectFree(`kind = '${kind}' and ended = 0`)})
       returning run_key, run_id, owner_token`,
    ),
    arrivals: prepareArrivals(database, kind),
    forgetArrival: database.prepare<[number]>("update run set arrived = 0 where run_key = ?"),
  };
}
