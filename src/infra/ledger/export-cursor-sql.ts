/** Owns: the statements about exports of the ledger, which both databases understand. */

/** Takes an export that nobody has, that its holder has, or whose holder was not heard of. */
export const TAKE_EXPORT = `
  insert into export_cursor (name, position, holder, until_ms)
  values (@name, @from, @holder, @untilMs)
  on conflict (name) do update
  set holder = excluded.holder, until_ms = excluded.until_ms
  where export_cursor.holder = excluded.holder or export_cursor.until_ms <= @nowMs
  returning position`;

/** Moves an export on, of whoever has it. */
export const ADVANCE_EXPORT = `
  update export_cursor
  set position = @position, until_ms = @untilMs
  where name = @name and holder = @holder and position <= @position
  returning name`;
