--! breaking
-- An older release would take what was removed for damage, and would give the ids of removed runs again.

-- The trace of each run that was removed with all its events: so what is left still proves that nothing else is missing.
create table pruned_run (
  run_key integer primary key,
  run_id text not null unique,
  kind text not null check (kind in ('coordination', 'workflow')),
  length integer not null check (length > 0),
  head_hash blob not null check (length(head_hash) = 32),
  -- The numbers of its first and of its newest event in the ledger.
  first_event integer not null,
  newest_event integer not null check (newest_event >= first_event),
  -- How many claims its events acquired.
  claims integer not null check (claims >= 0),
  pruned_at_ms integer not null
) strict;

create trigger pruned_run_has_ended before insert on pruned_run
when not exists (
    select 1
    from run
    where run_key = new.run_key
      and run_id = new.run_id
      and kind = new.kind
      and length = new.length
      and head_hash = new.head_hash
      and ended = 1
      and arrived = 0
  )
  or exists (select 1 from pruned_run where run_key = new.run_key or run_id = new.run_id)
begin
  select raise(abort, 'only a run that has ended can be pruned');
end;

create trigger pruned_run_no_update before update on pruned_run
begin
  select raise(abort, 'the trace of a pruned run cannot be changed');
end;

create trigger pruned_run_no_delete before delete on pruned_run
begin
  select raise(abort, 'the trace of a pruned run cannot be removed');
end;

-- An event leaves the ledger only with the whole of its run (L1).
drop trigger event_no_delete;

create trigger event_no_delete before delete on event
when not exists (select 1 from pruned_run where run_key = old.run_key)
begin
  select raise(abort, 'the ledger is append-only: an event cannot be removed');
end;

drop trigger run_no_delete;

-- The newest run stays too: SQLite would give its number again.
create trigger run_no_delete before delete on run
when not exists (select 1 from pruned_run where run_key = old.run_key)
  or exists (select 1 from event where run_key = old.run_key)
  or old.run_key = (select max(run_key) from run)
begin
  select raise(abort, 'the ledger is append-only: a run cannot be removed');
end;

drop trigger run_no_replace;

create trigger run_no_replace before insert on run
when exists (select 1 from run where run_id = new.run_id or run_key = new.run_key)
  or exists (select 1 from pruned_run where run_id = new.run_id or run_key = new.run_key)
begin
  select raise(abort, 'the ledger is append-only: a run cannot be replaced');
end;

drop trigger reference_no_delete;

create trigger reference_no_delete before delete on reference
when not exists (select 1 from pruned_run where run_key = old.run_key)
begin
  select raise(abort, 'the ledger is append-only: a reference cannot be removed');
end;

drop trigger run_label_no_delete;

create trigger run_label_no_delete before delete on run_label
when not exists (select 1 from pruned_run where run_key = old.run_key)
begin
  select raise(abort, 'a label of the ledger cannot be removed');
end;

-- Each event that is removed is looked up here.
create index workspace_by_event on workspace_version (event_key);
