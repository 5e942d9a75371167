/** Owns: the mark of a ledger on a server that is a copy which has not been completed. */
import { COPY_MARK, createCompletedCopyError, type CopyMark } from "../../ledger/half-copy.ts";
import type { SendQuery } from "./connect.ts";
import { hasTable } from "./migrate-schema.ts";

export function hasCopyMark(query: SendQuery): Promise<boolean> {
  return hasTable(query, COPY_MARK);
}

/** Reads the mark; `undefined` for a ledger that is no half copy. */
export async function readCopyMark(query: SendQuery): Promise<CopyMark | undefined> {
  if (!(await hasCopyMark(query))) return undefined;
  const [mark] = await query<CopyMark>(
    `select source, first_hash as "firstHash", events from ${COPY_MARK} order by only_row`,
  );
  return mark;
}

/**
 * Locks the mark of a half copy until the transaction ends, because another process may write to the copy as well.
 * Throws where the mark is gone: another process has completed the copy.
 */
export async function lockCopyMark(place: string, send: SendQuery): Promise<void> {
  if (!(await hasCopyMark(send))) throw createCompletedCopyError(place);
  await send(`select only_row from ${COPY_MARK} order by only_row for update`);
}

/** Marks the ledger as a half copy. A process that had the empty ledger open before is kept from appending to it. */
export async function createCopyMark(send: SendQuery): Promise<void> {
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

/** Writes what the mark says, in place of what it said before. */
export async function replaceCopyMark(
  send: SendQuery,
  { source, firstHash, events }: CopyMark,
): Promise<void> {
  await send(
    `insert into ${COPY_MARK} (only_row, source, first_hash, events)
     values (1, @source, @firstHash, @events)
     on conflict (only_row) do update
     set source = excluded.source, first_hash = excluded.first_hash, events = excluded.events`,
    { source, firstHash, events },
  );
}

/** Takes the mark of a half copy away. */
export async function dropCopyMark(send: SendQuery): Promise<void> {
  await send("drop trigger copy_not_appended on run");
  await send(`drop table ${COPY_MARK}`);
}
