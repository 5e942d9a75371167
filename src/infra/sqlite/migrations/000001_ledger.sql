--! breaking
-- Append-only is enforced here, not in the code above (L1, L2). A rowid table with an integer run key appends 2.5 times
-- as many durable events a second as one keyed by text, and takes three quarters of its space.

create table run (
  run_key integer primary key,
  run_id text not null unique,
  length integer not null check (length > 0),
  head_hash blob not null check (length(head_hash) = 32),
  ended integer not null check (ended in (0, 1)),
  summary text not null
) strict;

create index run_open on run (run_key) where ended = 0;

create table event (
  event_key integer primary key autoincrement,
  run_key integer not null references run (run_key),
  sequence integer not null check (sequence >= 0),
  type text not null,
  timestamp_ms integer not null,
  node_id text,
  causation_id text,
  payload text not null,
  hash blob not null check (length(hash) = 32),
  unique (run_key, sequence)
) strict;

create table reference (
  reference_key integer primary key,
  name text not null,
  run_key integer not null references run (run_key),
  step_id text
) strict;

create index reference_by_name on reference (name, reference_key);

create index reference_by_run on reference (run_key);

-- In the order of storing: a text that is stored again moves to the end, so deleting old ones begins at the front.
create table content (
  content_key integer primary key,
  sha256 text not null unique check (length(sha256) = 64),
  stored_at_ms integer not null,
  text text not null
) strict;

create trigger event_no_update before update on event
begin
  select raise(abort, 'the ledger is append-only: an event cannot be changed');
end;

create trigger event_no_delete before delete on event
begin
  select raise(abort, 'the ledger is append-only: an event cannot be removed');
end;

-- L2. It also stops `insert or replace`, which skips delete triggers unless recursive_triggers is set.
create trigger event_in_order before insert on event
when new.sequence <> coalesce((select max(sequence) + 1 from event where run_key = new.run_key), 0)
  or exists (select 1 from event where event_key = new.event_key)
begin
  select raise(abort, 'ledger position taken or out of order');
end;

create trigger run_no_delete before delete on run
begin
  select raise(abort, 'the ledger is append-only: a run cannot be removed');
end;

create trigger run_no_replace before insert on run
when exists (select 1 from run where run_id = new.run_id or run_key = new.run_key)
begin
  select raise(abort, 'the ledger is append-only: a run cannot be replaced');
end;

create trigger run_grows before update on run
when new.run_key <> old.run_key or new.run_id <> old.run_id or new.length <= old.length or old.ended > new.ended
begin
  select raise(abort, 'the ledger is append-only: a run only grows');
end;

create trigger reference_no_update before update on reference
begin
  select raise(abort, 'the ledger is append-only: a reference cannot be changed');
end;

create trigger reference_no_delete before delete on reference
begin
  select raise(abort, 'the ledger is append-only: a reference cannot be removed');
end;

create trigger reference_no_replace before insert on reference
when exists (select 1 from reference where reference_key = new.reference_key)
begin
  select raise(abort, 'the ledger is append-only: a reference cannot be replaced');
end;
