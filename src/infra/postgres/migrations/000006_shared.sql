--! breaking
-- An older release would take coordinations that were moved here for those of any gateway.

-- The gateway whose own ledger was copied here: what names no gateway was opened there.
alter table ledger_count add column moved_from text collate "C" check (moved_from <> '');

-- Whoever appends locks the row, and so sees at no cost that a newer release has changed the schema meanwhile.
alter table ledger_count add column newest_migration integer not null default 0;
