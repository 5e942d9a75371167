--! breaking
-- An older release would delete texts that a running coordination still needs.

-- Which coordinations keep which texts. A row may go when its coordination has ended. By coordination first, so that
-- the few that keep texts are found without passing over all they keep.
create table content_use (
  run_key integer not null references run (run_key),
  sha256 text not null check (length(sha256) = 64),
  primary key (run_key, sha256)
) strict, without rowid;

create index content_use_by_text on content_use (sha256);

-- 1 where `content_use` names the text. The last column, so that changing it leaves the pages of a long text alone.
alter table content add column kept integer not null default 0 check (kept in (0, 1));

-- What may be deleted, oldest first: kept texts are not in it and cost a sweep nothing.
create index content_by_age on content (stored_at_ms) where kept = 0;
