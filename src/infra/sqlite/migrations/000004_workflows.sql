--! breaking
-- An older release would take the runs of workflows for coordinations.

-- Runs of both kinds lie in one log, one chain of hashes for each and one order over all.
alter table run add column kind text not null default 'coordination' check (kind in ('coordination', 'workflow'));

drop index run_open;

create index run_open on run (kind, run_key) where ended = 0;

-- Listing coordinations passes over no run of a workflow, and appending one of those writes nothing here.
create index run_coordination on run (run_key) where kind = 'coordination';

drop trigger run_grows;

create trigger run_grows before update on run
when new.run_key <> old.run_key
  or new.run_id <> old.run_id
  or new.kind <> old.kind
  or new.length <= old.length
  or old.ended > new.ended
begin
  select raise(abort, 'the ledger is append-only: a run only grows');
end;

create table workflow_definition (
  definition_key integer primary key,
  sha256 text not null unique check (length(sha256) = 64),
  text text not null
) strict;

-- What a tenant's workflow is now.
create table workflow_registration (
  tenant text not null,
  workflow_id text not null,
  sha256 text not null references workflow_definition (sha256),
  primary key (tenant, workflow_id)
) strict, without rowid;

-- By the event that tells of the writing: events are numbered over the whole ledger, so what was there before an event
-- of some run is a range. The content is not in the log, so that it can be deleted without breaking it.
create table memory_entry (
  event_key integer primary key references event (event_key),
  tenant text not null,
  scope text not null,
  memory_id text not null,
  content text not null,
  tags text not null,
  created_at text not null,
  expires_at text,
  expires_at_ms integer,
  hash blob not null check (length(hash) = 32)
) strict;

create index memory_by_scope on memory_entry (tenant, scope);

create index memory_by_id on memory_entry (tenant, scope, memory_id);

create table memory_tag (
  tenant text not null,
  scope text not null,
  tag text not null,
  event_key integer not null references memory_entry (event_key) on delete cascade,
  primary key (tenant, scope, tag, event_key)
) strict, without rowid;

create index memory_tag_by_entry on memory_tag (event_key);

create trigger memory_no_update before update on memory_entry
begin
  select raise(abort, 'a memory entry cannot be changed');
end;

create trigger memory_no_replace before insert on memory_entry
when exists (select 1 from memory_entry where event_key = new.event_key)
begin
  select raise(abort, 'a memory entry cannot be replaced');
end;

-- Requests that came with a key of their own, until they are forgotten. Answered where `status` is there.
create table keyed_request (
  request_key integer primary key,
  tenant text not null,
  endpoint text not null,
  key text not null,
  digest text not null,
  run_id text not null,
  began_at_ms integer not null,
  lease_until_ms integer not null,
  status integer,
  body text,
  unique (tenant, endpoint, key),
  check ((status is null) = (body is null))
) strict;

create index keyed_request_by_age on keyed_request (began_at_ms);

create table driver (
  id text primary key,
  pid integer not null,
  beat_at_ms integer not null
) strict, without rowid;
