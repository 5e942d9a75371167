/**
 * Owns: which process drives which run (`RunOwners`), of the runs of one kind. Each call is one statement. None waits for a run
 * that an append writes to: it is passed over, and found the next time.
 */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { OwnedRun, RunOwners } from "../../../agents/coordination/ports/run-owners.ts";
import type { OpenLedger } from "../database/commit-queue.ts";
import type { OwnerRow } from "../../ledger/owner-fence.ts";
import type { RunKind } from "../../ledger/stored-run.ts";

interface OwnedRow {
  readonly run_key: number;
  readonly run_id: string;
  readonly owner_token: number;
}

export function createRunOwners(
  { database: { query }, guarded, written }: OpenLedger,
  kind: RunKind,
): RunOwners {
  return {
    beat: async ({ id, process = null }) => {
      await written(() => query(BEAT, { id, process }));
    },
    beats: () =>
      guarded(async () => {
        const rows = await query<{ id: string; process: string | null; beats: number }>(
          "select id, process, beats from run_owner order by id",
        );
        return rows.map(({ id, process, beats }) => ({
          id,
          count: beats,
          ...(process !== null && { process }),
        }));
      }),
    remove: async (id) => {
      await written(() => query("delete from run_owner where id = @id", { id }));
    },
    take: ({ owner, from, limit }) =>
      written(async () => {
        const rows = await query<OwnedRow>(formatTake(kind), { owner, gone: from, limit });
        return rows.map(ownedRunOf);
      }),
    list: (id, { after, limit }) =>
      guarded(async () => {
        const rows = await query<OwnedRow>(
          `select run_key, run_id, owner_token
           from run
           where kind = '${kind}' and ended = 0 and owner_id = @id and run_key > @after
           order by run_key
           limit @limit`,
          { id, after: after?.ordinal ?? 0, limit },
        );
        return rows.map(ownedRunOf);
      }),
    ownerOf: (runId) =>
      guarded(async () => {
        const [row] = await query<OwnerRow>(
          `select owner_id, owner_token from run where run_id = @runId and kind = '${kind}'`,
          { runId },
        );
        return row && row.owner_id !== "" ? { id: row.owner_id, token: row.owner_token } : undefined;
      }),
    collectArrivals: (id, limit) =>
      written(async () => {
        const rows = await query<{ run_id: string; length: number }>(formatCollect(kind), { id, limit });
        return rows.map(({ run_id, length }) => ({ runId: run_id as CoordinationId, length }));
      }),
  };
}

const BEAT = `
  insert into run_owner as owner (id, process, beats)
  values (@id, @process, 1)
  on conflict (id) do update set process = excluded.process, beats = owner.beats + 1`;

function ownedRunOf({ run_key, run_id, owner_token: token }: OwnedRow): OwnedRun {
  return { runId: run_id as CoordinationId, ordinal: run_key, token };
}

/**
 * From one owner to the next by the index, so that finding nothing costs as much as there are owners, and not as much as they
 * have. An append locks the row of its run as well: one of the two is first, and the other sees it.
 */
function formatTake(kind: RunKind): string {
  const isOpen = `kind = '${kind}' and ended = 0`;
  return `
    with recursive
      holder (id) as (
        select min(owner_id) from run where ${isOpen}
        union all
        select (select min(owner_id) from run where ${isOpen} and owner_id > holder.id)
        from holder
        where holder.id is not null
      ),
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
      ),
      free as materialized (
        select run_key
        from run
        where ${isOpen} and owner_id in (select id from gone)
        order by run_key
        limit @limit
        for no key update skip locked
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

function formatCollect(kind: RunKind): string {
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
