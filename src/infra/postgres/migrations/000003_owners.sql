--! breaking
-- An older release would append to runs that another process drives.

-- Who drives the run, and how often that changed. Open runs of before belong to nobody, until a process takes them.
alter table run add column owner_id text collate "C" not null default '';

alter table run add column owner_token bigint not null default 0;

-- 1 where somebody else than the owner appended, until the owner has seen it.
alter table run add column arrived integer not null default 0 check (arrived in (0, 1));

create index run_by_owner on run (kind, owner_id, run_key) where ended = 0;

create index run_arrived on run (kind, owner_id, run_key) where arrived = 1;

drop trigger run_grows on run;

-- An append brings the token that it was checked against: one that somebody else raised meanwhile cannot go back.
create trigger run_grows before update on run
for each row when (
  new.run_key <> old.run_key
  or new.run_id <> old.run_id
  or new.kind <> old.kind
  or new.origin is distinct from old.origin
  or old.ended > new.ended
  or new.length < old.length
  or (
    new.length = old.length
    and (new.head_hash <> old.head_hash or new.summary <> old.summary or new.ended <> old.ended)
  )
  or new.owner_token < old.owner_token
  or (new.owner_id <> old.owner_id and new.owner_token = old.owner_token)
)
execute function refuse_change('the ledger is append-only: a run only grows');

-- The processes that drive runs. `process` tells others of the same machine whether it is there; `beats` grows while it is.
create table run_owner (
  id text collate "C" primary key,
  process text,
  beats bigint not null
);

drop table driver;
