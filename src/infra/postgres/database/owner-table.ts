/**
 * Owns: which process drives which run (`RunOwners`), of the runs of one kind. Each change of owners is one statement. Except
 * `give`, none waits for a run that an append writes to: it is passed over, and found the next time.
 */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { OwnedRun, OwnerBeat, RunOwners } from "../../../agents/coordination/ports/run-owners.ts";
import type { OpenLedger } from "./commit-queue.ts";
import { assertNotMigratedSince } from "./migrate-schema.ts";
import { createNotOwnerError, mapOwnersByRun, NOBODY, type OwnerRow } from "../../ledger/owner-fence.ts";
import type { RunKind } from "../../ledger/stored-run.ts";

interface BeatRow {
  readonly id: string;
  readonly process: string | null;
  readonly beats: number;
}

interface OwnedRow {
  readonly run_key: number;
  readonly run_id: string;
  readonly owner_token: number;
}

/**
 * Creates the access to the processes that own runs of a kind in a PostgreSQL ledger: their beats (signs of life),
 * which runs each owns, and taking runs over.
 */
export function createRunOwners(
  { database: { name, query }, guarded, written }: OpenLedger,
  kind: RunKind,
): RunOwners {
  return {
    beat: async ({ id, process = null }) => {
      await written(async (write) => {
        // Whoever can append no more because of a newer release leaves its runs to others.
        await assertNotMigratedSince(name, query);
        await write(BEAT, { id, process });
      });
    },
    beats: () =>
      guarded(async () => {
        const rows = await query<BeatRow>("select id, process, beats from run_owner order by id");
        return rows.map(createOwnerBeat);
      }),
    remove: async (id) => {
      await written(async (write) => {
        await write("delete from run_owner where id = @id", { id });
        await write(formatForgetMissedStatement(kind), { owner: NOBODY.owner_id, gone: [id] });
      });
    },
    holders: () =>
      guarded(async () => {
        const rows = await query<{ id: string }>(formatHoldersQuery(kind));
        return rows.map(({ id }) => id);
      }),
    take: ({ owner, from, limit, isOnlyFrom = false }) =>
      written(async (write) => {
        await write(formatForgetMissedStatement(kind), { owner, gone: from });
        const rows = await write<OwnedRow>(formatTakeStatement(kind, isOnlyFrom), {
          owner,
          gone: from,
          limit,
        });
        return rows.map(createOwnedRun);
      }),
    give: (runId, owner, to) =>
      written(async (write) => {
        const rows = await write(formatGiveStatement(kind), { runId, ...owner, to });
        if (rows.length === 0) throw createNotOwnerError(runId, owner);
      }),
    list: (id, { after, limit }) =>
      guarded(async () => {
        const page = { id, after: after?.ordinal ?? 0, limit };
        const rows = await query<OwnedRow>(formatOwnedRunsQuery(kind), page);
        return rows.map(createOwnedRun);
      }),
    ownersOf: (runIds) =>
      guarded(async () => mapOwnersByRun(await query<OwnerOfRun>(formatRunOwnersQuery(kind), { runIds }))),
    collectArrivals: (id, limit) =>
      written(async (write) => {
        const rows = await write<{ run_id: string; length: number }>(formatCollectStatement(kind), {
          id,
          limit,
        });
        return rows.map(({ run_id, length }) => ({ runId: run_id as CoordinationId, length }));
      }),
  };
}

type OwnerOfRun = OwnerRow & { readonly run_id: string };

function formatRunOwnersQuery(kind: RunKind): string {
  return `
    select run_id, owner_id, owner_token
    from run
    where run_id = any (@runIds::text[]) and kind = '${kind}'
    order by run_id`;
}

/** Returns the SQL that lists a page of the open runs of a kind that one owner has. */
export function formatOwnedRunsQuery(kind: RunKind): string {
  return `
    select run_key, run_id, owner_token
    from run
    where kind = '${kind}' and ended = 0 and owner_id = @id and run_key > @after
    order by run_key
    limit @limit`;
}

const BEAT = `
  insert into run_owner as owner (id, process, beats)
  values (@id, @process, 1)
  on conflict (id) do update set process = excluded.process, beats = owner.beats + 1`;

function createOwnerBeat({ id, process, beats: count }: BeatRow): OwnerBeat {
  return { id, count, ...(process !== null && { process }) };
}

