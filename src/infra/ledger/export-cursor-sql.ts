/** Owns: the statements about exports of the ledger, which both databases understand. */

export const FIND_HOLDER = "select holder, beats from export_cursor where name = @name and holder <> ''";

/** Takes an export that nobody has, that its holder has, or whose holder did not tell of itself since. */
export const TAKE_EXPORT = `
  insert into export_cursor (name, position, holder, beats)
  values (@name, @from, @holder, 0)
  on conflict (name) do update
  set holder = excluded.holder, beats = export_cursor.beats + 1
  where export_cursor.holder in ('', excluded.holder)
    or (export_cursor.holder = @silentHolder and export_cursor.beats = @silentBeats)
  returning position`;

/** Moves an export on, of whoever has it. */
export const ADVANCE_EXPORT = `
  update export_cursor
  set position = @position, beats = beats + 1
  where name = @name and holder = @holder and position <= @position
  returning name`;

export const RELEASE_EXPORT = `
  update export_cursor set holder = '' where name = @name and holder = @holder returning name`;
