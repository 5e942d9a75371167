--! breaking
-- An older release would take what was removed for damage, and would give the ids of removed runs again.

-- The trace of each run that was removed with all its events: so what is left still proves that nothing else is missing.
create table pruned_run (
  run_key bigint primary key,
  run_id text collate "C" not null unique,
  kind text not null check (kind in ('coordination', 'workflow')),
  length bigint not null check (length > 0),
  head_hash bytea not null check (length(head_hash) = 32),
  -- The numbers of its first and of its newest event in the ledger.
  first_event bigint not null,
  newest_event bigint not null check (newest_event >= first_event),
  -- How many claims its events acquired.
  claims bigint not null check (claims >= 0),
  pruned_at_ms bigint not null
);

create function check_pruned_run() returns trigger language plpgsql as $$
begin
  if not exists (
    select 1
    from run
    where run_key = new.run_key
      and run_id = new.run_id
      and kind = new.kind
      and length = new.length
      and head_hash = new.head_hash
      and ended = 1
      and arrived = 0
  ) then
    raise exception using errcode = 'integrity_constraint_violation', message = 'only a run that has ended can be pruned';
  end if;
  return new;
end
$$;

create trigger pruned_run_has_ended before insert on pruned_run
for each row execute function check_pruned_run();

create trigger pruned_run_stays before update or delete or truncate on pruned_run
for each statement execute function refuse_change('the trace of a pruned run cannot be changed or removed');

-- For a whole statement at once. An event leaves the ledger only with the whole of its run (L1).
create function check_removed() returns trigger language plpgsql as $$
begin
  if exists (
    select 1
    from removed
    where not exists (select 1 from pruned_run where pruned_run.run_key = removed.run_key)
  ) then
    raise exception using errcode = 'integrity_constraint_violation', message = tg_argv[0];
  end if;
  return null;
end
$$;

drop trigger event_stays on event;

create trigger event_stays before update or truncate on event
for each statement execute function refuse_change('the ledger is append-only: an event cannot be changed or removed');

create trigger event_removed after delete on event
referencing old table as removed
for each statement execute function check_removed('the ledger is append-only: an event cannot be changed or removed');

drop trigger run_stays on run;

create trigger run_stays before truncate on run
for each statement execute function refuse_change('the ledger is append-only: a run cannot be removed');

create trigger run_removed after delete on run
referencing old table as removed
for each statement execute function check_removed('the ledger is append-only: a run cannot be removed');

drop trigger reference_stays on reference;

create trigger reference_stays before update or truncate on reference
for each statement execute function refuse_change('the ledger is append-only: a reference cannot be changed or removed');

create trigger reference_removed after delete on reference
referencing old table as removed
for each statement execute function check_removed('the ledger is append-only: a reference cannot be changed or removed');

drop trigger run_label_stays on run_label;

create trigger run_label_stays before update or truncate on run_label
for each statement execute function refuse_change('a label of the ledger cannot be changed or removed');

create trigger run_label_removed after delete on run_label
referencing old table as removed
for each statement execute function check_removed('a label of the ledger cannot be changed or removed');

-- Each event that is removed is looked up here.
create index workspace_by_event on workspace_version (event_key);