function createOwnedRun({ run_key, run_id, owner_token: token }: OwnedRow): OwnedRun {
  return { runId: run_id as CoordinationId, ordinal: run_key, token };
}

/**
 * Returns the SQL of a table of all who own open runs, the empty id of nobody among them. It goes from one owner to
 * the next by the index, so that it costs as much as there are owners, and not as much as they have.
 */
function formatHolderTable(isOpen: string): string {
  return `
      holder (id) as (
        select min(owner_id) from run where ${isOpen}
        union all
        select (select min(owner_id) from run where ${isOpen} and owner_id > holder.id)
        from holder
        where holder.id is not null
      )`;
}

/**
 * Returns the SQL that lists the ids of all owners that have an open run of a kind, and an empty id where nobody owns
 * one.
 */
export function formatHoldersQuery(kind: RunKind): string {
  return `
    with recursive ${formatHolderTable(`kind = '${kind}' and ended = 0`)}
    select id
    from holder
    where id is not null
    order by id`;
}

const FROM_ALONE = `
      gone (id) as materialized (
        select distinct id from unnest(@gone::text[]) as given (id) where id <> @owner
      )`;

const FROM_AND_UNHEARD_OF = `
      gone (id) as materialized (
        select id
        from holder
        where id is not null
          and id <> @owner
          and not exists (
            select 1
            from run_owner
            where run_owner.id = holder.id and run_owner.id <> all (@gone::text[])
          )
      )`;

/**
 * Returns the SQL that makes `@owner` the owner of open runs whose owner is gone, and returns those runs. It goes
 * owner by owner: over the runs of all of them the server would go through every run there is, the oldest first. An
 * append locks the row of its run as well: one of the two is first, and the other sees it.
 */
export function formatTakeStatement(kind: RunKind, isOnlyFrom: boolean): string {
  const isOpen = `kind = '${kind}' and ended = 0`;
  return `
    with recursive
      ${isOnlyFrom ? FROM_ALONE : `${formatHolderTable(isOpen)},${FROM_AND_UNHEARD_OF}`},
      free as materialized (
        select run_key
        from gone
        cross join lateral (
          select run_key
          from run
          where ${isOpen} and owner_id = gone.id
          order by run_key
          limit @limit
          for no key update skip locked
        ) as candidate
        order by run_key
        limit @limit
      ),
      moved as (
        update run
        set owner_id = @owner, owner_token = owner_token + 1
        from free
        where run.run_key = free.run_key
        returning run.run_key, run.run_id, run.owner_token
      )
    select run_key, run_id, owner_token
    from moved
    order by run_key`;
}

/**
 * Returns the SQL that clears the mark `arrived` of ended runs whose owner is gone. Nobody takes such runs over, so
 * nobody would collect what others appended to them.
 */
export function formatForgetMissedStatement(kind: RunKind): string {
  return `
    with missed as materialized (
      select run_key
      from run
      where kind = '${kind}' and arrived = 1 and ended = 1 and owner_id <> @owner
        and not exists (
          select 1
          from run_owner
          where run_owner.id = run.owner_id and run_owner.id <> all (@gone::text[])
        )
      for no key update of run skip locked
    )
    update run
    set arrived = 0
    from missed
    where run.run_key = missed.run_key`;
}

/**
 * Returns the SQL that gives a run to another owner. It waits for an append that is under way: after one of the owner
 * the run still has the token, after a takeover it does not.
 */
function formatGiveStatement(kind: RunKind): string {
  return `
    update run
    set owner_id = @to, owner_token = owner_token + 1, arrived = 1
    where run_id = @runId and kind = '${kind}' and ended = 0 and owner_id = @id and owner_token = @token
    returning run_key`;
}

/**
 * Returns the SQL that returns the runs of an owner that other processes appended to since the last time, and clears
 * their mark `arrived`.
 */
export function formatCollectStatement(kind: RunKind): string {
  return `
    with
      arrival as materialized (
        select run_key
        from run
        where kind = '${kind}' and arrived = 1 and owner_id = @id
        order by run_key
        limit @limit
        for no key update skip locked
      ),
      seen as (
        update run
        set arrived = 0
        from arrival
        where run.run_key = arrival.run_key
        returning run.run_key, run.run_id, run.length
      )
    select run_id, length
    from seen
    order by run_key`;
}
