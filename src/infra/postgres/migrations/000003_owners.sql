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

drop trigger event_counted on event;

drop function count_events();

-- The server keeps the plan of what a function asks, also when the tables were empty that it was made for. A lookup whose row is
-- compared with null is made by index; `not exists` may become a walk through all events of the ledger.
create function count_events() returns trigger language plpgsql set enable_seqscan = off as $$
begin
  update ledger_count
  set events = events + added.rows
  from (select count(*) as rows, min(event_key) as first, max(event_key) as last from added_event) as added
  where only_row = 1
    and (added.rows = 0 or (added.first = events + 1 and added.last = events + added.rows));
  if not found then
    raise exception using errcode = 'integrity_constraint_violation', message = 'events are numbered one after the other';
  end if;
  if exists (
    select 1
    from (
      select run_key, count(*) as rows, min(sequence) as first, max(sequence) as last
      from added_event
      group by run_key
    ) as added
    where added.last - added.first + 1 <> added.rows
      or coalesce((select run.length from run where run.run_key = added.run_key), 0) <= added.last
      or (added.first > 0 and (
        select before.event_key from event as before where before.run_key = added.run_key and before.sequence = added.first - 1
      ) is null)
  ) then
    raise exception using errcode = 'integrity_constraint_violation', message = 'ledger position taken or out of order';
  end if;
  return null;
end
$$;

create trigger event_counted after insert on event
referencing new table as added_event
for each statement execute function count_events();
