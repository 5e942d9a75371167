--! breaking
-- Append-only is enforced here, not in the code above (L1, L2). Texts that are compared have the collation of SQLite, so that
-- both order alike. Flags are 0 and 1 and JSON is text, as in SQLite: a ledger that is copied has equal hashes.

-- The numbers given so far, each without a gap. Whoever appends locks the row first: so events are committed in the order of
-- their numbers, and no event comes before a number that was read. A sequence or an identity promises neither.
create table ledger_count (
  only_row integer primary key check (only_row = 1),
  events bigint not null,
  runs bigint not null,
  claim_token bigint not null
) with (fillfactor = 10);

insert into ledger_count (only_row, events, runs, claim_token)
values (1, 0, 0, 0);

create table run (
  run_key bigint primary key,
  run_id text collate "C" not null unique,
  kind text not null check (kind in ('coordination', 'workflow')),
  length bigint not null check (length > 0),
  head_hash bytea not null check (length(head_hash) = 32),
  ended integer not null check (ended in (0, 1)),
  summary text not null,
  origin text
);

create index run_open on run (kind, run_key) where ended = 0;

create index run_by_kind on run (kind, run_key);

create table event (
  event_key bigint primary key,
  run_key bigint not null,
  sequence bigint not null check (sequence >= 0),
  type text not null,
  timestamp_ms bigint not null,
  node_id text collate "C",
  causation_id text collate "C",
  payload text not null,
  hash bytea not null check (length(hash) = 32),
  unique (run_key, sequence)
);

create index event_by_time on event (timestamp_ms, event_key);

create index event_by_step on event (run_key, node_id, event_key) where node_id is not null;

create index event_by_cause on event (run_key, causation_id, event_key) where causation_id is not null;

create table reference (
  reference_key bigint generated always as identity primary key,
  name text collate "C" not null,
  run_key bigint not null references run (run_key),
  step_id text
);

create index reference_by_name on reference (name, reference_key);

create index reference_by_run on reference (run_key, reference_key);

create table run_label (
  kind text collate "C" not null,
  value text collate "C" not null,
  started_at_ms bigint not null,
  run_key bigint not null,
  step_id text collate "C" not null,
  primary key (kind, value, started_at_ms, run_key, step_id)
);

create table content (
  sha256 text collate "C" primary key check (length(sha256) = 64),
  stored_at_ms bigint not null,
  text text not null,
  kept integer not null default 0 check (kept in (0, 1))
);

create index content_by_age on content (stored_at_ms) where kept = 0;

-- Which coordinations keep which texts. A row may go when its coordination has ended.
create table content_use (
  run_key bigint not null references run (run_key),
  sha256 text collate "C" not null check (length(sha256) = 64),
  primary key (run_key, sha256)
);

create index content_use_by_text on content_use (sha256);

-- The claims that were not released. An index and not the log: a renewal changes a row and a release removes it.
create table claim (
  token bigint primary key,
  resource text collate "C" not null,
  run_key bigint not null references run (run_key),
  step_id text collate "C" not null,
  priority text not null,
  acquired_at_ms bigint not null,
  expires_at_ms bigint not null
);

create index claim_by_resource on claim (resource, expires_at_ms, run_key, step_id);

create index claim_by_run on claim (run_key, token);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception using errcode = 'integrity_constraint_violation', message = tg_argv[0];
end
$$;

create trigger ledger_count_stays before delete or truncate on ledger_count
for each statement execute function refuse_change('the count of the ledger cannot be removed');

create trigger ledger_count_grows before update on ledger_count
for each row when (new.events < old.events or new.runs < old.runs or new.claim_token < old.claim_token)
execute function refuse_change('the count of the ledger only grows');

create trigger event_stays before update or delete or truncate on event
for each statement execute function refuse_change('the ledger is append-only: an event cannot be changed or removed');

create trigger run_stays before delete or truncate on run
for each statement execute function refuse_change('the ledger is append-only: a run cannot be removed');

create trigger run_grows before update on run
for each row when (
  new.run_key <> old.run_key
  or new.run_id <> old.run_id
  or new.kind <> old.kind
  or new.origin is distinct from old.origin
  or new.length <= old.length
  or old.ended > new.ended
)
execute function refuse_change('the ledger is append-only: a run only grows');

create trigger reference_stays before update or delete or truncate on reference
for each statement execute function refuse_change('the ledger is append-only: a reference cannot be changed or removed');

create trigger run_label_stays before update or delete or truncate on run_label
for each statement execute function refuse_change('a label of the ledger cannot be changed or removed');

create trigger claim_changes before update on claim
for each row when (
  new.token <> old.token
  or new.resource <> old.resource
  or new.run_key <> old.run_key
  or new.step_id <> old.step_id
  or new.priority <> old.priority
  or new.acquired_at_ms <> old.acquired_at_ms
)
execute function refuse_change('of a claim only the expiry changes');

create function count_runs() returns trigger language plpgsql as $$
begin
  update ledger_count
  set runs = runs + added.rows
  from (select count(*) as rows, min(run_key) as first, max(run_key) as last from added_run) as added
  where added.rows = 0 or (added.first = runs + 1 and added.last = runs + added.rows);
  if not found then
    raise exception using errcode = 'integrity_constraint_violation', message = 'runs are numbered one after the other';
  end if;
  return null;
end
$$;

create trigger run_counted after insert on run
referencing new table as added_run
for each statement execute function count_runs();

-- For a whole statement at once: a trigger for each row costs more than writing the row.
create function count_events() returns trigger language plpgsql as $$
begin
  update ledger_count
  set events = events + added.rows
  from (select count(*) as rows, min(event_key) as first, max(event_key) as last from added_event) as added
  where added.rows = 0 or (added.first = events + 1 and added.last = events + added.rows);
  if not found then
    raise exception using errcode = 'integrity_constraint_violation', message = 'events are numbered one after the other';
  end if;
  if exists (
    select 1
    from added_event as added
    where not exists (select 1 from run where run.run_key = added.run_key and run.length > added.sequence)
      or (added.sequence > 0 and not exists (
        select 1 from event as before where before.run_key = added.run_key and before.sequence = added.sequence - 1
      ))
  ) then
    raise exception using errcode = 'integrity_constraint_violation', message = 'ledger position taken or out of order';
  end if;
  return null;
end
$$;

create trigger event_counted after insert on event
referencing new table as added_event
for each statement execute function count_events();

-- S5.
create function count_claims() returns trigger language plpgsql as $$
begin
  update ledger_count
  set claim_token = claim_token + added.rows
  from (select count(*) as rows, min(token) as first, max(token) as last from added_claim) as added
  where added.rows = 0 or (added.first = claim_token + 1 and added.last = claim_token + added.rows);
  if not found then
    raise exception using
      errcode = 'integrity_constraint_violation',
      message = 'the token of a claim is the one after the newest';
  end if;
  return null;
end
$$;

create trigger claim_counted after insert on claim
referencing new table as added_claim
for each statement execute function count_claims();
